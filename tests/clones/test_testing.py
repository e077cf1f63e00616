"""Which files hold tests, and where their groups come in the list."""

import pytest

from treedot import Forest, Tree, find_duplicates
from treedot.clones.listed import in_sections
from treedot.clones.testing import are_tests

TESTS = (
    "a/tests/x.py", "a/test/x.py", "lib/test_x.py", "lib/x_test.go", "conftest.py", "src/XTest.java",
    "e2e/x.js", "a/__tests__/x.js", "lib/x.spec.ts", "lib/x.test.js", "spec/x.rb", "lib/idle_test/x.py",
    "lib/x_spec.rb",
)  # fmt: skip
CODE = ("a/x.py", "lib/contest.py", "src/Latest.java", "testing/x.py", "lib/attest.go", "lib/inspect.py")


@pytest.mark.parametrize("file", TESTS)
def test_files_of_tests_are_known_by_their_names(file):
    assert are_tests([file, "other/x.py"]) == [True, False]


@pytest.mark.parametrize("file", CODE)
def test_other_files_are_not(file):
    assert are_tests([file, "other/x.py"]) == [False, False]


def test_a_folder_around_all_files_says_nothing():
    assert are_tests(["/home/test/a.py", "/home/test/b/c.py"]) == [False, False]
    assert are_tests([]) == []


def test_groups_in_tests_come_last_and_a_group_across_is_not_one_of_them():
    def tree(name, size):
        return Tree("f", [Tree(f"{name}{k}", ["x"]) for k in range(size)])

    some = [tree(name, size) for name, size in (("a", 60), ("b", 50), ("c", 40)) for _ in range(2)]
    forest = Forest.from_trees(some)
    forest.columns.update(
        file=["t/test_a.py", "t/test_b.py", "x.py", "t/test_b.py", "x.py", "y.py"],
        start=[1, 1, 1, 100, 200, 1], end=[60, 50, 60, 150, 260, 60],
    )  # fmt: skip
    groups = find_duplicates(forest)
    assert [(group.members, group.is_in_tests) for group in groups] == [
        ((2, 3), False), ((4, 5), False), ((0, 1), True),
    ]  # fmt: skip
    assert in_sections(groups, "last") == groups
    assert in_sections(groups, "first") == [groups[2], *groups[:2]]
    assert in_sections(groups, "skip") == groups[:2]
