"""The alert of a group on a code host: its text, and the fingerprint by which the host recognises it."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Sequence

from treedot._pages.printable import printable
from treedot.clones.report.findings import Finding, Member

NAMED = 20  # other members to name in the text


def alert_text(
    finding: Finding,
    escape: Callable[[str], str] = str,
    link: Callable[[str, int], str] = lambda place, k: place,
) -> str:
    """Return in words where the other members of a group are, and how two members differ.

    ``escape`` escapes a name or a place, and ``link`` makes a link of a place, the k-th of ``related``.
    """
    first, *others = finding.members
    places = ", ".join(link(escape(member.place), k) for k, member in enumerate(others[:NAMED], 1))
    more = f" and {len(others) - NAMED} more places" if len(others) > NAMED else ""
    differs = f" {finding.changes}." if finding.changes else ""
    block = "A block in " if finding.is_block else ""
    also = _also_text(finding, escape, link)
    return f"{block}{escape(printable(first.name or first.file))} is also at {places}{more}.{differs}{also}"


def related(finding: Finding) -> list[Member]:
    """Return the other members, and then the near-duplicates of members that are in no group with them."""
    return [*finding.members[1:], *(also.member for also in finding.also)]


def _also_text(finding: Finding, escape: Callable[[str], str], link: Callable[[str, int], str]) -> str:
    """Return a sentence that lists near-duplicates of the members that are in no group with them."""
    places = [
        f"{escape(finding.members[also.of].place)} is also like {link(escape(also.member.place), k)}"
        for k, also in enumerate(finding.also[:NAMED], len(finding.members))
    ]
    if len(finding.also) > NAMED:
        places.append(f"there are {len(finding.also) - NAMED} more such places")
    return f" {'; '.join(places)}." if places else ""


def fingerprints(found: Sequence[Finding]) -> list[str]:
    """Return the fingerprint of every finding: of its first member, which stays when lines move.

    Further findings at the same member are numbered.
    """
    seen: Counter[str] = Counter()
    return [_numbered(_fingerprint(finding.members[0], finding.is_block), seen) for finding in found]


def _fingerprint(member: Member, is_block: bool) -> str:
    """Return a hash of the file and the name of a member; of one without a name, of its file and lines.

    The name of a block is that of the function around it, so its lines distinguish it from others.
    """
    name = "" if is_block else member.name
    identity = [member.file, name or "\n".join(member.lines)]
    return hashlib.blake2b(json.dumps(identity).encode(), digest_size=16).hexdigest()


def _numbered(digest: str, seen: Counter[str]) -> str:
    seen[digest] += 1
    return f"{digest}:{seen[digest]}"
