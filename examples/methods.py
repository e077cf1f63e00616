"""What is this method called? The special methods of Python's standard library, by their syntax alone.

You learn: source code as trees, with all names and literals removed; folds in which the functions of one file
stay together, since neighbours resemble each other; and how much of a method's purpose its form betrays. It
needs no data but the Python that runs it, so the figures differ from one version to the next.

    python examples/methods.py
    open method.html
"""

import argparse
import sysconfig
from pathlib import Path

import numpy as np
from sklearn.model_selection import GroupShuffleSplit

from treedot import TreeClassifier, explain, explain_model, read_code

NAMES = ("__eq__", "__exit__", "__getitem__", "__hash__", "__init__", "__iter__", "__len__", "__repr__")
BLURRED = {"identifiers": "blur", "literals": "blur"}  # a name becomes "identifier", whichever it is
LEFT_OUT = ("test", "tests", "site-packages", "dist-packages")


def main(arguments: list[str] | None = None) -> None:
    """Read, train, test, explain."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--source", default=sysconfig.get_paths()["stdlib"], type=Path, help="folder of code")
    parser.add_argument("--out", default=".", type=Path, help="folder of the page and of the model")
    options = parser.parse_args(arguments)

    code = read_code(options.source, language="python", exclude=LEFT_OUT, n_jobs=-1, **BLURRED)
    name = np.array([qualified.split(".")[-1] for qualified in code.columns["name"]])
    chosen = np.isin(name, NAMES)
    methods, name = code[chosen], name[chosen]
    files = np.array(methods.columns["file"])

    splits = GroupShuffleSplit(1, test_size=0.25, random_state=0).split(name, groups=files)
    train, test = next(splits)
    model = TreeClassifier(n_jobs=-1).fit(methods[train], name[train], groups=files[train])
    frequent = max((name[test] == other).mean() for other in NAMES)
    print(f"{model.score(methods[test], name[test]):.3f} of {len(test)} methods are right")
    print(f"{frequent:.3f} would be, were all taken for the most frequent one")

    learned = explain_model(model, methods[train], n_fragments=2)
    for one, fragments in learned.fragments.items():
        print(f"{one:<11}", *(share.fragment for share in fragments.supporting), sep="  ")

    asked = "def what(self, other):\n    return self.name == other.name and self.size == other.size\n"
    (options.out / "asked.py").write_text(asked, encoding="utf-8")
    found = explain(model, read_code(options.out / "asked.py", **BLURRED), n_fragments=5)
    print(f"\n{asked}\n{found}")
    (options.out / "method.html").write_text(found.to_html(), encoding="utf-8")


if __name__ == "__main__":
    main()
