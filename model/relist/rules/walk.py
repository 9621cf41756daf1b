"""Actions on wishes, walks, publication and failure."""

from attrs import evolve

from relist import inputs as i
from relist.effects import (
    AbandonWalk,
    CatalogEffect,
    DoubtList,
    NeedCredentials,
    Note,
    Publish,
    RequestPage,
)
from relist.paging import add_page, join
from relist.policy import Policy
from relist.rules.base import WISH_OF, Answer, Step, news_of_doubt, open_walk, stronger, unchanged
from relist.snapshot import make_snapshot
from relist.values import (
    Catalog,
    Doubt,
    Failure,
    Pacing,
    Parked,
    Phase,
    Scope,
    Snapshot,
    Walk,
    Wish,
)

# --- actions: wishes and walks --------------------------------------------------------------------


def want(catalog: Catalog, heard: i.WishInput, _: Policy, __: Phase) -> Step:
    """Remember the wish until a walk begun after it has ended; many are as one. Rule: ATOM-07."""
    wanted = stronger(catalog.wanted, WISH_OF[heard.__class__])
    return unchanged(catalog) if wanted is catalog.wanted else Step(evolve(catalog, wanted=wanted))


def begin(catalog: Catalog, heard: i.CatalogInput, policy: Policy, to: Phase) -> Step:
    """Open a walk at the first page, without a cursor, whatever was the cause.

    It asks the server; the published list is readable meanwhile. A parked catalog stays parked
    until the server answers: an explicit refresh is one try. Rule: ATOM-06, ATOM-18, DISC-02,
    DISC-18, NOTE-22, TTL-19, TTL-38.
    """
    serial, now_ms = catalog.serial + 1, heard.now_ms
    walk = Walk(
        serial,
        serial,
        None,
        (),
        0,
        Scope.PUBLIC,
        None,
        None,
        False,
        catalog.standing.covered,
        stronger(catalog.wanted, WISH_OF.get(heard.__class__)),
        now_ms + policy.request_limit_ms,
        now_ms + policy.walk_limit_ms,
    )
    pacing = catalog.pacing
    return Step(
        Catalog(
            catalog.kind,
            to,
            catalog.doubt,
            walk,
            catalog.snapshot,
            catalog.candidate,
            catalog.vouched,
            None,
            catalog.generation,
            serial,
            catalog.standing,
            Pacing(
                None,
                pacing.parked,
                pacing.failures,
                pacing.spoiled_in_row,
                pacing.gap_exponent,
                pacing.listed_at_ms,
            ),
        ),
        (RequestPage(catalog.kind, serial, None),),
    )


def gather(catalog: Catalog, heard: i.PageArrived, policy: Policy, to: Phase) -> Step:
    """Put the page aside and ask for the next one with its cursor, unchanged. Of any kind.

    Rule: DISC-02, DISC-07, DISC-26.
    """
    serial = catalog.serial + 1
    walk = add_page(open_walk(catalog), heard, catalog.standing.era, policy, next_serial=serial)
    return Step(
        Catalog(
            catalog.kind,
            to,
            catalog.doubt,
            walk,
            catalog.snapshot,
            catalog.candidate,
            catalog.vouched,
            catalog.wanted,
            catalog.generation,
            serial,
            catalog.standing,
            catalog.pacing,
        ),
        (RequestPage(catalog.kind, serial, heard.next_cursor),),
    )


def _last_page(catalog: Catalog, heard: i.PageArrived, policy: Policy) -> Walk:
    walk = open_walk(catalog)
    return add_page(walk, heard, catalog.standing.era, policy, next_serial=walk.serial)


def publish(catalog: Catalog, heard: i.PageArrived, policy: Policy, to: Phase) -> Step:
    """A complete, clean walk replaces the list as a whole and clears every doubt.

    An empty one as well. Rule: ATOM-02, CAP-17, RES-15.
    """
    walk = _last_page(catalog, heard, policy)
    snapshot = make_snapshot(catalog, walk, join(walk.pages), True, heard.now_ms, policy)
    due_at_ms = policy.next_poll_ms(heard.now_ms, catalog.kind.value, catalog.serial)
    return Step(
        Catalog(
            catalog.kind,
            to,
            None,
            None,
            snapshot,
            None,
            walk.covered and catalog.standing.covered,
            catalog.wanted,
            snapshot.generation,
            catalog.serial,
            catalog.standing,
            Pacing(due_at_ms, None, 0, 0, catalog.pacing.gap_exponent, heard.now_ms),
        ),
        (Publish(catalog.kind, snapshot, snapshot.generation != catalog.generation),),
    )


def publish_and_begin(catalog: Catalog, heard: i.PageArrived, policy: Policy, to: Phase) -> Step:
    """The same, and the refresh that was asked for meanwhile begins. Rule: ATOM-24."""
    published, told = publish(catalog, heard, policy, to)
    begun, asked = begin(published, heard, policy, to)
    return Step(begun, (*told, *asked))


def set_aside(catalog: Catalog, heard: i.PageArrived, policy: Policy, to: Phase) -> Step:
    """A complete but spoiled list is held back as candidate and the catalog is walked again.

    After ``spoiled_in_row_max`` of them the newest is published, marked spoiled: a storm must not
    starve readers. The catalog stays stale. Rule: ATOM-10, ATOM-15.
    """
    walk = _last_page(catalog, heard, policy)
    candidate = make_snapshot(catalog, walk, join(walk.pages), False, heard.now_ms, policy)
    answered = evolve(catalog, pacing=evolve(catalog.pacing, failures=0))  # the server answers
    return _after_spoiled(answered, candidate, heard.now_ms, policy, to)


def start_over(catalog: Catalog, heard: i.PageFailed, policy: Policy, to: Phase) -> Step:
    """A dead cursor: all pages are dropped and the walk begins again, so many times.

    Rule: DISC-12, DISC-15, FAIL-23.
    """
    in_row = catalog.pacing.spoiled_in_row + 1
    if in_row >= policy.spoiled_in_row_max and catalog.candidate is None:
        return _failed(catalog, heard.failure, heard.now_ms, policy, to)
    return _after_spoiled(catalog, catalog.candidate, heard.now_ms, policy, to)


def _after_spoiled(
    catalog: Catalog, candidate: Snapshot | None, now_ms: int, policy: Policy, to: Phase
) -> Step:
    pacing, held = catalog.pacing, catalog.snapshot
    in_row = min(pacing.spoiled_in_row + 1, policy.spoiled_in_row_max)
    exponent = policy.longer_gap(pacing.gap_exponent)
    doubt = catalog.doubt or Doubt.SUSPECTED
    told: tuple[CatalogEffect, ...] = ()
    if in_row >= policy.spoiled_in_row_max and candidate is not None:
        changed = candidate.generation != catalog.generation
        told, held, candidate = (Publish(catalog.kind, candidate, changed),), candidate, None
    if catalog.doubt is None and held is not None:
        told += (DoubtList(catalog.kind, doubt),)
    state = evolve(
        catalog,
        phase=to,
        doubt=doubt,
        walk=None,
        snapshot=held,
        candidate=candidate,
        vouched=False,
        generation=held.generation if held is not None else catalog.generation,
        pacing=Pacing(
            now_ms + policy.gap_ms(exponent) if catalog.wanted is None else now_ms,
            None,
            pacing.failures,
            in_row,
            exponent,
            now_ms,
        ),
    )
    return Step(state, told)


# --- actions: failure -----------------------------------------------------------------------------


def _failed(
    catalog: Catalog, failure: Failure | None, now_ms: int, policy: Policy, to: Phase
) -> Step:
    """Keep the last good list, doubt it, and try again later.

    An explicit refresh that was asked for meanwhile gets its own try at once; else a parked catalog
    that was tried stays parked. Rule: FAIL-01, FAIL-02, FAIL-17, STATE-03, TTL-13, TTL-28.
    """
    failures, insists = catalog.pacing.failures + 1, catalog.wanted is Wish.REFRESH
    parked = None if insists else catalog.pacing.parked
    delay_ms = policy.backoff_ms(failures, catalog.kind.value, catalog.serial, failure)
    due_at_ms = now_ms if insists else now_ms + delay_ms
    state = evolve(
        catalog,
        phase=to,
        doubt=catalog.doubt or Doubt.FAILED,
        walk=None,
        pacing=evolve(
            catalog.pacing,
            due_at_ms=due_at_ms if parked is None else None,
            parked=parked,
            failures=failures,
        ),
    )
    return Step(state, news_of_doubt(catalog, Doubt.FAILED))


def fail(catalog: Catalog, heard: i.PageFailed, policy: Policy, to: Phase) -> Step:
    """A passing failure of a page fails the walk; the next one asks anew. Rule: FAIL-13."""
    return _failed(catalog, heard.failure, heard.now_ms, policy, to)


def fail_overlong(catalog: Catalog, heard: i.PageArrived, policy: Policy, to: Phase) -> Step:
    """A walk cut by a bound has failed: its pages prove nothing. Rule: DISC-17."""
    state, effects = _failed(catalog, None, heard.now_ms, policy, to)
    walk, items = open_walk(catalog), heard.items
    size = len(walk.pages) + 1, walk.count + len(items), walk.size_bytes + heard.size_bytes
    note = Note("DISC-16", "walk over a bound (pages, items, bytes)", size)
    return Step(state, (*effects, note))


def give_up(catalog: Catalog, heard: i.TimePassed, policy: Policy, to: Phase) -> Step:
    """No answer in time: stop waiting, cancel, and try again later. Rule: FAIL-09."""
    state, effects = _failed(catalog, None, heard.now_ms, policy, to)
    return Step(state, (AbandonWalk(catalog.kind, open_walk(catalog).serial), *effects))


def park(catalog: Catalog, heard: i.PageFailed, policy: Policy, to: Phase) -> Step:
    """Authorization failed: nothing is retried until credentials change. Rule: FAIL-04."""
    state, effects = _failed(catalog, None, heard.now_ms, policy, to)
    return Step(_parked(state, Parked.AUTHORIZATION), (*effects, NeedCredentials(catalog.kind)))


def _parked(catalog: Catalog, why: Parked) -> Catalog:
    """Parked, unless a refresh was asked for during the walk: that gets its own try first."""
    if catalog.wanted is Wish.REFRESH:
        return catalog
    return evolve(catalog, pacing=evolve(catalog.pacing, due_at_ms=None, parked=why))


def give_in(catalog: Catalog, heard: i.PageFailed, policy: Policy, to: Phase) -> Step:
    """What repetition cannot mend is not repeated unchanged. Rule: FAIL-19."""
    state, effects = _failed(catalog, None, heard.now_ms, policy, to)
    code = heard.failure.code
    note = Note("FAIL-19", "refused in a way that repeating does not mend", (heard.serial, code))
    return Step(_parked(state, Parked.REQUEST), (*effects, note))


# --- defaults -------------------------------------------------------------------------------------


def nothing(catalog: Catalog, _: object, __: Policy, ___: Phase) -> Step:
    """The same state object, and no effect."""
    return unchanged(catalog)


def note_late(catalog: Catalog, heard: Answer, _: Policy, __: Phase) -> Step:
    """A late answer changes nothing; it is normal, and noted.

    Rule: ATOM-11, ATOM-13, FAIL-12.
    """
    return Step(catalog, (Note("ATOM-13", "late answer", (catalog.kind.value, heard.serial)),))
