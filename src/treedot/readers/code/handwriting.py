"""Recognise source files that nobody wrote by hand: minified, compiled and generated ones."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from treedot.languages import language_of

LONG_LINE = 200  # bytes; people rarely write this much code into a line
MARKS = 20  # minified code has at most this many bytes per bracket, semicolon or "="
SPACES = 10  # minified code has at least this many bytes per space
HEAD_BYTES = 8192  # the comments at the top of a file end here at the latest
TAIL_BYTES = 1024

_MINIFIED_NAME = re.compile(r"(?i).*[.-]min\.\w+")
# Strings and comments of all languages, roughly; an open one is read once. Minifiers keep strings.
_TEXT = re.compile(
    rb'(?s)"""(?:[^\\]|\\.)*?(?:"""|\Z)|\'\'\'(?:[^\\]|\\.)*?(?:\'\'\'|\Z)'
    rb'|"(?:[^"\\\n]|\\.)*+"?|\'(?:[^\'\\\n]|\\.)*+\'?|`(?:[^`\\]|\\.)*+`?'
    rb"|/\*.*?(?:\*/|\Z)|(?m:(?:^|(?<=\s))(?://|#)[^\n]*)"
)
_MARK = re.compile(rb"[;{}()=]")

# What compilers and bundlers of JavaScript write, and people do not.
_COMPILED_HEAD = re.compile(
    rb"""(?mx)
    ^Object\.defineProperty\(exports,[ ]?["']__esModule["']
    | ^(?:var|const)[ ]__\w+[ ]=[ ]\(this[ ]&&[ ]this\.__        # helpers of TypeScript
    | ^import[ ]\{[ ]__\w+[^}\n]*\}[ ]from[ ]["']tslib["']
    | ^function[ ]_(?:interopRequire\w+|classCallCheck|createClass|asyncToGenerator|interop_require\w+
        |class_call_check|objectSpread)\d?\(                     # of Babel and SWC
    | ^var[ ]__(?:defProp|create|getOwnPropDesc|commonJS|export)[ ]=  # of esbuild
    | ^/\*{3}(?:\*{3})?/[ ]
    | ^[^"'`*/\n]*\b(?:__webpack_require__|webpackUniversalModuleDefinition|parcelRequire)\b  # no text
    | typeof[ ]exports[ ]===[ ]["']object["'][ ]&&[ ]typeof[ ]module[ ]!==[ ]["']undefined["'][ ]\?[ ]
      (?:module\.exports[ ]=[ ])?factory\(                       # of Rollup
    """
)
_SOURCE_MAP = re.compile(rb"(?m)^(?://|/\*)[#@] ?sourceMappingURL=\S+(?: ?\*/)?\s*\Z")
_VARIANT = re.compile(r"(.+?)(?:\.(?:esm|umd|cjs|iife|amd))?\.js")
_VARIANTS = ("", ".esm", ".umd", ".cjs", ".iife", ".amd")

_COMMENT_OF_C = re.compile(
    rb"""(?sx) \s* (?: //([^\n]*) | /\*(.*?)(?:\*/|\Z)
    | \#(?:!|(?:pragma|ifndef|define|nullable|line|if|endif)\b)[^\n]* | \#!?\[[^\n]*     # guards, attributes
    | ["']use[ ](?:strict|client|server)["'];? | package[ ][\w.]+;? )"""
)
_COMMENT_OF_SCRIPTS = re.compile(
    rb"""(?sx) \s* (?: \#([^\n]*) | [rRuUbB]{0,2}(?:\"{3}(.*?)(?:\"{3}|\Z) | '{3}(.*?)(?:'{3}|\Z))
    | =begin\b(.*?)(?:^=end\b|\Z) )"""
)
_SCRIPTS = {"python", "ruby"}
_DECORATION = re.compile(r"^[\s/*#!;=~|+-]+")
_SENTENCE = re.compile(r"(?<=[.!?:;]) +| - ")

_BY_MACHINE = r"(?:auto[- ]?|automatically[- ]|machine[- ]|programmatically )"
_FILE = r"(?:file|module|source|code|script|header|document|class|stub|program|parser|package|interface)s?"
_SAYS_GENERATED = re.compile(
    rf"""(?ix)
    (?:code\ |source\ |file\ |header\ |parser\ |module\ )?(?:is\ |was\ )?
        {_BY_MACHINE}?generated\ (?:automatically\ )?(?:by|from|with|using|via|on)\b
    | {_BY_MACHINE}generated(?:\ (?:file|code|source|header|module|content|stubs?))?\ *(?:$|[.,;:!(-]|do\ not)
    | generated\ (?:file|code|source)\ *(?:$|[.,;:!-]|do\ not)
    | (?:note\ |warning\ )?(?:this|the\ following)\ (?:\w+\ ){{0,3}}?{_FILE}
        \ (?:(?:is|was|are|were|has|have|been)\ ){{1,3}}
        (?:(?!not\ |never\ |originally\ |initially\ |partly\ |partially\ |once\ |used\ )\w+\ ){{0,2}}?
        @?{_BY_MACHINE}?(?:re)?generated\b(?!\ (?:for\ each|at\ run|on\ the\ fly|dynamically))
    | this\ is\ (?:an?\ )?{_BY_MACHINE}?generated\ {_FILE}
    | @generated\b | <auto-?generated\b
    | an?\ (?:[\w,-]+\ ){{1,4}}(?:made\ by\ gnu\ bison|generated\ by\ (?:flex|re2c|jflex))
    | form\ implementation\ generated\ from | all\ changes\ made\ in\ this\ file\ will\ be\ lost
    """
)
_DO_NOT_EDIT = re.compile(
    r"(?:DO NOT|DON'T) (?:EDIT|MODIFY|CHANGE|TOUCH)\b"
    r"|(?i:do not|don't) (?i:edit|modify|change) (?i:this file|by hand|manually|directly|it)\b"
)
_OF_ANOTHER = re.compile(r"(?i)(?:edit|modify|change|touch) (?:the|that|any|these) generated")


def looks_minified(content: bytes, path: str = "") -> bool:
    """Return whether most of the code of a file is in long, dense lines, or its name says ``.min.``."""
    if _MINIFIED_NAME.fullmatch(os.path.basename(path)):
        return True
    if max(map(len, content.split(b"\n"))) <= LONG_LINE:
        return False
    lines = _TEXT.sub(b"_", content).split(b"\n")
    long = [line.strip() for line in lines if len(line) > LONG_LINE]
    n_long, n_all = (sum(len(b"".join(line.split())) for line in some) for some in (long, lines))
    n_spaces = sum(map(len, long)) - n_long
    n_marks = sum(len(_MARK.findall(line)) for line in long)
    return 2 * n_long > n_all and MARKS * n_marks >= n_long >= SPACES * n_spaces


def looks_compiled(content: bytes, path: str) -> bool:
    """Return whether a compiler or a bundler wrote a file of JavaScript or TypeScript."""
    if language_of(path) not in ("javascript", "typescript"):
        return False
    if _SOURCE_MAP.search(content[-TAIL_BYTES:]) or _COMPILED_HEAD.search(content[:HEAD_BYTES]):
        return True
    stem = _VARIANT.fullmatch(path)
    return stem is not None and sum(os.path.exists(f"{stem[1]}{kind}.js") for kind in _VARIANTS) > 1


def looks_generated(content: bytes, language: str = "") -> bool:
    """Return whether a comment at the top of a file says that the file is generated."""
    lines = _top_comments(content[:HEAD_BYTES], language)
    if any(_SAYS_GENERATED.match(sentence) for sentence in _sentences(lines)):
        return True
    for i, line in enumerate(lines):
        if _DO_NOT_EDIT.search(line):
            around = " ".join(lines[max(0, i - 3) : i + 4])
            if re.search(r"(?i)generated", around) and not _OF_ANOTHER.search(around):
                return True
    return False


def _top_comments(head: bytes, language: str) -> list[str]:
    """Return the lines of the comments before the first line of code, without decoration."""
    pattern = _COMMENT_OF_SCRIPTS if language in _SCRIPTS else _COMMENT_OF_C
    lines: list[str] = []
    place = 0
    while found := pattern.match(head, place):
        place = found.end()
        text = b"".join(filter(None, found.groups())).decode(errors="replace")
        lines += (_DECORATION.sub("", line).rstrip() for line in text.split("\n"))
    return lines


def _sentences(lines: list[str]) -> Iterator[str]:
    """Yield the text from each place on where a sentence may begin: a line, or a part of one.

    A line that begins with a small letter continues the sentence of the line before, unless that is complete.
    """
    before = ""
    for i, line in enumerate(lines):
        whole = " ".join(lines[i : i + 3])
        is_new = before == "" or before[-1] in ".!?:;-" or not line[:1].islower()
        starts = [found.end() for found in _SENTENCE.finditer(line)]
        for start in ([0] if is_new else []) + starts:
            yield " ".join(whole[start:].split())
        before = line
