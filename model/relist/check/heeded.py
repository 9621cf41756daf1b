"""What a catalog owes to what it hears: what calls for something has its effect, nothing else does.

The checks of ``invariants`` say what must never come of a step; these say what must come of it.
"""

from collections.abc import Callable, Mapping

from attrs import evolve

from relist import inputs as i
from relist.check.edge import Edge
from relist.effects import NeedCredentials, Note
from relist.failures import FailureClass, classify_page
from relist.freshness import reached, rested
from relist.machine import deadline_ms
from relist.paging import join, too_long
from relist.rules.base import WISH_OF, stronger
from relist.values import WALKING, Parked, Phase, Wish

_UNLINKED = (Phase.DISCONNECTED, Phase.INITIALIZING)


def standing_is_as_told(edge: Edge) -> str | None:
    """What is known of the link is what was told of it, and changes by nothing else.

    A list of another version than the link's is doubted. Rule: CAP-18, SUB-05, REC-01, REC-08.
    """
    before, heard = edge.before, edge.heard
    told = before.standing
    match heard:
        case i.LinkOpened():
            told = evolve(told, epoch=heard.epoch, covered=False)
        case i.LinkLost():
            told = evolve(told, covered=False)
        case i.CredentialsChanged():
            told = evolve(told, partition=heard.partition, covered=False)
        case i.CoverageGained() | i.CoverageLost() if before.phase is not Phase.DISCONNECTED:
            told = evolve(told, covered=isinstance(heard, i.CoverageGained))
        case i.ListingAllowed() | i.CapabilitiesChanged() if _is_offered(edge):
            told = evolve(told, declared=heard.declared, push=heard.push)
            if isinstance(heard, i.ListingAllowed):
                told = evolve(told, era=heard.era, version=heard.version)
        case _:
            pass
    after = edge.after
    if after.standing != told:
        return f"{after.standing} instead of {told}"
    foreign = after.snapshot is not None and after.snapshot.version != told.version
    return "of another version, and not doubted" if foreign and after.doubt is None else None


def phase_has_its_reason(edge: Edge) -> str | None:
    """Each phase is entered for what it means, and whenever that is heard. Rule: CAP-13, CAP-16.

    DISCONNECTED and INITIALIZING by the link, UNSUPPORTED by what the server does not have,
    DISCOVERING when listing becomes allowed; FRESH is left for STALE only with a doubt.
    """
    before, after = edge.before, edge.after
    expected = _leads_to(edge)
    if after.phase not in expected:
        return f"{type(edge.heard).__name__}: {before.phase.value} -> {after.phase.value}"
    if before.phase is Phase.FRESH and after.phase is Phase.STALE and after.doubt is None:
        return "stale, though nothing is doubted"
    return None


def _leads_to(edge: Edge) -> tuple[Phase, ...]:
    """The phases that may follow."""
    before, heard = edge.before, edge.heard
    match heard:
        case i.LinkLost():
            return (Phase.DISCONNECTED,)
        case i.LinkOpened():
            return (Phase.INITIALIZING,)
        case i.CredentialsChanged() if before.phase is not Phase.DISCONNECTED:
            return (Phase.INITIALIZING,)
        case i.ListingAllowed() | i.CapabilitiesChanged() if _is_offered(edge):
            return (_offer_leads_to(edge, heard),)
        case i.PageFailed() if _failure_of(edge) is FailureClass.UNKNOWN_METHOD:
            return (Phase.UNSUPPORTED,)
        case _ if edge.begins:
            return (Phase.REFRESHING,)
        case _ if before.phase in (*_UNLINKED, Phase.UNSUPPORTED) or edge.after.walk is not None:
            return (before.phase,)
        case _:
            return (Phase.FRESH, Phase.STALE)


def _is_offered(edge: Edge) -> bool:
    """Whether it is heard what the server offers, at a time when that counts."""
    if isinstance(edge.heard, i.ListingAllowed):
        return edge.before.phase is Phase.INITIALIZING
    return isinstance(edge.heard, i.CapabilitiesChanged) and edge.before.phase not in _UNLINKED


def _offer_leads_to(edge: Edge, heard: i.ListingAllowed | i.CapabilitiesChanged) -> Phase:
    """A walk begins unless the kept list serves, or what is parked or lazy is not asked for."""
    before, wanted = edge.before, edge.before.wanted
    if not heard.declared:
        return Phase.UNSUPPORTED
    if before.phase not in (Phase.INITIALIZING, Phase.UNSUPPORTED):
        return before.phase
    kept = before.snapshot if before.doubt is None else None
    if kept is not None and isinstance(heard, i.ListingAllowed) and kept.version == heard.version:
        served = wanted is Wish.READ and not reached(kept.expires_at_ms, heard.now_ms)
        if served or wanted is None:
            return Phase.FRESH
    parked = before.pacing.parked and wanted is not Wish.REFRESH
    lazy = edge.policy.lazy and wanted is None
    return Phase.STALE if parked or lazy else Phase.DISCOVERING


def _failure_of(edge: Edge) -> FailureClass | None:
    """What the failure of the outstanding request asks for."""
    walk, heard = edge.before.walk, edge.heard
    if walk is None or not edge.answered or not isinstance(heard, i.PageFailed):
        return None
    return classify_page(heard.failure, walk.cursor)


def wish_is_kept(edge: Edge) -> str | None:
    """Who asks is served: by what holds, by a walk at once, or by the next one. Rule: ATOM-24.

    A wish is forgotten only when a walk begins for it, a kept list serves it, or the kind is
    unsupported; one that an abandoned walk was to serve comes back.
    """
    before, after = edge.before, edge.after
    asked = WISH_OF.get(type(edge.heard))
    if asked is not None and edge.begins is not _at_once(edge, asked):
        return f"asked to {asked.name.lower()} in {before.phase.value}, begins {edge.begins}"
    held = asked is Wish.READ and before.phase in (*WALKING, Phase.FRESH) and not edge.begins
    wanted = before.wanted if held else stronger(before.wanted, asked)
    if edge.begins and after.walk is not None and after.walk.serves is not wanted:
        return f"begins for {after.walk.serves}, though {wanted} was asked for"
    if isinstance(edge.heard, i.LinkOpened | i.LinkLost | i.CredentialsChanged):
        wanted = stronger(wanted, before.walk.serves if before.walk is not None else None)
    kept = isinstance(edge.heard, i.ListingAllowed) and after.phase is Phase.FRESH
    if edge.begins or kept or after.phase is Phase.UNSUPPORTED:
        wanted = None
    return None if after.wanted is wanted else f"{after.wanted} is wanted instead of {wanted}"


def _at_once(edge: Edge, asked: Wish) -> bool:
    """Whether a walk may begin for this wish now. Rule: CALL-05, TTL-02, TTL-09."""
    before, now_ms, pacing = edge.before, edge.heard.now_ms, edge.before.pacing
    if before.phase is Phase.FRESH:
        listed = before.snapshot
        expired = listed is not None and reached(listed.expires_at_ms, now_ms)
        return expired or asked is not Wish.READ
    if before.phase is not Phase.STALE or asked is Wish.REFRESH:
        return before.phase is Phase.STALE
    if pacing.parked:
        return False
    may_begin = rested(pacing.due_at_ms, now_ms)
    if asked is Wish.VERIFY:
        return pacing.failures == 0 or may_begin
    return edge.policy.lazy and may_begin


def time_is_kept(edge: Edge) -> str | None:
    """A time that has come begins a walk or ends one; before it nothing changes. Rule: FAIL-09."""
    before, after = edge.before, edge.after
    if not isinstance(edge.heard, i.TimePassed):
        return None
    if not reached(deadline_ms(before, edge.policy), edge.heard.now_ms):
        return None if after is before else "changed before its time"
    done = after.walk is None and edge.abandoned if before.phase in WALKING else edge.begins
    return None if done else f"its time has come in {before.phase.value}, and nothing did"


def no_late_overwrite(edge: Edge) -> str | None:
    """An answer to anything but the outstanding request changes nothing.

    Rule: ATOM-11, ATOM-13, FAIL-12.
    """
    if not edge.late:
        return None
    if edge.after is not edge.before:
        return "a late answer changed the catalog"
    if not all(isinstance(told, Note) for told in edge.effects):
        return "a late answer had an effect"
    return None if edge.effects else "a late answer was not noted"


_PARKS = {
    FailureClass.AUTHORIZATION: Parked.AUTHORIZATION,
    FailureClass.UNMENDABLE: Parked.REQUEST,
}
_NOTES = {FailureClass.UNKNOWN_METHOD: "CAP-16", FailureClass.UNMENDABLE: "FAIL-19"}


def answer_counts(edge: Edge) -> str | None:
    """An answer in time is taken for what it says, and a whole list is never thrown away.

    Rule: DISC-05, DISC-16, ATOM-02, ATOM-24, FAIL-04, FAIL-17, FAIL-19, FAIL-23.
    """
    pacing, failed = edge.after.pacing, _failure_of(edge)
    asks = any(isinstance(told, NeedCredentials) for told in edge.effects)
    if asks is not (failed is FailureClass.AUTHORIZATION):
        return f"failure {failed}, credentials asked for: {asks}"
    if failed is None:
        return _page_counts(edge)
    insists = edge.before.wanted is Wish.REFRESH  # and gets a try of its own
    parks = failed in _PARKS and not insists
    if pacing.parked not in ((_PARKS[failed],) if parks else (None, edge.before.pacing.parked)):
        return f"{failed}, and parked for {pacing.parked}"
    if pacing.parked is not None and pacing.due_at_ms is not None:
        return "parked, and due"
    if failed in _NOTES and not _noted(edge, _NOTES[failed]):
        return f"{failed} was not noted"
    again = edge.before.pacing.spoiled_in_row + 1 < edge.policy.spoiled_in_row_max
    if failed is FailureClass.UNKNOWN_METHOD or (failed is FailureClass.DEAD_CURSOR and not again):
        return None
    expected = failed is not FailureClass.DEAD_CURSOR
    return None if _counts_failure(edge) is expected else f"{failed}: {pacing.failures} failures"


def _page_counts(edge: Edge) -> str | None:
    before, after, heard, walk = edge.before, edge.after, edge.heard, edge.before.walk
    if walk is None or not isinstance(heard, i.PageArrived) or not edge.answered:
        return None
    if too_long(walk, heard, edge.policy):
        counted = _counts_failure(edge) and _noted(edge, "DISC-16")
        return None if counted else "an overlong walk did not fail"
    whole, publish = edge.whole, edge.published
    if whole is None:
        return None if edge.requests else "there is more, and it is not asked for"
    clean = not walk.spoiled and not join(whole).ambiguous
    if clean and (publish is None or not publish.snapshot.clean):
        return "a clean list was not published"
    if publish is None and after.candidate in (None, before.candidate):
        return "a whole list was thrown away"
    again = publish is not None and publish.snapshot.clean and before.wanted is not None
    return None if edge.begins is again else f"{before.wanted} is wanted, begins {edge.begins}"


def _counts_failure(edge: Edge) -> bool:
    return edge.after.pacing.failures == edge.before.pacing.failures + 1


def notice_is_told(edge: Edge) -> str | None:
    """A notice that was promised is remembered, one that was not is noted. Rule: NOTE-12, CAP-19.

    A proof about anything but the list that may be called on changes nothing.
    """
    before, after, heard = edge.before, edge.after, edge.heard
    if isinstance(heard, i.StalenessProved):
        listed = before.snapshot if before.phase in (*WALKING, Phase.FRESH) else None
        about = listed is not None and heard.generation == listed.generation
        return None if about or after is before else "a proof about no list changed something"
    if not isinstance(heard, i.ListChangedHeard) or before.phase is Phase.DISCONNECTED:
        return None
    promised = before.standing.push or before.standing.covered
    if before.phase is Phase.UNSUPPORTED or not (promised or before.phase is Phase.INITIALIZING):
        noted = after is before and _noted(edge, "CAP-19")
        return None if noted else "a notice that was never promised was not just noted"
    counts = after.snapshot is not None or before.phase is not Phase.INITIALIZING
    return "a notice was forgotten" if counts and after.doubt is None else None


def _noted(edge: Edge, rule: str) -> bool:
    return any(isinstance(told, Note) and told.rule == rule for told in edge.effects)


def vouched_is_earned(edge: Edge) -> str | None:
    """Push vouches for a list from its walk's first request to the first gap. Rule: SUB-27, REC-06.

    So only for what was listed cleanly, and never again once it did not.
    """
    before, after, publish = edge.before, edge.after, edge.published
    if after.vouched and (after.snapshot is None or not after.standing.covered):
        return "vouched for without a list or without push"
    if publish is None:
        return "vouched for out of nothing" if after.vouched and not before.vouched else None
    walk = before.walk
    covered = walk is not None and walk.covered and before.standing.covered
    earned = covered and publish.snapshot.clean
    return None if after.vouched is earned else f"published, and vouched for: {after.vouched}"


def link_begins_anew(edge: Edge) -> str | None:
    """No walk, no candidate and no counter of spoiled walks outlives the link or the support.

    Other credentials forgive failures; of an unsupported kind nothing is left but that it is
    parked. Rule: ATOM-22, AUTH-11, CAP-13, DISC-11.
    """
    after, pacing = edge.after, edge.after.pacing
    gone = after.phase is Phase.UNSUPPORTED
    if gone or isinstance(edge.heard, i.LinkOpened | i.LinkLost | i.CredentialsChanged):
        left = (after.walk, after.candidate, pacing.due_at_ms, pacing.spoiled_in_row or None)
        if left != (None, None, None, None):
            return f"{left} outlived the link or the support"
    if isinstance(edge.heard, i.CredentialsChanged) and (pacing.failures or pacing.parked):
        return "other credentials forgave nothing"
    if (gone or edge.withdrawn) and after.doubt is not None:
        return "no list, and doubted"
    if gone and (pacing.failures, pacing.gap_exponent, pacing.listed_at_ms) != (0, 0, None):
        return "unsupported, and still paced"
    return None


HEEDED: Mapping[str, Callable[[Edge], str | None]] = {
    "standing-is-as-told": standing_is_as_told,
    "phase-has-its-reason": phase_has_its_reason,
    "wish-is-kept": wish_is_kept,
    "time-is-kept": time_is_kept,
    "no-late-overwrite": no_late_overwrite,
    "answer-counts": answer_counts,
    "notice-is-told": notice_is_told,
    "vouched-is-earned": vouched_is_earned,
    "link-begins-anew": link_begins_anew,
}
