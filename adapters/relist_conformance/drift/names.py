"""Names as people can tell them apart: nothing hidden, and what only looks alike is spelled out."""

import unicodedata

from relist.drift.values import CapabilityId, CapabilityRef
from relist_conformance.errors import plain, quoted

_CODES_MAX = 8
DIGITS = 24  # of an id: nobody finds another definition whose id begins alike


def named(key: str) -> str:
    """A key in quotation marks; characters beyond ASCII are named, since some look like others."""
    odd = [char for char in dict.fromkeys(key) if not char.isascii()]
    if not odd:
        return quoted(key)
    codes = ", ".join(_code(char) for char in odd[:_CODES_MAX])
    more = f" and {len(odd) - _CODES_MAX} more" if len(odd) > _CODES_MAX else ""
    return f"{quoted(key)} (not only ASCII: {codes}{more})"


def _code(char: str) -> str:
    name = unicodedata.name(char, "")
    return f"U+{ord(char):04X} {name}".rstrip()


def of(ref: CapabilityRef) -> str:
    """A reference: what it is, and of whom."""
    return f"{ref.subject.value} {named(ref.key)} of {named(ref.server)}"


def short(id: CapabilityId) -> str:
    """So much of an id that it can be given to ``relist approve``."""
    return id.digest[:DIGITS]


def said(text: str) -> str:
    """What somebody wrote, on one line."""
    return plain(text, 300)
