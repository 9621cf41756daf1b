"""RFC 8785 canonical JSON of whatever a server may send, by the `rfc8785` library.

What I-JSON has no place for is first written as a text that nothing else is written as: an integer
beyond 2^53 as NUL, ``i`` and its digits; a text with a lone surrogate as NUL, ``s`` and the text
with each such surrogate as NUL and four hexadecimal digits; a text that begins with NUL with one
more NUL. ``specs/relist_specs/vectors/capability-ids.json`` has examples.
"""

import re
from typing import Any, TypeGuard, cast

import rfc8785

from relist.messages import is_object

_INT_MAX = 2**53 - 1
_SURROGATE = re.compile("[\ud800-\udfff]")
_NUL = "\x00"


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


def is_list(value: object) -> TypeGuard[list[object]]:
    """Whether it is a JSON array."""
    return isinstance(value, list)


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
        return f"{_NUL}s" + _SURROGATE.sub(lambda found: f"{_NUL}{ord(found[0]):04x}", text)
    return text
