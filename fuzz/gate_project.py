"""Projects of generated functions in Python and JavaScript, and edits of them."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from random import Random

VARIABLES = [f"{a}{b}" for a in ("item", "row", "total", "node", "page") for b in ("", "s", "_no", "_at")]
# In patterns, @ is a variable and # an expression.
EXPRESSIONS = (
    "@", "@", "1", "'x'", "@(#)", "@.@(#, #)", "[#, #]", "# + #", "# * # - #", "@[#]", "(# < #)", "@.@",
    "max(#, #, #)",
)  # fmt: skip
STATEMENTS = {
    "py": (
        "@ = #", "@.@ = #", "@(#)", "@ += #", "if #:\n    @ = #", "for @ in #:\n    @.@(#)",
        "while #:\n    @ -= #", "if #:\n    return #\nelse:\n    @(#)", "assert #, #",
        "try:\n    @ = #\nexcept @:\n    @(#)",
    ),
    "js": (
        "@ = #;", "@.@ = #;", "@(#);", "@ += #;", "if (#) {\n  @ = #;\n}",
        "for (const @ of #) {\n  @.@(#);\n}", "while (#) {\n  @ -= #;\n}",
        "if (#) {\n  return #;\n} else {\n  @(#);\n}", "throw @(#);",
        "try {\n  @ = #;\n} catch (@) {\n  @(#);\n}",
    ),
}  # fmt: skip
FORMS = {
    "py": {
        "def": "def NAME(a, b):\n    BODY\n",
        "branch": "if FLAG:\n    def NAME(a, b):\n        BODY\n",
        "method": "class Some:\n    def NAME(a, b):\n        BODY\n",
        "nested": "def OUTER(x):\n    def NAME(a, b):\n        BODY\n    return NAME\n",
    },
    "js": {
        "function": "function NAME(a, b) {\n  BODY\n}\n",
        "callback": "on(function (a, b) {\n  BODY\n});\n",
        "arrow": "const NAME = (a, b) => {\n  BODY\n};\n",
        "method": "class Some {\n  NAME(a, b) {\n    BODY\n  }\n}\n",
    },
}
NAMELESS = ("callback", "arrow")  # the name is not part of the function


@dataclass(frozen=True)
class Function:
    """A function; ``uid`` identifies it through all edits."""

    uid: int
    name: str
    form: str
    body: tuple[str, ...]

    @property
    def content(self) -> tuple[str, ...]:
        """Its text without the layout."""
        return ("" if self.form in NAMELESS else self.name, *self.body)


@dataclass
class File:
    """A file of functions, and its other content."""

    functions: list[Function] = field(default_factory=list)
    layout: int = 0


class Project:
    """Random functions in files."""

    def __init__(self, random: Random) -> None:
        self.random, self._uid = random, 0
        self.files = {name: File() for name in ("a.py", "b.py", "lib/c.py", "d.js", "lib/e.js")}
        self.placed: dict[tuple[str, int], tuple[int, tuple[str, ...]]] = {}
        for name in self.files:
            for _ in range(2):
                self.add(name, self.new(name))
        for _ in range(4):
            copy_with_edits(self)

    def new(self, name: str, form: str = "") -> Function:
        """Return a function for a file."""
        self._uid += 1
        language = name[-2:]
        body = [self.statement(language) for _ in range(self.random.randint(7, 11))]
        form = form or self.random.choice(list(FORMS[language]))
        return Function(self._uid, self.name(), form, tuple(body))

    def name(self) -> str:
        """Return a name, which another function may have, too."""
        return f"do_{self.random.randrange(30)}"

    def statement(self, language: str) -> str:
        """Return a statement."""
        return self._filled(self.random.choice(STATEMENTS[language]), 2)

    def _filled(self, pattern: str, depth: int) -> str:
        def fill(found: re.Match[str]) -> str:
            if found[0] == "@" or not depth:
                return self.random.choice(VARIABLES)
            return self._filled(self.random.choice(EXPRESSIONS), depth - 1)

        return re.sub("[@#]", fill, pattern)

    def add(self, name: str, function: Function) -> None:
        """Insert a function somewhere in a file."""
        functions = self.files[name].functions
        functions.insert(self.random.randint(0, len(functions)), function)

    def any(self, *forms: str) -> tuple[str, int] | None:
        """Return the place of a random function, of the given forms or of any."""
        places = [
            (name, k)
            for name, file in self.files.items()
            for k, function in enumerate(file.functions)
            if not forms or function.form in forms
        ]
        return self.random.choice(places) if places else None

    def with_relatives(self, count: int) -> tuple[str, int] | None:
        """Return the place of a random function with so many relatives, or with as many as there are."""
        places = [(name, k) for name, file in self.files.items() for k in range(len(file.functions))]
        distance = {place: abs(self._relatives(*place) - count) for place in places}
        nearest = min(distance.values(), default=0)
        return self.random.choice([p for p in places if distance[p] == nearest]) if places else None

    def _relatives(self, name: str, k: int) -> int:
        """Return the number of other functions of the same language with mostly the same statements."""
        body = Counter(self.files[name].functions[k].body)
        others = (
            Counter(function.body)
            for other, file in self.files.items()
            for j, function in enumerate(file.functions)
            if other[-2:] == name[-2:] and (other, j) != (name, k)
        )
        return sum((body & other).total() > 0.7 * (body | other).total() for other in others)

    def other_file(self, name: str) -> str:
        """Return a file of the same language, perhaps the same one."""
        return self.random.choice([other for other in self.files if other[-2:] == name[-2:]])

    def copy(self, function: Function, name: str) -> Function:
        """Return a copy of a function, with another name and perhaps of another form."""
        self._uid += 1
        form = self.random.choice([function.form, *FORMS[name[-2:]]])
        called = self.random.choice([function.name, self.name()])
        return replace(function, uid=self._uid, name=called, form=form)

    def edited(self, function: Function, name: str, times: int) -> Function:
        """Return a function with some statements replaced, or one added or removed."""
        body = list(function.body)
        for _ in range(times):
            place, kind = self.random.randrange(len(body)), self.random.randrange(4)
            if kind == 0 and len(body) > 6:
                del body[place]
            else:
                body[place : place + (kind > 1)] = [self.statement(name[-2:])]
        return replace(function, body=tuple(body))

    def write(self, folder: Path) -> None:
        """Write all files, and record the first line of each function."""
        shutil.rmtree(folder, ignore_errors=True)
        self.placed = {}
        for name, file in self.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            note = "#" if name.endswith("py") else "//"
            lines = [f"{note} layout {file.layout}"] * (1 + file.layout % 3)
            for function in file.functions:
                lines += [""] * (file.layout % 2)
                text = FORMS[name[-2:]][function.form].replace("OUTER", f"outer_{function.uid}")
                for line in text.replace("NAME", function.name).splitlines():
                    place, uid, content = (path.as_posix(), len(lines) + 1), function.uid, function.content
                    if line.lstrip() == "BODY":
                        indent = line[: line.index("BODY")]
                        body = "\n".join(function.body).split("\n")
                        lines += [f"{indent}{note} {file.layout}"] * (file.layout > 1)
                        lines += [indent + inside for inside in body]
                        continue
                    if "outer_" in line:
                        self.placed[place] = -uid, (f"outer_{uid}", *content)
                    elif "(a, b)" in line:
                        self.placed[place] = uid, content
                    lines.append(line)
            path.write_text("\n".join(lines) + "\n")


def add_functions(project: Project) -> None:
    """Add functions that are unlike all others."""
    for _ in range(project.random.randint(1, 3)):
        name = project.random.choice(list(project.files))
        project.add(name, project.new(name))


def add_pair_of_callbacks(project: Project) -> None:
    """Add two similar functions without names."""
    name = project.random.choice(["d.js", "lib/e.js"])
    name = name if name in project.files else next(file for file in project.files if file.endswith("js"))
    first = project.new(name, "callback")
    project.add(name, first)
    project.add(name, replace(project.edited(first, name, 1), uid=project.new(name).uid))


def copy_exactly(project: Project) -> None:
    """Copy a function."""
    _copy(project, 0)


def copy_with_edits(project: Project) -> None:
    """Copy a function and edit the copy; an earlier copy may be similar to only one of the two."""
    _copy(project, project.random.randint(1, 3))


def copy_beside_none(project: Project) -> None:
    """Copy a function that has no copy yet."""
    _copy(project, project.random.randint(0, 1), project.with_relatives(0))


def copy_beside_one(project: Project) -> None:
    """Copy a function that has one copy already."""
    _copy(project, project.random.randint(0, 1), project.with_relatives(1))


def copy_beside_two(project: Project) -> None:
    """Copy a function that has two copies already."""
    _copy(project, project.random.randint(0, 1), project.with_relatives(2))


def copy_a_callback(project: Project) -> None:
    """Copy a function without a name within its file."""
    if place := project.any("callback"):
        name, k = place
        copy = replace(project.files[name].functions[k], uid=project.new(name).uid)
        project.add(name, project.edited(copy, name, project.random.randint(0, 1)))


def _copy(project: Project, times: int, place: tuple[str, int] | None = None) -> None:
    if place := place or project.any():
        name, k = place
        target = project.other_file(name)
        copy = project.copy(project.files[name].functions[k], name)
        project.add(target, project.edited(copy, name, times))


def edit_a_little(project: Project) -> None:
    """Change a statement of a function."""
    _change(project, lambda function, name: project.edited(function, name, 1))


def edit_much(project: Project) -> None:
    """Change most statements of a function."""
    _change(project, lambda function, name: project.edited(function, name, 6))


def rename(project: Project) -> None:
    """Give a function another name."""
    _change(project, lambda function, name: replace(function, name=project.name()))


def change_names_inside(project: Project) -> None:
    """Give a variable of a function another name."""
    old, new = project.random.sample(VARIABLES, 2)
    _change(
        project,
        lambda function, name: replace(
            function, body=tuple(re.sub(rf"\b{old}\b", new, text) for text in function.body)
        ),
    )


def _change(project: Project, change: Callable[[Function, str], Function], *forms: str) -> None:
    if place := project.any(*forms):
        name, k = place
        functions = project.files[name].functions
        functions[k] = change(functions[k], name)


def edit_a_callback(project: Project) -> None:
    """Change a statement of a function without a name."""
    _change(project, lambda function, name: project.edited(function, name, 1), "callback")


def repeat_a_name(project: Project) -> None:
    """Give a function the name of another one in its file."""
    if place := project.any():
        name, k = place
        functions = project.files[name].functions
        functions[k] = replace(functions[k], name=project.random.choice(functions).name)


def move_function(project: Project) -> None:
    """Move a function to another file."""
    if place := project.any():
        name, k = place
        project.add(project.other_file(name), project.files[name].functions.pop(k))


def copy_and_delete_the_original(project: Project) -> None:
    """Move a function to another file and give it another name."""
    if place := project.any():
        name, k = place
        function = project.files[name].functions.pop(k)
        project.add(project.other_file(name), replace(function, name=project.name()))


def move_file(project: Project) -> None:
    """Give a file another name."""
    name = project.random.choice(list(project.files))
    project.files[f"moved_{project.random.randrange(1000)}{Path(name).suffix}"] = project.files.pop(name)


def reformat(project: Project) -> None:
    """Change comments and blank lines."""
    project.random.choice(list(project.files.values())).layout += 1


def delete(project: Project) -> None:
    """Delete a function."""
    if place := project.any():
        project.files[place[0]].functions.pop(place[1])


def reorder(project: Project) -> None:
    """Change the order of the functions of a file."""
    project.random.shuffle(project.random.choice(list(project.files.values())).functions)


EDITS: tuple[Callable[[Project], None], ...] = (
    add_functions, add_pair_of_callbacks, copy_exactly, copy_with_edits, copy_with_edits, copy_beside_none,
    copy_beside_one, copy_beside_two, copy_a_callback, edit_a_little, edit_much, rename, change_names_inside,
    edit_a_callback, repeat_a_name, move_function, copy_and_delete_the_original, move_file, reformat, delete,
    reorder,
)  # fmt: skip
