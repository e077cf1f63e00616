"""``read_conllu``, ``read_newick`` and ``read_dot_bracket``: sentences, trees of species, RNA structures."""

from __future__ import annotations

from treedot.parameters import DEPENDENCY_TREES, checked_choice
from treedot.readers.folders import OnSkip
from treedot.readers.formats import OnError, Paths, read_files
from treedot.trees import Forest


def read_conllu(
    paths: Paths,
    *,
    unit: str = "grct",
    pos: str = "xpos",
    on_bad: OnError | None = None,
    on_skip: OnSkip | None = None,
) -> Forest:
    r"""Read the sentences of CoNLL-U files as dependency trees, into one Forest.

    A word is its lemma and the first letter of its part of speech, in lower case, such as ``tree::n``; its
    form stands in for a lemma that is not given. Ranges (``1-2``) and empty nodes (``1.1``) are left out.
    The columns are ``file``, ``start`` and ``end`` (lines), and ``sent_id`` and ``text`` as the comments
    of a sentence give them.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders; of a folder, all files ``.conllu``, also of its folders, but for those that
        ``.gitignore`` and ``.treedotignore`` files name.
    unit : {"grct", "lct", "loct"}, default="grct"
        Which tree a sentence becomes. ``"grct"``, *grammatical relation centred tree*: every relation is a
        node; its children are those of its dependents, and among them, in the place of the token, its part
        of speech with the word below. ``"lct"``, *lexical centred tree*: every word is a node; behind the
        words that depend on it, its part of speech and its relation are its last children. ``"loct"``,
        *lexical only centred tree*: words alone.
    pos : {"xpos", "upos"}, default="xpos"
        Which part of speech; where a token has no XPOS, it is the UPOS.
    on_bad : callable, default=None
        Called with the error of every sentence that is left out: one without a root or with two, with a
        head that is not there, or heads that lead in a circle. By default the first of a file that is named
        is raised, and those in a folder are left out.
    on_skip : callable, default=None
        See ``read_html``.

    Returns
    -------
    Forest
        The sentences of all files.

    References
    ----------
    D. Croce, A. Moschitti & R. Basili, "Structured Lexical Similarity via Convolution Kernels on Dependency
    Trees", EMNLP 2011.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "sentences.conllu"
    >>> _ = file.write_text(
    ...     "# text = Trees grow\n"
    ...     "1\tTrees\ttree\tNOUN\tNNS\t_\t2\tnsubj\t_\t_\n"
    ...     "2\tgrow\tgrow\tVERB\tVBP\t_\t0\troot\t_\t_\n"
    ... )
    >>> for unit in ("grct", "lct", "loct"):
    ...     print(read_conllu(file, unit=unit)[0])
    (root (nsubj (NNS tree::n)) (VBP grow::v))
    (grow::v (tree::n NNS nsubj) VBP root)
    (grow::v tree::n)
    """
    checked_choice("unit", unit, DEPENDENCY_TREES)
    checked_choice("pos", pos, ("xpos", "upos"))
    return read_files(paths, "conllu", on_bad, on_skip, unit=unit, pos=pos)


def read_newick(
    paths: Paths, *, lengths: str = "drop", on_bad: OnError | None = None, on_skip: OnSkip | None = None
) -> Forest:
    r"""Read the trees of Newick files into one Forest.

    A file holds any number of trees, each of which ends with a semicolon. A node without a label has the
    empty one. Labels may stand in single quotes, in which two stand for one; others are taken as they are
    written, with their underscores. Comments in square brackets are left out. The columns are ``file``,
    ``start`` and ``end`` (lines).

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders; of a folder, all files ``.nwk`` and ``.newick``.
    lengths : {"drop", "keep"}, default="drop"
        What becomes of the lengths of branches: nothing, or a part of the label as it is written, ``A:0.1``.
    on_bad : callable, default=None
        Called with the error of every tree that is left out; reading goes on behind the next semicolon. By
        default the first of a file that is named is raised, and those in a folder are left out.
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

    A structure is a line ``>name``, which may be missing, a line with the sequence and one with the
    structure, behind which an energy may stand. A pair of bases is a node ``PGC``, whose children are what it
    encloses, and an unpaired base is a leaf; all stand below a node ``ROOT``. Pairs that cross others
    (pseudoknots), in other brackets or letters, are no tree and are refused. Lines that begin with ``#`` are
    comments. The columns are ``file``, ``start`` and ``end`` (lines), ``name``, ``sequence`` and
    ``structure``.

    Parameters
    ----------
    paths : path or iterable of paths
        Files and folders; of a folder, all files ``.dbn``.
    on_bad : callable, default=None
        Called with the error of every structure that is left out. By default the first of a file that is
        named is raised, and those in a folder are left out.
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
