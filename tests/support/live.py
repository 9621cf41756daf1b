"""Short ways to watch a live client."""

from typing import Any

import pytest

from relist.machine import Reading
from relist.policy import Policy
from relist_mcp import Catalogs
from relist_mcp.binding import Transports
from relist_mcp.connection import Connection
from support.brain import LEGACY, MODERN, Brain
from support.pipe import Pipe
from support.web import Web

ERAS = pytest.mark.parametrize("era", [MODERN, LEGACY])
LIST = "tools/list"


def policy(**changes: Any) -> Policy:
    """A policy that waits for little, so that tests in real time are quick as well."""
    return Policy(**{"seed": b"test", "gather_ms": 2, "gap_base_ms": 2, **changes})


def serve(era: str, *tools: str, **more: Any) -> tuple[Brain, Pipe]:
    """A server with these tools at the end of a pipe."""
    brain = Brain(era, *tools, **more)
    return brain, Pipe(brain)


def serve_http(era: str, *tools: str, **more: Any) -> tuple[Brain, Web]:
    """A server with these tools behind HTTP."""
    brain = Brain(era, *tools, **more)
    return brain, Web(brain)


def names(reading: Reading) -> list[str]:
    """The keys of the items, in order."""
    assert reading.snapshot is not None
    return [item.key for item in reading.snapshot.items]


def connections(catalogs: Catalogs) -> dict[int, Connection]:
    """The connections that are kept, by epoch."""
    binding = catalogs._binding
    assert isinstance(binding, Transports)
    return binding.connections


async def moved(catalogs: Catalogs) -> None:
    """Wait until something may have changed."""
    await catalogs.tools._moved()
