"""The gate at call time: may this call be sent, on the list as it is now?

A host keeps a ``Call`` for each thing the model wants done and asks ``admit`` until the verdict is
final. VERIFY means: tell the session ``VerificationWanted`` and ask again when the catalog moved;
give up when the link is parked or refused, of which the gate knows nothing. CHECK means: validate
the arguments against ``item`` and ask again with the outcome. ADMIT names the item; check and send
use one and the same list. The gate never cancels a call that was sent: a list that changes
meanwhile is no matter of it. Rule: CALL-07.
"""

from enum import Enum

from attrs import evolve

from relist.failures import (
    HEADER_MISMATCH,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    RESOURCE_NOT_FOUND,
)
from relist.freshness import reached
from relist.frozen import frozen
from relist.policy import Policy, Risk
from relist.surface import Adoption
from relist.values import Catalog, Failure, Item, Kind, Parked, Phase, Snapshot


class Verdict(Enum):
    """What to do with the call now."""

    ADMIT = "admit"
    CHECK = "check"  # validate the arguments against the item, then ask again
    VERIFY = "verify"  # the list is in doubt: walk it again first, then ask again
    REFUSE = "refuse"


class Refusal(Enum):
    """Why a call is not sent."""

    UNSUPPORTED = "unsupported"  # the server does not have this kind
    REMOVED = "removed"  # no such entry any more
    CHANGED = "changed"  # not the definition that the call was planned on
    AMBIGUOUS = "ambiguous"  # two definitions under one key
    INVALID = "invalid"  # the arguments do not fit the current schema
    UNVERIFIABLE = "unverifiable"  # in doubt, and the doubt could not be cleared
    UNAUTHORIZED = "unauthorized"  # in doubt, and waiting for credentials
    WITHHELD = "withheld"  # not on the surface of this consumer: drift decides, not the gate
    REJECTED = "rejected"  # the server said no, and asking again would not help


@frozen
class Call:
    """A call as it was planned: on which entry, of which generation.

    ``planned`` is the entry as the planner saw it. ``valid`` is the outcome of the last CHECK and
    ``checked`` the entry it was made against. ``asked`` is the last request serial when
    verification was asked for, ``failures`` the failures then; ``retried``: a rejection was
    followed up once. Rule: CALL-21.
    """

    key: str
    generation: int
    planned: Item | None = None
    risk: Risk = Risk.SIDE_EFFECTS
    checked: Item | None = None
    valid: bool = False
    asked: int | None = None
    failures: int = 0
    retried: bool = False


@frozen
class Admission:
    """The verdict, the call to ask with next time, and the entry or the reason."""

    verdict: Verdict
    call: Call
    item: Item | None = None
    refusal: Refusal | None = None


_UNGATED = (Kind.RESOURCES, Kind.TEMPLATES)


def plan(adoption: Adoption, key: str, risk: Risk = Risk.SIDE_EFFECTS) -> Call:
    """A call planned on the surface that the model was given. Rule: ATOM-16, CALL-21.

    If that list was replaced before the host said what it made of it, the entry as planned is not
    known: then the call is admitted only on that very generation.
    """
    items = adoption.items or ()
    planned = next((item for item in items if item.key == key), None)
    return Call(key, adoption.generation, planned, risk)


def admit(catalog: Catalog, call: Call, now_ms: int, policy: Policy) -> Admission:
    """Judge a planned call against the catalog as it is now.

    No lifetime and no earlier verdict excuses a call from it. Verification is met by any complete
    walk begun after it was asked for, spoiled or not, so that a server which never stops chattering
    cannot starve calls. A resource that is not listed may still be there, so it is
    refused only where the server has no resources at all.

    Rule: CALL-05, CALL-24, RES-13, TTL-30.
    """
    if catalog.phase is Phase.UNSUPPORTED:
        return _refuse(call, Refusal.UNSUPPORTED)
    if catalog.kind in _UNGATED:
        return Admission(Verdict.ADMIT, call, _listed(catalog.snapshot, call.key))
    listing = _verified(catalog, call)
    if listing is None:
        needed = _needs_verification(catalog, now_ms, policy)
        pending = _verify(catalog, call, policy) if needed else None
        if pending is not None:
            return pending
        listing = catalog.snapshot
    return _refuse(call, Refusal.UNVERIFIABLE) if listing is None else _judge(listing, call)


def arguments_checked(call: Call, item: Item, valid: bool) -> Call:
    """The call, with the outcome of validating its arguments against this entry."""
    return evolve(call, checked=item, valid=valid)


_HINTS = {
    Kind.TOOLS: {METHOD_NOT_FOUND, INVALID_PARAMS, HEADER_MISMATCH},
    Kind.PROMPTS: {INVALID_PARAMS},
    Kind.RESOURCES: {INVALID_PARAMS, RESOURCE_NOT_FOUND},
    Kind.TEMPLATES: {INVALID_PARAMS, RESOURCE_NOT_FOUND},
}


def proves_staleness(failure: Failure, kind: Kind) -> bool:
    """Whether a rejected call hints at a stale list: not found, bad header, bad parameters.

    At most a hint: tell the session ``StalenessProved``, which walks once. A resource that is not
    found is -32602, from servers of earlier revisions -32002.

    Rule: CALL-08, CALL-09, RES-11, RES-12, TTL-12 (D-20, D-42).
    """
    return failure.code in _HINTS[kind]


def after_rejection(catalog: Catalog, call: Call, failure: Failure) -> Admission:
    """What follows a rejected call: a walk and one more try after a header mismatch, or nothing.

    The retry goes through ``admit`` again, so a changed definition refuses it: old arguments are
    never sent again by themselves. Rule: CALL-02, CALL-08, CALL-10, FAIL-08.
    """
    if call.retried or failure.code != HEADER_MISMATCH:
        return _refuse(call, Refusal.REJECTED)
    failures = catalog.pacing.failures
    again = evolve(call, retried=True, asked=catalog.serial, failures=failures, checked=None)
    return Admission(Verdict.VERIFY, again)


def _verified(catalog: Catalog, call: Call) -> Snapshot | None:
    """The newest complete list of a walk begun after verification was asked for, if any."""
    asked = call.asked
    if asked is None:
        return None
    lists = (catalog.candidate, catalog.snapshot)
    later = [found for found in lists if found is not None and found.walk > asked]
    return max(later, key=lambda found: found.walk, default=None)


def _needs_verification(catalog: Catalog, now_ms: int, policy: Policy) -> bool:
    """In doubt, or merely expired or uncovered and older than ``verify_after_ms``. Rule: REC-10."""
    snapshot = catalog.snapshot
    if snapshot is None or catalog.doubt is not None:
        return True
    expired = reached(snapshot.expires_at_ms, now_ms)
    old = now_ms - snapshot.listed_at_ms > policy.verify_after_ms
    return old and (expired or not catalog.standing.covered)


def _verify(catalog: Catalog, call: Call, policy: Policy) -> Admission | None:
    """Ask for a walk, go on waiting for it, or say what its failure means; None: go ahead.

    What may go ahead after a failure is a matter of risk. Rule: CALL-05, CALL-06, FAIL-19.
    """
    if catalog.pacing.parked is Parked.AUTHORIZATION:
        return _refuse(call, Refusal.UNAUTHORIZED)
    # A list that the server refuses as such is not walked again by itself: that has failed, too.
    hopeless = catalog.pacing.parked is Parked.REQUEST and catalog.walk is None
    if call.asked is None and not hopeless:
        asked = evolve(call, asked=catalog.serial, failures=catalog.pacing.failures)
        return Admission(Verdict.VERIFY, asked)
    if catalog.pacing.failures <= call.failures and not hopeless:
        return Admission(Verdict.VERIFY, call)
    if call.risk in policy.risks_on_doubt:
        return None
    return _refuse(call, Refusal.UNVERIFIABLE)


def _judge(listing: Snapshot, call: Call) -> Admission:
    """Listed, the entry that was planned on, and its arguments checked against this very entry.

    Rule: CALL-01 to CALL-03, CALL-19, CALL-22, CAP-11.
    """
    item = _listed(listing, call.key)
    if item is None:
        return _refuse(call, Refusal.REMOVED)
    if item.key in listing.ambiguous:
        return _refuse(call, Refusal.AMBIGUOUS)
    if listing.generation != call.generation and item != call.planned:
        return _refuse(call, Refusal.CHANGED)
    if call.checked != item:
        return Admission(Verdict.CHECK, call, item)
    if not call.valid:
        return _refuse(call, Refusal.INVALID)
    return Admission(Verdict.ADMIT, call, item)


def _listed(listing: Snapshot | None, key: str) -> Item | None:
    items = () if listing is None else listing.items
    return next((item for item in items if item.key == key), None)


def _refuse(call: Call, why: Refusal) -> Admission:
    return Admission(Verdict.REFUSE, call, None, why)
