"""Small tables for a first run of the examples without any download. Everything in them is invented.

The questions are those of ``docs/examples/questions.tsv``; the other tables are generated here. They have the
columns of the real ones, so that they also show what a table looks like.
"""

import gzip
from collections.abc import Callable
from pathlib import Path

import numpy as np

from treedot import Tree, read_trees

Rows = list[dict[str, object]]

ROOT = Path(__file__).parents[1]
SUGARS = {  # residues and linkages that are frequent in a kingdom of the sample
    "Animalia": (("Neu5Ac", "Gal", "GlcNAc"), ("a2-3", "b1-4")),
    "Bacteria": (("Rha", "Kdo", "Glc"), ("a1-2", "a1-3")),
    "Fungi": (("Man", "Glc"), ("a1-2", "a1-6")),
    "Plantae": (("Xyl", "Fuc", "Man"), ("b1-2", "a1-3")),
}
COMMON = (("Man", "GlcNAc", "Gal"), ("b1-4", "a1-3", "a1-6"))
PRAISE = {"lovely": 4, "superb": 4, "funny": 3, "clever": 3, "dull": 1, "clumsy": 1, "awful": 0, "hollow": 0}
FILMS = ("film", "plot", "cast", "script", "ending", "music")
SYLLABLES = ("ba", "do", "fe", "gi", "ku", "la", "mo", "ni", "po", "ra", "su", "te")
PEOPLE = tuple((a + b).title() for a in SYLLABLES for b in SYLLABLES)
THINGS = ("bridge", "garden", "letter", "engine", "island", "boat")
VERBS = ("sold", "painted", "praised", "visited", "repaired", "described")


def data_folder(given: Path | None, out: Path, *names: str) -> Path:
    """Return the folder of the data; without one, write the sample to ``out/sample`` and say so."""
    if given is not None:
        return given
    folder = out / "sample"
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        kind, _, part = name.partition("_")
        rows = MAKERS[kind](np.random.default_rng(len(part)), part)
        lines = ["\t".join(rows[0]), *("\t".join(map(str, row.values())) for row in rows)]
        with gzip.open(folder / f"{name}.tsv.gz", "wt", encoding="utf-8") as file:
            file.writelines(f"{line}\n" for line in lines)
    print(f"SAMPLE: no --data, so all figures below are of small invented tables ({folder}).")
    print("SAMPLE: docs/reproduce.md says where to get the real data.\n")
    return folder


def questions(random: np.random.Generator, part: str) -> Rows:
    """Return the first 200 example questions to learn from, the other 100 to test."""
    read = read_trees(ROOT / "docs/examples/questions.tsv")
    rows = zip(read.columns["label"], read, strict=True)
    all_rows: Rows = [{"coarse": label, "text": words(tree), "tree": tree} for label, tree in rows]
    return all_rows[:200] if part == "train" else all_rows[200:]


def words(tree: Tree) -> str:
    """Return the words of a tree as one text."""
    return " ".join(node.label for node in tree.postorder() if node.is_leaf)


def glycans(random: np.random.Generator, part: str) -> Rows:
    """Return molecules whose sugars and linkages depend on the kingdom, more or less."""
    rows: Rows = []
    for k in range(400):
        kingdom = list(SUGARS)[k % 4]
        tree = _sugar(random, kingdom, 0)
        rows.append(
            {"kingdom": kingdom, "fold": k // 4 % 10, "iupac": _iupac(tree), "tree": Tree("ROOT", [tree])}
        )
    return rows


def _sugar(random: np.random.Generator, kingdom: str, depth: int) -> Tree:
    residues, linkages = SUGARS[kingdom] if random.random() < 0.5 else COMMON
    count = random.choice((1, 2)) if depth < 2 else random.choice((0, 0, 1))
    bound = [Tree(str(random.choice(linkages)), [_sugar(random, kingdom, depth + 1)]) for _ in range(count)]
    return Tree(str(random.choice(residues)), sorted(bound, key=str))


def _iupac(sugar: Tree) -> str:
    """Return the name: a chain is read towards the root, other branches are in brackets."""
    bound = [f"{_iupac(linkage.children[0])}({linkage.label})" for linkage in sugar.children]
    return "".join([*bound[:1], *(f"[{branch}]" for branch in bound[1:]), sugar.label])


def sentiment(random: np.random.Generator, part: str) -> Rows:
    """Return sentences whose nodes are labelled from 0, against the film, to 4, for it."""
    rows: Rows = []
    for _ in range(300 if part == "train" else 100):
        words, values = random.choice(list(PRAISE), 2), []
        clauses = []
        for word in words:
            value, said = PRAISE[word], f"({PRAISE[word]} {word})"
            if random.random() < 0.4:
                value, said = 4 - value, f"({4 - value} (2 not) {said})"
            clauses.append(f"({value} (2 (2 the) (2 {random.choice(FILMS)})) ({value} (2 is) {said}))")
            values.append(value)
        both = round(sum(values) / 2)
        rows.append({"label": both, "tree": f"({both} {clauses[0]} ({values[1]} (2 and) {clauses[1]}))"})
    return rows


def entailment(random: np.random.Generator, part: str) -> Rows:
    """Return pairs: the sentence says one of the two things of the text, or the same with another word.

    Half of these words are from the other thing that the text says, so that the text has all words.
    """
    rows: Rows = []
    for k in range(200 if part == "dev" else 100):
        facts = [[str(random.choice(some)) for some in (PEOPLE, VERBS, THINGS)] for _ in range(2)]
        asked, other = list(facts[0]), facts[1]
        if k % 2:
            place, drawn = random.integers(3), [str(random.choice(s)) for s in (PEOPLE, VERBS, THINGS)]
            asked[place] = other[place] if random.random() < 0.5 else drawn[place]
        told = Tree("ROOT", [_clause(*fact, adverb="slowly") for fact in facts])
        follows = Tree("ROOT", [_clause(*asked)])
        label = "YES" if asked in facts else "NO"  # another word may be the same one
        columns = {"text": words(told), "hypothesis": words(follows)}
        trees = {"text_tree": told, "hypothesis_tree": follows}
        rows.append({"label": label, **columns, **trees})
    return rows


def _clause(who: str, does: str, what: str, adverb: str = "") -> Tree:
    subject = Tree("NP", [Tree("NNP", [who])])
    thing = Tree("NP", [Tree("DT", ["the"]), Tree("NN", [what])])
    manner = [Tree("ADVP", [Tree("RB", [adverb])])] if adverb else []
    return Tree("S", [subject, Tree("VP", [Tree("VBD", [does]), thing, *manner])])


MAKERS: dict[str, Callable[[np.random.Generator, str], Rows]] = {
    "qc": questions,
    "glycans": glycans,
    "sst": sentiment,
    "rte3": entailment,
}
