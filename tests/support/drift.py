"""Small worlds of drift: definitions by version, what can happen, and all that can come of it."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from attrs import evolve, frozen

from relist.check.drift import LedgerEdge, Story, broken, edge
from relist.drift import inputs as i
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Ledger
from relist.drift.policy import chosen
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    Chosen,
    Definition,
    ExactSelection,
    Hints,
    Presence,
    Profile,
    Rule,
    Seen,
    ServerIdentity,
    Subject,
    SurfaceManifest,
    capability_id,
)
from relist.errors import ImpossibleAct
from relist.policy import Risk

HOME = ServerIdentity("home", "https://home.test/mcp", audience="me")
MOVED = ServerIdentity("home", "https://elsewhere.test/mcp", audience="me")
AWAY = ServerIdentity("away")  # reached under a configured name, and nothing else is known
AMBIGUOUS = "?"
HARMLESS = Hints(read_only=True, open_world=False)


def ref(key: str, server: str = "home", subject: Subject = Subject.TOOL) -> CapabilityRef:
    return CapabilityRef(server, subject, key)


def definition(
    key: str,
    version: str = "1",
    *,
    server: str = "home",
    subject: Subject = Subject.TOOL,
    hints: Hints = HARMLESS,
    **more: str,
) -> Definition:
    """A definition whose description is its version; equal versions have equal bodies."""
    fields = {"description": f'"{version}"'.encode(), "name": f'"{key}"'.encode()}
    fields |= {name: value.encode() for name, value in more.items()}
    text = repr((server, subject, key, sorted(fields.items()))).encode()
    body = repr(sorted((name, value) for name, value in fields.items() if name != "name")).encode()
    return Definition(
        ref(key, server, subject),
        capability_id(text),
        capability_id(b"upstream" + text),
        capability_id(b"body" + body),
        fields,
        hints,
    )


def inventory(
    offered: Mapping[str, str],
    server: ServerIdentity = HOME,
    *,
    clean: bool = True,
    partition: str = "me",
    at_ms: int = 0,
    subject: Subject = Subject.TOOL,
) -> i.InventoryTaken:
    """An inventory of these versions by key; the version ``?`` is two at once."""
    made = {
        key: definition(key, version, server=server.id, subject=subject)
        for key, version in offered.items()
        if version != AMBIGUOUS
    }
    double = frozenset(key for key, version in offered.items() if version == AMBIGUOUS)
    return i.InventoryTaken(server, subject, made, double, clean, partition, at_ms)


def exactly(consumer: str, *wanted: CapabilityRef, **more: object) -> Profile:
    """A profile of these and no others."""
    items = dict.fromkeys(wanted, Chosen(Rule.ALLOW, Risk.READ_ONLY))
    return evolve(Profile(consumer, (ExactSelection(items),)), **more)  # type: ignore[arg-type]


# --- worlds ---------------------------------------------------------------------------------------


@frozen
class World:
    """Profiles to begin with, what observers may say, and what people may do besides deciding."""

    name: str
    profiles: tuple[Profile, ...]
    observations: tuple[LedgerInput, ...]
    acts: tuple[LedgerInput, ...] = ()
    decides: bool = True

    def begin(self) -> tuple[Ledger, Story]:
        """Profiles are set, nothing was seen yet."""
        ledger, story = Ledger(), Story()
        for profile in self.profiles:
            made = edge(ledger, i.ProfileSet(profile, "person", "", 0), story)
            ledger, story = made.after, made.story
        return ledger, story

    def inputs(self, ledger: Ledger) -> Iterator[LedgerInput]:
        """All that can be told next."""
        yield from self.observations
        yield from self.acts
        if self.decides:
            yield from decisions(ledger)


def decisions(ledger: Ledger) -> Iterator[LedgerInput]:
    """Each person's yes and no to what is there, and to what was approved before."""
    for known in ledger.servers.values():
        if known.in_doubt:
            yield i.ServerConfirmed(known.seen, "person", "", 0)
    for consumer, profile in ledger.profiles.items():
        for (server, subject), versions in ledger.seen.items():
            for key, seen in versions.items():
                about = CapabilityRef(server, subject, key)
                if chosen(profile, about) is None:
                    continue
                if seen.presence is Presence.PRESENT and seen.definition is not None:
                    shown = {about: seen.definition.id}
                    if not ledger.in_doubt(server):
                        yield i.Approved(consumer, shown, "person", "", 0)
                    yield i.Rejected(consumer, shown, "person", "", 0)


Scene = tuple[object, ...]


def scene(ledger: Ledger, story: Story) -> Scene:
    """All that matters for what can come, without numbers that only grow."""
    return (
        frozenset(ledger.servers.items()),
        frozenset((place, _normal(versions)) for place, versions in ledger.seen.items()),
        frozenset(ledger.failing.items()),
        frozenset((name, _wish(profile)) for name, profile in ledger.profiles.items()),
        frozenset(
            (place, tuple(granted.approved), granted.rejected, granted.lapsed)
            for place, granted in ledger.granted.items()
        ),
        frozenset((name, _shown(made.manifest)) for name, made in ledger.publications.items()),
        story,
    )


def _normal(versions: Mapping[str, Seen]) -> object:
    return frozenset(
        (key, seen.presence, None if seen.definition is None else seen.definition.id)
        for key, seen in versions.items()
    )


def _wish(profile: Profile) -> object:
    return tuple(frozenset(selection.items.items()) for selection in profile.selections)


def _shown(manifest: SurfaceManifest) -> frozenset[tuple[CapabilityRef, CapabilityId]]:
    return frozenset(manifest.items.items())


class Explored(NamedTuple):
    """How many scenes there are, and what was wrong first (None: nothing), with its way there."""

    scenes: int
    complaint: str | None
    way: tuple[LedgerInput, ...] = ()
    met: frozenset[str] = frozenset()


def explore(
    world: World, step: Callable[[Ledger, LedgerInput, Story], LedgerEdge] = edge
) -> Explored:
    """Everything that can happen, breadth first: so the first fault found is a shortest one."""
    ledger, story = world.begin()
    ways: dict[Scene, tuple[LedgerInput, ...]] = {scene(ledger, story): ()}
    queue = deque([(ledger, story)])
    met: set[str] = set()
    while queue:
        ledger, story = queue.popleft()
        way = ways[scene(ledger, story)]
        for heard in world.inputs(ledger):
            try:
                made = step(ledger, heard, story)
            except ImpossibleAct:
                continue
            met.update(entry.what for entry in made.entries)
            for name, complaint in broken(made):
                return Explored(len(ways), f"{name}: {complaint}", (*way, heard), frozenset(met))
            there = scene(made.after, made.story)
            if there not in ways:
                ways[there] = (*way, heard)
                queue.append((made.after, made.story))
    return Explored(len(ways), None, (), frozenset(met))
