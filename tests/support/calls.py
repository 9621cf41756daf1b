"""Short ways to watch calls through the gate."""

from collections.abc import Awaitable
from typing import Any

import pytest

from relist_mcp import CallRefused
from support.brain import Brain, Frame
from support.live import LIST

CALL = "tools/call"
SECRET = "s3cret value"


def typed(name: str, header: str = "", **more: Any) -> Frame:
    """A tool that takes a whole number, which may be repeated in a header."""
    number = {"type": "integer", **({"x-mcp-header": header} if header else {})}
    schema = {"type": "object", "properties": {"n": number}, "required": ["n"]}
    return {"name": name, "inputSchema": schema, **more}


def methods(brain: Brain) -> list[str]:
    """The lists and calls that were asked for, in order."""
    seen = (frame.get("method", "") for frame in brain.seen)
    return [method for method in seen if method in (LIST, CALL)]


async def refused(call: Awaitable[object]) -> CallRefused:
    """The refusal that a call ends with."""
    with pytest.raises(CallRefused) as caught:
        await call
    return caught.value
