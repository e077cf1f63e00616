import json
import os
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from treedot import TreeIndex, read_trees
from treedot.cli import main

MODULE = """
def mean(values):
    total = 0
    for value in values:
        total += value
    return total / len(values)


def largest(values):
    return max(values)


class Stack:
    def push(self, item):
        if self.full:
            raise OverflowError(item)
        self.items.append(item)
"""
QUERY = """
def average(numbers):
    sum = 0
    for number in numbers:
        sum += number
    return sum / len(numbers)
"""


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    folder = tmp_path_factory.mktemp("index")
    (folder / "module.py").write_text(MODULE)
    path = folder / "code.index"
    build(folder / "module.py", path)
    return path


def build(source, path):
    """Build an index as a user does."""
    assert main(["index", str(source), "-o", str(path), "--overwrite"]) == 0


def asked(client, text, **fields):
    return client.post("/api/search", json={"text": text, **fields}).json()["results"]


@pytest.fixture(scope="module")
def searched(index, start):
    with start(index=str(index)) as client:
        yield client


def test_a_function_is_searched_with_the_functions_inside_it(searched):
    inner = "    def later():\n        return total\n"
    text = MODULE.split("\n\n\n")[0] + "\n"
    nested = text.replace("    total = 0\n", "    total = 0\n" + inner)
    found = searched.post("/api/search", json={"text": nested, "k": 1}).json()
    plain = searched.post("/api/search", json={"text": text, "k": 1}).json()
    assert found["nodes"] > plain["nodes"]
    assert all("module" not in text for text in found["results"][0]["only_query"])


@pytest.mark.parametrize("query", [QUERY, QUERY.replace("0", "numbers.pop()"), MODULE.split("\n\n\n")[1]])
@pytest.mark.parametrize("k", [1, 10])
def test_results_are_those_of_the_command(searched, index, capsys, query, k):
    assert main(["search", str(index), query, "-k", str(k), "--format", "json"]) == 0
    expected = json.loads(capsys.readouterr().out)[0]["found"]
    found = asked(searched, query, k=k)
    assert found
    same = ("row", "place", "cosine", "similarity", "language")
    assert [[one[name] for name in same] for one in found] == [
        [one[name] for name in same] for one in expected
    ]


def test_a_renamed_copy_is_similar_and_its_names_are_listed(searched):
    (best,) = asked(searched, QUERY)
    assert best["place"].endswith("module.py:2-6 mean")
    assert best["similarity"] == 1
    assert 0 < best["cosine"] < 0.9
    assert best["only_query"] == best["only_found"] == []
    assert (best["difference"]["lines"], best["difference"]["different"]) == (5, 5)
    renamed = {tuple(pair) for pair in best["difference"]["renamed"]}
    names = ("average mean", "numbers values", "sum total", "number value")
    assert renamed == {tuple(pair.split()) for pair in names}


def test_an_edited_copy_lists_the_constructs_that_differ(searched):
    (best,) = asked(searched, QUERY.replace("sum += number", "if number:\n            sum += number"))
    assert best["difference"]["lines"] == 6
    assert "if_statement → identifier block" in best["only_query"]
    assert best["only_found"] == []


def test_a_file_that_has_changed_since_it_was_indexed_is_not_shown(tmp_path, start):
    (tmp_path / "module.py").write_text(MODULE)
    build(tmp_path / "module.py", tmp_path / "code.index")
    (tmp_path / "module.py").write_text("SECRET = 1\n" + MODULE)
    with start(index=str(tmp_path / "code.index")) as client:
        (best,) = asked(client, QUERY)
        assert best["similarity"] == 1
        assert best["difference"] is None
        page = client.get("/search", params={"text": QUERY}).text
        assert "Side by side" in page
        assert "data-sources" not in page


def test_what_is_unlike_everything_has_no_result(searched):
    assert asked(searched, "import os") == []
    assert "No unit of the index is similar" in searched.get("/search", params={"text": "import os"}).text


def test_an_index_of_other_trees_is_searched_without_a_threshold(tmp_path, start):
    forest = read_trees(["(S (A a) (B b))", "(S (A a) (C c))", "(T (D d))"])
    TreeIndex.build(forest, tmp_path / "trees.index")
    with start(index=str(tmp_path / "trees.index")) as client:
        found = asked(client, "(S (A a) (B b))")
        assert [one["row"] for one in found] == [0, 1]
        assert found[0]["similarity"] == 1
        assert found[0]["difference"] is None


def test_the_page_links_to_both_side_by_side(searched):
    page = searched.get("/search", params={"text": QUERY})
    assert page.status_code == 200
    assert "module.py:2-6 mean" in page.text
    assert "5 of 5 lines differ; 4 names renamed" in page.text
    assert page.text.count("<pre data-start=") == 2
    link = page.text.partition('data-src="/compare?')[2].partition('"')[0].replace("&amp;", "&")
    compared = searched.get(f"/compare?{link}").text
    assert compared.count("data-tree=") == 2
    assert "<b>1.000</b> <small>productions in both" in compared


def test_status_says_what_is_loaded(searched):
    assert searched.get("/api/status").json()["index"] == {"trees": 3, "languages": ["python"]}


@pytest.fixture
def indexed(tmp_path):
    """A file of source code and its index, which may be replaced."""
    source, path = tmp_path / "module.py", tmp_path / "code.index"
    source.write_text(MODULE)
    build(source, path)
    return source, path


def test_an_index_that_is_replaced_is_searched_whole(indexed, start):
    source, path = indexed
    with start(index=str(path)) as client:
        assert client.get("/api/status").json()["index"]["trees"] == 3
        source.write_text(QUERY)
        build(source, path)
        assert client.get("/api/status").json()["index"]["trees"] == 1


def test_an_index_that_cannot_be_read_does_not_replace_the_old_one(tmp_path, indexed, start):
    source, path = indexed
    with start(index=str(path)) as client:
        expected = client.post("/api/search", json={"text": QUERY}).json()
        (tmp_path / "damaged").write_bytes(b"damaged")
        os.replace(tmp_path / "damaged", path)
        with ThreadPoolExecutor(4) as pool:  # also processes that have not read it before answer from it
            found = list(pool.map(lambda _: client.post("/api/search", json={"text": QUERY}), range(12)))
        assert {one.status_code for one in found} == {200}
        assert [one.json() for one in found] == [expected] * 12
        path.unlink()
        assert client.get("/api/status").json()["index"]["trees"] == 3
        source.write_text(QUERY)
        build(source, path)
        assert client.get("/api/status").json()["index"]["trees"] == 1


def test_an_index_that_is_damaged_in_place_is_reported(indexed, start):
    source, path = indexed
    with start(index=str(path)) as client:
        assert asked(client, QUERY)
        path.write_bytes(b"damaged")
        for _ in range(4):
            found = client.post("/api/search", json={"text": QUERY})
            assert found.status_code in (400, 413)  # 413: of a process that had it mapped into its memory
            assert found.json()["error"]
        build(source, path)
        assert asked(client, QUERY)


def test_every_answer_is_of_the_old_index_or_the_new_one(tmp_path, start):
    source, path, other = (tmp_path / name for name in ("module.py", "code.index", "other.index"))
    source.write_text(QUERY)
    build(source, other)
    source.write_text(MODULE)
    build(source, path)
    contents = [path.read_bytes(), other.read_bytes()]
    with start(index=str(path)) as client:

        def search(_):
            return client.post("/api/search", json={"text": QUERY}).json()

        expected = [search(None)]
        os.replace(other, path)
        expected.append(search(None))
        assert expected[0] != expected[1]
        with ThreadPoolExecutor(3) as pool:
            for number in range(20):
                other.write_bytes(contents[number % 2])
                running = [pool.submit(search, None) for _ in range(6)]
                time.sleep(0.005 * (number % 7))
                os.replace(other, path)
                assert all(one.result() in expected for one in running)
                assert search(None) == expected[number % 2]


def test_without_an_index_the_message_says_how_to_start(site):
    found = site.post("/api/search", json={"text": QUERY})
    assert found.status_code == 400
    assert "--index" in found.json()["error"]


def test_the_answer_is_json(searched):
    answer = searched.get("/api/search", params={"text": "def f(): pass"})
    assert answer.headers["Content-Type"] == "application/json"
    assert json.loads(answer.text)["nodes"] > 3
