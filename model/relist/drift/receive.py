"""One step of the ledger: what was heard, recorded, decided and published.

The effects come in order: entries of what was seen, entries of what was decided, then whole
surfaces, one publication a consumer (DRIFT-42, DRIFT-43). Pure, and total for what a server does.
"""

from typing import Any

from attrs import evolve

from relist.drift import inputs as i
from relist.drift.classify import Relate, classify, unproved
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import (
    NOTHING,
    POLICY,
    Entry,
    Granted,
    Ledger,
    LedgerEffect,
    LedgerStep,
    PublishSurface,
    Record,
    selected,
    standing,
)
from relist.drift.policy import check, chosen, exposable, follows, joins, resumes
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    Definition,
    Known,
    Presence,
    Profile,
    Publication,
    Seen,
    Selection,
    ServerIdentity,
    Subject,
    SurfaceManifest,
)
from relist.errors import ImpossibleAct


def receive(ledger: Ledger, heard: LedgerInput, relate: Relate = unproved) -> LedgerStep:
    """What the ledger becomes on hearing this, and what follows.

    Raises ImpossibleAct, with nothing changed, for an act of a person that cannot be, and
    PolicyError for a profile that contradicts itself.
    """
    run = _Run(ledger, heard.at_ms, relate)
    match heard:
        case i.InventoryTaken():
            run.inventory(heard)
        case i.ObservationFailed():
            run.fail(heard.server, heard.subject, "failed", heard.why)
        case i.ProfileSet():
            run.profile(heard)
        case i.Approved():
            run.approve(heard)
        case i.Rejected():
            run.reject(heard)
        case i.Rebound():
            run.rebind(heard)
        case i.ServerConfirmed():  # pragma: no branch: there is no other
            run.confirm(heard)
    return run.step()


class _Run:
    """One call of ``receive``: the ledger as it changes, and the effects in order."""

    def __init__(self, ledger: Ledger, at_ms: int, relate: Relate) -> None:
        self._now = ledger
        self._at_ms = at_ms
        self._relate = relate
        self._granted = dict(ledger.granted)
        self._touched: dict[CapabilityRef, None] = {}
        self._effects: list[LedgerEffect] = []

    def step(self) -> LedgerStep:
        """The result, with the publications that follow from what was touched."""
        if self._granted != self._now.granted:
            self._change(granted=self._granted)
        for consumer in self._now.profiles:
            self._publish(consumer)
        return LedgerStep(self._now, tuple(self._effects))

    # --- what was seen ----------------------------------------------------------------------------

    def inventory(self, heard: i.InventoryTaken) -> None:
        """Record all that differs, then decide about it. Rule: DRIFT-42."""
        server = heard.server.id
        known = self._now.servers.get(server)
        if known is not None and known.partition != heard.partition:
            self.fail(server, heard.subject, "not proved", "another partition")
        elif not heard.clean:
            self.fail(server, heard.subject, "not proved", "the walk was disturbed")
        else:
            self._forget_failure(server, heard.subject)
            self._identify(heard.server, heard.partition)
            self._compare(heard)
            for ref in list(self._touched):
                self._decide(ref)

    def fail(self, server: str, subject: Subject, what: str, why: str) -> None:
        """An operational failure: it is recorded once while it lasts, and changes nothing else."""
        if self._now.failing.get((server, subject)) == why:
            return
        self._change(failing={**self._now.failing, (server, subject): why})
        self._record(what, "observer", f"{server}/{subject.value}: {why}")

    def _forget_failure(self, server: str, subject: Subject) -> None:
        if (server, subject) in self._now.failing:
            rest = {key: why for key, why in self._now.failing.items() if key != (server, subject)}
            self._change(failing=rest)

    def _identify(self, server: ServerIdentity, partition: str) -> None:
        """Evidence that is added is kept; evidence that changes puts all of the server in doubt."""
        known = self._now.servers.get(server.id)
        if known is None:
            self._know(Known(server, server, partition))
        elif known.seen != server:
            now = evolve(known, seen=server)
            if not now.in_doubt:
                now = evolve(now, confirmed=server)
            self._know(now)
            if now.in_doubt:
                self._record("identity changed", "observer", server.id)
            if now.in_doubt or known.in_doubt:
                self._touch_server(server.id)

    def _know(self, known: Known) -> None:
        self._change(servers={**self._now.servers, known.seen.id: known})

    def _compare(self, heard: i.InventoryTaken) -> None:
        place = (heard.server.id, heard.subject)
        before = self._now.seen.get(place, {})
        news: dict[str, Seen] = {}
        for key, definition in heard.definitions.items():
            held = before.get(key)
            if held is None or held.definition is not definition or _is_away(held):
                self._see(news, held, definition)
        for key in sorted(heard.ambiguous):
            held = before.get(key)
            if held is None or held.presence is not Presence.AMBIGUOUS:
                self._settle_nothing(news, CapabilityRef(*place, key), held)
        for key, held in before.items():
            offered = key in heard.definitions or key in heard.ambiguous
            if not offered and held.presence is not Presence.GONE:
                self._miss(news, CapabilityRef(*place, key), held)
        if news or place not in self._now.seen:
            self._change(seen={**self._now.seen, place: {**before, **news}})

    def _see(self, news: dict[str, Seen], held: Seen | None, definition: Definition) -> None:
        """It is there. The same definition again makes no noise. Rule: DRIFT-23, DRIFT-24."""
        ref = definition.ref
        old = None if held is None else held.definition
        same = old is not None and old.id == definition.id
        if held is not None and same and not _is_away(held):
            if old is not None and old.upstream != definition.upstream:
                news[ref.key] = evolve(held, definition=definition)
            return
        news[ref.key] = Seen(definition, Presence.PRESENT, self._at_ms)
        what = "appeared" if held is None else "returned" if _is_away(held) else "changed"
        self._record(what, "observer", "", ref=ref, before=old, after=definition)
        self._touched[ref] = None

    def _settle_nothing(self, news: dict[str, Seen], ref: CapabilityRef, held: Seen | None) -> None:
        """Two definitions under one key prove neither. Rule: DRIFT-48."""
        old = None if held is None else held.definition
        news[ref.key] = Seen(old, Presence.AMBIGUOUS, self._at_ms)
        self._record("ambiguous", "observer", "", ref=ref, before=old)
        self._touched[ref] = None

    def _miss(self, news: dict[str, Seen], ref: CapabilityRef, held: Seen) -> None:
        """It is gone: even what was approved lapses with it. Rule: DRIFT-35, DRIFT-36."""
        news[ref.key] = Seen(held.definition, Presence.GONE, self._at_ms)
        self._record("gone", "observer", "", ref=ref, before=held.definition)
        self._touched[ref] = None
        for consumer in self._now.profiles:
            granted = self._grants(consumer, ref)
            if granted is not NOTHING:
                self._grant(consumer, ref, evolve(granted, lapsed=True))

    # --- what a policy decides --------------------------------------------------------------------

    def _decide(self, ref: CapabilityRef) -> None:
        seen = self._now.version(ref)
        if seen is None or seen.presence is not Presence.PRESENT or seen.definition is None:
            return
        if not self._now.in_doubt(ref.server):
            for profile in self._now.profiles.values():
                self._decide_for(profile, seen.definition)

    def _decide_for(self, profile: Profile, now: Definition) -> None:
        """Follow, or leave it to a person: never by an equal name. Rule: DRIFT-25, DRIFT-46."""
        choice, granted = chosen(profile, now.ref), self._grants(profile.consumer, now.ref)
        if choice is None or not exposable(choice) or now.id in granted.rejected:
            return
        if granted.lapsed:
            evidence = self._now.servers[now.ref.server].confirmed.evidence()
            if now.id in granted.approved and evidence and resumes(profile, choice, now):
                self._let(profile.consumer, now, "resumed", POLICY, "profile.follow.reappearing")
        elif now.id not in granted.approved:
            newest = granted.newest()
            if granted == NOTHING and joins(profile, now):
                self._let(profile.consumer, now, "joined", POLICY, "profile.selections.newcomers")
            elif newest is not None and follows(
                profile, choice, classify(newest, now, self._relate)
            ):
                self._let(profile.consumer, now, "followed", POLICY, "profile.follow.classes")

    # --- what a person decides --------------------------------------------------------------------

    def profile(self, heard: i.ProfileSet) -> None:
        """A wish replaces a wish; what was decided stays. Rule: DRIFT-04."""
        check(heard.profile)
        consumer = heard.profile.consumer
        old = self._now.profiles.get(consumer)
        if old == heard.profile:
            return
        self._change(profiles={**self._now.profiles, consumer: heard.profile})
        self._record("profile set", heard.who, heard.why, consumer=consumer)
        for profile in (old, heard.profile):
            if profile is not None:
                self._touched.update(dict.fromkeys(selected(self._now, profile)))
        for ref in list(self._touched):
            self._decide(ref)

    def approve(self, heard: i.Approved) -> None:
        """Exactly what was reviewed, or nothing. Rule: DRIFT-22."""
        reviewed = [
            self._reviewable("Approved", heard.consumer, ref, wanted)
            for ref, wanted in heard.items.items()
        ]
        for definition in reviewed:
            self._let(heard.consumer, definition, "approved", heard.who, heard.why)

    def reject(self, heard: i.Rejected) -> None:
        """They are not exposed, and the relations stay. Rule: DRIFT-22."""
        for ref, wanted in heard.items.items():
            self._check_known(heard.consumer, ref, wanted)
        for ref, wanted in heard.items.items():
            granted = self._grants(heard.consumer, ref)
            approved = {one: kept for one, kept in granted.approved.items() if one != wanted}
            rejected = granted.rejected | {wanted}
            self._grant(heard.consumer, ref, evolve(granted, approved=approved, rejected=rejected))
            self._record("rejected", heard.who, heard.why, heard.consumer, ref, after_id=wanted)

    def _check_known(self, consumer: str, ref: CapabilityRef, wanted: CapabilityId) -> None:
        self._selected("Rejected", consumer, ref)
        seen = self._now.version(ref)
        shown = None if seen is None or seen.definition is None else seen.definition.id
        if wanted != shown and wanted not in self._grants(consumer, ref).approved:
            raise ImpossibleAct(f"Rejected.items: {wanted} was never seen of {ref}")

    def rebind(self, heard: i.Rebound) -> None:
        """The wish moves, by a person only. Rule: DRIFT-09, DRIFT-15, DRIFT-16, DRIFT-30."""
        profile = self._selected("Rebound", heard.consumer, heard.old)
        moved = tuple(_moved(one, heard.old, heard.new) for one in profile.selections)
        if moved == profile.selections:
            raise ImpossibleAct(f"Rebound.old {heard.old} is named by no selection, or new is")
        wish = evolve(profile, selections=moved)
        check(wish)
        self._change(profiles={**self._now.profiles, heard.consumer: wish})
        definition = self._reviewable("Rebound", heard.consumer, heard.new, heard.id)
        self._record("rebound", heard.who, heard.why, heard.consumer, heard.old, after=definition)
        self._touched[heard.old] = None
        self._let(heard.consumer, definition, "approved", heard.who, heard.why)

    def confirm(self, heard: i.ServerConfirmed) -> None:
        """The server is the same, says a person. Rule: DRIFT-13."""
        known = self._now.servers.get(heard.server.id)
        if known is None or known.seen != heard.server:
            raise ImpossibleAct(
                f"ServerConfirmed.server {heard.server.id!r} was not seen like this"
            )
        self._know(evolve(known, confirmed=heard.server))
        self._record("server confirmed", heard.who, heard.why or heard.server.id)
        self._touch_server(heard.server.id)
        for ref in list(self._touched):
            self._decide(ref)

    def _selected(self, act: str, consumer: str, ref: CapabilityRef) -> Profile:
        profile = self._now.profiles.get(consumer)
        if profile is None:
            raise ImpossibleAct(f"{act}.consumer {consumer!r} has no profile")
        if chosen(profile, ref) is None:
            raise ImpossibleAct(f"{act}.ref {ref} is not selected by {consumer!r}")
        return profile

    def _reviewable(
        self, act: str, consumer: str, ref: CapabilityRef, wanted: CapabilityId
    ) -> Definition:
        """The definition that is there now, if it is the one that was decided about."""
        self._selected(act, consumer, ref)
        seen = self._now.version(ref)
        if seen is None or seen.definition is None or seen.presence is not Presence.PRESENT:
            raise ImpossibleAct(f"{act}.ref {ref} is not there")
        if seen.definition.id != wanted:
            raise ImpossibleAct(f"{act}.id {wanted} is not the one there now: {seen.definition.id}")
        if self._now.in_doubt(ref.server):
            raise ImpossibleAct(f"{act}.ref {ref}: first confirm the server {ref.server!r}")
        return seen.definition

    # --- writing ----------------------------------------------------------------------------------

    def _let(self, consumer: str, definition: Definition, what: str, who: str, why: str) -> None:
        """Let it through. What had lapsed and was not let through again stays behind."""
        ref, granted = definition.ref, self._grants(consumer, definition.ref)
        kept = NOTHING if granted.lapsed else granted
        older = {one: known for one, known in kept.approved.items() if one != definition.id}
        before = granted.newest()
        self._grant(
            consumer,
            ref,
            Granted({**older, definition.id: definition}, granted.rejected - {definition.id}),
        )
        self._record(what, who, why, consumer, ref, before, definition)

    def _grant(self, consumer: str, ref: CapabilityRef, granted: Granted) -> None:
        self._granted[consumer, ref] = granted
        self._touched[ref] = None

    def _grants(self, consumer: str, ref: CapabilityRef) -> Granted:
        return self._granted.get((consumer, ref), NOTHING)

    def _touch_server(self, server: str) -> None:
        for (owner, subject), versions in self._now.seen.items():
            if owner == server:
                refs = (CapabilityRef(server, subject, key) for key in versions)
                self._touched.update(dict.fromkeys(refs))

    def _record(
        self,
        what: str,
        who: str,
        why: str,
        consumer: str | None = None,
        ref: CapabilityRef | None = None,
        before: Definition | None = None,
        after: Definition | None = None,
        after_id: CapabilityId | None = None,
    ) -> None:
        number = self._now.entries + 1
        self._change(entries=number)
        entry = Entry(
            number,
            self._at_ms,
            what,
            who,
            why,
            consumer,
            ref,
            None if before is None else before.id,
            after_id if after is None else after.id,
        )
        self._effects.append(Record(entry, after))

    def _change(self, **changes: Any) -> None:
        self._now = evolve(self._now, **changes)

    def _publish(self, consumer: str) -> None:
        """A new manifest, whole, if anything on it differs. Rule: DRIFT-18, DRIFT-19, DRIFT-44."""
        held = self._now.publications.get(consumer)
        shown = {} if held is None else dict(held.manifest.items)
        for ref in self._touched:
            now = standing(self._now, consumer, ref)
            if isinstance(now, CapabilityId):
                shown[ref] = now
            else:
                shown.pop(ref, None)
        if held is not None and shown == held.manifest.items:
            return
        parent = None if held is None else held.generation
        generation = 1 if parent is None else parent + 1
        made = Publication(consumer, generation, parent, SurfaceManifest(shown))
        self._change(publications={**self._now.publications, consumer: made})
        self._effects.append(PublishSurface(made))


def _is_away(held: Seen) -> bool:
    return held.presence is not Presence.PRESENT


def _moved(selection: Selection, old: CapabilityRef, new: CapabilityRef) -> Selection:
    """The selection, with the wish about ``old`` now about ``new``."""
    if old not in selection.items or new in selection.items:
        return selection
    items = {new if ref == old else ref: choice for ref, choice in selection.items.items()}
    return evolve(selection, items=items)
