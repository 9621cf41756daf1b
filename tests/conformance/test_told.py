"""What happened, in lines for people and in JSON for programs: complete, safe and bounded."""

import json
from collections.abc import Iterable
from functools import cache
from typing import Any, get_args

import jsonschema_rs
import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from relist import inputs as i
from relist.check.trace import read_header, read_step, replay
from relist.inputs import SessionInput
from relist.values import Channel, Item, Kind, Wire
from relist_conformance.report import lines, told
from relist_conformance.report.lines import Line, lines_of
from relist_conformance.report.live import Printed
from relist_conformance.report.told import Told, json_of, watch_schema
from relist_mcp import events as ev
from relist_mcp.events import Event
from relist_mcp.fold import Seen, fold
from relist_mcp.loop import Fed
from support.play import SETTINGS, Setting
from support.traced import QUICK, a_notice_during_a_walk, item, page, played, trace_of
from support.typed import values_of

EVENTS = {
    kind for kind in vars(ev).values() if isinstance(kind, type) and issubclass(kind, Event)
} - {Event, ev.OfKind}


@cache
def validator() -> Any:
    return jsonschema_rs.Draft202012Validator(watch_schema())


def events_of(trace: list[str]) -> list[Event]:
    """What happened in a trace."""
    seen, found = Seen(), list[Event]()
    header, *steps = trace
    for step in replay(read_header(header), map(read_step, steps)):
        assert step.observed is not None
        whole = step.observed.whole
        seen, events = fold(seen, Fed(step.heard, whole.before, whole.after, whole.effects))
        found += events
    return found


def texts(events: Iterable[Event]) -> list[str]:
    return [line.text for event in events for line in lines_of(event)]


def test_programs_are_told_of_every_event() -> None:
    assert EVENTS - {ev.Published} == set(get_args(Told)) - {told.Listed, told.Ended}


def test_the_schema_is_a_schema() -> None:
    jsonschema_rs.meta.validate(watch_schema())


@pytest.mark.parametrize(
    "kind", sorted(EVENTS - {ev.Published}, key=str), ids=lambda kind: kind.__name__
)
def test_each_event_is_told_safely(kind: type[Any]) -> None:
    @given(values_of(kind))
    def is_told(event: Any) -> None:
        (*more, line) = lines_of(event)
        assert more == []
        assert line.text != kind.__name__
        assert line.shown(0).isprintable()
        data = json_of(event)
        assert data.isascii()
        if "\\ud" not in data:  # the validator knows no half of a surrogate pair
            assert validator().is_valid(json.loads(data))

    is_told()


@given(st.sampled_from(SETTINGS), st.binary(max_size=25))
def test_whatever_happens_is_told(setting: Setting, script: bytes) -> None:
    for event in events_of(played(setting, script)):
        assert all(line.shown(0).isprintable() for line in lines_of(event))
        assert validator().is_valid(json.loads(json_of(event)))


# --- lists ----------------------------------------------------------------------------------------


def listed(*items: Item) -> list[SessionInput]:
    """A session that lists these after others."""
    begun = a_notice_during_a_walk()[:4]
    notice = i.NoticeHeard(Channel.TOOLS, 1, 300)
    before = page(1, 200, item("kept"), item("gone"), item("altered", title="old"))
    return [*begun, before, notice, i.TimePassed(350), page(2, 400, *items)]


def test_a_change_is_told_by_names_and_fields() -> None:
    now = (item("new"), item("kept"), item("altered", title="new"))
    events = events_of(trace_of(QUICK, Wire.PIPE, listed(*now)))
    *_, published = (event for event in events if isinstance(event, ev.Published))
    assert texts([published]) == [
        "generation 2, 3 entries, changed, 100 ms after the notice",
        "+ new",
        "- gone",
        "~ altered: title",
    ]
    data = json.loads(json_of(published))["Listed"]
    assert (data["notices"], data["lag_ms"]) == (1, 100)
    assert data["added"] == {"count": 1, "first": ["new"]}
    assert data["removed"] == {"count": 1, "first": ["gone"]}
    assert data["altered"] == {"count": 1, "first": [{"name": "altered", "fields": ["title"]}]}


def test_a_change_that_nobody_announced_is_told_as_one() -> None:
    heard = [one for one in listed(item("new")) if not isinstance(one, i.NoticeHeard)]
    heard[-2] = i.RefreshWanted(Kind.TOOLS, 350)
    *_, published = (
        event
        for event in events_of(trace_of(QUICK, Wire.PIPE, heard))
        if isinstance(event, ev.Published)
    )
    assert texts([published])[0] == "generation 2, 1 entry, changed, though no notice came"


def test_names_are_made_safe_and_long_lists_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(told, "NAMES_MAX", 20)
    hostile = ["\x1b[2J", "\u202eevil", "[bold]x[/bold]", "a\nb", "x" * 5_000]
    many = [item(name) for name in (*hostile, *map(str, range(40)))]
    events = events_of(trace_of(QUICK, Wire.PIPE, listed(*many)))
    *_, published = (event for event in events if isinstance(event, ev.Published))
    shown = texts([published])
    assert shown[1:6] == [
        "+ \\x1b[2J",
        "+ \\u202eevil",
        "+ [bold]x[/bold]",
        "+ a\\nb",
        f"+ {'x' * 60}…",
    ]
    assert shown[lines.NAMES_MAX + 1] == "+ and 35 more"
    added = json.loads(json_of(published))["Listed"]["added"]
    assert (added["count"], len(added["first"])) == (45, 20)
    assert max(map(len, added["first"])) == 1_001


# --- lines that repeat ----------------------------------------------------------------------------


def test_a_storm_is_counted() -> None:
    said: list[str] = []
    printed = Printed(said.append)
    for at_ms in range(1_000, 1_500):
        printed(Line(at_ms, "notice", "tools: known already"))
    printed(Line(1_500, "tools", "walk 2 begins: noticed"))
    printed(Line(1_600, "", "+ a"))
    printed(Line(1_600, "", "+ a"))
    printed.flush()
    assert [line.strip() for line in said] == [
        "0.000  notice              tools: known already",
        "0.499                      notice: the same 499 more times",
        "0.500  tools               walk 2 begins: noticed",
        "0.600                      + a",
        "0.600                      + a",
    ]


def test_notices_that_change_nothing_differ_from_those_that_do() -> None:
    heard = a_notice_during_a_walk()
    heard.insert(6, evolve(heard[5], now_ms=185))
    events = events_of(trace_of(QUICK, Wire.PIPE, heard))
    noticed = [event for event in events if isinstance(event, ev.Noticed)]
    assert texts(noticed) == ["tools: heeded by tools", "tools: known already"]
    assert noticed[0].kinds == (Kind.TOOLS,)
