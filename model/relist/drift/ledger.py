"""The ledger: what was wished, seen and decided, and what each consumer may see because of it.

What is exposed is a function of the ledger (``standing``), so nothing has to be withdrawn: what is
not exposed is not on the next manifest.
"""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from attrs import field

from relist.drift.policy import chosen, exposable
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    Definition,
    ExactSelection,
    Known,
    Presence,
    Profile,
    Publication,
    Seen,
    Subject,
    Why,
)
from relist.frozen import frozen

POLICY = "policy"
"""Who decided, where no person did."""


@frozen
class Granted:
    """What was decided about one reference for one consumer.

    ``approved`` by id, with the definitions, the newest last; ``rejected`` ids. An id is in one of
    them at most. ``lapsed``: it was gone since, so even what was approved is to be reviewed.
    """

    approved: Mapping[CapabilityId, Definition]
    rejected: frozenset[CapabilityId]
    lapsed: bool = False

    def newest(self) -> Definition | None:
        """The definition that was approved last."""
        return next(reversed(list(self.approved.values())), None)


NOTHING = Granted({}, frozenset())


@frozen
class Ledger:
    """Everything that is known. Equal ledgers expose the same."""

    servers: Mapping[str, Known] = field(factory=dict[str, Known])
    seen: Mapping[tuple[str, Subject], Mapping[str, Seen]] = field(
        factory=dict[tuple[str, Subject], Mapping[str, Seen]]
    )
    failing: Mapping[tuple[str, Subject], str] = field(factory=dict[tuple[str, Subject], str])
    profiles: Mapping[str, Profile] = field(factory=dict[str, Profile])
    granted: Mapping[tuple[str, CapabilityRef], Granted] = field(
        factory=dict[tuple[str, CapabilityRef], Granted]
    )
    publications: Mapping[str, Publication] = field(factory=dict[str, Publication])
    entries: int = 0

    def version(self, ref: CapabilityRef) -> Seen | None:
        """What was seen of this reference last."""
        return self.seen.get((ref.server, ref.subject), {}).get(ref.key)

    def grants(self, consumer: str, ref: CapabilityRef) -> Granted:
        """What was decided about it for this consumer."""
        return self.granted.get((consumer, ref), NOTHING)

    def in_doubt(self, server: str) -> bool:
        """Whether the identity of this server is in doubt."""
        known = self.servers.get(server)
        return known is not None and known.in_doubt


@frozen
class Entry:
    """One line of the history, which only grows. ``number`` counts from 1. Rule: DRIFT-43.

    ``what`` is a word of ``WORDS``; ``before`` and ``after`` are ids, where there are any.
    """

    number: int
    at_ms: int
    what: str
    who: str
    why: str
    consumer: str | None = None
    ref: CapabilityRef | None = None
    before: CapabilityId | None = None
    after: CapabilityId | None = None


WORDS = (
    "appeared", "changed", "returned", "gone", "ambiguous", "identity changed",  # seen
    "failed", "not proved",  # operational: nothing follows from it
    "profile set", "approved", "rejected", "rebound", "server confirmed",  # by a person
    "followed", "joined", "resumed",  # by a policy
)  # fmt: skip


@frozen
class Record:
    """Keep this entry. ``definition`` is what it is about, if it is about one."""

    entry: Entry
    definition: Definition | None = None


@frozen
class PublishSurface:
    """The consumer sees this manifest from now on, and no part of another. Rule: DRIFT-19."""

    publication: Publication


LedgerEffect = Record | PublishSurface


class LedgerStep(NamedTuple):
    """What the ledger became, and what follows, in order."""

    state: Ledger
    effects: tuple[LedgerEffect, ...] = ()


# --- what follows from a ledger -------------------------------------------------------------------


def standing(ledger: Ledger, consumer: str, ref: CapabilityRef) -> CapabilityId | Why | None:
    """The id that this consumer sees, or why it sees none; None for what it does not select.

    The one place that decides what is exposed. Rule: DRIFT-08, DRIFT-21, DRIFT-35, DRIFT-48.
    """
    profile = ledger.profiles.get(consumer)
    choice = None if profile is None else chosen(profile, ref)
    if choice is None:
        return None
    if not exposable(choice):
        return Why.DENIED
    seen, granted = ledger.version(ref), ledger.grants(consumer, ref)
    if seen is None or seen.presence is Presence.GONE:
        return Why.GONE
    if seen.presence is Presence.AMBIGUOUS or seen.definition is None:
        return Why.AMBIGUOUS
    if ledger.in_doubt(ref.server):
        return Why.SERVER
    return _judged(seen.definition.id, granted)


def _judged(now: CapabilityId, granted: Granted) -> CapabilityId | Why:
    if now in granted.rejected:
        return Why.REJECTED
    if granted.lapsed:
        return Why.RETURNED
    if now in granted.approved:
        return now
    return Why.CHANGED if granted.approved else Why.UNREVIEWED


def selected(ledger: Ledger, profile: Profile) -> Iterator[CapabilityRef]:
    """All references that a profile selects, each once: what it names, and what servers offer."""
    named: dict[CapabilityRef, None] = {}
    for selection in profile.selections:
        named.update(dict.fromkeys(selection.items))
        if not isinstance(selection, ExactSelection):
            for (server, subject), versions in ledger.seen.items():
                if server == selection.server and subject in selection.subjects:
                    refs = (CapabilityRef(server, subject, key) for key in versions)
                    named.update(dict.fromkeys(refs))
    yield from named
