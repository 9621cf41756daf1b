"""Drives a real client against a real server of the SDK through a schedule of acts.

The client is a parameter (``Side``): whatever opens ``Catalogs`` on a pipe. Time is virtual, and
nothing waits for it but the schedule's own ``wait``.
"""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from typing import Any

import anyio
import anyio.abc
from attrs import frozen
from hypothesis import strategies as st
from mcp import MCPError
from mcp.client._transport import TransportStreams
from mcp_types import INTERNAL_ERROR

from relist.machine import Hit
from relist.policy import Policy
from relist.values import CHANNEL_OF, CHANNELS, Channel, Era, Kind, LinkPhase, ListenPhase
from relist_mcp import CallRefused, Catalogs, Credentials, View
from support.brain import MODERN
from support.host import Host
from support.loops import at_rest
from support.promise import Follower, Promise, revisions
from support.truth import Truth

Act = tuple[Any, ...]
Schedule = list[tuple[Act, float | None]]
"""Acts, each with how long (seconds) it is quiet before the next one; None: not at all."""
Connect = Callable[[], AbstractAsyncContextManager[TransportStreams]]

KINDS = [Kind.TOOLS, Kind.TOOLS, Kind.TOOLS, *Kind]  # much happens to one
GATES = [*((kind, where) for kind in KINDS for where in ("before", "after")), "call"]
ARGUMENTS: dict[str, tuple[list[Any], ...]] = {
    "change": (KINDS, [True, True, False]),
    "ambush": (KINDS, [True, False]),
    "tell": ([*CHANNELS], [1, 20]),
    "hold": (GATES,),
    "release": ([*range(4)],),
    "fail": (KINDS, ["answers", "breaks"]),
    "end listen": (),
    "get": (KINDS,),
    "refresh": (KINDS,),
    "call": ([True, False],),
    "wait": ([1.5, 6.0, 40.0],),
    "die": (["killed", "killed", "ends"], [0, 3], [True, False]),
    "offer": (KINDS,),
    "credentials": (["", "a", "b"],),
    "reopen": (),
}
OFTEN = 6 * ["release"] + 3 * ["change", "refresh"] + 2 * ["ambush"]
OFTEN += ["hold", "tell", "fail", "end listen", "get", "call", "wait"]
SELDOM = ["offer", "reopen"]
LINK_ACTS = ["die", "die", "die", "credentials"]  # the client must connect anew by itself
QUIET_S = [0.06, 0.6, 0.0, None]


@frozen
class Side:
    """The client of a schedule: ``open`` makes Catalogs on what ``connect`` opens.

    ``survives``: it connects anew by itself; else a schedule must do without LINK_ACTS.
    """

    name: str
    open: Callable[[Connect, Policy], AbstractAsyncContextManager[Catalogs]]
    era: Era
    survives: bool = True


@frozen
class Setting:
    """What stays as it is throughout: the server's habits, and the client's policy.

    ``slow``: a gate that is held from the beginning, so that walks take long. ``noisy``: the tools
    change with each page of them that is listed.
    """

    push: bool = True
    ttl_ms: int | None = 3_600_000
    strict: bool = False
    shared: bool = False
    page_size: int = 2
    lazy: bool = False
    slow: tuple[Kind, str] | None = None
    noisy: bool = False


SETTINGS = st.builds(
    Setting,
    push=st.sampled_from([True, True, False]),
    ttl_ms=st.sampled_from([3_600_000, 1_000, 0, None]),
    strict=st.sampled_from([False, False, True]),
    shared=st.booleans(),
    page_size=st.sampled_from([1, 1, 2, 9]),
    lazy=st.sampled_from([False, False, False, True]),
    slow=st.sampled_from([None, (Kind.TOOLS, "after"), (Kind.TOOLS, "before")]),
    noisy=st.sampled_from([False] * 5 + [True]),
)


def schedules(side: Side) -> st.SearchStrategy[Schedule]:
    """What may happen to this client.

    Read from bytes: lists of drawn acts are much alike within one run, and reach little.
    """
    names = OFTEN * 3 + SELDOM + (LINK_ACTS if side.survives else [])
    return st.binary(min_size=60, max_size=200).map(partial(_read, names))


def _read(names: list[str], script: bytes) -> Schedule:
    left, schedule = iter(script), Schedule()

    def one_of(options: list[Any]) -> Any:
        return options[next(left) % len(options)]

    with suppress(StopIteration):
        while True:
            name = one_of(names)
            act = (name, *[one_of(options) for options in ARGUMENTS[name]])
            schedule.append((act, one_of(QUIET_S)))
    return schedule


def _views(catalogs: Catalogs) -> tuple[View, ...]:
    return catalogs.tools, catalogs.prompts, catalogs.resources, catalogs.templates


class Drive:
    """One run. ``broken`` collects complaints; those about single steps are the watch's to add."""

    def __init__(self, side: Side, setting: Setting) -> None:
        self.side, self.setting = side, setting
        truth = Truth(setting.page_size, strict=setting.strict, shared=setting.shared)
        self.host = Host(truth, push=setting.push, ttl_ms=setting.ttl_ms)
        if setting.slow is not None:
            self.host.gates.hold(setting.slow)
        self.promise = Promise(self.host)
        if setting.noisy:
            self.host.ambushes[Kind.TOOLS] = [partial(self._change, Kind.TOOLS, told=True)] * 1_000
        self.broken: list[str] = []
        self._followers: dict[Kind, Follower] = {}
        self._calling = 0
        self._readers: anyio.abc.TaskGroup
        self._catalogs: Catalogs

    async def run(self, acts: Schedule) -> None:
        """Play the schedule; at its end the server calms down, and the client converges."""
        left = iter(acts)
        async with anyio.create_task_group() as self._readers:
            while not await self._visit(left):
                pass

    async def _visit(self, left: Any) -> bool:
        """Open a client and act until it is to be left. Whether the schedule has ended."""
        self._own("")
        self.promise.begin()
        self._followers = {kind: Follower(kind) for kind in Kind}
        async with self.side.open(self.host.connect, self._policy()) as self._catalogs:
            for view in _views(self._catalogs):
                self._readers.start_soon(self._follow, view, self._followers[view.kind])
            for act, quiet_s in left:
                if act == ("reopen",):
                    return False
                await self._act(act)
                if quiet_s is not None:
                    await anyio.sleep(quiet_s)
                    await self._rest()
            await self._converge()
        return True

    def _policy(self) -> Policy:
        """With limits that the schedule's waits can reach, and short gaps."""
        versions = (MODERN,) if self.side.era is Era.MODERN else ()
        return Policy(
            seed=b"test",
            modern_versions=versions,
            lazy=self.setting.lazy,
            request_limit_ms=5_000,
            gap_max_ms=500,
        )

    async def _rest(self) -> None:
        await at_rest()
        self.broken.extend(self.promise.settled(self._catalogs.session))

    # --- acts -------------------------------------------------------------------------------------

    async def _act(self, act: Act) -> None:
        match act:
            case "get", kind:
                self._readers.start_soon(self._catalogs.get, kind)
            case "refresh", kind:
                self._readers.start_soon(self._refreshed, self._catalogs, kind)
            case "call", changes:
                changing = partial(self._change, Kind.TOOLS, told=True)
                self.host.on_call = changing if changes else lambda: None
                self._readers.start_soon(self._called, self._catalogs)
            case "credentials", owner:
                self._own(owner)
                self._catalogs.change_credentials(Credentials(partition=owner))
            case "wait", seconds:
                await anyio.sleep(seconds)
            case _:
                self._serve(act)

    def _serve(self, act: Act) -> None:
        """What happens on the server's side."""
        match act:
            case "change", kind, told:
                self._change(kind, told=told)
            case "ambush", kind, told:
                self.host.ambushes[kind] = [partial(self._change, kind, told=told)]
            case "tell", channel, times:
                for _ in range(times):
                    self._tell(channel)
            case "hold", gate:
                self.host.gates.hold(gate)
            case "release", number:
                self.host.gates.release(number)
            case "fail", kind, how:
                failure = MCPError(INTERNAL_ERROR, "no")
                self.host.fates[kind] = failure if how == "answers" else RuntimeError("broken")
            case ("end listen",):
                for link in self.host.links:
                    link.listen.close()
            case "die", how, refusals, changed:
                for link in self.host.links:
                    link.die(killed=how == "killed")
                self.host.refusals = refusals
                if changed:  # the next process comes with other tools
                    self._change(Kind.TOOLS, told=True)
            case "offer", kind:
                self.host.offered ^= {kind}

    def _change(self, kind: Kind, *, told: bool) -> None:
        """Whoever does not listen at this moment need not be told."""
        self.host.truth.change(kind)
        self.promise.changed(kind)
        if told or not self.host.links:
            self._tell(CHANNEL_OF[kind])

    def _tell(self, channel: Channel) -> None:
        self.promise.told(channel)
        for link in self.host.links:
            link.tell(channel)

    def _own(self, owner: str) -> None:
        """The lists are another's now; who holds the old ones must hear of that from the client."""
        self.host.truth.owner = owner
        self.promise.unsettled.update(Kind)

    # --- readers ----------------------------------------------------------------------------------

    async def _refreshed(self, catalogs: Catalogs, kind: Kind) -> None:
        """What it gives undoubted is no older than the wish, unless the link failed or is over."""
        asked, failures = self.host.truth.revision(kind), catalogs.session.link.failures
        reading, link = await catalogs.refresh(kind), catalogs.session.link
        if link.failures > failures or link.phase is LinkPhase.CLOSED or not reading.snapshot:
            return
        got = revisions(reading.snapshot.items)
        if reading.hit in (Hit.HIT, Hit.EXPIRED) and got and min(got) < asked:
            self.broken.append(f"refresh: {kind.value}: {got}, asked at {asked}")

    async def _called(self, catalogs: Catalogs) -> None:
        """Through the gate. What the server says of it may prove a list stale, however late."""
        self._calling += 1
        try:
            with suppress(MCPError, CallRefused):
                await catalogs.call_tool("tool0", {})
        finally:
            self._calling -= 1

    async def _follow(self, view: View, follower: Follower) -> None:
        async for change in view.changes():
            self.broken.extend(follower.add(change))

    # --- the end ----------------------------------------------------------------------------------

    async def _converge(self) -> None:
        """Within the longest backoff all that the server has is known, and relied on."""
        self.host.calm()
        for kind in list(self.promise.untold):
            self._tell(CHANNEL_OF[kind])
        await self._rest()
        with anyio.move_on_after(600) as limit:
            await self._caught_up()
        if limit.cancelled_caught:
            self.broken.append("converges: ten minutes are not enough")
        await self._rest()
        self.broken.extend(self.promise.converged(self._catalogs))
        for kind, follower in self._followers.items():
            self.broken.extend(follower.caught_up(self._catalogs.session.catalog(kind)))

    async def _caught_up(self) -> None:
        """An eager client that is told of changes needs no wish; others are asked for the lists."""
        catalogs = self._catalogs
        while self.promise.pushes() and catalogs.session.listen.phase is not ListenPhase.OPEN:
            await anyio.sleep(5)
        while self._calling:
            await anyio.sleep(5)
        await catalogs.idle()
        for kind in Kind:
            if not self.setting.push:
                await catalogs.refresh(kind)
            elif self.setting.lazy:
                await catalogs.get(kind)
