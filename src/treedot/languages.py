"""Programming languages: the suffixes of their files, and the meaning of the nodes in their syntax trees.

``LANGUAGES`` has one entry per language; no other module treats a language specially. To add one, find the
wheel of its grammar (tree-sitter-*), print the syntax trees of a few files, and list the node types that
matter.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import PurePath


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
        The types in ``classes`` that define a class only if they have a body, and otherwise refer to one.
    grammar : str
        The name of the function in ``module`` that returns the grammar.
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
    grammar: str = "language"


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
_JAVASCRIPT_KEYWORDS = _words(
    "async await break case catch class const continue debugger default delete do else export extends "
    "false finally for function if import in instanceof let new null return static super switch this "
    "throw true try typeof var void while with yield"
)
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
        keywords=_words(
            "False None True and as assert async await break class continue def del elif else except "
            "finally for from global if import in is lambda nonlocal not or pass raise return try while "
            "with yield"
        ),
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
    ),
    "typescript": _typescript((".cts", ".mts", ".ts"), "language_typescript"),
    "tsx": _typescript((".tsx",), "language_tsx"),
    "java": Language(
        suffixes=(".java",),
        module="tree_sitter_java",
        functions=("compact_constructor_declaration", "constructor_declaration", "method_declaration"),
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
        keywords=_words(
            "abstract assert break case catch class const continue default do else enum extends false "
            "final finally for goto if implements import instanceof interface native new null package "
            "private protected public return static strictfp super switch synchronized this throw "
            "throws transient true try volatile while"
        ),
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
        keywords=_words(
            "break case chan const continue default defer else fallthrough false for func go goto if "
            "import interface map nil package range return select struct switch true type var"
        ),
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
    ),
    "csharp": Language(
        suffixes=(".cs",),
        module="tree_sitter_c_sharp",
        functions=_names(
            "constructor_declaration conversion_operator_declaration destructor_declaration "
            "local_function_statement method_declaration operator_declaration"
        ),
        classes=("class_declaration", "interface_declaration", "record_declaration", "struct_declaration"),
        identifiers=("identifier", "predefined_type"),
        literals=_names(
            "character_literal escape_sequence integer_literal raw_string_literal real_literal "
            "string_content string_literal verbatim_string_literal"
        ),
        omitted=("comment", "interpolation_brace", "interpolation_quote", "interpolation_start"),
        keywords=_words(
            "abstract as async await base break case catch checked class const continue default "
            "delegate do else enum event explicit extern false finally fixed for foreach goto if "
            "implicit in interface internal is lock namespace new null operator out override params "
            "private protected public readonly ref return sealed sizeof stackalloc static struct switch "
            "this throw true try typeof unchecked unsafe using var virtual volatile while yield"
        ),
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
        keywords=_words(
            "BEGIN END __ENCODING__ __FILE__ __LINE__ alias and begin break case class def do else "
            "elsif end ensure false for if in module next nil not or redo rescue retry return self "
            "super then true undef unless until when while yield"
        ),
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
