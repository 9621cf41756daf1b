"""What a step and a read cost, beside what cannot be cheaper and beside the library's engine."""

from collections.abc import Callable
from time import process_time

import pytest
from attrs import frozen
from pytest_benchmark.fixture import BenchmarkFixture
from statemachine.exceptions import TransitionNotAllowed

from bench.conftest import Sample, timed
from law.test_engine import Case, engine, event_of
from relist import inputs as i
from relist.machine import read, step
from relist.policy import Policy
from relist.values import Catalog, Era, Item, Kind, Phase, Scope, new_catalog
from support.laws import CATALOG

POLICY = Policy(seed=b"bench", gather_ms=0, gap_base_ms=1, gap_max_ms=1)
PAGE = tuple(Item(f"tool-{n}", b'{"name":"tool-%d"}' % n) for n in range(10))
ROUNDS = 200


def _listed(catalog: Catalog, heard: i.CatalogInput) -> Catalog:
    return step(catalog, heard, POLICY).state


def _fresh() -> Catalog:
    catalog = _listed(new_catalog(Kind.TOOLS), i.LinkOpened(1, 0))
    catalog = _listed(catalog, i.ListingAllowed(Era.LEGACY, "2025-11-25", True, True, 0))
    return _listed(catalog, i.PageArrived(Kind.TOOLS, 1, PAGE, None, None, Scope.PRIVATE, 1))


def _mix(serial: int, now_ms: int) -> tuple[i.CatalogInput, ...]:
    """A busy second: a burst of notices, one walk of two pages, reads and clock ticks between."""
    kind = Kind.TOOLS
    return (
        *(i.ListChangedHeard(now_ms) for _ in range(5)),
        i.TimePassed(now_ms + 1),
        i.PageArrived(kind, serial + 1, PAGE, "next", None, Scope.PRIVATE, now_ms + 2),
        *(i.TimePassed(now_ms + 2) for _ in range(3)),
        i.ReadWanted(kind, now_ms + 2),
        i.PageArrived(kind, serial + 2, (), None, None, Scope.PRIVATE, now_ms + 3),
        *(i.ReadWanted(kind, now_ms + 4) for _ in range(10)),
        *(i.TimePassed(now_ms + 5) for _ in range(5)),
    )


def _script() -> tuple[i.CatalogInput, ...]:
    return tuple(heard for n in range(ROUNDS) for heard in _mix(1 + 2 * n, 10 + 10 * n))


@frozen
class Bare:
    """As many fields as a small state needs."""

    phase: int
    doubt: int
    walk: int
    snapshot: int
    wanted: int
    serial: int


BARE = {(phase, heard): (phase + 1) % 7 for phase in range(7) for heard in range(14)}


def _bare(script: tuple[i.CatalogInput, ...]) -> Bare:
    state = Bare(0, 1, 2, 3, 4, 5)
    for _ in script:
        state = Bare(BARE[state.phase, 3], state.doubt, state.walk, state.snapshot, 4, 5)
    return state


def _step(script: tuple[i.CatalogInput, ...]) -> Catalog:
    catalog = _fresh()
    for heard in script:
        catalog = step(catalog, heard, POLICY).state
    return catalog


def _engine(events: tuple[tuple[str, i.CatalogInput], ...]) -> Catalog:
    """The same on one instance of python-statemachine, with the same guards and actions."""
    catalog = _fresh()
    MACHINE.current_state_value = catalog.phase
    for event, heard in events:
        HOST.made = None
        try:
            MACHINE.send(event, case=Case(catalog, heard, POLICY))
        except TransitionNotAllowed:
            continue  # a cell that the chart leaves to a default
        if HOST.made is not None:
            catalog = HOST.made.state
    return catalog


MACHINE, HOST = engine(CATALOG, Phase.FRESH)


@pytest.mark.benchmark(group="a busy second, many times", timer=process_time)
@pytest.mark.parametrize("run", [_bare, _step, _engine], ids=["bare", "step", "engine"])
def test_step(
    benchmark: BenchmarkFixture, measured: dict[str, Sample], run: Callable[..., object]
) -> None:
    script = _script()
    events = tuple((event_of(heard), heard) for heard in script)
    ended = benchmark(run, events if run is _engine else script)
    assert ended == _step(script) if run is not _bare else isinstance(ended, Bare)
    measured[run.__name__.strip("_")] = timed(benchmark)


def _empty() -> None:
    pass


@pytest.mark.benchmark(group="a read, a thousand times")
@pytest.mark.parametrize("what", ["empty", "read"])
def test_read(benchmark: BenchmarkFixture, measured: dict[str, Sample], what: str) -> None:
    catalog = _fresh()

    def many_empty() -> None:
        for _ in range(1_000):
            _empty()

    def many_read() -> None:
        for _ in range(1_000):
            read(catalog, 100)

    benchmark(many_empty if what == "empty" else many_read)
    measured[what] = timed(benchmark)
