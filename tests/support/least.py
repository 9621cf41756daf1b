"""What a witness owes: it shows its miss, none of it can be left out, nothing smaller would do."""

from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, combinations

from relist.check.expect import Expectation
from relist.check.history import Event, History, marked
from relist.check.judge import Finding
from relist.check.misses import Miss, misses
from relist.check.seen import Unknown
from relist.check.witness import Reduced, fewest

SETS_MAX = 600
"""Smaller sets that are all tried; of longer histories nothing is said about the number."""
_TRIED_MAX = 100
"""Of a witness that is longer only some events are tried."""


def missed(expectation: Expectation, history: History) -> list[Miss]:
    """What the judge finds, as far as it can tell."""
    found: list[Miss] = []
    with suppress(Unknown):
        found.extend(misses(expectation, history))
    return found


def check_least(expectation: Expectation, history: History, miss: Miss) -> tuple[int, ...]:
    """Hold the witness of this miss against what it owes, and give it."""
    witness = fewest(expectation, history, miss)
    shown_by = Reduced(expectation, history, miss).shown_by
    assert shown_by(witness), (witness, miss)
    for one in witness[:: len(witness) // _TRIED_MAX + 1]:
        rest = tuple(seq for seq in witness if seq != one)
        assert not shown_by(rest), f"{one} of {witness} is not needed for {miss}"
    numbers = [event.seq for event in history]
    smaller = chain.from_iterable(combinations(numbers, size) for size in range(len(witness)))
    for some in _if_few(smaller):
        assert not shown_by(some), f"{some} would do for {witness}: {miss}"
    return witness


def _if_few(sets: Iterator[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
    """All of these, or none if they are too many to be tried."""
    tried = [some for some, _ in zip(sets, range(SETS_MAX + 1), strict=False)]
    return tried if len(tried) <= SETS_MAX else ()


def check_found(
    expectations: Sequence[Expectation], history: History, findings: Sequence[Finding]
) -> None:
    """The findings of a judge have the witnesses that they owe."""
    owed = [
        (miss.text, check_least(one, history, miss))
        for one in expectations
        if one.given is None or marked(history, one.given) is not None
        for miss in missed(one, history)
    ]
    for finding in findings:
        assert (finding.text, finding.witness) in owed
        events: dict[int, Event] = {event.seq: event for event in history}
        assert finding.witness
        assert all(seq in events for seq in finding.witness)
