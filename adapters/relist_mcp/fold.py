"""From what the loop fed to what happened: a pure fold, and the observer that runs it once for all.

``fold(seen, fed)`` looks at one step of the core, and decides nothing: it reads off the input, the
two states and the effects what the law did, and gives it a name. What one step does not show (when
a walk began and why, which notice waits for an answer) it carries along as ``Seen``.
"""

from collections.abc import Callable, Iterator

import attrs

from relist import effects as e
from relist import inputs as i
from relist.values import (
    CHANNEL_OF,
    KINDS,
    Channel,
    Kind,
    Link,
    LinkPhase,
    Phase,
)
from relist_mcp import events as ev
from relist_mcp.events import Event
from relist_mcp.loop import Fed
from relist_mcp.walks import NOTHING_SEEN, SeenKind, happened

_UNBELIEVED = ("SUB-13", "SUB-14")
_ON_TAGS = (*_UNBELIEVED, "SUB-15", "SUB-16")
_KINDS_OF = {
    channel: tuple(kind for kind in KINDS if CHANNEL_OF[kind] is channel) for channel in Channel
}


@attrs.frozen
class Seen:
    """What is remembered from step to step."""

    kinds: tuple[SeenKind, ...] = (NOTHING_SEEN,) * len(KINDS)


Told = tuple[Event, ...]
Watcher = Callable[[Fed, Told], None]


class Events:
    """An observer of the loop that tells watchers what happened in each step, if anything did.

    Watchers must not raise, as observers must not.
    """

    __slots__ = ("_seen", "watchers")

    def __init__(self, *watchers: Watcher) -> None:
        self.watchers = list(watchers)
        self._seen = Seen()

    def __call__(self, fed: Fed) -> None:
        """See ``loop.Observer``."""
        self._seen, told = fold(self._seen, fed)
        if told:
            for watcher in self.watchers:
                watcher(fed, told)


def fold(seen: Seen, fed: Fed) -> tuple[Seen, Told]:
    """What happened in this step, in order: the link, the notice, each kind, and what was noted."""
    heard, moved = fed.heard, fed.before is not fed.after
    notes = [one for one in fed.effects if isinstance(one, e.Note)] if fed.effects else []
    told: list[Event] = [*_of_link(fed)] if moved else []
    heeding: tuple[Kind, ...] = ()
    if isinstance(heard, i.NoticeHeard):
        noticed = _noticed(heard, fed, notes)
        heeding = noticed.kinds
        told.append(noticed)
    if moved or heeding:
        kinds: list[SeenKind] = []
        for kind, known in zip(KINDS, seen.kinds, strict=True):
            carried = known.noticed(heard.now_ms) if kind in heeding else known
            if moved:
                carried, events = happened(kind, carried, fed)
                told += events
            kinds.append(carried)
        seen = Seen(tuple(kinds))
    if notes or not isinstance(heard, i.NoticeHeard):  # most of a storm is neither
        told += _of_the_rest(fed, notes)
    return seen, tuple(told)


# --- the link and notices -------------------------------------------------------------------------


def _of_link(fed: Fed) -> Iterator[Event]:
    heard, before, after = fed.heard, fed.before.link, fed.after.link
    at = {"at_ms": heard.now_ms, "epoch": after.epoch}
    if isinstance(heard, i.CredentialsChanged):
        was = fed.before.catalogs[0].standing.partition
        yield ev.CredentialsMoved(**at, foreign=was != heard.partition)
    if before.phase is not after.phase or before.epoch != after.epoch:
        yield ev.LinkMoved(
            **at,
            before=before.phase,
            after=after.phase,
            failures=after.failures,
            due_at_ms=after.due_at_ms,
        )
    was_live, live = before.phase is LinkPhase.LIVE, after.phase is LinkPhase.LIVE
    if live and not (was_live and _agreed(before) == _agreed(after)):
        assert after.era is not None  # live means known
        yield ev.Agreed(**at, era=after.era, version=after.version, capabilities=after.capabilities)
    yield from _of_listen(fed, at)


def _agreed(link: Link) -> tuple[object, ...]:
    return link.era, link.version, link.capabilities


def _of_listen(fed: Fed, at: dict[str, int]) -> Iterator[Event]:
    heard, before, after = fed.heard, fed.before.listen, fed.after.listen
    if before.phase is after.phase and before.granted == after.granted:
        return
    yield ev.ListenMoved(
        **at,
        before=before.phase,
        after=after.phase,
        carrier=after.carrier,
        granted=frozenset(topic for topic in after.granted if isinstance(topic, Channel)),
        serial=after.serial,
        failure=heard.failure if isinstance(heard, i.PushEnded) else None,
    )


def _noticed(heard: i.NoticeHeard, fed: Fed, notes: list[e.Note]) -> ev.Noticed:
    fault = next((note.rule for note in notes if note.rule in _ON_TAGS), None) if notes else None
    kinds = () if fault in _UNBELIEVED else _heeding(fed, heard.channel, notes)
    return ev.Noticed(
        at_ms=heard.now_ms,
        epoch=fed.after.link.epoch,
        channel=heard.channel,
        serial=heard.serial,
        kinds=kinds,
        fault=fault,
        merged=bool(kinds) and all(_is_unmoved(fed, kind) for kind in kinds),
    )


def _is_unmoved(fed: Fed, kind: Kind) -> bool:
    return fed.before is fed.after or fed.before.catalog(kind) is fed.after.catalog(kind)


def _heeding(fed: Fed, channel: Channel, notes: list[e.Note]) -> tuple[Kind, ...]:
    """The kinds that the law let hear of a notice and that were promised one."""
    unpromised = [note.values[0] for note in notes if note.rule == "CAP-19"]
    heeding: list[Kind] = []
    for kind in _KINDS_OF[channel]:
        catalog = fed.after.catalog(kind)
        walk = catalog.walk
        doubted = catalog.doubt is not None or (walk is not None and walk.spoiled)
        idle = catalog.phase in (Phase.DISCONNECTED, Phase.UNSUPPORTED)
        if doubted and not idle and kind.value not in unpromised:
            heeding.append(kind)
    return tuple(heeding)


def _of_the_rest(fed: Fed, notes: list[e.Note]) -> Iterator[Event]:
    """Adoption, updates of resources, and notes. Those on the tag of a notice are told with it."""
    heard, at = fed.heard, {"at_ms": fed.heard.now_ms, "epoch": fed.after.link.epoch}
    match heard:
        case i.SurfaceAdopted():
            listed = fed.after.catalog(heard.kind).snapshot
            count = 0 if listed is None else len(listed.items)
            yield ev.Adopted(
                **at,
                kind=heard.kind,
                generation=heard.generation,
                count=heard.count,
                listed=count,
            )
        case i.UpdateHeard():
            believed = any(isinstance(effect, e.ContentChanged) for effect in fed.effects)
            yield ev.ContentNoticed(**at, serial=heard.serial, believed=believed)
        case _:
            pass
    noticed = isinstance(heard, i.NoticeHeard)
    for note in notes:
        if not (noticed and note.rule in _ON_TAGS):
            yield ev.Noted(
                **at,
                rule=note.rule,
                text=note.text,
                late=note.text.startswith("late"),
                kind=next((kind for kind in KINDS if kind.value in note.values), None),
                serial=getattr(heard, "serial", None),
            )
