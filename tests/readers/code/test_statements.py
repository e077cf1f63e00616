"""Statements of files, which ``CodeSettings(statements=True)`` lists, in every language."""

import numpy as np
import pytest

from treedot.languages import LANGUAGES
from treedot.readers import CodeSettings, parse_code
from treedot.readers.code.parse_cache import ParseCache, keeping_parsed

SETTINGS = CodeSettings("function", "blur", "blur", blurred=True, statements=True)

JAVASCRIPT = """\
import a from 'b';
class A {
  x = 1;
  f() {
    switch (x) {
      case 1:
        foo();
        break;
    }
    if (a) { bar(); }
  }
}
const g = () => {
  a();
};
"""
C = """\
#ifndef A
int x;
int f(int a) {
  int b = 1;
  if (a) {
    g();
  }
  switch (a) {
  case 1:
    h();
  }
  return b;
}
#endif
"""
# For each language: a source, and the lines of its statements.
EXAMPLES = {
    "python": (
        "import os\nclass A:\n    x = 1\n    def f(self):\n        if x:\n            y = 2\n"
        "        else:\n            z = 3\n        try:\n            a()\n        except E:\n"
        "            b()\n        finally:\n            c()\nmatch x:\n    case 1:\n        d()\n",
        "1 2-14 3 4-14 5-8 6 8 9-14 10 12 14 15-17 16-17 17",
    ),
    "javascript": (JAVASCRIPT, "1 2-12 3 4-11 5-9 6-8 7 8 10 10 13-15 14"),
    "typescript": (JAVASCRIPT, "1 2-12 3 4-11 5-9 6-8 7 8 10 10 13-15 14"),
    "tsx": (JAVASCRIPT, "1 2-12 3 4-11 5-9 6-8 7 8 10 10 13-15 14"),
    "java": (
        "package p;\nclass A {\n  int x;\n  A() {\n    x = 1;\n  }\n  static {\n    a();\n  }\n  void f() {\n"
        "    switch (x) {\n      case 1:\n        b();\n    }\n  }\n}\nenum E {\n  A;\n"
        "  void f() {\n    c();\n  }\n}\n",
        "1 2-16 3 4-6 5 7-9 8 10-15 11-14 12-13 12 13 17-22 18 18-21 19-21 20",
    ),
    "c": (C, "1-14 2 3-13 4 5-7 6 8-11 9-10 10 12"),
    "cpp": (
        C + "namespace n {\nclass D {\n  int x;\n  void g() {\n    h();\n  }\n};\n}\n",
        "1-14 2 3-13 4 5-7 6 8-11 9-10 10 12 15-22 16-21 17 18-20 19",
    ),
    "go": (
        "package p\nfunc f(x int) int {\n\ta := 1\n\tif x > 1 {\n\t\tb()\n\t}\n\tswitch x {\n\tcase 1:\n"
        "\t\tc()\n\t}\n\treturn a\n}\n",
        "1 2-12 3-11 3 4-6 5 5 7-10 8 9 9 11",
    ),
    "rust": (
        "use a::b;\nimpl A {\n    fn f(&self) -> u8 {\n        let a = 1;\n        match a {\n"
        "            1 => {\n"
        "                b();\n            }\n            _ => 2,\n        }\n    }\n}\n",
        "1 2-12 3-11 4 5-10 6-8 7 9",
    ),
    "csharp": (
        "using System;\nnamespace N {\nclass A {\n  int x;\n  int P {\n    get {\n"
        "      return 1;\n    }\n  }\n"
        "  void F() {\n    switch (x) {\n      case 1:\n        B();\n        break;\n    }\n  }\n}\n}\n",
        "1 2-18 3-17 4 5-9 7 10-16 11-15 12-14 12 13 14",
    ),
    "ruby": (
        "class A\n  def f(x)\n    if x > 1\n      a = 1\n    else\n      b = 2\n    end\n"
        "    while x\n      c(1)\n"
        "    end\n    xs.each do |y|\n      d(2)\n    end\n    begin\n      e(3)\n    rescue E\n"
        "      g(4)\n    end\n"
        "  end\nend\n",
        "1-20 2-19 3-7 4 6 8-10 9 11-13 11 12 12 14-18 15 16-17 17",
    ),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_statements_are_the_children_of_blocks_bodies_and_files(language):
    source, expected = EXAMPLES[language]
    forest = parse_code(source, language, settings=SETTINGS)
    lines = forest.columns["statements"][-1][:, 1:3].tolist()
    assert " ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in lines) == expected
    assert forest.columns["statements"][:-1] == [None] * (len(forest) - 1)
    assert forest.columns["name"][-1] == ""


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_row_holds_the_node_and_the_texts_of_a_statement(language):
    source, _ = EXAMPLES[language]
    files = parse_code(
        source, language, settings=CodeSettings("file", "blur", "blur", 1, True, statements=True)
    )
    (rows,), (texts,) = files.columns["statements"], files.columns["blurred"]
    leaves = np.flatnonzero(files.arity == 0)
    names = {k for k, text in enumerate(files.labels) if text in LANGUAGES[language].identifiers}
    is_name = np.array([k in names for k in files.label[leaves].tolist()])
    for node, start, end, first, last in rows.tolist():
        inside = (leaves > node - files.subtree_size[node]) & (leaves <= node)
        assert is_name[inside].sum() <= last - first <= inside.sum()
        assert 1 <= start <= end <= source.count("\n")
    assert rows[:, 4].max() <= len(texts)


def test_statements_of_ignored_definitions_are_left_out():
    source = "a()\n# treedot: ignore\ndef f():\n    b()\nc()\n"
    forest = parse_code(source, "python", settings=SETTINGS)
    assert forest.columns["statements"][-1][:, 1].tolist() == [1, 5]
    ignored = parse_code("# treedot: ignore\na()\n", "python", settings=SETTINGS)
    assert len(ignored) == 0


def test_statements_come_back_from_the_cache(tmp_path):
    source, _ = EXAMPLES["python"]
    with keeping_parsed(ParseCache(tmp_path)):
        first = parse_code(source, "python", settings=SETTINGS)
    with keeping_parsed(ParseCache(tmp_path)):
        again = parse_code(source, "python", settings=SETTINGS)
        without = parse_code(
            source, "python", settings=CodeSettings("function", "blur", "blur", blurred=True)
        )
    assert again == first
    assert np.array_equal(again.columns["statements"][-1], first.columns["statements"][-1])
    assert "statements" not in without.columns
