"""How a script bends a result: pure, JSON in and JSON out."""

from typing import Any

from relist_conformance import said, wire
from relist_conformance import steps as s


def bent(result: wire.Message, kind: str | None, content: s.Content) -> dict[str, Any]:
    """The result as the script wants it; items are added to the list of ``kind``."""
    made = {key: value for key, value in result.items() if key not in content.drop}
    made |= content.put
    added = [*content.add, *_filling(kind, content.fill)]
    if added and kind is not None:
        key = wire.RESULT_KEY[kind]
        made[key] = [*made.get(key, ()), *added]
    return made


def _filling(kind: str | None, fill: said.Fill | None) -> list[dict[str, Any]]:
    if fill is None or kind is None:
        return []
    return [_filler(kind, number, fill) for number in range(fill.items)]


def _filler(kind: str, number: int, fill: said.Fill) -> dict[str, Any]:
    made = wire.item(kind, f"filler_{number}@1")
    made["title"] = "x" * fill.chars
    schema: dict[str, Any] = {"type": "object"}
    for _ in range(fill.depth - 1):
        schema = {"type": "object", "properties": {"x": schema}}
    return made | ({"inputSchema": schema} if kind == "tools" else {})
