import pytest

from treedot.cli import main
from treedot.serve.fields import TOPICS, read_fields


def test_the_description_names_all_routes_and_fields(site):
    found = site.get("/api/openapi.json").json()
    assert found["openapi"] == "3.1.0"
    assert set(found["paths"]) == {f"/api/{name}" for name in TOPICS}
    for name, topic in TOPICS.items():
        described = found["paths"][f"/api/{name}"]
        assert [one["name"] for one in described["get"]["parameters"]] == [one.name for one in topic.fields]
        body = described["post"]["requestBody"]["content"]["application/json"]["schema"]
        assert list(body["properties"]) == [one.name for one in topic.fields]


@pytest.mark.parametrize("name", TOPICS)
def test_described_routes_exist_and_give_described_statuses(site, name):
    described = site.get("/api/openapi.json").json()["paths"][f"/api/{name}"]
    assert str(site.get(f"/api/{name}").status_code) in described["get"]["responses"]
    assert str(site.post(f"/api/{name}", json={"nothing": 1}).status_code) in described["post"]["responses"]
    assert site.post(f"/api/{name}", json={"nothing": 1}).status_code == 400


@pytest.mark.parametrize("name", TOPICS)
def test_defaults_are_allowed(name):
    fields = TOPICS[name].fields
    defaults = {one.name: one.default for one in fields}
    assert read_fields(fields, defaults) == read_fields(fields, {}) == defaults


TREES = {"a": "(A (B c) d)", "b": "(A (B c) e)", "components": 256}
FUNCTION = "def f(a):\n    return a + 1\n"


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("status", {}),
        ("compare", TREES),
        ("compare", {"a": f"(A {'b ' * 1500})", "b": f"(A {'b ' * 1500})"}),
        ("estimates", TREES),
        ("decode", TREES),
        ("explain", {"tree": "(S (NP Who))"}),
    ],
)
def test_answers_are_as_described(site, name, fields):
    check(site, name, fields)


def test_results_of_a_search_are_as_described(start, tmp_path):
    (tmp_path / "a.py").write_text(FUNCTION)
    assert main(["index", str(tmp_path / "a.py"), "-o", str(tmp_path / "code.index")]) == 0
    with start(index=str(tmp_path / "code.index")) as client:
        check(client, "status", {})
        check(client, "search", {"text": FUNCTION.replace("a", "b")})
        check(client, "search", {"text": "(function_definition x)"})


def check(client, name, fields):
    """Check an answer against its description, also that this names everything in the answer."""
    schemas = client.get("/api/openapi.json").json()["components"]["schemas"]
    answer = client.post(f"/api/{name}", json=fields)
    assert answer.status_code == 200
    follow(schemas[name], answer.json())
    assert client.post("/api/compare", json={}).json().keys() == schemas["Error"]["properties"].keys()


KINDS = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "null": type(None),
    "array": list,
    "object": dict,
}


def follow(schema, value):
    """Raise AssertionError unless a value follows a schema, and its objects have no other names."""
    if "anyOf" in schema:
        schema = next(one for one in schema["anyOf"] if isinstance(value, KINDS[one["type"]]))
    if "type" in schema:
        assert isinstance(value, KINDS[schema["type"]])
    for one in value if isinstance(value, list) else ():
        follow(schema.get("items", {}), one)
    if "properties" in schema:
        assert value.keys() == schema["properties"].keys() == set(schema["required"])
    for name, one in value.items() if isinstance(value, dict) else ():
        follow(schema.get("properties", {}).get(name, schema.get("additionalProperties", {})), one)
    if "maximum" in schema:
        assert schema["minimum"] <= value <= schema["maximum"]
