"""What it costs to see 10,000 tools again, and to see that one of them has changed.

Beside it, in the same run: digesting the raw JSON once, and RFC 8785 canonical JSON of all of it.
"""

import gc
import json
import tracemalloc
from collections.abc import Callable
from hashlib import sha256
from time import process_time

import pytest
import rfc8785
from attrs import evolve
from pytest_benchmark.fixture import BenchmarkFixture

from bench.conftest import Sample, timed
from bench.tools import page, texts
from relist.drift import inputs as i
from relist.drift.ledger import Ledger
from relist.drift.receive import receive
from relist.drift.values import (
    Profile,
    ServerIdentity,
    ServerSelection,
)
from relist.values import Item, Items, Kind, Scope, Snapshot
from relist_mcp.drift.definitions import Reader
from relist_mcp.drift.schemas import relate

COUNT, ROUNDS = 10_000, 15
SERVER = ServerIdentity("srv", "bench")
compared = pytest.mark.benchmark(
    group="10,000 tools seen again", timer=process_time, disable_gc=True
)


def _items() -> Items:
    return tuple(item for text in texts(COUNT) for item in page(text))


ITEMS = _items()


def _changed(items: Items) -> Items:
    entry = json.loads(items[77].canonical_json)
    text = json.dumps({**entry, "description": "other"}, sort_keys=True).encode()
    return (*items[:77], Item(items[77].key, text), *items[78:])


def _snapshot(items: Items) -> Snapshot:
    return Snapshot(items, 1, Scope.PUBLIC, "", "", 1, 1, 0, None, True, frozenset())


def _told(reader: Reader, ledger: Ledger, items: Items) -> Ledger:
    taken = reader.inventory(SERVER, _snapshot(items), "me", 0)
    return receive(ledger, taken, relate).state


def _approved() -> tuple[Reader, Ledger]:
    """All of it was seen, and is on the surface of one consumer."""
    reader = Reader(SERVER.id, Kind.TOOLS)
    wish = i.ProfileSet(Profile("agent", (ServerSelection(SERVER.id),)), "me", "", 0)
    ledger = _told(reader, receive(Ledger(), wish).state, ITEMS)
    shown = {definition.ref: definition.id for definition in reader.read(ITEMS).values()}
    return reader, receive(ledger, i.Approved("agent", shown, "me", "", 0)).state


def _run(benchmark: BenchmarkFixture, act: Callable[[], object]) -> Sample:
    benchmark.pedantic(act, rounds=ROUNDS, warmup_rounds=1)  # type: ignore[no-untyped-call]
    return timed(benchmark)


@compared
def test_the_raw_json_digested_once(
    benchmark: BenchmarkFixture, measured: dict[str, Sample]
) -> None:
    raw = [item.canonical_json for item in ITEMS]
    measured["digest"] = _run(benchmark, lambda: [sha256(text).digest() for text in raw])


@compared
def test_rfc8785_alone(benchmark: BenchmarkFixture, measured: dict[str, Sample]) -> None:
    entries = [json.loads(item.canonical_json) for item in ITEMS]

    def hashed() -> list[bytes]:
        return [sha256(rfc8785.dumps(entry)).digest() for entry in entries]

    benchmark.pedantic(hashed, rounds=3)  # type: ignore[no-untyped-call]
    measured["rfc8785"] = timed(benchmark)


@compared
def test_seen_again(benchmark: BenchmarkFixture, measured: dict[str, Sample]) -> None:
    reader, ledger = _approved()
    measured["seen again"] = _run(benchmark, lambda: _told(reader, ledger, ITEMS))
    assert _told(reader, ledger, ITEMS) is ledger


@compared
def test_one_changed(benchmark: BenchmarkFixture, measured: dict[str, Sample]) -> None:
    reader, ledger = _approved()
    other = _changed(ITEMS)
    turns = [other, ITEMS] * ROUNDS  # there and back, so that it is one change each time
    seen = iter(turns)

    def change() -> Ledger:
        nonlocal ledger
        ledger = _told(reader, ledger, next(seen))
        return ledger

    measured["one changed"] = _run(benchmark, change)


def test_memory(measured: dict[str, Sample]) -> None:
    """Of definitions and ledger, for each byte of the items."""
    gc.collect()
    tracemalloc.start()
    kept = _approved()
    gc.collect()
    size = float(tracemalloc.get_traced_memory()[0])
    tracemalloc.stop()
    assert kept
    raw = float(sum(len(item.canonical_json) for item in ITEMS))
    measured["drift kept"], measured["drift raw"] = Sample(size, size), Sample(raw, raw)
    assert evolve(kept[1]) == kept[1]
