"""Trees unlike those of any corpus: deep, wide, repeated, with any text as labels."""

from __future__ import annotations

from random import Random

from treedot import Tree

LABELS = [
    "A",
    "B",
    "NP",
    "the",
    "()",
    "",
    " ",
    "\\",
    "\n",
    "(",
    "\u00e4",
    "\U0001f333",
    "\0",
    '"',
    "\t",
    "x" * 300,
    "dog::n",
    "cat::n",
]


def random_trees(random: Random, max_nodes: int = 300) -> list[Tree]:
    """Return one to eight trees; some occur twice."""
    found = [random_tree(random, max_nodes) for _ in range(random.randint(1, 6))]
    return [*found, *random.choices(found, k=random.randint(0, 2))]


def large_trees(random: Random, max_nodes: int) -> list[Tree]:
    """Return a few trees that are hard on number types: pages, and adjacent lists of similar items."""
    sizes = [random.randint(max_nodes // 8, max_nodes) for _ in range(4)]
    return [random.choice([_lists, _lists, _page])(random, size, ["S"]) for size in sizes]


def random_tree(random: Random, max_nodes: int = 300) -> Tree:
    """Return a tree of one of several shapes."""
    size = round(max_nodes ** random.random())
    labels = random.choices(LABELS, k=random.randint(1, 4)) if random.random() < 0.3 else ["A", "B", "c"]
    shapes = [_chain, _star, _comb, _bush, _bush, _doubled, _lists, _page]
    return random.choice(shapes)(random, size, labels)


def _chain(random: Random, size: int, labels: list[str]) -> Tree:
    tree = Tree(random.choice(labels))
    for _ in range(size):
        tree = Tree(random.choice(labels), [tree])
    return tree


def _star(random: Random, size: int, labels: list[str]) -> Tree:
    return Tree(random.choice(labels), [Tree(random.choice(labels)) for _ in range(size)])


def _comb(random: Random, size: int, labels: list[str]) -> Tree:
    tree = Tree(random.choice(labels))
    for _ in range(size // 2):
        children = [tree, Tree(random.choice(labels))]
        tree = Tree(random.choice(labels), random.sample(children, 2))
    return tree


def _bush(random: Random, size: int, labels: list[str]) -> Tree:
    """Join random trees of a growing collection."""
    parts = [Tree(random.choice(labels)) for _ in range(1 + size // 2)]
    while len(parts) > 1:
        count = min(len(parts), random.choice([1, 2, 2, 3, 5]))
        children = [parts.pop(random.randrange(len(parts))) for _ in range(count)]
        parts.append(Tree(random.choice(labels), children))
    return parts[0]


def _lists(random: Random, size: int, labels: list[str]) -> Tree:
    """Return adjacent lists of similar items, each with its own labels, as on web pages."""
    lists = []
    for _ in range(random.randint(1, 4)):
        mark = str(random.randrange(1000))
        item = Tree(f"i{mark}", [Tree(f"a{mark}", [Tree(f"b{mark}")])])
        lists.append(Tree(f"L{mark}", [item] * random.randint(1 + size // 24, 1 + size // 8)))
    return Tree(random.choice(labels), lists)


def _page(random: Random, size: int, labels: list[str]) -> Tree:
    """Return nested sections of paragraphs and tables: few labels, many children, equal subtrees."""
    parts = [(2, Tree(tag, [Tree("#text")])) for tag in ("p", "li", "td", "code")]
    while parts[-1][0] < size:
        inner = [random.choice(parts[-4:])] * random.choice([1, 2, 3, 20])
        inner += random.choices(parts, k=random.randint(0, 3))
        nodes = 1 + sum(nodes for nodes, _ in inner)
        if nodes > 2 * size:
            break
        tag = random.choice(["div", "section", "table", "ul"])
        parts.append((nodes, Tree(tag, [tree for _, tree in inner])))
    return Tree("html", [parts[-1][1]])


def _doubled(random: Random, size: int, labels: list[str]) -> Tree:
    """Return a full binary tree of equal subtrees, which has more fragments than a float can count."""
    tree = Tree(random.choice(labels))
    for _ in range(size.bit_length() - 1):
        tree = Tree(random.choice(labels), [tree, tree])
    return tree
