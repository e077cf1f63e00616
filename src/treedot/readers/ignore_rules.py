"""The rules of ``.gitignore`` files, with the semantics of git."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import NamedTuple

_CLASSES = {
    b"alnum": rb"0-9A-Za-z",
    b"alpha": rb"A-Za-z",
    b"blank": rb" \t",
    b"cntrl": rb"\x00-\x1f\x7f",
    b"digit": rb"0-9",
    b"graph": rb"!-~",
    b"lower": rb"a-z",
    b"print": rb" -~",
    b"punct": rb"!-/:-@\[-`{-~",
    b"space": rb" \t\n\r\f\v",
    b"upper": rb"A-Z",
    b"xdigit": rb"0-9A-Fa-f",
}
_SPECIAL = re.compile(rb"[*?\[\\]")
_BACKSLASH, _SLASH, _STAR = b"\\/*"


class Rule(NamedTuple):
    """One line of an ignore file."""

    pattern: re.Pattern[bytes]
    anchored: bool  # whether it matches the path from the file's folder, instead of only the name
    folders_only: bool
    ignores: bool  # False if the line begins with "!"


@dataclass(frozen=True)
class IgnoreRules:
    r"""The rules of one folder; the last matching rule decides.

    Examples
    --------
    >>> rules = IgnoreRules.parse(b"*.log\n!kept.log\n/build/\n")
    >>> rules.verdict(b"a/x.log", is_folder=False), rules.verdict(b"a/kept.log", is_folder=False)
    (True, False)
    >>> rules.verdict(b"build", is_folder=True), rules.verdict(b"a/build", is_folder=True)
    (True, None)
    """

    rules: tuple[Rule, ...]

    @classmethod
    def parse(cls, content: bytes) -> IgnoreRules:
        """Parse an ignore file; lines that git never matches are dropped."""
        lines = content.removeprefix(b"\xef\xbb\xbf").split(b"\n")
        return cls(tuple(filter(None, (_rule(line.removesuffix(b"\r")) for line in lines))))

    def verdict(self, path: bytes, *, is_folder: bool) -> bool | None:
        """Return whether a path, relative to the rules' folder, is ignored; None if no rule matches."""
        name = path[path.rfind(b"/") + 1 :]
        for rule in reversed(self.rules):
            subject = path if rule.anchored else name
            if (is_folder or not rule.folders_only) and rule.pattern.fullmatch(subject):
                return rule.ignores
        return None


def _rule(line: bytes) -> Rule | None:
    if line.startswith(b"#"):
        return None
    line = _without_trailing_spaces(line)
    ignores = not line.startswith(b"!")
    line = line if ignores else line[1:]
    folders_only = line.endswith(b"/")
    line = line[:-1] if folders_only else line
    anchored = b"/" in line
    expression = _expression(line.removeprefix(b"/")) if line else None
    if expression is None:
        return None
    return Rule(re.compile(expression, re.DOTALL), anchored, folders_only, ignores)


def _without_trailing_spaces(line: bytes) -> bytes:
    """Strip trailing spaces, except one after a backslash."""
    stripped = line.rstrip(b" ")
    backslashes = len(stripped) - len(stripped.rstrip(b"\\"))
    return line[: len(stripped) + 1] if backslashes % 2 and len(stripped) < len(line) else stripped


def _expression(pattern: bytes) -> bytes | None:
    """Return the regular expression of a pattern, or None if it matches nothing."""
    sections = [[b""]]  # the text between "**/", split at "*"
    rest = b""
    at = 0
    while at < len(pattern):
        byte = pattern[at]
        if byte == _STAR:
            end = at
            while end < len(pattern) and pattern[end] == _STAR:
                end += 1
            # Git compares the text before the first wildcard separately; stars right after it are leading.
            begins = at == 0 or pattern[at - 1] == _SLASH or not _SPECIAL.search(pattern, 0, at)
            alone = begins and (end == len(pattern) or pattern.startswith((b"/", b"\\/"), end))
            if end - at == 1 or not alone:
                sections[-1].append(b"")
            elif end == len(pattern):
                rest = b".*"
            elif pattern[end] == _BACKSLASH:  # "**\/": at least one folder
                sections.append([b"", b"/"])
                end += 2
            else:  # "**/": any number of folders
                sections.append([b""])
                end += 1
            at = end
            continue
        if byte == ord("?"):
            part, at = b"[^/]", at + 1
        elif byte == ord("["):
            found = _bracket(pattern, at + 1)
            if found is None:
                return None
            part, at = found
        else:
            at += byte == _BACKSLASH
            if at == len(pattern):
                return None
            part, at = re.escape(pattern[at : at + 1]), at + 1
        sections[-1][-1] += part
    stars = [_joined(section, b"[^/]*", b"[^/]*?") for section in sections]
    return _joined(stars, b"(?:.*/)?", b"(?:.*?/)??") + rest


def _joined(parts: list[bytes], any_text: bytes, shortest: bytes) -> bytes:
    """Return an expression that matches parts with any text between them, in polynomial time.

    Every part but the last may take its first match, since any text may follow. An atomic group tries no
    other match; without it, all combinations would be tried.
    """
    first, *others = parts
    if not others:
        return first
    return first + b"".join(b"(?>" + shortest + part + b")" for part in others[:-1]) + any_text + others[-1]


def _bracket(pattern: bytes, at: int) -> tuple[bytes, int] | None:
    """Return the expression of a set such as ``[!a-z]`` and its end; None if it is never closed."""
    negated = pattern[at : at + 1] in (b"!", b"^")
    at += negated
    first = at
    members = []
    low = -1  # the character before a "-", if it can begin a range
    while at < len(pattern) and (pattern[at] != ord("]") or at == first):
        end = pattern.find(b"]", at + 2)
        if pattern[at] == ord("-") and low >= 0 and pattern[at + 1 : at + 2] not in (b"", b"]"):
            at += 1 + (pattern[at + 1] == _BACKSLASH)
            if at == len(pattern):
                return None
            if low <= pattern[at]:
                members.append(_literal(low) + b"-" + _literal(pattern[at]))
            low = -1
        elif pattern.startswith(b"[:", at) and end > 0 and end > at + 2 and pattern[end - 1] == ord(":"):
            known = _CLASSES.get(pattern[at + 2 : end - 1])
            if known is None:
                return None
            members.append(known)
            at, low = end, -1
        else:
            at += pattern[at] == _BACKSLASH
            if at == len(pattern):
                return None
            low = pattern[at]
            members.append(_literal(low))
        at += 1
    if at >= len(pattern):
        return None
    inside = b"".join(members)
    if negated:
        return b"[^/" + inside + b"]", at + 1
    return (b"(?!/)[" + inside + b"]" if inside else b"(?!)"), at + 1


def _literal(byte: int) -> bytes:
    return b"\\x%02x" % byte
