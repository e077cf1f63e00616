import ast
import random
import re

import pytest
from benchmarks.planting import KINDS, changed, foreign_statements, plant, statements

from benchmarks import planting_javascript

FUNCTION = ast.parse(
    """
def total(items, limit=10):
    result = 0
    for item in items:
        if item.price > limit:
            result += item.price
        items.log(item, limit=limit)
    with items.lock as lock:
        lock.wait()
    print(f"{result} of {limit}")
    result -= 1
    result -= 2
    return result
"""
).body[0]
FOREIGN = foreign_statements([ast.parse("foreign = 1")])
JAVASCRIPT = """
class Shop {
  total(items, {limit = 10}) {
    let result = 0;
    for (const item of items) {
      if (item.price > limit) {
        result += item.price;
      }
      log({item, limit: limit});
    }
    a(); b(); c(); d();
    return result;
  }
}
"""


def edited(share, seed):
    return changed(FUNCTION, share, "kept", FOREIGN, random.Random(seed))


def test_an_exact_copy_is_the_same():
    assert ast.dump(edited(0, 1)) == ast.dump(FUNCTION)


def test_a_third_of_the_edits_each_inserts_deletes_and_replaces():
    before = len(list(statements(FUNCTION)))
    changes = {"insert": 0, "delete": 0, "replace": 0}
    for seed in range(300):
        found = list(statements(edited(1 / before, seed)))
        foreign = any(ast.unparse(statement) == "foreign = 1" for statement in found)
        kind = "delete" if not foreign else "insert" if len(found) > before else "replace"
        changes[kind] += 1
    simple = 9 / 12  # a statement with others in it always gets one before it
    assert changes["delete"] == pytest.approx(300 * simple / 3, rel=0.3)
    assert changes["replace"] == pytest.approx(300 * simple / 3, rel=0.3)


def test_statements_with_others_in_them_are_kept():
    for seed in range(20):
        nodes = [type(node) for node in ast.walk(edited(1.0, seed))]
        assert [nodes.count(kind) for kind in (ast.For, ast.If, ast.With)] == [1, 1, 1]


def test_local_names_change_and_others_stay():
    text = ast.unparse(changed(FUNCTION, 0, "local", FOREIGN, random.Random(1)))
    assert not re.search(r"\b(items|item|result|lock)\b(?!\()", text.replace(".lock", ""))
    assert re.search(r"def total\(n\d+_\d+, n\d+_\d+=10\)", text)
    assert re.search(r"\.log\(n\d+_\d+, limit=n\d+_\d+\)", text)
    assert re.search(r"print\(f'\{n\d+_\d+\} of \{n\d+_\d+\}'\)", text)


def test_all_names_change():
    text = ast.unparse(changed(FUNCTION, 0, "all", FOREIGN, random.Random(1)))
    assert not re.search(r"total|items|price|log\b|print", text)


def test_a_kind_has_as_many_copies_as_asked_and_no_function_is_copied_twice():
    functions = [ast.parse(ast.unparse(FUNCTION)).body[0] for _ in range(20)]
    copies = plant(functions, 2, seed=1)
    assert sorted(copy.kind for copy in copies) == sorted(list(KINDS) * 2)
    assert len({copy.original for copy in copies}) == 14
    assert copies == plant(functions, 2, seed=1)


def javascript(share, names, seed=1):
    (method,) = planting_javascript.functions_in(JAVASCRIPT.encode())
    return planting_javascript._changed(method, share, names, [b"foreign();"], random.Random(seed)).decode()


def test_javascript_copies_have_a_scope_of_their_own():
    head, *lines, end, _ = javascript(0, "kept").split("\n")
    assert re.fullmatch(r"class Copy\d+ extends Object {", head)
    assert end == "}"
    assert [line.strip() for line in lines] == [line.strip() for line in JAVASCRIPT.split("\n")[2:-2]]


def test_edited_javascript_follows_the_grammar():
    for seed in range(30):
        (copy,) = planting_javascript.functions_in(javascript(0.5, "all", seed).encode())
        assert copy.type == "method_definition"


def test_local_names_of_javascript_change_and_others_stay():
    text = javascript(0, "local")
    assert re.search(r"total\(n\d+_\d+, {limit: n\d+_\d+ = 10}\)", text)
    assert re.search(r"log\({item: n\d+_\d+, limit: n\d+_\d+}\)", text)
    assert ".price" in text


def test_all_names_of_javascript_change():
    assert not re.search(r"total|items|price|log|limit", javascript(0, "all"))
