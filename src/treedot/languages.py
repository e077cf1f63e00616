"""Programming languages: the suffixes of their files, and the meaning of the nodes in their syntax trees.

``LANGUAGES`` has one entry per language; no other module treats a language specially. To add one, find the
wheel of its grammar (tree-sitter-*), print the syntax trees of a few files, and list the node types that
matter.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import PurePath

_SLASHES = r"//[^\n]*|/\*[\s\S]*?(?:\*/|\Z)"
_QUOTED = r'"(?:\\[\s\S]|[^"\\\n])*"'
_SINGLE = _QUOTED.replace('"', "'")
_BACKQUOTED = r"`(?:\\[\s\S]|[^`\\])*`"
_TEMPLATE = rf"`(?:\\[\s\S]|\$\{{(?:[^`}}]|{_BACKQUOTED})*\}}|\$(?!\{{)|[^`\\$])*`"
_CHARACTER = r"'(?:\\[^\n]+?|[^'\\\n])'"
_THREE_QUOTES = r'"""(?:\\[\s\S]|[^\\])*?"""'
# After these, a slash begins a regular expression, which may contain marks of comments.
_REGEX = (
    r"(?:[(,=:~\[!&|?{};>]|\b(?:and|if|or|return|unless|when))\s*/(?![/*>])"
    r"(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\[\n])+/"
)


@dataclass(frozen=True)
class Language:
    """The properties of a language. All node types are those of its tree-sitter grammar.

    Parameters
    ----------
    suffixes : tuple of str
        The suffixes of its files, in lower case.
    module : str
        The Python module of the grammar's wheel.
    functions, classes : tuple of str
        Types of nodes that define a function or a class.
    identifiers, literals : tuple of str
        Types of nodes whose text can be kept, blurred or dropped.
    omitted : tuple of str
        Types of nodes that trees leave out, such as comments and quotation marks.
    interpolations : tuple of str
        Types of expressions inside a literal. A literal that contains one is not a leaf.
    keywords : frozenset of str
        Words that are keywords everywhere. Words that can also be names are not listed.
    with_body : tuple of str
        The types in ``classes`` and ``functions`` that define one only if they have a body.
    lambdas : tuple of str
        Types of functions without a name that are units only if they are large, such as lambdas.
    accessors : tuple of str
        The types in ``functions`` that belong to a property, which names them: ``Name.get``.
    declarators : tuple of str
        If given, a function has one of these types in its declarator. Otherwise it is the body of a class or
        namespace that the grammar misreads because of a macro.
    shared_suffixes : tuple of str
        Suffixes of another language that files in this one have, too.
    marks : bytes
        A regular expression that finds this language in files with such suffixes.
    grammar : str
        The name of the function in ``module`` that returns the grammar.
    comments, strings : str
        Regular expressions that find comments, and the literals in which a mark of a comment begins none.
    """

    suffixes: tuple[str, ...]
    module: str
    functions: tuple[str, ...]
    classes: tuple[str, ...]
    identifiers: tuple[str, ...]
    literals: tuple[str, ...]
    omitted: tuple[str, ...] = ("comment",)
    interpolations: tuple[str, ...] = ()
    keywords: frozenset[str] = frozenset()
    with_body: tuple[str, ...] = ()
    lambdas: tuple[str, ...] = ()
    accessors: tuple[str, ...] = ()
    declarators: tuple[str, ...] = ()
    shared_suffixes: tuple[str, ...] = ()
    marks: bytes = b""
    grammar: str = "language"
    comments: str = _SLASHES
    strings: str = f"{_QUOTED}|{_CHARACTER}"


def _names(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_JAVASCRIPT_FUNCTIONS = _names(
    "arrow_function function_declaration function_expression generator_function "
    "generator_function_declaration method_definition"
)
_JAVASCRIPT_IDENTIFIERS = _names(
    "identifier private_property_identifier property_identifier shorthand_property_identifier "
    "shorthand_property_identifier_pattern statement_identifier"
)
_JAVASCRIPT_LITERALS = _names("escape_sequence jsx_text number regex string string_fragment template_string")
_JAVASCRIPT_COMMENTS = rf"\A#![^\n]*|<!--[^\n]*|{_SLASHES}"
_JAVASCRIPT_STRINGS = "|".join((_QUOTED, _SINGLE, _TEMPLATE, _REGEX))
_JAVASCRIPT_KEYWORDS = _words(
    "async await break case catch class const continue debugger default delete do else export extends "
    "false finally for function if import in instanceof let new null return static super switch this "
    "throw true try typeof var void while with yield"
)
# What C++ has and C has not. Comments, and parts of C headers for C++, are removed before the search.
_CPP_MARKS = (
    rb"(?m)^[ \t]*(?:class[ \t]+\w|(?:inline[ \t]+)?namespace\b|template[ \t]*<|using[ \t]+\w"
    rb"|(?:public|private|protected)[ \t]*:|virtual\b|friend\b|enum[ \t]+(?:class|struct)\b"
    rb"|#[ \t]*include[ \t]*<[a-z_]+>)|\bstd::|\b\w+::~?\w+\(|\b(?:constexpr|nullptr|noexcept)\b"
    rb"|\b(?:static|reinterpret|const|dynamic)_cast<|\boperator *[-+*/=<>!(\[]"
)
_PYTHON_STRINGS = "|".join((_THREE_QUOTES, _THREE_QUOTES.replace('"', "'"), _QUOTED, _SINGLE))
_DOCSTRING = rf"(?:\A|(?<=:)[ \t]*(?:#[^\n]*)?\n)\s*[rRuU]?(?:{_PYTHON_STRINGS})(?=[ \t]*(?:\n|\Z))"
_RUBY_WORDS = r"%[wWiIqQrx]?(?:\[[^\]]*\]|\([^)]*\)|\{[^}]*\})"
_RUBY_HEREDOC = r"<<(?:[~-][\"'`]?|[\"'`]?(?=[A-Z]))(?P<end>[A-Za-z_]\w*)\b[\s\S]*?\n[ \t]*(?P=end)\b"
_C_IDENTIFIERS = _names("field_identifier identifier primitive_type statement_identifier type_identifier")
_C_LITERALS = ("char_literal", "number_literal", "string_literal", "system_lib_string")
_C_KEYWORDS = _words(
    "NULL auto break case const continue default do else enum extern false for goto if inline long "
    "register restrict return short signed sizeof static struct switch true typedef union unsigned "
    "volatile while"
)


def _typescript(suffixes: tuple[str, ...], grammar: str) -> Language:
    return Language(
        suffixes=suffixes,
        module="tree_sitter_typescript",
        functions=_JAVASCRIPT_FUNCTIONS,
        classes=("abstract_class_declaration", "class", "class_declaration", "interface_declaration"),
        identifiers=(*_JAVASCRIPT_IDENTIFIERS, "predefined_type", "type_identifier"),
        literals=_JAVASCRIPT_LITERALS,
        omitted=("comment", "hash_bang_line", "html_comment"),
        interpolations=("template_substitution",),
        keywords=_JAVASCRIPT_KEYWORDS
        | _words(
            "abstract as declare enum implements interface keyof namespace private protected public "
            "readonly satisfies"
        ),
        grammar=grammar,
        comments=_JAVASCRIPT_COMMENTS,
        strings=_JAVASCRIPT_STRINGS,
    )


LANGUAGES: dict[str, Language] = {
    "python": Language(
        suffixes=(".py", ".pyi", ".pyw"),
        module="tree_sitter_python",
        functions=("function_definition",),
        classes=("class_definition",),
        identifiers=("identifier",),
        literals=("escape_interpolation", "escape_sequence", "float", "integer", "string", "string_content"),
        omitted=("comment", "line_continuation", "string_end", "string_start"),
        interpolations=("interpolation",),
        lambdas=("lambda",),
        keywords=_words(
            "False None True and as assert async await break class continue def del elif else except "
            "finally for from global if import in is lambda nonlocal not or pass raise return try while "
            "with yield"
        ),
        comments=rf"#[^\n]*|{_DOCSTRING}",
        strings=_PYTHON_STRINGS,
    ),
    "javascript": Language(
        suffixes=(".cjs", ".js", ".jsx", ".mjs"),
        module="tree_sitter_javascript",
        functions=_JAVASCRIPT_FUNCTIONS,
        classes=("class", "class_declaration"),
        identifiers=_JAVASCRIPT_IDENTIFIERS,
        literals=_JAVASCRIPT_LITERALS,
        omitted=("comment", "hash_bang_line", "html_comment"),
        interpolations=("template_substitution",),
        keywords=_JAVASCRIPT_KEYWORDS,
        comments=_JAVASCRIPT_COMMENTS,
        strings=_JAVASCRIPT_STRINGS,
    ),
    "typescript": _typescript((".cts", ".mts", ".ts"), "language_typescript"),
    "tsx": _typescript((".tsx",), "language_tsx"),
    "java": Language(
        suffixes=(".java",),
        module="tree_sitter_java",
        functions=_names(
            "compact_constructor_declaration constructor_declaration method_declaration static_initializer"
        ),
        classes=("class_declaration", "enum_declaration", "interface_declaration", "record_declaration"),
        identifiers=_names(
            "boolean_type floating_point_type identifier integral_type type_identifier void_type"
        ),
        literals=_names(
            "binary_integer_literal character_literal decimal_floating_point_literal "
            "decimal_integer_literal escape_sequence hex_floating_point_literal hex_integer_literal "
            "multiline_string_fragment octal_integer_literal string_fragment string_literal"
        ),
        omitted=("block_comment", "line_comment"),
        interpolations=("string_interpolation",),
        lambdas=("lambda_expression",),
        keywords=_words(
            "abstract assert break case catch class const continue default do else enum extends false "
            "final finally for goto if implements import instanceof interface native new null package "
            "private protected public return static strictfp super switch synchronized this throw "
            "throws transient true try volatile while"
        ),
        strings="|".join((_THREE_QUOTES, _QUOTED, _CHARACTER)),
    ),
    "c": Language(
        suffixes=(".c", ".h"),
        module="tree_sitter_c",
        functions=("function_definition",),
        classes=("struct_specifier", "union_specifier"),
        identifiers=_C_IDENTIFIERS,
        literals=_C_LITERALS,
        keywords=_C_KEYWORDS,
        with_body=("struct_specifier", "union_specifier"),
        declarators=("function_declarator",),
    ),
    "cpp": Language(
        suffixes=(".cc", ".cpp", ".cxx", ".hh", ".hpp", ".hxx", ".ipp"),
        module="tree_sitter_cpp",
        functions=("function_definition",),
        classes=("class_specifier", "struct_specifier", "union_specifier"),
        identifiers=(*_C_IDENTIFIERS, "namespace_identifier"),
        literals=(*_C_LITERALS, "raw_string_literal", "user_defined_literal"),
        keywords=_C_KEYWORDS
        | _words(
            "alignas alignof and and_eq asm bitand bitor catch class co_await co_return co_yield compl "
            "concept const_cast consteval constexpr constinit decltype delete dynamic_cast explicit "
            "export friend mutable namespace new noexcept not not_eq nullptr operator or or_eq private "
            "protected public reinterpret_cast requires static_assert static_cast template this "
            "thread_local throw try typeid typename using virtual xor xor_eq"
        ),
        with_body=("class_specifier", "struct_specifier", "union_specifier"),
        lambdas=("lambda_expression",),
        declarators=("function_declarator", "operator_cast"),
        shared_suffixes=(".h",),
        marks=_CPP_MARKS,
        strings=rf'R"(?P<tag>[^(\s]*)\([\s\S]*?\)(?P=tag)"|{_QUOTED}|{_CHARACTER}',
    ),
    "go": Language(
        suffixes=(".go",),
        module="tree_sitter_go",
        functions=("function_declaration", "method_declaration"),
        classes=("type_spec",),
        identifiers=_names(
            "blank_identifier field_identifier identifier label_name package_identifier type_identifier"
        ),
        literals=_names(
            "float_literal imaginary_literal int_literal interpreted_string_literal raw_string_literal "
            "rune_literal"
        ),
        lambdas=("func_literal",),
        keywords=_words(
            "break case chan const continue default defer else fallthrough false for func go goto if "
            "import interface map nil package range return select struct switch true type var"
        ),
        strings=f"{_QUOTED}|`[^`]*`|{_CHARACTER}",
    ),
    "rust": Language(
        suffixes=(".rs",),
        module="tree_sitter_rust",
        functions=("function_item",),
        classes=("enum_item", "impl_item", "struct_item", "trait_item", "union_item"),
        identifiers=_names(
            "field_identifier identifier metavariable primitive_type shorthand_field_identifier "
            "type_identifier"
        ),
        literals=_names("char_literal float_literal integer_literal raw_string_literal string_literal"),
        omitted=("block_comment", "line_comment", "shebang"),
        keywords=_words(
            "Self as async await break const continue crate dyn else enum extern false fn for if impl "
            "in let loop match mod move mut pub ref return self static struct super trait true type "
            "unsafe use where while"
        ),
        comments=r"\A#![^\[\n][^\n]*|//[^\n]*|/\*(?:/\*[\s\S]*?\*/|(?!\*/)[\s\S])*(?:\*/|\Z)",
        strings=rf'\bb?r(?P<tag>#*)"[\s\S]*?"(?P=tag)|"(?:\\[\s\S]|[^"\\])*"|{_CHARACTER}',
    ),
    "csharp": Language(
        suffixes=(".cs",),
        module="tree_sitter_c_sharp",
        functions=_names(
            "accessor_declaration constructor_declaration conversion_operator_declaration "
            "destructor_declaration local_function_statement method_declaration operator_declaration"
        ),
        classes=("class_declaration", "interface_declaration", "record_declaration", "struct_declaration"),
        identifiers=("identifier", "predefined_type"),
        literals=_names(
            "character_literal escape_sequence integer_literal raw_string_literal real_literal "
            "string_content string_literal verbatim_string_literal"
        ),
        omitted=("comment", "interpolation_brace", "interpolation_quote", "interpolation_start"),
        with_body=("accessor_declaration",),
        lambdas=("anonymous_method_expression", "lambda_expression"),
        accessors=("accessor_declaration",),
        keywords=_words(
            "abstract as async await base break case catch checked class const continue default "
            "delegate do else enum event explicit extern false finally fixed for foreach goto if "
            "implicit in interface internal is lock namespace new null operator out override params "
            "private protected public readonly ref return sealed sizeof stackalloc static struct switch "
            "this throw true try typeof unchecked unsafe using var virtual volatile while yield"
        ),
        strings=rf'(?:\$?@|@\$)"(?:""|[^"])*"|"""[\s\S]*?"""|{_QUOTED}|{_CHARACTER}',
    ),
    "ruby": Language(
        suffixes=(".rake", ".rb"),
        module="tree_sitter_ruby",
        functions=("method", "singleton_method"),
        classes=("class", "module", "singleton_class"),
        identifiers=_names(
            "class_variable constant global_variable hash_key_symbol identifier instance_variable"
        ),
        literals=_names(
            "bare_string bare_symbol character delimited_symbol escape_sequence float heredoc_body "
            "heredoc_content integer regex simple_symbol string string_content"
        ),
        omitted=("comment", "heredoc_beginning", "heredoc_end"),
        interpolations=("interpolation",),
        lambdas=("block", "do_block", "lambda"),
        keywords=_words(
            "BEGIN END __ENCODING__ __FILE__ __LINE__ alias and begin break case class def do else "
            "elsif end ensure false for if in module next nil not or redo rescue retry return self "
            "super then true undef unless until when while yield"
        ),
        comments=r"(?m:^=begin\b[\s\S]*?(?:^=end\b[^\n]*|\Z))|(?<![^\s;,{}\])])#(?!\{)[^\n]*",
        strings="|".join((_QUOTED, _SINGLE, _BACKQUOTED, _REGEX, _RUBY_WORDS, _RUBY_HEREDOC)),
    ),
}


def language_of(path: str | os.PathLike[str]) -> str | None:
    """Return the language of a file, by its suffix; None if the suffix is unknown.

    Examples
    --------
    >>> language_of("src/main.RS"), language_of("notes.txt")
    ('rust', None)
    """
    suffix = PurePath(path).suffix.lower()
    return next((name for name, language in LANGUAGES.items() if suffix in language.suffixes), None)


def languages_of(path: str | os.PathLike[str]) -> list[str]:
    """Return the languages that a file may be in, by its suffix: for a header, C and C++.

    Examples
    --------
    >>> languages_of("tree.h"), languages_of("notes.txt")
    (['c', 'cpp'], [])
    """
    suffix = PurePath(path).suffix.lower()
    return [
        name
        for name, language in LANGUAGES.items()
        if suffix in language.suffixes or suffix in language.shared_suffixes
    ]


_NOT_OF_C = re.compile(
    rb"(?s)/\*.*?(?:\*/|\Z)|//[^\n]*"
    rb"|(?m:^[ \t]*#[ \t]*if(?:def[ \t]+|[ \t]+defined[ \t]*\(?[ \t]*)__cplusplus\b)"
    rb".*?(?m:^[ \t]*#[ \t]*(?:else|endif)\b|\Z)"
)


def language_of_text(path: str | os.PathLike[str], text: bytes) -> str | None:
    """Return the language of a file, by its suffix and, where several languages share it, by its text.

    Examples
    --------
    >>> language_of_text("tree.h", b"struct tree { int size; };")
    'c'
    >>> language_of_text("tree.h", b"namespace trees { int size(); }")
    'cpp'
    """
    for name in languages_of(path)[1:]:
        if re.search(LANGUAGES[name].marks, _NOT_OF_C.sub(b"\n", text)):
            return name
    return language_of(path)
