"""Defects of the law: the reference client with one rule changed each."""

from attrs import evolve

from mutants.kit import Defect, Patch, pages, replace
from relist import inputs as i
from relist import machine, messages
from relist.effects import Publish
from relist.machine import Row
from relist.messages import read_capabilities
from relist.policy import Policy
from relist.rules import guards, walk
from relist.rules.base import Step
from relist.values import KINDS, WALKING, Capabilities, Catalog, Doubt, Phase


def first_page_only(patch: Patch) -> None:
    """Takes the first page for the list."""
    pages(patch, lambda heard: evolve(heard, next_cursor=None))


def empty_cursor_ends(patch: Patch) -> None:
    """Takes any falsy cursor for the end."""
    pages(patch, lambda heard: evolve(heard, next_cursor=heard.next_cursor or None))


def relists_first_page_only(patch: Patch) -> None:
    """After a notice refreshes the first page and keeps the others."""

    def arrived(catalog: Catalog, heard: i.PageArrived, policy: Policy) -> bool:
        noticed = catalog.doubt is Doubt.NOTICED and catalog.phase is Phase.REFRESHING
        listed = noticed and catalog.snapshot is not None
        return listed and not guards.late(catalog, heard, policy)

    def publish(catalog: Catalog, heard: i.PageArrived, policy: Policy, to: Phase) -> Step:
        assert catalog.snapshot is not None
        fresh = {item.key for item in heard.items}
        kept = tuple(item for item in catalog.snapshot.items if item.key not in fresh)
        whole = evolve(heard, items=(*heard.items, *kept), next_cursor=None)
        return walk.publish(catalog, whole, policy, to)

    rows = dict(machine._CATALOG_ROWS)
    cells = dict(rows[i.PageArrived])
    cells[Phase.REFRESHING] = (Row(arrived, Phase.FRESH, publish), *cells[Phase.REFRESHING])
    rows[i.PageArrived] = cells
    patch.setattr(machine, "_CATALOG_ROWS", rows)


def deaf_to_notices(patch: Patch) -> None:
    """Never hears a notice."""
    replace(patch, i.ListChangedHeard, dict.fromkeys(Phase, walk.nothing))


def forgets_to_walk_again(patch: Patch) -> None:
    """A notice during a listing is taken for answered by that listing."""
    replace(patch, i.ListChangedHeard, dict.fromkeys(WALKING, walk.nothing))


def empties_on_failure(patch: Patch) -> None:
    """A failed listing leaves an empty list."""

    def fail(catalog: Catalog, heard: i.PageFailed, policy: Policy, to: Phase) -> Step:
        state, effects = walk._failed(catalog, None, heard.now_ms, policy, to)
        if state.snapshot is None:
            return Step(state, effects)
        return Step(evolve(state, snapshot=evolve(state.snapshot, items=())), effects)

    replace(patch, i.PageFailed, dict.fromkeys(WALKING, fail), Phase.STALE)


def never_retries(patch: Patch) -> None:
    """A failed listing is tried again a day later, whoever asks."""

    def fail(catalog: Catalog, heard: i.PageFailed, policy: Policy, to: Phase) -> Step:
        state, effects = walk._failed(catalog, None, heard.now_ms, policy, to)
        tomorrow = evolve(state.pacing, due_at_ms=heard.now_ms + 86_400_000)
        return Step(evolve(state, pacing=tomorrow), effects)

    replace(patch, i.PageFailed, dict.fromkeys(WALKING, fail), Phase.STALE)


def late_answer_wins(patch: Patch) -> None:
    """Whatever list arrives last is the list."""

    def overwrite(catalog: Catalog, heard: i.PageArrived, _: Policy, __: Phase) -> Step:
        if catalog.snapshot is None:
            return Step(catalog)
        old = evolve(catalog.snapshot, items=heard.items, generation=catalog.generation + 1)
        state = evolve(catalog, snapshot=old, generation=old.generation)
        return Step(state, (Publish(catalog.kind, old, True),))

    replace(patch, i.PageArrived, {Phase.FRESH: overwrite})


def asks_for_everything(patch: Patch) -> None:
    """Takes every kind for declared."""

    def all_kinds(value: object) -> Capabilities:
        return evolve(read_capabilities(value), kinds=frozenset(KINDS))

    patch.setattr(messages, "read_capabilities", all_kinds)


def trusts_over_a_reconnect(patch: Patch) -> None:
    """A lost link says nothing about the list."""
    for heard in (i.LinkLost, i.LinkOpened, i.CoverageGained, i.CoverageLost):
        replace(patch, heard, {Phase.FRESH: walk.nothing})


DEFECTS = (
    Defect("first-page-only", "paging:every-page", first_page_only),
    Defect("empty-cursor-ends", "paging:empty-cursor", empty_cursor_ends),
    Defect("relists-first-page-only", "notice:next-access", relists_first_page_only),
    Defect("deaf-to-notices", "notice:next-access", deaf_to_notices),
    Defect("forgets-to-walk-again", "notice:during-listing", forgets_to_walk_again),
    Defect("empties-on-failure", "failure:keeps-last-good", empties_on_failure),
    Defect("never-retries", "failure:keeps-last-good", never_retries),
    Defect("late-answer-wins", "late:timed-out-answer", late_answer_wins),
    Defect("asks-for-everything", "capability:undeclared", asks_for_everything),
    Defect("trusts-over-a-reconnect", "reconnect:lists-again", trusts_over_a_reconnect),
)
