"""A driver for relist check: fill in the five places marked TODO, and delete this line.

Try it with

    relist check --driver "python driver.py"

The contract is specs/driver-contract.md of Relist. `run_driver` speaks it: JSON lines, commands
that overlap, stopping. Here you only say what your client gives. This file needs the package
`relist` and `anyio`, which go with any version of an MCP SDK. stdout belongs to the contract: print
nothing there.
"""

from collections.abc import Callable, Mapping
from typing import Any

import anyio

from relist_conformance.drivers.base import Answer, Connection, Target, run_driver


class MyConnection(Connection):
    """One client on one server. The suite opens many, several at a time."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        # target.command and target.env (stdio), or target.url (HTTP): exactly one of the two.
        # target.request_timeout_s: how long one list request may take; None leaves it to you.
        # What your users would hold of the lists, by kind; None in the answer means "no list".
        self.held: dict[str, list[dict[str, str]]] = {}

    async def run(self, usable: Callable[[], None]) -> None:
        """Open the client, and keep it open until this is cancelled."""
        # TODO 1: open your client on the target, as an application that lives long does. If your
        # documentation tells users to subscribe to changes, do it here.
        usable()
        await anyio.sleep_forever()

    async def need(self, kind: str) -> Answer:
        """An application needs this list now: what does your client give it?"""
        # TODO 2: do what your documentation tells users to do; no pages, retries or reconnects
        # that your client leaves to nobody. Let exceptions out: they count as "no answer". For a
        # list of your SDK's items `listed` of drivers.base makes the form that is asked for:
        # {"items": [{"name": "a", "description": "..."}, ...]}
        raise NotImplementedError(f"need is not written yet ({kind})")

    def believe(self, kind: str) -> Answer:
        """What your client holds now. This must not ask anybody."""
        # TODO 3: "state" is your client's own opinion: fresh, stale, unknown or unsupported.
        return {"items": self.held.get(kind), "state": "unknown"}

    async def call(self, name: str, arguments: Mapping[str, Any]) -> Answer:
        """Call a tool, as an application would."""
        # TODO 4: the outcome is "result", "error" (the server or the wire said no) or "refused"
        # (your client did), with a "detail" if you like.
        raise NotImplementedError(f"call is not written yet ({name}, {arguments})")

    async def idle(self) -> Answer:
        """True once nothing is under way; None where your client cannot know."""
        return {"idle": None}


if __name__ == "__main__":
    # TODO 5: who is judged. Leave out of "transports", "revisions" and "kinds" what your client
    # does not have: it is then untestable, not failed.
    run_driver(
        {
            "name": "my client",
            "version": "0",
            "transports": ["stdio", "http"],
            "revisions": ["2025-11-25", "2026-07-28"],
            "kinds": ["tools", "prompts", "resources", "resource_templates"],
        },
        MyConnection,
    )
