"""Guards: ``(catalog, heard, policy) -> bool``. Those of one cell exclude each other."""

from relist import inputs as i
from relist.failures import FailureClass, classify_page
from relist.freshness import reached, rested
from relist.paging import join, too_long
from relist.policy import Policy
from relist.rules.base import Answer, Offer, give_up_at_ms, open_walk
from relist.values import Catalog, Snapshot, Wish

# --- guards: what the server offers ---------------------------------------------------------------


def undeclared(_: Catalog, heard: Offer, __: Policy) -> bool:
    """The server did not declare this kind, and is not asked for it to find out.

    Rule: CAP-01, CAP-02, CAP-14.
    """
    return not heard.declared


def declared(_: Catalog, heard: Offer, __: Policy) -> bool:
    """The server declared this kind; an empty object counts. Rule: CAP-03."""
    return heard.declared


def list_holds(catalog: Catalog, heard: Offer, _: Policy) -> bool:
    """The list kept from an earlier link is undoubted, of this version, and serves who asked.

    A new connection alone is no cause to list. Rule: DISC-31, REC-05, REC-08.
    """
    snapshot = catalog.snapshot
    return (
        heard.declared
        and snapshot is not None
        and catalog.doubt is None
        and isinstance(heard, i.ListingAllowed)
        and snapshot.version == heard.version
        and _serves(snapshot, catalog.wanted, heard.now_ms)
    )


def _serves(snapshot: Snapshot, wanted: Wish | None, now_ms: int) -> bool:
    """Nobody asks, or for no more than an unexpired list."""
    return wanted is None or (wanted is Wish.READ and not reached(snapshot.expires_at_ms, now_ms))


def held_back(catalog: Catalog, heard: Offer, policy: Policy) -> bool:
    """Nothing is asked for by itself: lazy and nobody wants it, or parked and nobody insists.

    Rule: FAIL-04, TTL-09.
    """
    wanted = catalog.wanted
    parked = catalog.pacing.parked is not None and wanted is not Wish.REFRESH
    return (
        heard.declared
        and not list_holds(catalog, heard, policy)
        and (parked or (policy.lazy and wanted is None))
    )


def must_list(catalog: Catalog, heard: Offer, policy: Policy) -> bool:
    """The kind is declared, and neither does a kept list hold nor is anything held back."""
    return (
        heard.declared
        and not list_holds(catalog, heard, policy)
        and not held_back(catalog, heard, policy)
    )


# --- guards: notices, wishes, time ----------------------------------------------------------------


def heeded(catalog: Catalog, _: object, __: Policy) -> bool:
    """Push was declared or granted for this kind, so a notice counts. Rule: CAP-06, CAP-19."""
    return catalog.standing.push or catalog.standing.covered


def unheeded(catalog: Catalog, heard: object, policy: Policy) -> bool:
    """A notice that the server never promised."""
    return not heeded(catalog, heard, policy)


def about_this_list(catalog: Catalog, heard: i.StalenessProved, _: Policy) -> bool:
    """The rejected call was planned on the list that is published now."""
    return catalog.snapshot is not None and heard.generation == catalog.snapshot.generation


def about_another_list(catalog: Catalog, heard: i.StalenessProved, policy: Policy) -> bool:
    """The rejected call was planned on a list that has been replaced since."""
    return not about_this_list(catalog, heard, policy)


def expired(catalog: Catalog, heard: i.ReadWanted, _: Policy) -> bool:
    """The published list has outlived its lifetime: fresh strictly before it.

    Only a need asks, and the walk it begins serves all. Rule: TTL-02, TTL-09, TTL-31.
    """
    snapshot = catalog.snapshot
    return snapshot is not None and reached(snapshot.expires_at_ms, heard.now_ms)


def unexpired(catalog: Catalog, heard: i.ReadWanted, policy: Policy) -> bool:
    """The published list may be used as it is. Rule: TTL-05."""
    return not expired(catalog, heard, policy)


def lazily_due(catalog: Catalog, heard: i.ReadWanted, policy: Policy) -> bool:
    """Walks wait for a read, and neither backoff nor gap nor a missing authorization forbids it.

    Rule: NOTE-03 (D-12).
    """
    return (
        policy.lazy
        and catalog.pacing.parked is None
        and rested(catalog.pacing.due_at_ms, heard.now_ms)
    )


def not_lazily_due(catalog: Catalog, heard: i.ReadWanted, policy: Policy) -> bool:
    """The walk comes by itself later, or may not come yet."""
    return not lazily_due(catalog, heard, policy)


def nothing_forbids(catalog: Catalog, heard: i.VerificationWanted, _: Policy) -> bool:
    """Neither a failure backoff nor a missing authorization; window and gap do not count.

    Rule: CALL-05, FAIL-20.
    """
    pacing = catalog.pacing
    return pacing.parked is None and (
        pacing.failures == 0 or rested(pacing.due_at_ms, heard.now_ms)
    )


def something_forbids(catalog: Catalog, heard: i.VerificationWanted, policy: Policy) -> bool:
    """Backing off or parked: the next walk serves the call."""
    return not nothing_forbids(catalog, heard, policy)


def due(catalog: Catalog, heard: i.TimePassed, policy: Policy) -> bool:
    """The window, the gap or the backoff is over. Rule: FAIL-03, NOTE-03, NOTE-24."""
    return reached(wake_ms(catalog, policy), heard.now_ms)


def not_due(catalog: Catalog, heard: i.TimePassed, policy: Policy) -> bool:
    """Still waiting."""
    return not due(catalog, heard, policy)


def poll_due(catalog: Catalog, heard: i.TimePassed, _: Policy) -> bool:
    """The opt-in poll is due; a lifetime never is. Rule: TTL-10, TTL-11, TTL-36."""
    return reached(catalog.pacing.due_at_ms, heard.now_ms)


def no_poll_due(catalog: Catalog, heard: i.TimePassed, policy: Policy) -> bool:
    """No poll is due."""
    return not poll_due(catalog, heard, policy)


def gave_up(catalog: Catalog, heard: i.TimePassed, _: Policy) -> bool:
    """The outstanding request or the whole walk has run out of time.

    Progress moves neither limit. Rule: DISC-16, FAIL-09, FAIL-10.
    """
    return reached(give_up_at_ms(catalog), heard.now_ms)


def in_time(catalog: Catalog, heard: i.TimePassed, policy: Policy) -> bool:
    """The open walk may go on."""
    return not gave_up(catalog, heard, policy)


def wake_ms(catalog: Catalog, policy: Policy) -> int | None:
    """When a stale catalog begins its next walk by itself; None: when asked to.

    Rule: STATE-14.
    """
    if catalog.pacing.parked is not None or (policy.lazy and catalog.wanted is None):
        return None
    return catalog.pacing.due_at_ms


# --- guards: answers ------------------------------------------------------------------------------


def late(catalog: Catalog, heard: Answer, _: Policy) -> bool:
    """Not the answer to the one outstanding request. Rule: ATOM-11, ATOM-13."""
    return heard.serial != open_walk(catalog).serial


def overlong(catalog: Catalog, heard: i.PageArrived, policy: Policy) -> bool:
    """This page takes the walk over a bound of pages, items or bytes. Rule: DISC-16."""
    return not late(catalog, heard, policy) and too_long(open_walk(catalog), heard, policy)


def more(catalog: Catalog, heard: i.PageArrived, policy: Policy) -> bool:
    """The page names a next cursor; the empty string is one, and no page is too short for it.

    Rule: DISC-04, DISC-05, DISC-09, DISC-10.
    """
    return (
        heard.next_cursor is not None
        and not late(catalog, heard, policy)
        and not too_long(open_walk(catalog), heard, policy)
    )


def _ends(catalog: Catalog, heard: i.PageArrived, policy: Policy) -> bool:
    return (
        heard.next_cursor is None
        and not late(catalog, heard, policy)
        and not too_long(open_walk(catalog), heard, policy)
    )


def _ends_clean(catalog: Catalog, heard: i.PageArrived, policy: Policy) -> bool:
    """Undisturbed, and conflicting duplicates neither new nor still worth another walk.

    Rule: DISC-19, DISC-20, STATE-07.
    """
    walk = open_walk(catalog)
    if walk.spoiled:
        return False
    ambiguous = join((*walk.pages, heard.items)).ambiguous
    if not ambiguous or catalog.pacing.spoiled_in_row + 1 >= policy.spoiled_in_row_max:
        return True
    return catalog.snapshot is not None and catalog.snapshot.ambiguous == ambiguous


def clean_end(catalog: Catalog, heard: i.PageArrived, policy: Policy) -> bool:
    """The last page of an undisturbed walk. Rule: DISC-03, ATOM-01."""
    return (
        catalog.wanted is None
        and _ends(catalog, heard, policy)
        and _ends_clean(catalog, heard, policy)
    )


def clean_end_but_wanted(catalog: Catalog, heard: i.PageArrived, policy: Policy) -> bool:
    """The same, and another walk was asked for after this one began. Rule: ATOM-24."""
    return (
        catalog.wanted is not None
        and _ends(catalog, heard, policy)
        and _ends_clean(catalog, heard, policy)
    )


def spoiled_end(catalog: Catalog, heard: i.PageArrived, policy: Policy) -> bool:
    """The last page of a walk during which something changed. Rule: ATOM-10."""
    return _ends(catalog, heard, policy) and not _ends_clean(catalog, heard, policy)


def _fails_as(catalog: Catalog, heard: i.PageFailed, policy: Policy, what: FailureClass) -> bool:
    return (
        not late(catalog, heard, policy)
        and classify_page(heard.failure, open_walk(catalog).cursor) is what
    )


def transient(catalog: Catalog, heard: i.PageFailed, policy: Policy) -> bool:
    """A passing failure. Rule: FAIL-03."""
    return _fails_as(catalog, heard, policy, FailureClass.TRANSIENT)


def unauthorized(catalog: Catalog, heard: i.PageFailed, policy: Policy) -> bool:
    """An authorization failure. Rule: FAIL-04."""
    return _fails_as(catalog, heard, policy, FailureClass.AUTHORIZATION)


def unmendable(catalog: Catalog, heard: i.PageFailed, policy: Policy) -> bool:
    """The server refuses the request as such. Rule: FAIL-19."""
    return _fails_as(catalog, heard, policy, FailureClass.UNMENDABLE)


def dead_cursor(catalog: Catalog, heard: i.PageFailed, policy: Policy) -> bool:
    """The server refuses a cursor it gave out. Rule: DISC-12, DISC-13."""
    return _fails_as(catalog, heard, policy, FailureClass.DEAD_CURSOR)


def unknown_method(catalog: Catalog, heard: i.PageFailed, policy: Policy) -> bool:
    """The server declared the kind and does not know its list method. Rule: CAP-05, CAP-16."""
    return _fails_as(catalog, heard, policy, FailureClass.UNKNOWN_METHOD)
