"""Parameters of tools that go into HTTP headers as well (`x-mcp-header`, 2026-07-28)."""

import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

from clients.wires import Json, child

_KEY = "x-mcp-header"
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_PRIMITIVE = ("integer", "string", "boolean")


def is_sound(tool: object) -> bool:
    """Whether every annotation of the tool keeps the rules; a tool that has none does."""
    schema = child(cast("Json", tool), "inputSchema") if isinstance(tool, dict) else {}
    found = dict(_reachable(schema, ()))
    names = [one[_KEY] for one in found.values()]
    texts = [name.lower() for name in names if isinstance(name, str) and _TOKEN.fullmatch(name)]
    primitive = all(one.get("type") in _PRIMITIVE for one in found.values())
    return primitive and len({*texts}) == len(names) == _annotations(schema)


def headers(tool: Json, arguments: Mapping[str, Any]) -> dict[str, str]:
    """The header for each argument that is annotated and given, not yet encoded."""
    told: dict[str, str] = {}
    for path, annotated in _reachable(child(tool, "inputSchema"), ()):
        value: Any = arguments
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if value is not None:
            text = str(value).lower() if isinstance(value, bool) else str(value)
            told[f"mcp-param-{annotated[_KEY]}"] = text
    return told


def _reachable(schema: Json, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Json]]:
    """The annotated properties that a chain of `properties` leads to, with that chain."""
    for name in child(schema, "properties"):
        one = child(child(schema, "properties"), name)
        if _KEY in one:
            yield (*path, name), one
        yield from _reachable(one, (*path, name))


def _annotations(value: object) -> int:
    """How many there are anywhere."""
    if isinstance(value, list):
        return sum(map(_annotations, cast("list[object]", value)))
    if not isinstance(value, dict):
        return 0
    found = cast("Json", value)
    return sum(map(_annotations, found.values())) + (_KEY in found)
