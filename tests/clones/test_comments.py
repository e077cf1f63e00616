"""Source text without its comments: as the parser finds them, and no part of a literal."""

from importlib import import_module

import pytest
import tree_sitter
from fuzz.seeds import read_seeds

from treedot.clones.comments import without_comments
from treedot.languages import LANGUAGES
from treedot.readers.code import treesitter

LITERALS = {
    "python": 'x = \'#\', """\n# {\n""", r\'\\\'#\'  # c',
    "javascript": "x = ['//', `\n// ${f(`//`)}`, /[/]\\/*'/, a / b]; // c",
    "typescript": "x = ['//', `\n// ${f(`//`)}`, /[/]\\/*'/, a / b]; // c",
    "tsx": "x = <a href='//b'>don't</a>; // c",
    "java": 'x = "//" + \'"\' + """\n// /*\n"""; // c',
    "c": 'x = "//\\"" + \'"\'; // c',
    "cpp": 'x = R"a( " // )a" + 1\'000 + \'"\'; // c',
    "go": 'x := "//" + `\\` + string(\'"\') // c',
    "rust": 'fn f<\'a>(x: &\'a str) { y = r#""//"# + \'"\' + "\n//" /* /* */ // */; } // c',
    "csharp": 'x = @"\\" + "//" + $@"//""" + \'"\'; // c',
    "ruby": "x = \"#{y} #\" + '#' + %w[' #] + z.sub(/'#{x}/, '') # c\ny = <<~A\n  # \"\nA\n",
}


def is_comment(node, language):
    if language == "python" and node.type == "expression_statement" and node.named_child_count == 1:
        return node.named_child(0).type == "string" and node.prev_named_sibling is None  # a docstring
    return node.is_named and ("comment" in node.type or node.type in ("hash_bang_line", "shebang"))


def comments_of_parser(text, language):
    entry = LANGUAGES[language]
    grammar = tree_sitter.Language(getattr(import_module(entry.module), entry.grammar)())
    found, open_ = [], [tree_sitter.Parser(grammar).parse(text.encode()).root_node]
    while open_:
        node = open_.pop()
        if is_comment(node, language):
            found.append((node.start_byte, node.end_byte))
        else:
            open_ += node.children
    return sorted(found)


def words_without(text, places):
    data = text.encode()
    for start, end in reversed(places):
        data = data[:start] + b" " + data[end:]
    return data.decode().split()


@pytest.mark.parametrize("language", LANGUAGES)
def test_comments_are_those_of_the_parser(language):
    if not treesitter.is_installed(LANGUAGES[language]):
        pytest.skip(f"no grammar of {language}")
    texts = [text.decode() for text in read_seeds(language)] + [LITERALS[language]]
    assert comments_of_parser(LITERALS[language], language)
    for text in texts:
        lines = without_comments(text.split("\n"), LANGUAGES[language])
        assert len(lines) == text.count("\n") + 1
        assert "\n".join(lines).split() == words_without(text, comments_of_parser(text, language))
