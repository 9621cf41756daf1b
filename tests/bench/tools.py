"""Tools as real servers list them: in the shape that the MCP Python SDK gives a function."""

from itertools import islice
from typing import Any

import orjson

from relist.values import Item, Items

_PROPERTIES: dict[str, dict[str, Any]] = {
    "query": {
        "description": "What to look for, in the search syntax of the tracker",
        "title": "Query",
        "type": "string",
    },
    "repository": {"title": "Repository", "type": "string"},
    "state": {
        "default": "open",
        "enum": ["open", "closed", "all"],
        "title": "State",
        "type": "string",
    },
    "limit": {"default": 30, "maximum": 100, "minimum": 1, "title": "Limit", "type": "integer"},
    "labels": {
        "anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}],
        "default": None,
        "title": "Labels",
    },
}
_RESULT = {"result": {"items": {"type": "string"}, "title": "Result", "type": "array"}}


def tool(number: int) -> dict[str, Any]:
    """One of 600 to 900 bytes: two to five arguments, and what it returns."""
    name = f"search_issues_{number}"
    text = f"Search the issues of repository {number}.\n\nReturns the titles of the newest first.\n"
    return {
        "name": name,
        "description": text,
        "inputSchema": {
            "properties": dict(islice(_PROPERTIES.items(), 2 + number % 4)),
            "required": ["query", "repository"],
            "title": f"{name}Arguments",
            "type": "object",
        },
        "outputSchema": {
            "properties": _RESULT,
            "required": ["result"],
            "title": f"{name}Output",
            "type": "object",
        },
    }


def texts(count: int, per_page: int = 100) -> list[bytes]:
    """The answers of a server that lists so many tools, page by page, as JSON."""
    return [
        orjson.dumps(
            {
                "jsonrpc": "2.0",
                "id": first,
                "result": {
                    "tools": [tool(n) for n in range(first, first + per_page)],
                    "nextCursor": str(first + per_page),
                },
            }
        )
        for first in range(0, count, per_page)
    ]


def page(text: bytes) -> Items:
    """What an adapter makes of one such answer: new keys and new canonical bytes each time.

    Copied, since orjson leaves room behind the bytes that it returns: up to twice their size.
    """
    return tuple(
        Item(tool["name"], bytes(memoryview(orjson.dumps(tool, option=orjson.OPT_SORT_KEYS))))
        for tool in orjson.loads(text)["result"]["tools"]
    )
