"""The live client through any schedule of changes, notices, held answers, faults and cuts.

Real frames of the SDK, virtual time. Each step of the core is held to the named invariants; what is
fresh and relied on is what the server has, once what was sent has arrived; a refresh never gives
what was listed before it was asked for; and when the server calms down, the client converges.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any, ClassVar

import anyio
import anyio.abc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp import MCPError

from relist.machine import Hit, Reading
from relist.values import Kind, ListenPhase, Phase
from relist_mcp import CallRefused, Catalogs, NotConnected
from support.brain import LEGACY, MODERN, Brain, Frame, notice, result_of, tool
from support.live import LIST, policy
from support.loops import run_virtually
from support.pipe import Pipe
from support.watch import under_watch
from support.web import Web

FAULTS: list[Frame] = [
    {"error": {"code": -32603, "message": "no"}},
    {"error": {"code": -32602, "message": "dead cursor"}},
    {"result": {"tools": 7}},
]
ACTS = st.one_of(
    st.sampled_from(["change and tell", "change and tell", "change", "tell"]),
    st.sampled_from(["hold", "get", "refresh", "call"]),
    st.sampled_from(["cut", "break", "end listen", "refuse"]),
    st.tuples(st.just("release"), st.integers(0, 3)),
    st.tuples(st.just("fail"), st.integers(0, 3), st.sampled_from(FAULTS)),
    st.tuples(st.just("wait"), st.sampled_from([0.001, 0.06, 1.5, 40.0])),
)
# After most acts everybody comes to rest; without it the next one meets them half way.
SCHEDULES = st.lists(
    st.tuples(ACTS, st.sampled_from([True, True, True, False])), min_size=12, max_size=40
)


class Schedule:
    """One run. ``version`` is that of the server's list; ``owed`` a change nobody was told of."""

    limits: ClassVar[dict[str, Any]] = {"request_limit_ms": 5_000, "gap_max_ms": 2_000}

    def __init__(self, server: Pipe | Web) -> None:
        self.server = server
        self.brain: Brain = server.brain
        self.version = 0
        self.owed = False
        self.fates: dict[Any, Frame] = {}
        self.readers: anyio.abc.TaskGroup
        self.brain.answers[LIST] = self._answer
        self._put()

    def _put(self) -> None:
        """One to three pages of one tool each; every definition names its version."""
        count = 1 + self.version % 3
        text = str(self.version)
        self.brain.page_size = 1
        self.brain.lists["tools"] = [tool(f"t{n}", description=text) for n in range(count)]

    def _answer(self, frame: Frame) -> Frame:
        if (fate := self.fates.pop(frame["id"], None)) is not None:
            return fate
        cursor = frame.get("params", {}).get("cursor")
        return {"result": self.brain.page("tools", cursor)}

    async def run(self, acts: list[Any]) -> None:
        """Play the schedule, then let the server calm down."""
        rules = policy(**self.limits)
        async with (
            Catalogs.connect(self.server.target, policy=rules) as catalogs,
            anyio.create_task_group() as self.readers,
        ):
            for act, at_rest in acts:
                await self._act(catalogs, act)
                if at_rest:
                    await anyio.wait_all_tasks_blocked()
            self._calm()
            await anyio.wait_all_tasks_blocked()  # idle knows nothing of what is still on the wire
            await self._converged(catalogs)

    async def _act(self, catalogs: Catalogs, act: Any) -> None:
        match act:
            case "change" | "change and tell":
                self.version += 1
                self.owed = True
                self._put()
                if act == "change and tell":
                    self._tell()
            case "tell":
                self._tell()
            case "hold":
                self.brain.hold.add(LIST)
            case "release", number:
                self._release(number)
            case "fail", number, fate:
                self._release(number, fate)
            case "cut" | "break":
                self._cut(forgetting=act == "cut")
            case "refuse":
                self._refuse()
            case "end listen":
                self._end_listen()
            case "get":
                self.readers.start_soon(catalogs.get, Kind.TOOLS)
            case "refresh":
                self.readers.start_soon(self._refreshed, catalogs)
            case "call":
                self.readers.start_soon(self._called, catalogs)
            case "wait", seconds:
                await anyio.sleep(seconds)
                self._check_fresh(catalogs)

    # --- what the server does ---------------------------------------------------------------------

    def _tell(self) -> None:
        """An announcement reaches whoever listens; if nobody does, coverage is lost anyway."""
        self.owed = False
        if self.brain.era == MODERN and not self.brain.listens:
            return
        if isinstance(self.server, Pipe):
            if self.server.open:
                self.server.send(self.brain.change())
        elif self._is_heard():
            self.server.change()

    def _is_heard(self) -> bool:
        assert isinstance(self.server, Web)
        if self.brain.era == MODERN:
            return self.server.bodies[self.brain.listens[-1]["id"]].open
        return bool(self.server.streams) and self.server.streams[-1].open

    def _release(self, number: int, fate: Frame | None = None) -> None:
        if not self.brain.held:
            return
        request = self.brain.held.pop(number % len(self.brain.held))
        if fate is not None:
            self.fates[request["id"]] = fate
        if isinstance(self.server, Pipe):
            self.server.reply(request)
        else:
            self.server.release(request)

    def _cut(self, *, forgetting: bool) -> None:
        """The pipe or all streams break; a server behind HTTP may forget its sessions as well."""
        if isinstance(self.server, Pipe):
            if self.server.open:
                self.server.cut()
            return
        if forgetting:
            self.server.sessions.clear()
        for stream in (*self.server.streams, *self.server.bodies.values()):
            if stream.open:
                stream.cut()

    def _refuse(self) -> None:
        if isinstance(self.server, Pipe):
            self.server.refusals = 2
        else:
            self.server.down = not self.server.down

    def _end_listen(self) -> None:
        if self.brain.era == LEGACY or not self.brain.listens:
            return
        listen = self.brain.listens.pop()
        if isinstance(self.server, Web):
            if self.server.bodies[listen["id"]].open:
                self.server.bodies[listen["id"]].send(result_of(listen, {}))
        elif self.version % 2:
            self.server.send(notice("notifications/cancelled", requestId=listen["id"]))
        else:
            self.server.send(result_of(listen, {}))

    def _calm(self) -> None:
        self.brain.hold.clear()
        self.fates.clear()
        if isinstance(self.server, Pipe):
            self.server.refusals = 0
        else:
            self.server.down = False
        while self.brain.held:
            self._release(0)
        if self.owed:
            self._tell()

    # --- what must hold ---------------------------------------------------------------------------

    async def _refreshed(self, catalogs: Catalogs) -> None:
        """Fresh after a refresh is new, unless the link failed: a modern list may outlive that."""
        asked, failures = self.version, catalogs.session.link.failures
        reading = await catalogs.refresh(Kind.TOOLS)
        if reading.hit is Hit.HIT and catalogs.session.link.failures <= failures:
            assert min(_versions(reading)) >= asked

    async def _called(self, catalogs: Catalogs) -> None:
        with suppress(MCPError, NotConnected, CallRefused):
            await catalogs.call_tool("t0", {})

    def _check_fresh(self, catalogs: Catalogs) -> None:
        catalog = catalogs.session.catalog(Kind.TOOLS)
        if catalog.phase is Phase.FRESH and catalog.vouched and not self.owed:
            assert _versions(catalogs.read(Kind.TOOLS)) == {self.version}

    async def _converged(self, catalogs: Catalogs) -> None:
        """Within the longest backoff, all that the server has is known, and relied on."""
        with anyio.fail_after(600):
            await anyio.sleep(5)  # what was sent has arrived
            while catalogs.session.listen.phase is not ListenPhase.OPEN:
                await anyio.sleep(5)
            await catalogs.idle()
        reading = catalogs.read(Kind.TOOLS)
        assert reading.hit is Hit.HIT
        assert _versions(reading) == {self.version}
        assert catalogs.session.catalog(Kind.TOOLS).vouched


def _versions(reading: Reading) -> set[int]:
    assert reading.snapshot is not None
    texts = [item.canonical_json.decode() for item in reading.snapshot.items]
    return {int(text.split('"description":"')[1].split('"')[0]) for text in texts}


@pytest.mark.rule("ATOM-14")
@pytest.mark.parametrize("serves", [Pipe, Web])
@pytest.mark.parametrize("era", [MODERN, LEGACY])
@pytest.mark.filterwarnings("ignore:Async generator 'http(x|core)2:ResourceWarning")
def test_whatever_happens_it_converges(serves: Callable[[Brain], Pipe | Web], era: str) -> None:
    @settings(max_examples=max(1, settings().max_examples // 4))
    @given(SCHEDULES)
    def any_schedule(acts: list[Any]) -> None:
        broken: list[str] = []
        with under_watch(broken):
            run_virtually(lambda: Schedule(serves(Brain(era))).run(acts))
        assert not broken

    any_schedule()
