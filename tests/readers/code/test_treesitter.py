import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import examples
from treedot.languages import LANGUAGES, language_of
from treedot.readers import CodeSettings, parse_code
from treedot.readers.code.processes import TooSlowError
from treedot.readers.code.treesitter import load_grammar
from treedot.readers.code.units import name_in_source, unique_names

BLURRED = CodeSettings(identifiers="blur", literals="blur", blurred=True)

# For each language: a source, its functions, its classes, and a piece of a tree.
EXAMPLES = {
    "python": (
        'class A:\n    """Doc."""\n    def f(self, x):\n        # why\n'
        '        return x not in [f"a{x}", None]\n',
        ["A.f"],
        ["A"],
        "(comparison_operator (identifier x) not\\x20in (list (string (string_content a) "
        "(interpolation (identifier x))) none))",
    ),
    "javascript": (
        'class A { get(x) { "use strict"; return typeof x++; } }\n'
        "if (a) { b.c = function () { return /x/g; }; }\nconst add = (a, b) => `${a}`;\n",
        ["A.get", "b.c", "add"],
        ["A"],
        "(statement_block (return_statement (unary_expression typeof (update_expression "
        "(identifier x) ++))))",
    ),
    "typescript": (
        "interface I { n: number }\nabstract class A<T> { f(x: T): string { return <any>x; } }\n",
        ["A.f"],
        ["I", "A"],
        "(type_annotation (predefined_type string))",
    ),
    "tsx": (
        'const C = ({ name }: P) => <p className="a">{name}</p>;\n',
        ["C"],
        [],
        "(jsx_attribute (property_identifier className) (string a))",
    ),
    "java": (
        "/** Doc. */ class A<T> { A() {} @Override int f(T x) { n += 1; return n-- % 0x1F; }\n"
        "interface I {} }\n",
        ["A.A", "A.f"],
        ["A", "A.I"],
        "(binary_expression (update_expression (identifier n) --) % (hex_integer_literal 0x1F))",
    ),
    "c": (
        "struct s { int x; };\nstatic int *f(struct s *p) { /* why */ return !p ? NULL : &p->x; }\n",
        ["f"],
        ["s"],
        "(conditional_expression (unary_expression ! (identifier p)) null (pointer_expression & ",
    ),
    "cpp": (
        "template <class T> class A { ~A() {} T& get(int i) { return v[i] << 1; } };\n"
        "int n::A::size() { return 0; }\n",
        ["A.~A", "A.get", "n::A::size"],
        ["A"],
        "<< (number_literal 1)",
    ),
    "go": (
        "package p\ntype S struct { n int }\nfunc (s *S) Close(x int) error { s.n += x; return nil }\n"
        "func main() {}\n",
        ["S.Close", "main"],
        ["S"],
        "(field_identifier n))) += (expression_list (identifier x))",
    ),
    "rust": (
        "struct P;\nimpl Shape for P { /// Doc\n fn area(&self) -> f64 { -self.x * 2.0 } }\nfn main() {}\n",
        ["P.area", "main"],
        ["P", "P~2"],
        "(binary_expression (unary_expression - (field_expression self (field_identifier x))) * "
        "(float_literal 2.0))",
    ),
    "csharp": (
        "class A { int n; A(int n) { this.n = n; } public static A operator +(A a, A b) => a;\n"
        'string F() { return $"a{n}"; } }\n',
        ["A.A", "A.+", "A.F"],
        ["A"],
        "(interpolated_string_expression (string_content a) (interpolation (identifier n)))",
    ),
    "ruby": (
        'module M\n  class A < B\n    def f(x)\n      @z = "a#{x}" + :s.to_s # why\n    end\n'
        "    def self.g; end\n  end\nend\n",
        ["M.A.f", "M.A.g"],
        ["M", "M.A"],
        "(assignment (instance_variable @z) (binary (string (string_content a) (interpolation "
        "(identifier x))) + ",
    ),
}


def test_every_language_of_the_table_has_an_example():
    assert set(EXAMPLES) == set(LANGUAGES)


@pytest.mark.parametrize("language", EXAMPLES)
def test_functions_and_classes_of_each_language_are_found_and_named(language):
    source, functions, classes, piece = EXAMPLES[language]
    forest = parse_code(source, language)
    assert forest.columns["name"] == functions
    assert parse_code(source, language, settings=CodeSettings(unit="class")).columns["name"] == classes
    whole = parse_code(source, language, settings=CodeSettings(unit="file"))
    assert whole.columns["end"] == [source.count("\n")]
    assert set(forest.columns["language"] + whole.columns["language"]) == {language}
    assert whole.columns["errors"] == [0]
    text = str(whole[0])
    assert piece in text
    for left_out in ("Doc", "why", "use strict", "(;", " ; ", "comment"):
        assert left_out not in text


@pytest.mark.parametrize("language", EXAMPLES)
def test_the_table_names_types_that_the_grammar_has(language):
    grammar = load_grammar(LANGUAGES[language])
    named = {name for kind, name in enumerate(grammar.names) if grammar.language.node_kind_is_named(kind)}
    entry = LANGUAGES[language]
    for kinds in (entry.functions, entry.classes, entry.identifiers, entry.literals, entry.omitted):
        assert set(kinds) <= named
    assert set(entry.interpolations) <= named
    for kinds in (entry.lambdas, entry.accessors, entry.declarators):
        assert set(kinds) <= named
    assert set(entry.with_body) <= {*entry.classes, *entry.functions}
    assert all(language_of(f"a{suffix}") == language for suffix in entry.suffixes)


@pytest.mark.parametrize("language", EXAMPLES)
def test_blurred_and_dropped_texts_leave_the_trees(language):
    source = EXAMPLES[language][0]
    kept = parse_code(source, language, settings=CodeSettings(unit="file"))
    blurred = parse_code(source, language, settings=CodeSettings("file", "blur", "blur", blurred=True))
    dropped = parse_code(source, language, settings=CodeSettings("file", "drop", "drop"))
    n_texts = len(blurred.columns["blurred"][0])
    assert kept.n_nodes == blurred.n_nodes + n_texts
    assert blurred.n_nodes == dropped.n_nodes + n_texts
    entry = LANGUAGES[language]
    assert set(dropped.labels) < set(blurred.labels)
    assert set(blurred.labels) - set(dropped.labels) <= {*entry.identifiers, *entry.literals}


def test_copies_are_told_from_renamed_copies():
    first, same, renamed, edited = (
        parse_code(source, "javascript", settings=BLURRED)
        for source in (
            "function f(a) { return a + 'x'; }",
            'function f(a) {\n  return a + "x"; // here\n}',
            "function g(b) { return b + 'y'; }",
            "function f(a) { return a - 'x'; }",
        )
    )
    assert first == same == renamed
    assert first != edited
    assert np.array_equal(first.columns["blurred"][0], same.columns["blurred"][0])
    assert not np.array_equal(first.columns["blurred"][0], renamed.columns["blurred"][0])
    names = first.columns["blurred"][0]
    assert names.dtype == np.int64
    assert names[1] == names[2]


def test_what_does_not_follow_the_grammar_is_counted_and_never_fatal():
    forest = parse_code("function f( { return 1;\n}\nfunction g() { return (2; }\n", "javascript")
    assert sum(forest.columns["errors"]) > 0
    assert parse_code("function f() { return 1; }", "javascript").columns["errors"] == [0]
    forest = parse_code("def f(:\n    return ]\n", "python", settings=CodeSettings(unit="file"))
    assert forest.columns["errors"][0] > 0
    assert "ERROR" in forest.labels


@given(st.sampled_from(sorted(EXAMPLES)), st.randoms(use_true_random=False))
@settings(max_examples=examples(60), deadline=None)
def test_damaged_source_becomes_a_forest_too(language, random):
    source = bytearray(EXAMPLES[language][0].encode())
    for _ in range(random.randrange(1, 6)):
        at = random.randrange(len(source))
        new = random.choice([b"\0", b"\xff", b"(", b"}", b'"', b"'", b"", b"\n", b"<"])
        source[at : at + random.randrange(3)] = new
    for policy in ("keep", "blur"):
        given_settings = CodeSettings("file", policy, policy, blurred=True, max_seconds=1)
        try:
            forest = parse_code(bytes(source), language, settings=given_settings)
        except TooSlowError:  # there are such texts, and nothing else may be wrong with them
            return
        assert len(forest) == 1
        forest._check()


def test_deep_source_is_no_special_case():
    depth = 20_000
    forest = parse_code(b"x = " + b"[" * depth + b"]" * depth, "python", settings=CodeSettings(unit="file"))
    assert forest.depth.max() > depth
    assert forest.columns["errors"] == [0]


def test_parsing_ends_with_its_time():
    with pytest.raises(
        TooSlowError, match=r"takes longer than 0\.01 s to parse: .*read_code\(max_seconds=…\)"
    ):
        parse_code(b'"' * 30_000, "javascript", settings=CodeSettings(max_seconds=0.01))


@pytest.mark.slow
def test_trees_are_the_same_in_every_process():
    source = EXAMPLES["java"][0]
    script = (
        "import sys; from treedot.readers import parse_code; print(*parse_code(sys.stdin.read(), 'java'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], input=source, capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[0] == " ".join(map(str, parse_code(source, "java")))


@pytest.mark.parametrize("literals", ["keep", "drop"])
def test_an_error_at_the_end_of_a_unit_counts_for_that_unit(literals):
    source = "int f() { return 1 }\nint g() { return 1; }\n"
    forest = parse_code(source, "c", settings=CodeSettings(literals=literals))
    assert forest.columns["name"] == ["f", "g"]
    assert forest.columns["errors"] == [1, 0]


@pytest.mark.parametrize("identifiers", ["keep", "drop"])
def test_an_error_behind_a_unit_does_not_count_for_it(identifiers):
    source = "struct C { union D { int x; } struct E *e; };\n"
    forest = parse_code(source, "c", settings=CodeSettings("class", identifiers=identifiers))
    assert forest.columns["name"] == ["C", "C.D"]
    assert forest.columns["errors"] == [1, 0]


LARGE = " + ".join("abcdefghijklmnopqrstuvwxyz")  # 51 nodes
SMALL = "a + b"
# For each language: a source with large and small lambdas, and the names of its units.
LAMBDAS = {
    "python": (
        f"f = lambda x: {LARGE}\ng = lambda x: {SMALL}\nd = {{'k': lambda: {LARGE}}}\n"
        f"r(key=lambda: {LARGE})\n",
        ["f", "k", "key"],
    ),
    "java": (
        f"class A {{ static {{ x(); }} static {{ y(); }} void m() {{ F r = () -> {{ x({LARGE}); }}; "
        f'run("a b", (a) -> {LARGE}); go(x -> {SMALL}); go(x -> {LARGE}); }} }}\n',
        ["A.static", "A.static~2", "A.m", "A.m.r", "A.m.a b", "A.m~2"],
    ),
    "csharp": (
        "class A { int P { get { return 1; } set => x = value; } int Q { get; } "
        f"int this[int i] {{ get {{ return 1; }} }} void M() {{ var f = (int a) => {{ return {LARGE}; }}; "
        f'Run("n", delegate(int z) {{ return {LARGE}; }}); '
        f"Run(() => {SMALL}); }} }}\n",
        ["A.P.get", "A.P.set", "A.this.get", "A.M", "A.M.f", "A.M.n"],
    ),
    "cpp": (
        f'auto k = [&](int a) {{ return {LARGE}; }};\nint f() {{ run("a b", [=] {{ return {LARGE}; }}); '
        f"run([] {{ return {SMALL}; }}); return 1; }}\n",
        ["k", "f", "f.a b"],
    ),
    "go": (
        f"package p\nvar k = func() int {{ return {LARGE} }}\n"
        f"func f() {{ g := func() int {{ return {LARGE} }}\n"
        f't.Run("x y", func() int {{ return {LARGE} }})\nh := func() int {{ return {SMALL} }} }}\n',
        ["k", "f", "f.g", "f.x y"],
    ),
    "ruby": (
        f'class T\n  test "a b" do\n    {LARGE}\n  end\n  setup do\n    {SMALL}\n  end\nend\n'
        f"describe Foo do\n  it 'does' do\n    {LARGE}\n  end\nend\n"
        f"let(:z) {{ {LARGE} }}\nf = ->(x) {{ {LARGE} }}\n"
        f"xs.each {{ |x| {LARGE} }}\n",
        ["T.a b", "Foo", "Foo.does", "z", "f", ""],
    ),
    "javascript": (
        "describe('D', () => { it('e', () => { q(); }); it(`e`, function () { q(); }); });\n"
        "exports.f = () => 1; const o = { k: () => 1, 'l': () => 2 }; a.then(() => 1, () => 2);\n",
        ["D", "D.e", "D.e~2", "exports.f", "k", "l", "", "~2"],
    ),
}


@pytest.mark.parametrize("language", LAMBDAS)
@pytest.mark.parametrize("policy", ["keep", "blur", "drop"])
def test_large_lambdas_are_units_with_the_names_that_they_are_given(language, policy):
    source, names = LAMBDAS[language]
    assert (
        parse_code(source, language, settings=CodeSettings("function", policy, policy)).columns["name"]
        == names
    )


def test_bodies_of_classes_and_namespaces_behind_macros_are_not_functions():
    source = (
        "class EXPORT Foo : public Base { int g() { return 2; } };\n"
        "BEGIN namespace n { int h() { return 1; } }\n"
        "Foo::operator bool() const { return 1; }\nTEST(A, B) { x(); }\nint *(*p(int a))(int) { return 0; }\n"
        "int &r() { return x; }\n"
    )
    assert parse_code(source, "cpp").columns["name"] == [
        "g",
        "h",
        "Foo::operator bool() const",
        "TEST",
        "p",
        "r",
    ]


STUBS = {
    "python": (
        "@overload\ndef a(x): return 1\n@typing.overload\ndef b(x): ...\ndef c(): pass\n"
        "def d():\n    '''Doc.'''\ndef e():\n    '''Doc.'''\n    raise NotImplementedError('e')\n"
        "@abc.abstractmethod\ndef f(): return 1\n",
        "def g(): return 1\ndef h():\n    raise ValueError('h')\ndef i():\n    x = ...\n"
        "@cache\ndef j(): return 1\n",
    ),
    "javascript": (
        "function a() {}\nfunction b() { throw new Error('not implemented'); }\n",
        "function c() { return 1; }\nconst d = () => ({});\n",
    ),
    "java": (
        "abstract class A { abstract int a(int b); int c() { throw new "
        "UnsupportedOperationException(); } }\n",
        "class B { B() { super(1); } static { x(); } }\n",
    ),
    "csharp": (
        "class A { abstract int A1(int b); int C() { throw new NotImplementedException(); } int D() => "
        "throw new NotSupportedException(); }\n",
        "class B { B(int a) : base(a) {} int C() => 1; }\n",
    ),
    "cpp": (
        "struct A { A() = default; A(const A&) = delete; void f() {} };\n",
        "struct B { B(int a) : a(a) {} };\n",
    ),
    "go": ('package p\nfunc a()\nfunc b() { panic("not implemented") }\n', "package p\nfunc c() { d() }\n"),
    "rust": ('fn a() { todo!() }\nfn b() { unimplemented!("b"); }\n', "fn c() -> i32 { 1 }\n"),
    "ruby": ("def a; end\ndef b\n  raise NotImplementedError\nend\n", "def c\n  1\nend\n"),
}


@pytest.mark.parametrize("language", STUBS)
def test_stubs_are_left_out_where_they_are_not_wanted(language):
    stubs, others = STUBS[language]
    without = CodeSettings(stubs=False)
    assert len(parse_code(stubs, language)) > 0
    assert parse_code(stubs, language, settings=without).columns["name"] == []
    assert parse_code(others, language, settings=without) == parse_code(others, language)
    assert len(parse_code(others, language)) > 0


def test_names_are_unique_in_their_file():
    names = ["a", "a~2", "a", "", "", "a", "b"]
    assert unique_names(names) == ["a", "a~2", "a~3", "", "~2", "a~4", "b"]
    assert [name_in_source(name) for name in ("a", "a~2", "A.~A", "A.~A~12", "~2", "")] == [
        "a",
        "a",
        "A.~A",
        "A.~A",
        "",
        "",
    ]
