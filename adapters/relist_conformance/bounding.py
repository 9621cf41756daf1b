"""JSON of others made short enough to be kept, so that what it is compared with still decides.

A text that is too long keeps its beginning, how much is missing, and a digest: two such texts are
equal when the whole texts were, and none is equal to a short one. Of a list or an object that has
too many entries the first are kept, and the last entry says how many are missing.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from itertools import islice
from typing import Any, cast

from attrs import frozen

TEXT_MAX = 10_000
"""Characters of a text that is always kept whole: a cursor of ours has fewer."""
CUT = "relist-cut"
"""The key, or the one key of the last element, that says how many entries are missing."""

_COMPARED = ("jsonrpc", "id", "method", "params", "result", "cursor", "nextCursor", "requestId")
"""What messages are paired and followed by: always kept, and cut at ``TEXT_MAX`` alone."""


@frozen
class _Limits:
    """How many characters, entries and levels are kept."""

    text: int
    entries: int
    depth: int


_LIMITS = (
    _Limits(TEXT_MAX, 10_000, 150),
    _Limits(2_000, 1_000, 64),
    _Limits(500, 100, 32),
    _Limits(200, 12, 16),
    _Limits(100, 3, 4),
)
"""Each tried in turn until the rest is short enough; the last is taken as it comes."""


@frozen
class Bounded:
    """A value that is not too long, how many characters it has as JSON, and how many entries and
    levels of it are missing. What is missing of texts is not counted: they say it themselves."""

    value: Any
    length: int
    missing: int


def bounded(value: Any, most: int) -> Bounded:
    """The value in at most so many characters of JSON (or in outline, which is a little more)."""
    whole = as_it_is(value)
    if whole.length <= min(most, TEXT_MAX):
        return whole
    for limits in _LIMITS:
        cutting = _Cutting(limits)
        made = cutting.of(value, 0)
        length = as_it_is(made).length
        if length <= most or limits is _LIMITS[-1]:
            return Bounded(made, length, cutting.missing)
    raise AssertionError("the last limits are always taken")


def as_it_is(value: Any) -> Bounded:
    """The value with its length, nothing cut."""
    return Bounded(value, len(json.dumps(value, default=str)), 0)


class _Cutting:
    """One pass over a value."""

    def __init__(self, limits: _Limits) -> None:
        self._limits = limits
        self.missing = 0

    def of(self, value: Any, depth: int, text_max: int | None = None) -> Any:
        """The value within the limits."""
        if isinstance(value, str):
            return _text(value, text_max or self._limits.text)
        if not isinstance(value, Mapping | list | tuple) or not value:
            return cast("Any", value)
        if depth >= self._limits.depth:
            self.missing += 1
            return {CUT: "nested too deep"}
        if isinstance(value, Mapping):
            return self._mapping(cast("Mapping[str, Any]", value), depth)
        entries = cast("list[Any]", value)
        kept = [self.of(one, depth + 1) for one in islice(entries, self._limits.entries)]
        left_out = len(entries) - len(kept)
        self.missing += left_out
        return [*kept, {CUT: f"{left_out} more"}] if left_out else kept

    def _mapping(self, value: Mapping[str, Any], depth: int) -> dict[str, Any]:
        compared = [key for key in _COMPARED if key in value]
        others = (key for key in value if key not in _COMPARED)
        kept = {key: self.of(value[key], depth + 1, TEXT_MAX) for key in compared}
        for key in islice(others, self._limits.entries):
            kept[_text(key, self._limits.text)] = self.of(value[key], depth + 1)
        left_out = len(value) - len(kept)
        self.missing += left_out
        return kept | {CUT: f"{left_out} more"} if left_out else kept


def _text(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
    return f"{text[: most // 2]}… ({len(text) - most // 2} characters more, sha256 {digest})"
