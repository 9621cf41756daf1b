"""RFC 8785 canonical JSON of whatever a server may send, by the `rfc8785` library.

What I-JSON has no place for is first written as a text that nothing else is written as: an integer
beyond 2^53 as NUL, ``i`` and its digits; a text with a lone surrogate as NUL, ``s`` and the text
with each such surrogate, and each NUL, as NUL and four hexadecimal digits; a text that begins with
NUL with one more NUL. ``specs/relist_specs/vectors/capability-ids.json`` has examples.
"""

import json
import re
from typing import Any, cast

import rfc8785

from relist.messages import is_list, is_object

_INT_MAX = 2**53 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")
_ESCAPED = re.compile("[\x00\ud800-\udfff]")  # NUL as well, so that no two texts become one
_NUL = "\x00"
_DIGITS_MAX = 20


class NotCanonical(ValueError):
    """The value has no canonical form: it is too deep, or holds what is no JSON."""


def canonical(value: object) -> bytes:
    """The canonical form. Raises NotCanonical."""
    try:
        made = rfc8785.dumps(cast("Any", value))
        if b'"\\u0000' not in made:
            return made
    except (ValueError, RecursionError):
        pass  # perhaps it can be written another way
    try:
        return rfc8785.dumps(cast("Any", _writable(value)))
    except (ValueError, RecursionError):
        raise NotCanonical("no canonical JSON") from None


def reread(data: bytes) -> Any:
    """Canonical JSON as values whose plain RFC 8785 form it is again.

    A number beyond 2^53 in it can only be a float that needs no fraction. Raises ValueError.
    """
    return json.loads(data, parse_int=_number)


def rewritten(value: Any) -> bytes:
    """RFC 8785 of what was reread: nothing in it is written another way once more.

    Raises NotCanonical.
    """
    try:
        return rfc8785.dumps(value)
    except (ValueError, RecursionError):
        raise NotCanonical("no canonical JSON") from None


def _number(text: str) -> int | float:
    value = int(text) if len(text) < _DIGITS_MAX else _INT_MAX + 1
    return value if -_INT_MAX <= value <= _INT_MAX else float(text)


def depth(value: object, limit: int) -> int:
    """How deep JSON is nested, counted level by level so that nothing overflows; up to a limit."""
    found, level = 0, [value]
    while level and found <= limit:
        found += 1
        level = [inner for outer in level for inner in _inner(outer)]
    return found


def _inner(value: object) -> list[object]:
    if is_object(value):
        return list(value.values())
    return value if is_list(value) else []


def _writable(value: object) -> object:
    if is_object(value):
        return {_text(key): _writable(one) for key, one in value.items()}
    if is_list(value):
        return [_writable(one) for one in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return value if -_INT_MAX <= value <= _INT_MAX else f"{_NUL}i{value}"
    return _text(value) if isinstance(value, str) else value


def _text(text: str) -> str:
    if text.startswith(_NUL):
        return _NUL + text
    if _SURROGATE.search(text):
        return f"{_NUL}s" + _ESCAPED.sub(lambda found: f"{_NUL}{ord(found[0]):04x}", text)
    return text
