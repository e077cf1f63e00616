"""Report near-duplicates as text for a terminal, or as Markdown for a comment on a pull request."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from treedot._pages.colours import Paint, painted, plain
from treedot._pages.printable import printable
from treedot.clones.report.contents import Report
from treedot.clones.report.findings import Also, Finding, Member, rounded_down

COMMENT_SIZE = 60_000  # characters; hosts refuse comments above 65,536
OPEN = 10  # groups of a comment to show unfolded
LISTED = 20  # members of a group to show in a comment
BANDS = {"identical": "red", "renamed": "red", "near": "yellow", "similar": "cyan"}  # and their colours
CODE, TESTS = "Not in tests", "In tests"  # headings of groups of functions
BLOCKS = "Blocks in different functions, classes or scripts"
NEW = " (new)"  # after a member that is new or changed


def text_report(report: Report) -> str:
    """Return one line per group, and below it one line ``file:line-line name`` per member.

    Members that are new or changed come first and end with ``(new)``. Groups in tests and blocks follow under
    a heading.
    """
    if not report.found:
        return "no near-duplicates\n"
    return "\n".join(_paragraphs(report.found, painted if report.is_coloured else plain))


def _paragraphs(found: Sequence[Finding], paint: Paint) -> Iterator[str]:
    section = None
    for finding in sorted(found, key=lambda finding: finding.is_block):
        before, section = section, BLOCKS if finding.is_block else _section(finding)
        if before != section and (before or section != CODE):
            yield paint(f"{section}:", "strong") + "\n"
        yield _paragraph(finding, paint)


def _section(finding: Finding) -> str:
    return TESTS if finding.group.is_in_tests else CODE


def count_of(n: int, noun: str) -> str:
    """Return a number with a noun in the right form: 1 class, 2 classes."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{n:,} {noun if n == 1 else plural}"


def _paragraph(finding: Finding, paint: Paint) -> str:
    lines = [f"{paint(f'{finding.rank}.', 'strong')} {_headline(finding, paint)}"]
    lines += [f"  {_line(member, paint)}" for member in finding.members]
    lines += [f"  {_also(finding, also)}" for also in finding.also]
    return "".join(f"{line}\n" for line in lines)


def _line(member: Member, paint: Paint) -> str:
    name = f" {paint(printable(member.name), 'strong')}" if member.name else ""
    return member.place + name + paint(NEW * member.is_new, "green")


def _also(finding: Finding, also: Also) -> str:
    """Return a line about a near-duplicate of a member that is in no group with it."""
    name = f" {printable(also.member.name)}" if also.member.name else ""
    similarity = rounded_down(also.similarity)
    return f"{finding.members[also.of].place} is also like {also.member.place}{name} ({similarity})"


def _headline(finding: Finding, paint: Paint = plain) -> str:
    band = finding.group.band
    facts = finding.facts.replace(band, paint(band, BANDS[band]), 1)
    return facts + (f": {finding.changes}" if finding.changes else "")


def markdown_report(report: Report) -> str:
    """Return a list of groups for a comment on a pull request, with the number of groups that do not fit."""
    found, heading = report.found, f"### {_plain(report.title)}\n\n"
    if not found:
        return f"{heading}No near-duplicates.\n"
    items = [_item(finding) for finding in found]
    if (first := next((k for k, finding in enumerate(found) if finding.is_block), None)) is not None:
        items[first] = f"#### {BLOCKS}\n\n{items[first]}"
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
    lines += [f"- {_plain(_also(finding, also))}" for also in finding.also[:LISTED]]
    if len(finding.also) > LISTED:
        lines.append(f"- and {len(finding.also) - LISTED} more that are alike")
    return "\n".join(lines) + "\n\n"


def _bullet(member: Member) -> str:
    name = f" {_code(printable(member.name))}" if member.name else ""
    return f"- {_code(member.place)}{name}" + NEW * member.is_new


def _code(text: str) -> str:
    """Return a text as a Markdown code span, with more backticks around it than inside."""
    fence = "`"
    while fence in text:
        fence += "`"
    return f"{fence} {text} {fence}" if "`" in text else f"{fence}{text}{fence}"


def _plain(text: str) -> str:
    """Escape all characters that Markdown could take for markup."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>#|~&@" else c for c in printable(text))
