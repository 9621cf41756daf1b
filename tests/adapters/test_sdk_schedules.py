"""The live client on the SDK's own server through any schedule: both ends real, time virtual.

Each step of the core is held to the named invariants of the pure model, and to what the server had
and served; when the server calms down, the client converges. See ``support.promise``.
"""

from functools import partial

import pytest
from hypothesis import Phase as Generation
from hypothesis import given, settings
from hypothesis import strategies as st

from relist.check import invariants, isolation
from relist.check.isolation import SessionEdge
from relist.effects import AbandonWalk, Publish, Withdraw
from relist.values import Doubt, Era, Phase
from relist_mcp import Catalogs, Streams
from support import brain
from support.drive import SETTINGS, Drive, Schedule, Setting, Side, schedules
from support.faults import Fault
from support.live_faults import LIVE_FAULTS, MODERN_FAULTS
from support.loops import run_virtually
from support.owned import attached
from support.watch import Check, under_watch

LEGACY, MODERN = (
    Side(era.value, lambda connect, policy: Catalogs.connect(Streams(connect), policy=policy), era)
    for era in (Era.LEGACY, Era.MODERN)
)
# They never connect, and hear answers late: a walk may be made in vain, but what is fresh is true.
ATTACHED = [
    Side(f"{owner}-{era.value}", partial(attached, owner, version), era, survives=False)
    for owner in ("client", "session")
    for era, version in ((Era.LEGACY, brain.LEGACY), (Era.MODERN, brain.MODERN))
]
SIDES = pytest.mark.parametrize("side", [LEGACY, MODERN], ids=lambda side: side.name)


def broken_by(
    side: Side, setting: Setting, acts: Schedule, *checks: Check, backend: str = "trio"
) -> list[str]:
    """What one run breaks."""
    drive = Drive(side, setting)
    with under_watch(drive.broken, drive.promise.broken, *checks):
        run_virtually(partial(drive.run, acts), backend)
    return drive.broken


@pytest.mark.rule("ATOM-14")
@SIDES
def test_whatever_happens_it_converges(side: Side) -> None:
    @settings(max_examples=max(1, settings().max_examples // 2))
    @given(st.random_module(), SETTINGS, schedules(side))
    def any_schedule(_: object, setting: Setting, acts: Schedule) -> None:
        assert broken_by(side, setting, acts) == []

    any_schedule()


@SIDES
def test_it_does_so_on_asyncio(side: Side) -> None:
    @settings(max_examples=max(1, settings().max_examples // 4))
    @given(SETTINGS, schedules(side))
    def any_schedule(setting: Setting, acts: Schedule) -> None:
        assert broken_by(side, setting, acts, backend="asyncio") == []

    any_schedule()


@pytest.mark.parametrize("backend", ["trio", "asyncio"])
@pytest.mark.parametrize(
    "side", ATTACHED, ids=["client-legacy", "client-modern", "session-legacy", "session-modern"]
)
def test_it_does_so_over_a_connection_that_somebody_else_owns(side: Side, backend: str) -> None:
    @settings(max_examples=max(1, settings().max_examples // 8))
    @given(SETTINGS, schedules(side))
    def any_schedule(setting: Setting, acts: Schedule) -> None:
        assert broken_by(side, setting, acts, backend=backend) == []

    any_schedule()


ALWAYS_THE_SAME = settings(derandomize=True, database=None, phases=[Generation.generate])


@SIDES
def test_the_schedules_reach_what_they_are_about(side: Side) -> None:
    """Whoever is right because nothing ever happens is not tested."""
    seen: set[object] = set()

    def see(edge: SessionEdge) -> tuple[str, ...]:
        for catalog in edge.after.catalogs:
            seen.update((catalog.phase, catalog.doubt))
            if catalog.walk is not None and catalog.walk.spoiled and catalog.walk.pages:
                seen.add("spoiled with pages")
        for effect in edge.effects:
            if isinstance(effect, Publish):
                seen.add("clean" if effect.snapshot.clean else "spoiled")
            elif isinstance(effect, AbandonWalk | Withdraw):
                seen.add(type(effect))
        return ()

    @settings(ALWAYS_THE_SAME, max_examples=40)
    @given(st.random_module(), SETTINGS, schedules(side))
    def any_schedule(_: object, setting: Setting, acts: Schedule) -> None:
        broken_by(side, setting, acts, see)

    any_schedule()
    doubts = {Doubt.NOTICED, Doubt.FAILED, Doubt.DISCONNECTED}
    modern = {Doubt.UNCOVERED} if side is MODERN else set()
    lists = {"spoiled with pages", "clean", "spoiled", AbandonWalk, Withdraw}
    assert seen >= {*Phase, *doubts, *modern, *lists}


class Found(Exception):
    """A run broke what the fault is said to break."""


@pytest.mark.parametrize(
    ("side", "fault"),
    [(side, fault) for fault in LIVE_FAULTS for side in (LEGACY, MODERN)]
    + [(MODERN, fault) for fault in MODERN_FAULTS]
    + [(side, LIVE_FAULTS[0]) for side in ATTACHED],
    ids=lambda value: value.name,
)
def test_what_the_server_saw_shows_a_seeded_fault(
    side: Side, fault: Fault, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without any look inside, and with no more runs than the default."""
    monkeypatch.setattr(invariants, "ALWAYS", {})
    monkeypatch.setattr(isolation, "ISOLATED", {})
    fault.seed(monkeypatch)

    @settings(ALWAYS_THE_SAME, max_examples=200)
    @given(st.random_module(), SETTINGS, schedules(side))
    def any_schedule(_: object, setting: Setting, acts: Schedule) -> None:
        names = {text.partition(":")[0] for text in broken_by(side, setting, acts)}
        if names & fault.caught_by:
            raise Found

    with pytest.raises(Found):
        any_schedule()
