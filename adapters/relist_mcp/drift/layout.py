"""JSON laid out for people: a value on a line, what cannot be seen escaped, numbers canonical.

The same value gives the same text on every version of Python: which characters are escaped is
listed here, and not asked of a Unicode table that grows.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import rfc8785

from relist.messages import is_list, is_object

_UNSEEN = re.compile(
    "["
    "\x7f-\xa0\xad\u034f\u061c\u115f\u1160\u1680\u17b4\u17b5\u180b-\u180f"  # C1, fillers
    "\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000\u3164"  # blanks, joiners, directions
    "\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff"  # halves, selectors
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U0010ffff"  # tags, private use
    "]"
)


def laid_out(value: Any, indent: str = "") -> Iterator[str]:
    """The lines of a JSON value that is nested no deeper than the stack; names as they stand.

    The first line is not indented.
    """
    if is_object(value) and value:
        yield "{"
        yield from _members(((f"{text(name)}: ", one) for name, one in value.items()), indent)
        yield f"{indent}}}"
    elif is_list(value) and value:
        yield "["
        yield from _members((("", one) for one in value), indent)
        yield f"{indent}]"
    else:
        yield _scalar(value)


def _members(members: Iterator[tuple[str, Any]], indent: str) -> Iterator[str]:
    inside = f"{indent}  "
    last: str | None = None
    for name, value in members:
        if last is not None:
            yield f"{last},"
        first, *rest = laid_out(value, inside)
        *lines, last = (f"{inside}{name}{first}", *rest)
        yield from lines
    assert last is not None
    yield last


def _scalar(value: Any) -> str:
    if isinstance(value, str):
        return text(value)
    if is_object(value):
        return "{}"
    return "[]" if is_list(value) else rfc8785.dumps(value).decode()


def text(value: str) -> str:
    """A JSON string in which everything can be seen, or is escaped."""
    return _UNSEEN.sub(_escaped, json.dumps(value, ensure_ascii=False))


def _escaped(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]
