"""``read_conllu``, ``read_newick`` and ``read_dot_bracket``: sentences, trees of species, RNA structures."""

from __future__ import annotations

from treedot.parameters import DEPENDENCY_TREES, PARTS_OF_SPEECH, WORDS, checked_choice
from treedot.readers.folders import OnSkip
from treedot.readers.formats import OnError, Paths, read_files
from treedot.trees import Forest


def read_conllu(
    paths: Paths,
    *,
    unit: str = "grct",
    pos: str = "xpos",
    words: str = "lemma",
    on_bad: OnError | None = None,
    on_skip: OnSkip | None = None,
) -> Forest:
    r"""Read the sentences of CoNLL-U files as dependency trees, into one Forest.

    A word's label is its lemma and the first letter of its part of speech, in lower case, such as
    ``tree::n``. Ranges (``1-2``) and empty nodes (``1.1``) are skipped.
    The columns are ``file``, ``start`` and ``end`` (lines), and ``sent_id`` and ``text`` from the comments.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders. In a folder, all ``.conllu`` files are read, recursively, except those excluded by
        ``.gitignore`` and ``.treedotignore`` files.
    unit : {"grct", "lct", "loct", "cgrct", "clct"}, default="grct"
        The kind of tree. ``"grct"``, *grammatical relation centred tree*: every relation is a node. Its
        children are the relations of its dependents and, at the position of the token, its part of speech
        with the word below. ``"lct"``, *lexical centred tree*: every word is a node. Its children are its
        dependents, then its part of speech and its relation. ``"loct"``, *lexical only centred tree*: only
        words. ``"cgrct"`` and ``"clct"``, *compositional* trees for ``ComposedWordVectors``: the nodes are
        relations with the words of head and modifier, ``nsubj<grow::v,tree::n>``; that of a root has the head
        ``*::*``. The nodes of ``"clct"`` end with the part of speech, the relation and the word of the
        modifier.
    pos : {"xpos", "upos"}, default="xpos"
        Which part of speech to use; a token without XPOS gets its UPOS.
    words : {"lemma", "form"}, default="lemma"
        Whether a word's label has its lemma or its form; a token without lemma gets its form.
    on_bad : callable, default=None
        Called with the error of every sentence that is skipped: one without a root or with two, with a head
        that does not exist, or with a cycle of heads. By default, errors in a file given by name are raised,
        and bad sentences of files found in a folder are skipped.
    on_skip : callable, default=None
        See ``read_html``.

    Returns
    -------
    Forest
        The sentences of all files.

    References
    ----------
    D. Croce, A. Moschitti & R. Basili, "Structured Lexical Similarity via Convolution Kernels on Dependency
    Trees", EMNLP 2011; P. Annesi, D. Croce & R. Basili, "Semantic Compositionality in Tree Kernels", CIKM
    2014.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "sentences.conllu"
    >>> _ = file.write_text(
    ...     "# text = Trees grow\n"
    ...     "1\tTrees\ttree\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n"
    ...     "2\tgrow\tgrow\tVERB\tVBP\t_\t0\troot\t_\t_\n"
    ... )
    >>> for unit in ("grct", "lct", "loct", "cgrct"):
    ...     print(read_conllu(file, unit=unit)[0])
    (root (nsubj (NNS tree::n)) (VBP grow::v))
    (grow::v (tree::n NNS nsubj) VBP root)
    (grow::v tree::n)
    (root<*::*,grow::v> (nsubj<grow::v,tree::n> (NNS tree::n)) (VBP grow::v))
    """
    checked_choice("unit", unit, DEPENDENCY_TREES)
    checked_choice("pos", pos, PARTS_OF_SPEECH)
    checked_choice("words", words, WORDS)
    return read_files(paths, "conllu", on_bad, on_skip, unit=unit, pos=pos, words=words)


def read_newick(
    paths: Paths, *, lengths: str = "drop", on_bad: OnError | None = None, on_skip: OnSkip | None = None
) -> Forest:
    r"""Read the trees of Newick files into one Forest.

    A file holds any number of trees, each ending with a semicolon. A node without a label gets the empty
    label. A label may be in single quotes, where ``''`` is a quote; unquoted labels keep their underscores.
    Comments in square brackets are skipped. The columns are ``file``, ``start`` and ``end`` (lines).

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders. In a folder, all ``.nwk`` and ``.newick`` files are read.
    lengths : {"drop", "keep"}, default="drop"
        Whether to drop branch lengths, or to keep them as part of the label, ``A:0.1``.
    on_bad : callable, default=None
        Called with the error of every tree that is skipped; reading resumes after the next semicolon. By
        default, errors in a file given by name are raised, and bad trees of files found in a folder are
        skipped.
    on_skip : callable, default=None
        See ``read_html``.

    Returns
    -------
    Forest
        The trees of all files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "trees.nwk"
    >>> _ = file.write_text("(cat:2.1,(mouse:1,'brown rat':1)rodents:0.9)mammals;")
    >>> print(read_newick(file)[0])
    (mammals cat (rodents mouse brown\x20rat))
    >>> print(read_newick(file, lengths="keep")[0])
    (mammals cat:2.1 (rodents:0.9 mouse:1 brown\x20rat:1))
    """
    checked_choice("lengths", lengths, ("drop", "keep"))
    return read_files(paths, "newick", on_bad, on_skip, lengths=lengths)


def read_dot_bracket(paths: Paths, *, on_bad: OnError | None = None, on_skip: OnSkip | None = None) -> Forest:
    r"""Read secondary structures of RNA, in dot-bracket notation, into one Forest.

    A record is an optional line ``>name``, a line with the sequence and a line with the structure, which an
    energy may follow. A base pair is a node such as ``PGC``, whose children are the bases and pairs that it
    encloses. An unpaired base is a leaf. The root is a node ``ROOT``. Crossing pairs (pseudoknots), written
    with other brackets or letters, do not form a tree and are errors. Lines that begin with ``#`` are
    comments. The columns are ``file``, ``start`` and ``end`` (lines), ``name``, ``sequence`` and
    ``structure``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders. In a folder, all ``.dbn`` files are read.
    on_bad : callable, default=None
        Called with the error of every structure that is skipped. By default, errors in a file given by name
        are raised, and bad structures of files found in a folder are skipped.
    on_skip : callable, default=None
        See ``read_html``.

    Returns
    -------
    Forest
        The structures of all files.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "hairpin.dbn"
    >>> _ = file.write_text(">hairpin\nGGAAACUA\n((...)). (-1.20)\n")
    >>> print(read_dot_bracket(file)[0])
    (ROOT (PGU (PGC A A A)) A)
    """
    return read_files(paths, "dot-bracket", on_bad, on_skip)
