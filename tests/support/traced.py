"""Traces of sessions that were played: what a watcher would have written."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from attrs import evolve

from relist import inputs as i
from relist.check.trace import Replayed, header_line, read_header, read_step, replay, step_line
from relist.inputs import SessionInput
from relist.policy import Policy
from relist.session import new_session, receive
from relist.values import Channel, Failure, Item, Items, Kind, Scope, Wire
from support.alphabet import FULL
from support.one import MODERN, SEED
from support.play import Play, Setting

QUICK = Policy(seed=SEED, jitter_percent=0)


def trace_of(policy: Policy, wire: Wire, heard: Iterable[SessionInput]) -> list[str]:
    """The lines of a session that was told this."""
    session, lines = new_session(wire, "A"), [header_line(policy, wire, "A")]
    for one in heard:
        session, effects = receive(session, one, policy)
        lines.append(step_line(one, effects, session, policy))
    return lines


def replayed(lines: Iterable[str]) -> list[Replayed]:
    """What a replay makes of these lines."""
    first, *rest = lines
    return list(replay(read_header(first), map(read_step, rest)))


def item(name: str, **fields: Any) -> Item:
    """A tool, as a server lists it."""
    entry = {"name": name, "inputSchema": {"type": "object"}, **fields}
    return Item(name, json.dumps(entry, sort_keys=True).encode())


def page(serial: int, now_ms: int, *items: Item, more: str | None = None) -> i.PageArrived:
    """A page of tools."""
    return i.PageArrived(Kind.TOOLS, serial, items, more, None, Scope.PRIVATE, now_ms)


def heard_in(play: Play) -> Iterator[SessionInput]:
    """What the session of this play was told, with entries that are JSON."""
    for _, _, what in play.transcript:
        if isinstance(what, i.PageArrived):
            yield evolve(what, items=_json(what.items))
        elif isinstance(what, SessionInput):
            yield what


def _json(items: Items) -> Items:
    return tuple(Item(one.key, json.dumps({"is": str(one)}).encode()) for one in items)


def played(setting: Setting, script: bytes) -> list[str]:
    """The trace of a play with this script."""
    play = Play(setting)
    for choice in script:
        play.act(choice)
    play.settle()
    return trace_of(play.policy, setting.wire, heard_in(play))


def a_notice_during_a_walk() -> list[SessionInput]:
    """Two pages, a notice between them, and the walk that follows; all in virtual time."""
    only = i.DiscoverAnswered(1, (MODERN,), evolve(FULL, kinds=frozenset({Kind.TOOLS})), 120)
    a, b, c = item("a"), item("b"), item("c")
    return [
        i.ConnectWanted(0),
        i.TransportOpened(1, 20),
        only,
        i.PushOpened(1, frozenset({Channel.TOOLS}), 150),
        page(1, 170, a, more="\x1b[2J"),
        i.NoticeHeard(Channel.TOOLS, 1, 180),
        page(2, 190, b),
        i.TimePassed(340),
        page(3, 360, a, item("b", title="B"), c),
        i.PageFailed(Kind.TOOLS, 2, Failure("error answer", status=500), 400),
    ]
