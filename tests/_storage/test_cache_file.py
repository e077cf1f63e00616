"""The file of kept results: an entry comes back whole and for its own key, or not at all."""

import pytest

from treedot._storage.cache_file import CacheFile, facts

A, B = b"a" * 16, b"b" * 16


def reopened(path, **limits):
    return CacheFile(path, {"some": 1000, "others": 1000, **limits})


@pytest.fixture
def path(tmp_path):
    return tmp_path / "folder" / "kept.sqlite"


def test_an_entry_is_found_in_its_table_under_its_key(path):
    cache = reopened(path)
    cache.put("some", A, b"content")
    cache.close()
    assert reopened(path).get("some", A) == b"content"
    assert reopened(path).get("some", B) is None
    assert reopened(path).get("others", A) is None


def test_tables_have_limits_of_their_own(path):
    cache = reopened(path, some=200)
    for k in range(20):
        cache.put("some", bytes([k]) * 16, bytes(50))
        cache.put("others", bytes([k]) * 16, bytes(20))
    cache.close()
    assert facts(path, "some").size <= 200
    assert 0 < facts(path, "some").entries < 20
    assert facts(path, "others").entries == 20


def test_an_entry_larger_than_half_of_its_table_is_not_kept(path):
    cache = reopened(path)
    cache.put("some", A, bytes(100))
    cache.put("some", B, bytes(500))
    cache.close()
    assert facts(path, "some") == (1, 116)


def test_a_missing_file_or_table_is_empty(path):
    assert facts(path, "some") == (0, 0)
    reopened(path).get("some", A)
    assert facts(path, "some") == (0, 0)
    assert facts(path, "none") == (0, 0)
