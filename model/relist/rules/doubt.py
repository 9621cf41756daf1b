"""Actions on reasons for doubt: about a published list, and about an open walk."""

from attrs import evolve

from relist import inputs as i
from relist.effects import DoubtList, Note
from relist.policy import Policy
from relist.rules.base import Step, news_of_doubt, open_walk, unchanged
from relist.values import Catalog, Doubt, Pacing, Phase

# --- actions: doubt -------------------------------------------------------------------------------


def _doubt(
    catalog: Catalog, why: Doubt, to: Phase, due_at_ms: int, *, covered: bool, exponent: int
) -> Step:
    """A fresh list becomes stale. Its doubt opens the one window, whose end is never moved.

    Rule: ATOM-20.
    """
    pacing = catalog.pacing
    return Step(
        Catalog(
            catalog.kind,
            to,
            why,
            None,
            catalog.snapshot,
            catalog.candidate,
            catalog.vouched and covered,
            catalog.wanted,
            catalog.generation,
            catalog.serial,
            catalog.standing
            if covered is catalog.standing.covered
            else evolve(catalog.standing, covered=covered),
            Pacing(
                due_at_ms,
                pacing.parked,
                pacing.failures,
                pacing.spoiled_in_row,
                exponent,
                pacing.listed_at_ms,
            ),
        ),
        (DoubtList(catalog.kind, why),),
    )


def doubt_noticed(catalog: Catalog, heard: i.ListChangedHeard, policy: Policy, to: Phase) -> Step:
    """A notice makes the list stale at once, whatever its lifetime; a walk is only scheduled.

    Feedback is damped: a notice within one gap after a listing lengthens the next gap, a quiet gap
    resets it. Rule: NOTE-02, NOTE-19, NOTE-23, TTL-14.
    """
    at_ms, exponent = _spaced(catalog, heard.now_ms + policy.gather_ms, heard.now_ms, policy)
    covered = catalog.standing.covered
    return _doubt(catalog, Doubt.NOTICED, to, at_ms, covered=covered, exponent=exponent)


def _spaced(catalog: Catalog, at_ms: int, now_ms: int, policy: Policy) -> tuple[int, int]:
    """When the next walk may begin, not before ``at_ms``, and how far feedback has grown."""
    listed_at_ms, exponent = catalog.pacing.listed_at_ms, catalog.pacing.gap_exponent
    if listed_at_ms is None or now_ms >= listed_at_ms + policy.gap_ms(exponent + 1):
        return at_ms, 0
    exponent = policy.longer_gap(exponent)
    return max(at_ms, listed_at_ms + policy.gap_ms(exponent)), exponent


def doubt_suspected(catalog: Catalog, heard: i.StalenessProved, policy: Policy, to: Phase) -> Step:
    """A rejected call proves the list stale. It opens no window, but a call that is rejected again
    and again does not list again and again: its proofs are spaced like early notices.

    Rule: CALL-08, FAIL-08.
    """
    at_ms, exponent = _spaced(catalog, heard.now_ms, heard.now_ms, policy)
    covered = catalog.standing.covered
    return _doubt(catalog, Doubt.SUSPECTED, to, at_ms, covered=covered, exponent=exponent)


def cover_and_doubt(catalog: Catalog, heard: i.CoverageGained, policy: Policy, to: Phase) -> Step:
    """A list fetched before push began is not vouched for by it. Rule: SUB-27."""
    due_at_ms, exponent = heard.now_ms + policy.gather_ms, catalog.pacing.gap_exponent
    return _doubt(catalog, Doubt.UNVOUCHED, to, due_at_ms, covered=True, exponent=exponent)


def uncover_and_doubt(catalog: Catalog, heard: i.CoverageLost, policy: Policy, to: Phase) -> Step:
    """A notice may have been missed. The walk waits a grace for push to come back.

    A stream that breaks within a session is no more than that. Rule: REC-04, REC-06.
    """
    due_at_ms = heard.now_ms + policy.uncovered_grace_ms
    exponent = catalog.pacing.gap_exponent
    return _doubt(catalog, Doubt.UNCOVERED, to, due_at_ms, covered=False, exponent=exponent)


def doubt_early(catalog: Catalog, _: i.ListChangedHeard, __: Policy, ___: Phase) -> Step:
    """A notice before listing is allowed is remembered. Rule: NOTE-12."""
    news = news_of_doubt(catalog, Doubt.NOTICED)
    return Step(evolve(catalog, doubt=Doubt.NOTICED), news) if news else unchanged(catalog)


def keep_doubting(catalog: Catalog, _: i.ListChangedHeard, __: Policy, ___: Phase) -> Step:
    """Doubted already: duplicates and storms change nothing.

    Rule: FAIL-20, NOTE-06, NOTE-08, SUB-35.
    """
    if catalog.doubt is not None:
        return unchanged(catalog)
    return Step(evolve(catalog, doubt=Doubt.NOTICED))


def note_unheeded(catalog: Catalog, _: i.ListChangedHeard, __: Policy, ___: Phase) -> Step:
    """A notice that was never declared starts nothing. Rule: CAP-19."""
    return Step(catalog, (Note("CAP-19", "list_changed was not declared", (catalog.kind.value,)),))


def _spoil(catalog: Catalog, why: Doubt, *, covered: bool) -> Step:
    """The open walk cannot vouch for its result any more; it runs to its end.

    More than once spoils it no further. Rule: ATOM-08, NOTE-07.
    """
    walk, news = open_walk(catalog), news_of_doubt(catalog, why)
    same_cover = covered is catalog.standing.covered
    if walk.spoiled and catalog.doubt is not None and same_cover:
        return unchanged(catalog)
    return Step(
        evolve(
            catalog,
            doubt=catalog.doubt or why,
            walk=evolve(walk, spoiled=True),
            vouched=catalog.vouched and covered,
            standing=catalog.standing if same_cover else evolve(catalog.standing, covered=covered),
        ),
        news,
    )


def spoil_noticed(catalog: Catalog, _: i.ListChangedHeard, __: Policy, ___: Phase) -> Step:
    """A notice during a walk. Rule: NOTE-07, ATOM-09."""
    return _spoil(catalog, Doubt.NOTICED, covered=catalog.standing.covered)


def spoil_suspected(catalog: Catalog, _: i.StalenessProved, __: Policy, ___: Phase) -> Step:
    """A rejected call during a walk."""
    return _spoil(catalog, Doubt.SUSPECTED, covered=catalog.standing.covered)


def cover_and_spoil(catalog: Catalog, _: i.CoverageGained, __: Policy, ___: Phase) -> Step:
    """Push began in the middle of a walk. Rule: SUB-27."""
    return _spoil(catalog, Doubt.UNVOUCHED, covered=True)


def uncover_and_spoil(catalog: Catalog, _: i.CoverageLost, __: Policy, ___: Phase) -> Step:
    """Push ended in the middle of a walk. Rule: REC-06."""
    return _spoil(catalog, Doubt.UNCOVERED, covered=False)


def cover(catalog: Catalog, heard: i.CoverageGained, policy: Policy, _: Phase) -> Step:
    """Push began while no list was fresh: a kept one is not vouched for, a due walk need not wait.

    A failure backoff is not shortened. Rule: SUB-27.
    """
    standing, pacing = evolve(catalog.standing, covered=True), catalog.pacing
    if catalog.phase is Phase.STALE and pacing.due_at_ms is not None and pacing.failures == 0:
        due_at_ms = min(pacing.due_at_ms, heard.now_ms + policy.gather_ms)
        return Step(evolve(catalog, standing=standing, pacing=evolve(pacing, due_at_ms=due_at_ms)))
    news = news_of_doubt(catalog, Doubt.UNVOUCHED)
    doubt = Doubt.UNVOUCHED if news else catalog.doubt
    return Step(evolve(catalog, standing=standing, doubt=doubt), news)


def uncover(catalog: Catalog, _: i.CoverageLost, __: Policy, ___: Phase) -> Step:
    """Push ended while the list was doubted anyway."""
    return Step(evolve(catalog, vouched=False, standing=evolve(catalog.standing, covered=False)))
