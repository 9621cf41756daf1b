"""What must hold on every step of a drift ledger, and the story that it is held against.

The *story* is told by the entries alone, so that what is exposed is justified by what was written
down and not by the ledger's own idea of it. As elsewhere, a check returns None or a short text.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from attrs import evolve

from relist.drift import inputs as i
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import (
    Entry,
    Ledger,
    LedgerEffect,
    PublishSurface,
    Record,
    selected,
    standing,
)
from relist.drift.receive import receive
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    Newcomers,
    Profile,
    Publication,
    ServerSelection,
    Subject,
)
from relist.frozen import frozen

Let = tuple[str, CapabilityRef, CapabilityId]
"""A consumer, a reference, and the definition of it that was let through."""

BY_PERSON = ("approved", "rejected", "rebound", "profile set", "server confirmed")
BY_POLICY = ("followed", "joined", "resumed")


@frozen
class Story:
    """What the history says: what is let through now, and what once was but has lapsed."""

    now: frozenset[Let] = frozenset()
    lapsed: frozenset[Let] = frozenset()
    there: frozenset[tuple[CapabilityRef, CapabilityId]] = frozenset()


class LedgerEdge(NamedTuple):
    """What a ledger was, heard, became and asked for; and the story before and after."""

    before: Ledger
    heard: LedgerInput
    after: Ledger
    effects: tuple[LedgerEffect, ...]
    told: Story
    story: Story

    @property
    def entries(self) -> tuple[Entry, ...]:
        """What was written down."""
        return tuple(told.entry for told in self.effects if isinstance(told, Record))

    @property
    def published(self) -> tuple[Publication, ...]:
        """The surfaces that were published."""
        return tuple(one.publication for one in self.effects if isinstance(one, PublishSurface))


def edge(before: Ledger, heard: LedgerInput, told: Story) -> LedgerEdge:
    """One step, with its story."""
    after, effects = receive(before, heard)
    story = told
    for effect in effects:
        if isinstance(effect, Record):
            story = _tell(story, effect.entry)
    return LedgerEdge(before, heard, after, effects, told, story)


def _tell(story: Story, entry: Entry) -> Story:
    ref, after = entry.ref, entry.after
    if ref is None:
        return story
    if entry.what in ("appeared", "changed", "returned", "gone", "ambiguous"):
        rest = frozenset(one for one in story.there if one[0] != ref)
        shown = () if after is None else ((ref, after),)
        story = evolve(story, there=rest.union(shown))
    if entry.what == "gone":
        ended = frozenset(let for let in story.now if let[1] == ref)
        return evolve(story, now=story.now - ended, lapsed=story.lapsed | ended)
    if entry.consumer is None or after is None:
        return story
    let = (entry.consumer, ref, after)
    if entry.what == "rejected":
        return evolve(story, now=story.now - {let}, lapsed=story.lapsed - {let})
    if entry.what in ("approved", *BY_POLICY):
        return evolve(story, now=story.now | {let})
    return story


LedgerCheck = Callable[[LedgerEdge], str | None]


def broken(edge: LedgerEdge) -> Iterator[tuple[str, str]]:
    """The name and the complaint of every check in DRIFT that this edge breaks."""
    for name, check in DRIFT.items():
        complaint = check(edge)
        if complaint is not None:
            yield name, complaint


def no_unreviewed_exposure(edge: LedgerEdge) -> str | None:
    """Whatever is on a surface is there now, and was let through since it was last gone.

    Rule: DRIFT-08, DRIFT-21, DRIFT-22, DRIFT-36, DRIFT-48.
    """
    for consumer, publication in edge.after.publications.items():
        for ref, shown in publication.manifest.items.items():
            if (consumer, ref, shown) not in edge.story.now:
                return f"{consumer} sees {ref} as {shown}, which nobody let through"
            if (ref, shown) not in edge.story.there:
                return f"{consumer} sees {ref} as {shown}, which is not there"
            if edge.after.in_doubt(ref.server):
                return f"{consumer} sees {ref} of a server whose identity is in doubt"
    return None


def intent_survives(edge: LedgerEdge) -> str | None:
    """What is observed changes no wish, and forgets no decision but by its lapse.

    Rule: DRIFT-09, DRIFT-21, DRIFT-35.
    """
    if not isinstance(edge.heard, i.Observation):
        return None
    if edge.after.profiles != edge.before.profiles:
        return "an observation changed a profile"
    for place, granted in edge.before.granted.items():
        now = edge.after.granted.get(place)
        if now is None or not granted.rejected <= now.rejected:
            return f"an observation forgot what was decided about {place[1]}"
        lapsing = granted.lapsed and not now.lapsed
        if not (granted.approved.keys() <= now.approved.keys() or lapsing):
            return f"an observation took back what was approved of {place[1]}"
    return None


def absence_needs_proof(edge: LedgerEdge) -> str | None:
    """Only a clean inventory of the same view, without the key, says that something is gone.

    Rule: DRIFT-32, DRIFT-33, DRIFT-34, AUTH-07.
    """
    gone = [entry.ref for entry in edge.entries if entry.what == "gone" and entry.ref]
    if not gone and not isinstance(edge.heard, i.Observation):
        return None
    heard = edge.heard
    if not _proves(edge.before, heard):
        if gone or edge.published or edge.after.seen != edge.before.seen:
            return "something follows from an observation that proves nothing"
        return None
    assert isinstance(heard, i.InventoryTaken)
    for ref in gone:
        asked = (ref.server, ref.subject) == (heard.server.id, heard.subject)
        if not asked or ref.key in heard.definitions or ref.key in heard.ambiguous:
            return f"{ref} is taken for gone, and is not"
    return None


def _proves(before: Ledger, heard: LedgerInput) -> bool:
    if not isinstance(heard, i.InventoryTaken) or not heard.clean:
        return False
    known = before.servers.get(heard.server.id)
    return known is None or known.partition == heard.partition


def no_name_inheritance(edge: LedgerEdge) -> str | None:
    """What a policy lets through, it was told to: by the consumer's own profile, for its own sake.

    Rule: DRIFT-08, DRIFT-15, DRIFT-16, DRIFT-25, DRIFT-30, DRIFT-37, DRIFT-38, DRIFT-46.
    """
    for entry in edge.entries:
        if entry.what in BY_PERSON and isinstance(edge.heard, i.Observation):
            return f"an observation {entry.what} in somebody's name"
        if entry.what not in BY_POLICY or entry.ref is None or entry.consumer is None:
            continue
        profile = edge.after.profiles[entry.consumer]
        complaint = _unfounded(edge, entry, entry.ref, profile)
        if complaint is not None:
            return complaint
    return None


def _unfounded(edge: LedgerEdge, entry: Entry, ref: CapabilityRef, profile: Profile) -> str | None:
    before = [let for let in edge.told.now | edge.told.lapsed if let[:2] == (entry.consumer, ref)]
    if entry.what == "joined":
        joining = any(
            isinstance(one, ServerSelection)
            and one.server == ref.server
            and one.newcomers is Newcomers.JOIN
            and (ref.subject is not Subject.TOOL or one.trust_annotations)
            for one in profile.selections
        )
        return None if joining and not before else f"{ref} joined, and may not"
    if entry.what == "followed":
        follows = any(profile.follow.classes.values()) and before
        return None if follows else f"{ref} was followed, and may not be"
    same = (entry.consumer, ref, entry.after) in edge.told.lapsed
    return None if same and profile.follow.reappearing else f"{ref} resumed, and may not"


def manifest_is_atomic(edge: LedgerEdge) -> str | None:
    """One whole surface a consumer and step, on top of the last one, and exactly what stands.

    Rule: DRIFT-17 to DRIFT-19.
    """
    consumers = [one.consumer for one in edge.published]
    if len(consumers) != len(set(consumers)):
        return "a consumer was given two surfaces in one step"
    for made in edge.published:
        held = edge.before.publications.get(made.consumer)
        parent = None if held is None else held.generation
        if (made.parent, made.generation) != (parent, 1 if parent is None else parent + 1):
            return f"generation {made.generation} of {made.consumer} does not follow {parent}"
        if edge.after.publications[made.consumer] != made:
            return "another surface was published than is kept"
    for consumer, profile in edge.after.profiles.items():
        held = edge.after.publications.get(consumer)
        if held is None or held.manifest.items != _standing(edge.after, profile):
            return f"the surface of {consumer} is not what stands"
    return None


def _standing(ledger: Ledger, profile: Profile) -> Mapping[CapabilityRef, CapabilityId]:
    stands = ((ref, standing(ledger, profile.consumer, ref)) for ref in selected(ledger, profile))
    return {ref: now for ref, now in stands if isinstance(now, CapabilityId)}


def history_is_append_only(edge: LedgerEdge) -> str | None:
    """Entries are numbered without a gap; what was seen comes before what was decided about it.

    Rule: DRIFT-42, DRIFT-43.
    """
    first = edge.before.entries + 1
    numbers = [entry.number for entry in edge.entries]
    if (
        numbers != list(range(first, first + len(numbers)))
        or edge.after.entries != first + len(numbers) - 1
    ):
        return f"entries are numbered {numbers} after {first - 1}"
    decided = [entry.what in BY_POLICY for entry in edge.entries]
    if isinstance(edge.heard, i.Observation) and decided != sorted(decided):
        return "something was decided before all was recorded"
    words = [isinstance(effect, PublishSurface) for effect in edge.effects]
    return None if words == sorted(words) else "something was recorded after it was published"


def quiet_when_equal(edge: LedgerEdge) -> str | None:
    """The same observation once more changes nothing; nobody is disturbed for what is not theirs.

    Rule: DRIFT-23, DRIFT-24, DRIFT-44.
    """
    if isinstance(edge.heard, i.Observation | i.ProfileSet):
        again, effects = receive(edge.after, edge.heard)
        if effects or again != edge.after:
            return f"the same again makes noise: {[type(one).__name__ for one in effects]}"
    for made in edge.published:
        held = edge.before.publications.get(made.consumer)
        if held is not None and held.manifest == made.manifest:
            return f"{made.consumer} was given the same surface again"
    return None


DRIFT: Mapping[str, LedgerCheck] = {
    "no-unreviewed-exposure": no_unreviewed_exposure,
    "intent-survives": intent_survives,
    "absence-needs-proof": absence_needs_proof,
    "no-name-inheritance": no_name_inheritance,
    "manifest-is-atomic": manifest_is_atomic,
    "history-is-append-only": history_is_append_only,
    "quiet-when-equal": quiet_when_equal,
}
"""Checked on every step, by name."""
