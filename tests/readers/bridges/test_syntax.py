import ast
import random
import sysconfig
from importlib import import_module
from pathlib import Path

import pytest
import tree_sitter
from fuzz.seeds import read_seeds

from treedot import read_trees
from treedot.errors import ParameterError, SourceError
from treedot.languages import LANGUAGES
from treedot.readers import CodeSettings, parse_code, read_objects
from treedot.readers.code import treesitter
from treedot.readers.code.treesitter import MIN_LAMBDA

SOURCE = '''
@cached(lambda: 1)
def total(items, start=0):  # a comment
    """Add."""
    return sum([item.price for item in items], start)

class Basket:
    def add(self, item): self.items += [item]
'''


def parsed(text, language="python"):
    entry = LANGUAGES[language]
    grammar = tree_sitter.Language(getattr(import_module(entry.module), entry.grammar)())
    return tree_sitter.Parser(grammar).parse(text if isinstance(text, bytes) else text.encode())


def definitions(node, kinds):
    """Return the nodes of some kinds in the order of the source."""
    found = [node] if node.is_named and node.type in kinds else []
    return found + [inner for child in node.children for inner in definitions(child, kinds)]


def is_unit(node, entry):
    """Return whether a node is a unit: a lambda if it is large and not directly in another one."""
    if node.type in entry.lambdas:
        around = node.parent is not None and node.parent.type in entry.lambdas
        return not around and read_objects([node], identifiers="blur", literals="blur").n_nodes >= MIN_LAMBDA
    if node.type in entry.with_body and node.child_by_field_name("body") is None:
        return False
    if node.type not in entry.functions or not entry.declarators:
        return True
    declarator = node.child_by_field_name("declarator")
    return declarator is not None and bool(definitions(declarator, entry.declarators))


def generated_functions(count):
    """Return the source of functions, one after the other, as ``ast.unparse`` writes them."""
    source = random.Random(0)

    def expression(depth):
        if depth == 0:
            return source.choice(["x", "y.z", "'é'", "1.5", "None", "f()"])
        a, b = expression(depth - 1), expression(source.randrange(depth))
        return source.choice(
            [
                *(f"({a}) + ({b})", f"f({a}, k={b})", f"[{a} for v in ({b})]", f"not ({a})"),
                *(f"g[{a}]", f"({a}) if ({b}) else x", f"lambda v: {a}", f"({a}) < ({b}) < y"),
            ]
        )

    def block(depth, space):
        inner = block(depth - 1, space + "    ") if depth else f"{space}    pass\n"
        lines = [f"x = {expression(2)}\n", f"return {expression(1)}\n", f"if {expression(1)}:\n{inner}",
                 f"while f(x):\n{inner}", f"try:\n{inner}{space}except E as e:\n{inner}",
                 f"def inner(a, *b, c=1):\n{inner}"]  # fmt: skip
        return "".join(space + source.choice(lines) for _ in range(source.randint(1, 3)))

    texts = [f"def f{k}(x, y=2, **z):\n{block(1, '    ')}" for k in range(count)]
    return ast.unparse(ast.parse("".join(texts)))


@pytest.mark.parametrize("language", LANGUAGES)
def test_trees_and_nodes_are_those_of_the_text(language):
    entry = LANGUAGES[language]
    if not treesitter.is_installed(entry):
        pytest.skip(f"{entry.module} is not installed")
    for text in (text for text in read_seeds(language) if b"treedot:" not in text):
        tree = parsed(text, language)
        nodes = definitions(tree.root_node, (*entry.functions, *entry.classes, *entry.lambdas))
        units = [node for node in nodes if is_unit(node, entry)]
        for policy in ("keep", "blur", "drop"):
            settings = {"identifiers": policy, "literals": policy}
            whole = parse_code(text, language, settings=CodeSettings("file", **settings))
            assert read_objects([tree], **settings) == read_objects([tree.root_node], **settings) == whole
            wanted = [
                tree
                for unit in ("function", "class")
                for tree in parse_code(text, language, settings=CodeSettings(unit, **settings))
            ]
            assert sorted(map(str, read_objects(units, **settings))) == sorted(map(str, wanted))


@pytest.mark.parametrize(
    ("language", "text", "kind"),
    [
        ("python", "f = lambda a: [a, 1]", "lambda"),  # small
        ("python", "f = lambda a: [" + "a(a, a), " * 20 + "]", "lambda"),
        ("ruby", "map do |x|\n" + "f(x, y)\n" * 20 + "end", "do_block"),
        ("java", "class A { void f() { throw new UnsupportedOperationException(); } }", "method_declaration"),
        ("csharp", "class A { int B { get { return b; } set; } }", "accessor_declaration"),
        ("cpp", "class A { void f(); };", "field_declaration"),
    ],
)
def test_any_node_has_a_tree_whether_or_not_it_is_a_unit(language, text, kind):
    if not treesitter.is_installed(LANGUAGES[language]):
        pytest.skip(f"no grammar of {language}")
    node = definitions(parsed(text, language).root_node, [kind])[0]
    whole = str(parse_code(text, language, settings=CodeSettings("file"))[0])
    assert str(read_objects([node])[0]) in whole


@pytest.mark.slow
def test_generated_functions_are_the_trees_of_their_text():
    text = generated_functions(1000)
    wanted = parse_code(text, "python")
    assert len(wanted) > 1000
    assert read_trees(definitions(parsed(text).root_node, ["function_definition"])) == wanted
    outer = [tree for tree, name in zip(wanted, wanted.columns["name"], strict=True) if "." not in name]
    assert list(read_trees(ast.parse(text).body)) == outer
    assert len(outer) == 1000


def test_nodes_of_ast_are_the_trees_of_the_source_without_comments():
    module = ast.parse(SOURCE)
    assert read_trees([module]) == parse_code(SOURCE, "python", settings=CodeSettings("file"))
    total, basket = module.body
    assert list(read_trees([total, basket.body[0]])) == list(parse_code(SOURCE, "python"))
    assert read_trees([basket]) == parse_code(SOURCE, "python", settings=CodeSettings("class"))
    assert len(total.decorator_list) == 1  # the node is as it was
    blurred = read_objects([total.body[1].value, ast.Pass()], identifiers="blur", literals="drop")
    assert str(blurred[1]) == "(module pass_statement)"
    assert str(blurred[0]).startswith(
        "(module (expression_statement (call identifier (argument_list (list_comp"
    )


def test_ast_forgets_what_the_text_distinguishes():
    for text, written in (
        ("x = 'a' 'b'", "x = 'ab'"),
        ("return_ = 0x10", "return_ = 16"),
        ("f((x))", "f(x)"),
    ):
        assert read_trees([ast.parse(text)]) == parse_code(written, "python", settings=CodeSettings("file"))


@pytest.mark.slow
def test_damaged_nodes_of_ast_are_refused():
    cyclic = ast.Call(ast.Name("f"), [], [])
    cyclic.args.append(cyclic)
    shared = ast.Name("x")
    for _ in range(40):
        shared = ast.BinOp(shared, ast.Add(), shared)
    deep = ast.Name("x")
    for _ in range(10_000):
        deep = ast.UnaryOp(ast.Not(), deep)
    for node, message in (
        (ast.FunctionDef(), "the FunctionDef is damaged, reading it raised AttributeError"),
        (ast.BinOp(ast.Name("a"), 1, 2), "the BinOp is damaged"),
        (ast.Name(3), "the Name is damaged"),
        (ast.Load(), "a node Load is not source code by itself"),
        (cyclic, "a Call contains itself"),
        (shared, "nodes; the limit is"),
        (deep, "the UnaryOp is damaged, reading it raised RecursionError"),
    ):
        with pytest.raises(SourceError, match=f"tree 1: .*{message}"):
            read_trees([node])
    with pytest.raises(ParameterError, match="Module has no unit 'file': remove the unit"):
        read_trees([ast.parse("x")], unit="file")
    with pytest.raises(ParameterError, match="from Module, which is one tree: pass a list"):
        read_trees(ast.parse("x"))


def test_nodes_of_tree_sitter_without_a_tree_are_refused():
    root = parsed("# note\nx = 1 + y\n'text'\n").root_node
    comment, assignment, text = root.children
    assert str(read_trees([assignment])[0]) == (
        "(expression_statement (assignment (identifier x) (binary_operator (integer 1) + (identifier y))))"
    )
    for node, message in (
        (comment, "a node comment has no tree"),
        (text, "a node expression_statement has no tree"),
        (assignment.children[0].children[1], "a node '=' is punctuation"),
    ):
        with pytest.raises(SourceError, match=f"tree 1: .*{message}"):
            read_trees([node])
    with pytest.raises(ParameterError, match="Node has no unit 'function'"):
        read_trees([root], unit="function")


def test_a_node_of_an_unknown_grammar_is_refused(monkeypatch):
    root = parsed("x = 1").root_node
    monkeypatch.setattr("treedot.readers.bridges.syntax.LANGUAGES", {"c": LANGUAGES["c"]})
    for thing in (root, parsed("x = 1")):
        with pytest.raises(SourceError, match="the grammar of the node module is not one that treedot reads"):
            read_trees([thing])


def test_a_node_of_several_grammars_is_refused_unless_they_agree(monkeypatch):
    root = parsed("x = 1").root_node
    python = LANGUAGES["python"]
    twice = {"python": python, "same": python}
    monkeypatch.setattr("treedot.readers.bridges.syntax.LANGUAGES", twice)
    assert len(read_trees([root])) == 1
    other = type(python)(**{**vars(python), "identifiers": ()})
    monkeypatch.setattr("treedot.readers.bridges.syntax.LANGUAGES", {"python": python, "other": other})
    with pytest.raises(SourceError, match="a node module may be of several languages: pass the tree"):
        read_trees([root])


def test_functions_of_the_standard_library_are_those_of_the_text():
    text = Path(sysconfig.get_paths()["stdlib"], "csv.py").read_text(encoding="utf-8")
    nodes = definitions(parsed(text).root_node, ["function_definition"])
    assert len(nodes) > 10
    assert read_trees(nodes) == parse_code(text, "python")
