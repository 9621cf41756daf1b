"""Two JSON values side by side, in few lines, however large they are: nothing differs unseen."""

from collections.abc import Iterator
from contextlib import suppress
from difflib import unified_diff
from hashlib import sha256
from typing import Any

from relist_conformance.errors import plain
from relist_mcp.drift.canonical import depth, reread
from relist_mcp.drift.definitions import DEPTH_MAX
from relist_mcp.drift.layout import laid_out

LINES_MAX = 120  # of one field
LINE_MAX = 200  # characters
_AROUND = 2
_BEFORE = 60


def difference(before: bytes | None, after: bytes | None) -> Iterator[str]:
    """Lines that begin with ``-``, ``+`` or a blank; both are canonical JSON or None.

    Texts are compared line by line, other values as they are laid out. Long lines are cut: what is
    left out is counted, and its digest says whether it is the same.
    """
    # A text and another value that look alike are not taken for one another.
    as_text = _is_text(before) and _is_text(after)
    old, new = (_lines(data, as_text=as_text) for data in (before, after))
    head = _left_out(_shared(old, new))
    tail = _left_out(_shared(old[head:][::-1], new[head:][::-1]))
    if head:
        yield f"  ({head} lines are the same)"
    yield from _marked(old[head : len(old) - tail], new[head : len(new) - tail])
    if tail:
        yield f"  ({tail} lines are the same)"


def _left_out(same: int) -> int:
    """How many lines that are the same are not worth showing."""
    return max(0, same - _AROUND) if same > _AROUND + 1 else 0


def _lines(data: bytes | None, *, as_text: bool) -> list[str]:
    if data is None:
        return []
    value = _value(data)
    if as_text and isinstance(value, str):
        # So that a backslash of theirs is no escape of ours.
        return value.replace("\\", r"\\").split("\n")
    return list(laid_out(value))


def _is_text(data: bytes | None) -> bool:
    return data is None or isinstance(_value(data), str)


def _value(data: bytes) -> Any:
    with suppress(ValueError, RecursionError):
        value = reread(data)
        if depth(value, DEPTH_MAX) <= DEPTH_MAX:
            return value
    return data.decode(errors="backslashreplace")  # no canonical form: shown as the text it is


def _shared(old: list[str], new: list[str]) -> int:
    pairs = enumerate(zip(old, new, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(old), len(new)))


def _marked(old: list[str], new: list[str]) -> Iterator[str]:
    if len(old) == len(new) == 1 and old != new and max(len(old[0]), len(new[0])) > LINE_MAX:
        at = next(
            (n for n, pair in enumerate(zip(old[0], new[0], strict=False)) if len({*pair}) > 1), 0
        )
        yield f"- {_cut(old[0], at)}"
        yield f"+ {_cut(new[0], at)}"
        return
    some, others = old[:LINES_MAX], new[:LINES_MAX]
    shown = unified_diff([_cut(one) for one in some], [_cut(one) for one in others], n=_AROUND + 1)
    for line in list(shown)[3:]:
        yield f"  {line}" if line.startswith("@@") else f"{line[0]} {line[1:]}"
    for sign, lines in (("-", old[LINES_MAX:]), ("+", new[LINES_MAX:])):
        if lines:
            yield f"{sign} ({len(lines)} more lines, {_digest(chr(10).join(lines))})"


def _cut(line: str, at: int = 0) -> str:
    """A line that is not too long; of one that is, what stands around ``at``."""
    if len(line) <= LINE_MAX:
        return plain(line, LINE_MAX)
    start = max(0, min(at - _BEFORE, len(line) - LINE_MAX))
    part = plain(line[start : start + LINE_MAX], LINE_MAX)
    return f"{'…' if start else ''}{part}… ({len(line)} characters, {_digest(line)})"


def _digest(text: str) -> str:
    return f"sha256 {sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:16]}"
