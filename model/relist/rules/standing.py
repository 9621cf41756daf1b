"""Actions on what the link says: epochs, partitions, capabilities."""

from attrs import evolve

from relist import inputs as i
from relist.effects import AbandonWalk, CatalogEffect, Note, Withdraw
from relist.policy import Policy
from relist.rules.base import Offer, Step, news_of_doubt, stronger
from relist.rules.walk import begin
from relist.values import Catalog, Doubt, Era, Pacing, Parked, Phase, Scope, Standing

# --- actions: the link ----------------------------------------------------------------------------


def arrive(catalog: Catalog, heard: i.LinkOpened, _: Policy, to: Phase) -> Step:
    """A new epoch begins; a link that was replaced unseen is lost first. Rule: REC-01, STATE-04."""
    state, effects = _unlink(catalog, to)
    return Step(evolve(state, standing=evolve(state.standing, epoch=heard.epoch)), effects)


def depart(catalog: Catalog, _: i.LinkLost, __: Policy, to: Phase) -> Step:
    """The link is gone, and with it the open walk. Rule: REC-02, REC-03, REC-06."""
    return _unlink(catalog, to)


def change_partition(catalog: Catalog, heard: i.CredentialsChanged, _: Policy, to: Phase) -> Step:
    """What was private to the old partition is withdrawn at once; parking ends.

    Rule: AUTH-03, AUTH-05, AUTH-06, FAIL-06.
    """
    state, effects = _unlink(catalog, to)
    foreign = heard.partition != catalog.standing.partition
    if foreign and state.snapshot is not None and state.snapshot.scope is Scope.PRIVATE:
        state = evolve(state, snapshot=None, doubt=None)
        effects = (*effects, Withdraw(catalog.kind))
    return Step(
        evolve(
            state,
            standing=evolve(state.standing, partition=heard.partition),
            pacing=evolve(state.pacing, parked=None, failures=0),
        ),
        effects,
    )


def _unlink(catalog: Catalog, to: Phase) -> Step:
    """Drop what belongs to the link: open walk, candidate, coverage, timers.

    The legacy era doubts every list, the modern one only a list that push vouched for.
    No page and no cursor outlives the link; a wish does.

    Rule: ATOM-12, ATOM-22, AUTH-11, DISC-11, FAIL-22.
    """
    walk, doubtful = catalog.walk, catalog.standing.era is Era.LEGACY or catalog.vouched
    news = news_of_doubt(catalog, Doubt.DISCONNECTED) if doubtful else ()
    abandoned = () if walk is None else (AbandonWalk(catalog.kind, walk.serial),)
    return Step(
        evolve(
            catalog,
            phase=to,
            doubt=Doubt.DISCONNECTED if news else catalog.doubt,
            walk=None,
            candidate=None,
            vouched=False,
            wanted=stronger(catalog.wanted, walk.serves if walk is not None else None),
            standing=evolve(catalog.standing, covered=False),
            pacing=evolve(
                catalog.pacing, due_at_ms=None, parked=_lasting(catalog.pacing), spoiled_in_row=0
            ),
        ),
        (*abandoned, *news),
    )


def _lasting(pacing: Pacing) -> Parked | None:
    """A new link does not bring authorization; it may bring a server that takes the request."""
    return None if pacing.parked is Parked.REQUEST else pacing.parked


# --- actions: what the server offers --------------------------------------------------------------


def _offered(catalog: Catalog, heard: Offer) -> Standing:
    standing = catalog.standing
    if isinstance(heard, i.ListingAllowed):
        standing = evolve(standing, era=heard.era, version=heard.version)
    return evolve(standing, declared=heard.declared, push=heard.push)


def withdraw(catalog: Catalog, heard: Offer, _: Policy, to: Phase) -> Step:
    """The kind is not declared: nothing of it is shown or asked for.

    Rule: CAP-13, CAP-18, STATE-09.
    """
    return _withdrawn(catalog, _offered(catalog, heard), to)


def keep(catalog: Catalog, heard: i.ListingAllowed, policy: Policy, to: Phase) -> Step:
    """The kept list is still good and serves who asked for one; opt-in polling goes on.

    Rule: REC-05, TTL-11.
    """
    due_at_ms = policy.next_poll_ms(heard.now_ms, catalog.kind.value, catalog.serial)
    pacing = evolve(catalog.pacing, due_at_ms=due_at_ms)
    state = evolve(catalog, phase=to, wanted=None, standing=_offered(catalog, heard), pacing=pacing)
    return Step(state)


def hold_back(catalog: Catalog, heard: Offer, _: Policy, to: Phase) -> Step:
    """Listing waits for a wish (lazy) or for credentials (parked)."""
    state, news = _accepted(catalog, heard)
    return Step(evolve(state, phase=to), news)


def begin_here(catalog: Catalog, heard: Offer, policy: Policy, to: Phase) -> Step:
    """The first walk since listing was allowed. Rule: DISC-01."""
    offered, news = _accepted(catalog, heard)
    state, effects = begin(offered, heard, policy, to)
    return Step(state, (*news, *effects))


def _accepted(catalog: Catalog, heard: Offer) -> Step:
    """The new standing; a list of another protocol version is not this one. Rule: REC-08."""
    standing, snapshot = _offered(catalog, heard), catalog.snapshot
    other = snapshot is not None and snapshot.version != standing.version
    news = news_of_doubt(catalog, Doubt.UNVOUCHED) if other else ()
    doubt = Doubt.UNVOUCHED if news else catalog.doubt
    return Step(evolve(catalog, doubt=doubt, standing=standing), news)


def record_capabilities(catalog: Catalog, heard: Offer, _: Policy, __: Phase) -> Step:
    """The kind stays as it is; push may have been declared or withdrawn."""
    standing = _offered(catalog, heard)
    return Step(catalog if standing == catalog.standing else evolve(catalog, standing=standing))


def _withdrawn(catalog: Catalog, standing: Standing, to: Phase) -> Step:
    walk = catalog.walk
    effects: tuple[CatalogEffect, ...] = ()
    if walk is not None:
        effects += (AbandonWalk(catalog.kind, walk.serial),)
    if catalog.snapshot is not None:
        effects += (Withdraw(catalog.kind),)
    state = evolve(
        catalog,
        phase=to,
        doubt=None,
        walk=None,
        snapshot=None,
        candidate=None,
        vouched=False,
        wanted=None,
        standing=standing,
        pacing=Pacing(None, _lasting(catalog.pacing), 0, 0, 0, None),
    )
    return Step(state, effects)


def retire(catalog: Catalog, heard: i.PageFailed, _: Policy, to: Phase) -> Step:
    """A declared kind whose method does not exist is unsupported, never empty.

    Rule: CAP-16, OBS-11.
    """
    state, effects = _withdrawn(evolve(catalog, walk=None), catalog.standing, to)
    defect = Note("CAP-16", "declared kind has no list method", (catalog.kind.value, heard.serial))
    return Step(state, (*effects, defect))
