"""For people who test a client of their own, in Python, in the process of the test.

    class TestMyClient(ClientTests):
        def connect(self, target, link):
            return MyConnection(target, link)

``MyConnection`` is a ``drivers.base.Connection`` that opens the client on ``link.connect()``, which
gives object streams of decoded JSON-RPC messages. Nothing waits: on trio, time jumps to the next
deadline. A client that needs asyncio sets ``backend``, and then time is real.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Literal

import anyio
import anyio.abc
import pytest
from hypothesis import HealthCheck, event, example, given, settings
from hypothesis import strategies as st

from relist_conformance.check import observed
from relist_conformance.drivers.base import Connection, Refused, Target, perform
from relist_conformance.ends.memory import MemoryLink
from relist_conformance.errors import DriverReplyError
from relist_conformance.play import play
from relist_conformance.pytest_cases import conclude
from relist_conformance.runner import Cell, Result
from relist_conformance.script import REVISIONS, Case, load_cases, parse_case

_Step = dict[str, Any]
_CUT: _Step = {"cut": {"what": "connection"}}
ANNOUNCED: list[_Step] = [{"change": {"tools": [["c@1"], ["d@1"]], "notify": True}}]
MISSED: list[_Step] = [{"covered": {"kind": "tools"}}, {"change": {"tools": [["c@1"]]}}, _CUT]
"""Nobody could be told; but a client that had listened knows that it may have missed something."""

_CELLS = {
    f"{case.id}-{revision}": (case, revision)
    for case in load_cases()
    if "memory" in case.transports
    for revision in case.revisions
}


class ClientTests(ABC):
    """Tests that a subclass, named ``Test...``, has of the client that it connects."""

    backend: Literal["trio", "asyncio"] = "trio"
    patience_ms = 8_000

    @abstractmethod
    def connect(self, target: Target, link: MemoryLink) -> Connection:
        """A new client, not yet run. ``target`` has neither a command nor a URL."""

    @pytest.mark.parametrize(("case", "revision"), _CELLS.values(), ids=_CELLS)
    def test_case(self, case: Case, revision: str) -> None:
        """A case of Relist."""
        self.check(case, revision)

    @pytest.mark.parametrize("revision", REVISIONS)
    @settings(
        max_examples=50, deadline=None, suppress_health_check=[HealthCheck.differing_executors]
    )
    @example(story=[ANNOUNCED])
    @example(story=[MISSED])
    @given(story=st.deferred(lambda: st.lists(happenings(), max_size=8)))
    def test_any_story(self, story: list[list[_Step]], revision: str) -> None:
        """Whatever was announced, lost or refused: in the end the client has the list."""
        result = self._result(story_case(story), revision)
        if result.word == "not_applicable":  # it need not listen, nor come back before it is asked
            event(result.observed.reason)
        else:
            conclude([result])

    def check(self, case: Case, revision: str) -> None:
        """Play a case in memory, and fail as pytest does where the client does not pass."""
        conclude([self._result(case, revision)])

    def _result(self, case: Case, revision: str) -> Result:
        return anyio.run(self._play, Cell(case, "memory", revision), **self._backend())

    def _backend(self) -> dict[str, Any]:
        if self.backend == "asyncio":
            return {}
        import trio.testing

        clock = trio.testing.MockClock(autojump_threshold=0)
        return {"backend": "trio", "backend_options": {"clock": clock}}

    async def _play(self, cell: Cell) -> Result:
        async with anyio.create_task_group() as tasks:
            driver = InProcessDriver(self.connect, tasks)
            played = await play(
                cell.case, cell.revision, cell.transport, driver, patience_ms=self.patience_ms
            )
            tasks.cancel_scope.cancel()
            return Result(cell, observed(played), 1, 0.0)
        raise AssertionError("a play is never cancelled from inside")


Connect = Callable[[Target, Any], Connection]
"""A new client for a link in memory, or where that is None for the target's URL."""


class InProcessDriver:
    """What a play asks, asked of connections in this process."""

    def __init__(self, connect: Connect, tasks: anyio.abc.TaskGroup) -> None:
        self._connect = connect
        self._tasks = tasks
        self._open: dict[object, tuple[Connection, anyio.Event, anyio.CancelScope]] = {}

    async def ask(self, op: str, fields: Mapping[str, Any]) -> Mapping[str, Any]:
        """Perform one command of the driver contract; an exception of the client is its answer."""
        name = fields["connection"]
        if op == "connect":
            told, timeout_ms = fields["target"], fields.get("request_timeout_ms")
            target = Target(None, {}, told.get("url"), fields["revision"], timeout_ms)
            connection = self._connect(target, told.get("link"))
            usable, scope = anyio.Event(), anyio.CancelScope()
            self._open[name] = connection, usable, scope
            self._tasks.start_soon(_run, connection, usable, scope)
            await usable.wait()
            return {}
        connection, usable, scope = self._open[name]
        if op == "stop":
            scope.cancel()
            return {}
        try:
            if op == "believe":
                return connection.believe(fields["kind"])
            await usable.wait()
            return await perform(connection, op, fields)
        except DriverReplyError:
            raise
        except Refused as refused:
            raise DriverReplyError(str(refused), refused.code) from None
        except Exception as error:
            raise DriverReplyError(repr(error)) from error


async def _run(connection: Connection, usable: anyio.Event, scope: anyio.CancelScope) -> None:
    try:
        with scope:
            await connection.run(usable.set)
    except Exception:
        pass  # the first attempt has been given up, or the connection is over
    finally:
        usable.set()


@st.composite
def pages(draw: st.DrawFn) -> list[list[str]]:
    """Up to four tools of some version on up to three pages; no name twice."""
    names = draw(st.lists(st.sampled_from("abcd"), unique=True))
    version, cuts = draw(st.integers(1, 9)), draw(st.lists(st.integers(0, len(names)), max_size=2))
    labels = [f"{name}@{version}" for name in names]
    bounds = [0, *sorted(cuts), len(labels)]
    return [labels[begin:end] for begin, end in pairwise(bounds)]


def happenings() -> st.SearchStrategy[list[_Step]]:
    """What may happen to a client, as steps of a case: a change, a loss, a failure, a need."""
    failure = {"request": {"method": "tools/list"}, "error": {"code": -32603, "message": "no"}}
    return st.one_of(
        pages().map(lambda drawn: [{"change": {"tools": drawn, "notify": True}}]),
        pages().map(lambda drawn: [MISSED[0], {"change": {"tools": drawn}}, _CUT]),
        st.just([{"need": {"kind": "tools"}}]),
        st.just([{"need": {"kind": "tools", "wait": False}}]),
        st.just([{"answer": failure}]),
        st.just([_CUT]),
    )


def story_case(story: list[list[_Step]]) -> Case:
    """The case of a story: after it, the client comes to offer the list that is in force."""
    first = [["a@0"], ["b@0"]]
    steps = [step for happening in story for step in happening]
    changes = [step["change"]["tools"] for step in steps if "change" in step]
    last = [label for page in [first, *changes][-1] for label in page]
    raw: dict[str, Any] = {
        "id": "story:any",
        "title": "in the end the client has the list",
        "text": "Whatever happens on the way, a client that is asked often enough has the list.",
        "rules": ["REC-01"],
        "source": [{"name": "Relist"}],
        "strength": dict.fromkeys(REVISIONS, "derived"),
        "severity": dict.fromkeys(REVISIONS, "fail"),
        "anomaly": "lost notice",
        "profile": "relist",
        "revisions": list(REVISIONS),
        "transports": ["stdio"],
        "level": "full",
        "server": {"capabilities": {"tools": {"listChanged": True}}, "tools": first},
        "steps": [
            {"connect": {}},
            {"need": {"kind": "tools", "as": "first", "until": ["a@0", "b@0"]}},
            *steps,
            {"need": {"kind": "tools", "as": "last", "until": last, "tries": 12}},
            {"fence": {}},
        ],
        "expect": [{"answer": {"of": "last", "items": last}}],
    }
    return parse_case(json.dumps(raw).encode(), "a story")
