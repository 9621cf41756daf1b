"""``relist pin``: what a server offers now becomes what is approved, once a person has seen it."""

from collections.abc import Callable, Iterable
from functools import reduce

from attrs import evolve, field, frozen

from relist.drift import inputs as i
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Ledger
from relist.drift.policy import check
from relist.drift.receive import receive
from relist.drift.review import reviews
from relist.drift.values import (
    CapabilityId,
    CapabilityRef,
    Chosen,
    ExactSelection,
    Newcomers,
    Profile,
    Review,
    Rule,
    Selection,
    ServerIdentity,
    ServerSelection,
    Why,
    continues,
)
from relist.policy import Risk
from relist_conformance.drift.choosing import everything, matching
from relist_conformance.drift.keeping import plainly
from relist_conformance.drift.observe import Observed
from relist_conformance.errors import ConformanceError, quoted
from relist_mcp.drift.lockfile import Lock, Locked
from relist_mcp.drift.schemas import relate

CAREFUL = Chosen(Rule.ASK, Risk.DESTRUCTIVE)


@frozen
class Wish:
    """What a consumer is meant to have of a server. ``lock``: as it says, and no more."""

    consumer: str
    whole_server: bool = False
    join: bool = False
    only: tuple[str, ...] = ()
    choice: Chosen = CAREFUL
    lock: Lock | None = field(default=None, repr=False)


@frozen
class Plan:
    """What would be told to the store, and what that approves: the reviews it answers."""

    told: tuple[LedgerInput, ...]
    after: Ledger
    approves: tuple[Review, ...]
    leaves: tuple[Review, ...]


def plan(
    ledger: Ledger, wish: Wish, server: ServerIdentity, observed: Observed, decided: "Decided"
) -> Plan:
    """Worked out on a copy of the ledger: nothing is kept yet. Raises ConformanceError."""
    now = reduce(_step, observed.all(), ledger)
    locked = None if wish.lock is None else _locked(wish.lock, wish.consumer, server)
    profile = _profile(now, wish, server.id, locked)
    wanted = decided.profile(profile)
    with plainly():
        check(profile)
        now = _step(now, wanted)
    open_ = [
        one
        for one in reviews(now, relate)
        if one.consumer == wish.consumer and one.ref.server == server.id
    ]
    approves = [one for one in open_ if _is_approved(one, locked)]
    items = {one.ref: one.change.after.id for one in approves if one.change is not None}
    told = (*observed.all(), wanted, *((decided.approved(wish.consumer, items),) if items else ()))
    leaves = [one for one in open_ if one not in approves]
    return Plan(told, now, tuple(approves), tuple(leaves))


@frozen
class Decided:
    """Who decides, why and when."""

    who: str
    why: str
    at_ms: int

    def profile(self, profile: Profile) -> i.ProfileSet:
        """They wish this."""
        return i.ProfileSet(profile, self.who, self.why, self.at_ms)

    def approved(self, consumer: str, items: dict[CapabilityRef, CapabilityId]) -> i.Approved:
        """They approve these."""
        return i.Approved(consumer, items, self.who, self.why, self.at_ms)


def _step(ledger: Ledger, heard: LedgerInput) -> Ledger:
    return receive(ledger, heard, relate).state


def _is_approved(review: Review, locked: Locked | None) -> bool:
    """All that is there and undoubted; with a lock file, only what it holds, and equal."""
    if review.change is None or review.why is Why.SERVER:
        return False
    if locked is None:
        return True
    held = locked.approved.get(review.ref)
    return held is not None and held.id == review.change.after.id


def _locked(lock: Lock, consumer: str, server: ServerIdentity) -> Locked:
    named = {locked.profile.consumer: locked for locked in lock.consumers}
    if consumer not in named:
        known = ", ".join(quoted(name) for name in named) or "none"
        raise ConformanceError(f"the lock has no consumer {quoted(consumer)}, but {known}")
    for known_server in lock.servers:
        if known_server.id == server.id and not continues(known_server, server):
            raise ConformanceError(
                f"the lock's server {quoted(server.id)} is another: see --endpoint, --artefact and"
                " --audience"
            )
    return named[consumer]


def _profile(ledger: Ledger, wish: Wish, server: str, locked: Locked | None) -> Profile:
    """The wish of the consumer, as it was but for this server."""
    if locked is not None:
        return locked.profile
    held = ledger.profiles.get(wish.consumer, Profile(wish.consumer, ()))
    kept = [one for one in map(_without(server), held.selections) if one is not None]
    if wish.whole_server:
        newcomers = Newcomers.JOIN if wish.join else Newcomers.REVIEW
        kept.append(ServerSelection(server, wish.choice.rule, newcomers))
        return evolve(held, selections=tuple(kept))
    offered = [ref for ref in everything(ledger) if ref.server == server]
    before = _items(held.selections)
    found = {ref: before.get(ref, wish.choice) for ref in matching(offered, wish.only)}
    still = {ref: choice for ref, choice in before.items() if ref.server == server}
    exact = {**_items(kept), **still, **found}
    others = [one for one in kept if isinstance(one, ServerSelection)]
    return evolve(held, selections=(*others, ExactSelection(exact)))


def _without(server: str) -> Callable[[Selection], Selection | None]:
    def without(selection: Selection) -> Selection | None:
        if isinstance(selection, ServerSelection):
            return None if selection.server == server else selection
        items = {ref: one for ref, one in selection.items.items() if ref.server != server}
        return evolve(selection, items=items) if items else None

    return without


def _items(selections: Iterable[Selection]) -> dict[CapabilityRef, Chosen]:
    return {
        ref: choice
        for selection in selections
        if isinstance(selection, ExactSelection)
        for ref, choice in selection.items.items()
    }
