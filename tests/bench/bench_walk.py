"""What a large catalog costs: walked, walked again, in time and in memory.

Inputs are made beforehand. The collector is off, since it would burden the decoder only.
"""

import gc
import tracemalloc
from collections.abc import Callable, Sequence
from time import process_time

import orjson
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from bench.conftest import Sample, timed
from bench.tools import page, texts
from relist import inputs as i
from relist.machine import step
from relist.policy import Policy
from relist.values import Catalog, Era, Items, Kind, Phase, Scope, Snapshot, new_catalog

COUNT = 10_000
POLICY = Policy(seed=b"bench", bytes_max=2**30)
TEXTS = texts(COUNT)
ROUNDS = 40

compared = pytest.mark.benchmark(
    group="10,000 tools in 100 pages", timer=process_time, disable_gc=True
)


def _empty() -> Catalog:
    """Never listed, and its first walk is open."""
    catalog = step(new_catalog(Kind.TOOLS), i.LinkOpened(1, 0), POLICY).state
    allowed = i.ListingAllowed(Era.LEGACY, "2025-11-25", True, True, 0)
    return step(catalog, allowed, POLICY).state


def _again(catalog: Catalog) -> Catalog:
    return step(catalog, i.RefreshWanted(Kind.TOOLS, 20), POLICY).state


def _answer(serial: int, items: Items, cursor: str | None) -> i.PageArrived:
    return i.PageArrived(Kind.TOOLS, serial, items, cursor, None, Scope.PRIVATE, 10)


def _answers(catalog: Catalog, pages: Sequence[Items]) -> list[i.PageArrived]:
    """The answers to the open walk."""
    cursors = [*map(str, range(1, len(pages))), None]
    return [
        _answer(catalog.serial + n, items, cursor)
        for n, (items, cursor) in enumerate(zip(pages, cursors, strict=True))
    ]


def _walk(catalog: Catalog, answers: Sequence[i.PageArrived]) -> Catalog:
    for answer in answers:
        catalog = step(catalog, answer, POLICY).state
    return catalog


Walk = tuple[Catalog, list[i.PageArrived]]
"""A catalog with an open walk, and its answers."""


def _first(pages: Sequence[bytes]) -> Walk:
    catalog = _empty()
    return catalog, _answers(catalog, [page(text) for text in pages])


def _measured(benchmark: BenchmarkFixture, prepared: Callable[[], Walk], rounds: int) -> Snapshot:
    """Each time over items that nobody has touched before; what readers see in the end."""

    def setup() -> tuple[Walk, dict[str, object]]:
        walk = prepared()
        gc.collect()
        return walk, {}

    pedantic: Callable[..., Catalog] = benchmark.pedantic
    listed = pedantic(_walk, setup=setup, rounds=rounds)
    assert listed.phase is Phase.FRESH
    assert listed.snapshot is not None
    return listed.snapshot


def _decode(held: list[object]) -> None:
    for text in TEXTS:
        held.append(orjson.loads(text))


@compared
def test_decode(benchmark: BenchmarkFixture, measured: dict[str, Sample]) -> None:
    """All tools are held to the end, as the core holds all items.

    To drop each page as soon as it is decoded takes about two thirds of the time.
    """
    held: list[object] = []

    def setup() -> tuple[tuple[list[object]], dict[str, object]]:
        held.clear()
        gc.collect()
        return (held,), {}

    pedantic: Callable[..., None] = benchmark.pedantic
    pedantic(_decode, setup=setup, rounds=ROUNDS)
    assert len(held) == len(TEXTS)
    measured["decode"] = timed(benchmark)


@compared
def test_walk(benchmark: BenchmarkFixture, measured: dict[str, Sample]) -> None:
    """From the first answer to what readers see."""
    snapshot = _measured(benchmark, lambda: _first(TEXTS), ROUNDS)
    assert len(snapshot.items) == COUNT
    measured["walk"] = timed(benchmark)


@compared
def test_walk_again(benchmark: BenchmarkFixture, measured: dict[str, Sample]) -> None:
    """Equal bytes in other objects: nothing changes, and readers hold the same list."""
    catalog = _walk(*_first(TEXTS))
    asked = _again(catalog)

    def prepared() -> Walk:
        return asked, _answers(asked, [page(text) for text in TEXTS])

    snapshot = _measured(benchmark, prepared, ROUNDS)
    assert catalog.snapshot is not None
    assert snapshot.items is catalog.snapshot.items
    measured["rewalk"] = timed(benchmark)


@pytest.mark.benchmark(group="a whole walk, 100 items a page", timer=process_time)
@pytest.mark.parametrize("count", [1_000, 100_000])
def test_linear(benchmark: BenchmarkFixture, measured: dict[str, Sample], count: int) -> None:
    pages = texts(count)
    snapshot = _measured(benchmark, lambda: _first(pages), max(5, 200_000 // count))
    assert len(snapshot.items) == count
    measured[f"item of {count}"] = timed(benchmark, per=count)


def test_memory(measured: dict[str, Sample]) -> None:
    """All there is at the worst moment: what is held, what is fetched, and what is at work.

    Two walks of the same list, each page made when it comes.
    """
    tracemalloc.start()
    try:
        catalog = _empty()
        for _ in range(2):
            for text, cursor in zip(TEXTS, [*map(str, range(1, len(TEXTS))), None], strict=True):
                answer = _answer(catalog.serial, page(text), cursor)
                catalog = step(catalog, answer, POLICY).state
            catalog = _again(catalog)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert catalog.snapshot is not None
    items = sum(len(item.canonical_json) for item in catalog.snapshot.items)
    measured["peak"], measured["items"] = Sample(peak, peak), Sample(items, items)
