"""No history is too strange to be replayed: neither what a hostile client or driver made of it, nor
what was done to a result file."""

import json
from typing import Any, get_args

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from conformance.test_deviation import CHOICES
from relist.check.deviation import first_deviation
from relist.check.history import Event, EventKind

TEXTS = st.sampled_from(
    [
        *("", "memory", "post", "get", "c", "memory-1", "tools", "need", "call", "advance", "a"),
        *("tools/list", "initialize", "server/discover", "subscriptions/listen", "tools/call"),
        *("notifications/initialized", "notifications/tools/list_changed", "fresh", "stale"),
        *("notifications/cancelled", "credentials", "\ud800", "\x1b[2J", "x" * 5_000, "refresh"),
    ]
)
NUMBERS = st.sampled_from([-1, 0, 1, 2, 404, -32601, 2**53, 2**70, -(2**70)])
SCALARS = TEXTS | NUMBERS | st.booleans() | st.none() | st.floats()
NAMES = st.sampled_from(
    [
        *("op", "ask", "ok", "items", "state", "kind", "channel_kind", "headers", "principal"),
        *("code", "passed", "closed", "ms", "token", "name", "planned", "arguments", "http"),
        *("id", "method", "params", "result", "error", "cursor", "nextCursor", "tools", "_meta"),
        *("protocolVersion", "capabilities", "supportedVersions", "ttlMs", "requestId"),
        *("relist-cut", "relist-text", "mcp-session-id", "description", "notifications", "data"),
    ]
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=6)
EVENTS = st.builds(
    Event,
    NUMBERS,
    NUMBERS,
    st.sampled_from(get_args(EventKind)),
    TEXTS,
    st.none() | OBJECTS,
    OBJECTS,
)


def checked(history: list[Event]) -> None:
    found = first_deviation(history)
    if found is not None:
        assert found.seq in {event.seq for event in history}
        assert max(len(found.text), len(found.held)) < 3_000
        assert found.text.isprintable()
        assert found.held.isprintable()


@given(history=st.lists(EVENTS, max_size=12))
def test_any_history_can_be_replayed(history: list[Event]) -> None:
    checked(history)


@st.composite
def damaged(draw: st.DrawFn) -> list[Event]:
    """A history that begins well: some of it is left out, said twice, or holds something else."""
    story = CHOICES[draw(st.sampled_from(sorted(CHOICES)))].events
    events = list(story)
    for _ in range(draw(st.integers(1, 6))):
        at = draw(st.integers(0, len(events) - 1))
        events[at : at + 1] = draw(
            st.sampled_from(
                [
                    [],
                    [events[at]] * 2,
                    [evolve(events[at], data=_with(draw, dict(events[at].data)))],
                    [evolve(events[at], message=_with(draw, dict(events[at].message or {})))],
                ]
            )
        )
        events = events or [draw(EVENTS)]
    return [*events, *draw(st.lists(EVENTS, max_size=2))]


def _with(draw: st.DrawFn, told: dict[str, Any]) -> dict[str, Any]:
    """The same with another value somewhere in it."""
    if not told or draw(st.booleans()):
        return told | draw(OBJECTS)
    name = draw(st.sampled_from(sorted(told)))
    inner = told[name]
    deeper = isinstance(inner, dict) and draw(st.booleans())
    return told | {name: _with(draw, inner) if deeper else draw(VALUES)}


DEEP = json.loads("[" * 900 + "]" * 900)


def _deep(value: Any) -> Any:
    """The same with something nested deeply in the place of each text and number."""
    if isinstance(value, dict):
        kept = ("op", "kind", "method", "channel_kind", "outcome")
        return {name: one if name in kept else _deep(one) for name, one in value.items()}
    return [_deep(one) for one in value] if isinstance(value, list) else DEEP


@pytest.mark.parametrize("choice", CHOICES)
@pytest.mark.parametrize("every", [1, 2, 3])
def test_a_history_of_deep_values_can_be_replayed(choice: str, every: int) -> None:
    events = CHOICES[choice].events
    checked(
        [
            evolve(event, data=_deep(event.data), message=event.message and _deep(event.message))
            if event.seq % every == 0
            else event
            for event in events
        ]
    )


@given(history=damaged())
def test_a_damaged_history_can_be_replayed(history: list[Event]) -> None:
    checked(history)
