"""Report near-duplicates as text for a terminal, or as Markdown for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Sequence

from treedot._pages.printable import printable
from treedot.clones.report.findings import Finding, Member

COMMENT_SIZE = 60_000  # characters; hosts refuse comments above 65,536
OPEN = 10  # groups of a comment to show unfolded
LISTED = 20  # members of a group to show in a comment


def text_report(title: str, found: Sequence[Finding]) -> str:
    """Return one line per group, and below it one line ``file:line-line name`` per member."""
    if not found:
        return "no near-duplicates\n"
    return "\n".join(_paragraph(finding) for finding in found)


def count_of(n: int, noun: str) -> str:
    """Return a number with a noun in the right form: 1 class, 2 classes."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def _paragraph(finding: Finding) -> str:
    lines = [f"{finding.rank}. {_headline(finding)}"]
    lines += [f"  {member.place} {printable(member.name)}".rstrip() for member in finding.members]
    return "".join(f"{line}\n" for line in lines)


def _headline(finding: Finding) -> str:
    return finding.facts + (f": {finding.difference}" if finding.difference else "")


def markdown_report(title: str, found: Sequence[Finding]) -> str:
    """Return a list of groups for a comment on a pull request, with the number of groups that do not fit."""
    heading = f"### {_plain(title)}\n\n"
    if not found:
        return f"{heading}No near-duplicates.\n"
    items = [_item(finding) for finding in found]
    sizes = [len(heading) + 200]  # 200 for the text between the items
    for item in items:
        sizes.append(sizes[-1] + len(item))
    shown = sum(size <= COMMENT_SIZE for size in sizes[1:])
    text = heading + "".join(items[: min(OPEN, shown)])
    if shown > OPEN:
        folded = "".join(items[OPEN:shown])
        text += f"<details><summary>{shown - OPEN} more groups</summary>\n\n{folded}</details>\n"
    return text + (f"\n{len(found) - shown} groups are not shown.\n" if shown < len(found) else "")


def _item(finding: Finding) -> str:
    lines = [f"**{finding.rank}.** {_plain(_headline(finding))}\n", *map(_bullet, finding.members[:LISTED])]
    if len(finding.members) > LISTED:
        lines.append(f"- and {len(finding.members) - LISTED} more")
    return "\n".join(lines) + "\n\n"


def _bullet(member: Member) -> str:
    name = f" {_code(printable(member.name))}" if member.name else ""
    return f"- {_code(member.place)}{name}"


def _code(text: str) -> str:
    """Return a text as a Markdown code span, with more backticks around it than inside."""
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def _plain(text: str) -> str:
    """Escape all characters that Markdown could take for markup."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|~&@" else c for c in printable(text))
