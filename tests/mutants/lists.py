"""Defects in how a list is read page by page, made of its entries, and published."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from attrs import evolve

from mutants.kit import Defect, Patch, Result, anew, first, pages, replace, results
from relist import effects as e
from relist import inputs as i
from relist.failures import INVALID_PARAMS, FailureClass, classify_page
from relist.machine import Row
from relist.messages import NAMES
from relist.paging import Listing, join
from relist.policy import Policy
from relist.requests import request_of
from relist.rules import guards, walk
from relist.rules.base import Step, open_walk
from relist.snapshot import make_snapshot
from relist.values import WALKING, Catalog, Doubt, Item, Kind, Phase, Snapshot, Walk
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection
from relist_mcp import connection, speech
from relist_mcp.connection import Connection

Page = i.PageArrived
CURSOR_MAX = 2_000
WELL_NAMED = re.compile(r"[A-Za-z0-9_.-]{1,128}")


# --- pages ---


def _one_page(patch: Patch, kind: Kind) -> None:
    pages(patch, lambda heard: evolve(heard, next_cursor=None) if heard.kind is kind else heard)


def one_page_of_prompts(patch: Patch) -> None:
    """Takes the first page of prompts for the list."""
    _one_page(patch, Kind.PROMPTS)


def one_page_of_resources(patch: Patch) -> None:
    """Takes the first page of resources for the list."""
    _one_page(patch, Kind.RESOURCES)


def one_page_of_templates(patch: Patch) -> None:
    """Takes the first page of templates for the list."""
    _one_page(patch, Kind.TEMPLATES)


def null_is_a_cursor(patch: Patch) -> None:
    """Takes a null for a cursor, as text."""

    def change(_: Kind, result: Result) -> Result:
        null = "nextCursor" in result and result["nextCursor"] is None
        return result | {"nextCursor": "null"} if null else result

    results(patch, change)


def empty_page_ends(patch: Patch) -> None:
    """Takes a page without entries for the end."""
    pages(patch, lambda heard: heard if heard.items else evolve(heard, next_cursor=None))


def short_page_ends(patch: Patch) -> None:
    """Takes a page that holds fewer entries than the first one, but some, for the end."""
    sizes: dict[Kind, int] = {}
    anew(patch, sizes.clear)

    def cut(heard: Page) -> Page:
        full = len(heard.items) >= sizes.setdefault(heard.kind, len(heard.items))
        ending = heard if full or not heard.items else evolve(heard, next_cursor=None)
        if ending.next_cursor is None:
            del sizes[heard.kind]
        return ending

    pages(patch, cut)


def _cursors(patch: Patch, change: Callable[[str], str]) -> None:
    """Make other cursors of those that came."""

    def other(heard: Page) -> Page:
        cursor = heard.next_cursor
        return heard if cursor is None else evolve(heard, next_cursor=change(cursor))

    pages(patch, other)


def trims_cursors(patch: Patch) -> None:
    """Takes blanks off the ends of a cursor."""
    _cursors(patch, lambda cursor: cursor.strip())


def cuts_cursors(patch: Patch) -> None:
    """Keeps no more of a cursor than it has room for."""
    _cursors(patch, lambda cursor: cursor[:CURSOR_MAX])


def _begins_again(patch: Patch, *, with_cursor: bool) -> None:
    """Begin a listing anew at once, whenever its request was refused as invalid."""

    def refused(catalog: Catalog, heard: i.PageFailed, policy: Policy) -> bool:
        meant = (open_walk(catalog).cursor is not None) is with_cursor
        invalid = heard.failure.code == INVALID_PARAMS
        return meant and invalid and not guards.late(catalog, heard, policy)

    first(patch, i.PageFailed, WALKING, Row(refused, None, walk.begin))


def every_refusal_is_a_dead_cursor(patch: Patch) -> None:
    """Begins again at once when a first page is refused as invalid."""
    _begins_again(patch, with_cursor=False)


def begins_again_for_ever(patch: Patch) -> None:
    """Begins again at each dead cursor, however many there were."""
    _begins_again(patch, with_cursor=True)


def later_pages_are_bare(patch: Patch) -> None:
    """Leaves the metadata out when it asks for later pages of resources."""
    real = speech.Voice.request

    def request(self: speech.Voice, request_id: str, effect: Any) -> speech.Frame:
        frame = real(self, request_id, effect)
        later = isinstance(effect, e.RequestPage) and effect.cursor is not None
        if not later or effect.kind is not Kind.RESOURCES:
            return frame
        bare = frame.message.model_copy(update={"params": {"cursor": effect.cursor}})
        return frame._replace(message=bare)

    patch.setattr(speech.Voice, "request", request)


def takes_its_cursor_along(patch: Patch) -> None:
    """Goes on in the next session where it was in the last one."""
    left: dict[Kind, str] = {}
    owed: set[Kind] = set()
    real_init = Connection.__init__

    def noting(heard: Page) -> Page:
        if heard.next_cursor is None:
            left.pop(heard.kind, None)
        else:
            left[heard.kind] = heard.next_cursor
        return heard

    def begin(self: Connection, epoch: int, *more: Any) -> None:
        if epoch == 1:
            left.clear()
        owed.clear()
        owed.update(left)
        real_init(self, epoch, *more)

    def requesting(effect: Any, client: Any) -> Any:
        if isinstance(effect, e.RequestPage) and effect.kind in owed:
            owed.discard(effect.kind)
            effect = evolve(effect, cursor=left.pop(effect.kind, None))
        return request_of(effect, client)

    pages(patch, noting)
    patch.setattr(Connection, "__init__", begin)
    patch.setattr(speech, "request_of", requesting)


# --- entries ---


def _tools(patch: Patch, change: Callable[[list[Any]], list[Any]]) -> None:
    """Read other tools than there are."""

    def other(kind: Kind, result: Result) -> Result:
        if kind is not Kind.TOOLS or not isinstance(result.get("tools"), list):
            return result
        return result | {"tools": change(result["tools"])}

    results(patch, other)


def _name(tool: Any) -> str:
    return str(tool.get("name")) if isinstance(tool, Mapping) else ""


def folds_case(patch: Patch) -> None:
    """Takes tools whose names differ in case for one."""
    _tools(patch, lambda tools: list({_name(tool).casefold(): tool for tool in tools}.values()))


def refuses_odd_names(patch: Patch) -> None:
    """Leaves out tools whose names do not keep to the advice."""
    _tools(patch, lambda tools: [one for one in tools if WELL_NAMED.fullmatch(_name(one))])


def known_by_name(patch: Patch) -> None:
    """Keeps one resource and one template of each name."""

    def change(kind: Kind, result: Result) -> Result:
        field = NAMES[kind].field
        if kind not in (Kind.RESOURCES, Kind.TEMPLATES) or field not in result:
            return result
        return result | {field: list({_name(one): one for one in result[field]}.values())}

    results(patch, change)


def ignores_annotations(patch: Patch) -> None:
    """Does not look at header annotations."""
    patch.setattr(connection, "unusable_over_http", lambda *_: None)


def _snapshots(patch: Patch, change: Callable[[Catalog, Snapshot], tuple[Item, ...]]) -> None:
    """Publish other items than were listed."""

    def making(catalog: Catalog, *rest: Any) -> Snapshot:
        made = make_snapshot(catalog, *rest)
        return evolve(made, items=change(catalog, made))

    patch.setattr(walk, "make_snapshot", making)


def sorts_by_name(patch: Patch) -> None:
    """Offers what was listed in the order of the alphabet."""
    _snapshots(patch, lambda _, made: tuple(sorted(made.items, key=lambda item: item.key)))


# --- publication ---


def empty_is_nothing(patch: Patch) -> None:
    """Says of an empty list that there is none."""
    real = ReferenceConnection.need

    async def need(self: ReferenceConnection, kind: str) -> Answer:
        found = await real(self, kind)
        return {**found, "items": found["items"] or None}

    patch.setattr(ReferenceConnection, "need", need)


def rather_old_than_empty(patch: Patch) -> None:
    """Keeps the list that it has when the new one is empty."""

    def kept(catalog: Catalog, made: Snapshot) -> tuple[Item, ...]:
        held = catalog.snapshot
        return made.items if made.items or held is None else held.items

    _snapshots(patch, kept)


def merges(patch: Patch) -> None:
    """Adds what a new list has to what it has; nothing ever goes away, but all at once."""

    def merged(catalog: Catalog, made: Snapshot) -> tuple[Item, ...]:
        if catalog.snapshot is None or not made.items:
            return made.items
        listed = {item.key for item in made.items}
        return (*made.items, *(one for one in catalog.snapshot.items if one.key not in listed))

    _snapshots(patch, merged)


def adds_it_again(patch: Patch) -> None:
    """Adds a list that was announced and has not changed to the one that it has."""

    def twice(catalog: Catalog, made: Snapshot) -> tuple[Item, ...]:
        held = catalog.snapshot
        same = held is not None and made.items == held.items
        return made.items * 2 if same and catalog.doubt is Doubt.NOTICED else made.items

    _snapshots(patch, twice)


def _part(catalog: Catalog, walked: Walk, now_ms: int, policy: Policy) -> Snapshot:
    return make_snapshot(catalog, walked, join(walked.pages), False, now_ms, policy)


def _shows_pages(patch: Patch, *, over_a_list: bool) -> None:
    """Publish each page as it comes."""

    def meant(catalog: Catalog, heard: Page, policy: Policy) -> bool:
        has_list = catalog.snapshot is not None and catalog.phase is Phase.REFRESHING
        return has_list is over_a_list and guards.more(catalog, heard, policy)

    def show(catalog: Catalog, heard: Page, policy: Policy, to: Phase) -> Step:
        state, told = walk.gather(catalog, heard, policy, to)
        shown = _part(catalog, open_walk(state), heard.now_ms, policy)
        state = evolve(state, snapshot=shown, generation=shown.generation)
        return Step(state, (*told, e.Publish(catalog.kind, shown, True)))

    first(patch, Page, WALKING, Row(meant, None, show))


def shows_first_pages(patch: Patch) -> None:
    """Offers the first list page by page, as it comes."""
    _shows_pages(patch, over_a_list=False)


def shows_later_pages(patch: Patch) -> None:
    """Replaces a list page by page, as the new one comes."""
    _shows_pages(patch, over_a_list=True)


def keeps_pages_of_a_failed_walk(patch: Patch) -> None:
    """Publishes what it has when a later page fails."""

    def midway(catalog: Catalog, heard: i.PageFailed, policy: Policy) -> bool:
        passing = classify_page(heard.failure, "") is FailureClass.TRANSIENT
        on_the_way = catalog.walk is not None and catalog.walk.pages != ()
        return passing and on_the_way and not guards.late(catalog, heard, policy)

    def keep(catalog: Catalog, heard: i.PageFailed, policy: Policy, to: Phase) -> Step:
        state, told = walk.fail(catalog, heard, policy, to)
        shown = _part(catalog, open_walk(catalog), heard.now_ms, policy)
        return Step(evolve(state, snapshot=shown, generation=shown.generation), told)

    first(patch, i.PageFailed, WALKING, Row(midway, Phase.STALE, keep))


def failed_is_empty(patch: Patch) -> None:
    """Takes a first listing that failed for an empty list."""

    def at_first(catalog: Catalog, heard: i.PageFailed, policy: Policy) -> bool:
        asked = open_walk(catalog).cursor
        passing = classify_page(heard.failure, asked) is FailureClass.TRANSIENT
        return passing and catalog.snapshot is None and not guards.late(catalog, heard, policy)

    def empty(catalog: Catalog, heard: i.PageFailed, policy: Policy, to: Phase) -> Step:
        state, told = walk.fail(catalog, heard, policy, to)
        listing, walked = Listing((), frozenset()), open_walk(catalog)
        shown = make_snapshot(catalog, walked, listing, False, heard.now_ms, policy)
        return Step(evolve(state, snapshot=shown, generation=shown.generation), told)

    first(patch, i.PageFailed, WALKING, Row(at_first, Phase.STALE, empty))


def one_need_at_a_time(patch: Patch) -> None:
    """Lets a need wait until the one before it, of whatever kind, was answered."""
    real = ReferenceConnection.need
    turns: WeakKeyDictionary[ReferenceConnection, anyio.Lock] = WeakKeyDictionary()

    async def need(self: ReferenceConnection, kind: str) -> Answer:
        async with turns.setdefault(self, anyio.Lock()):
            return await real(self, kind)

    patch.setattr(ReferenceConnection, "need", need)


def late_page_gets_in(patch: Patch) -> None:
    """Puts the entries of a late page into the list, in the place of those of the same name."""

    def put(catalog: Catalog, heard: Page, _: Policy, __: Phase) -> Step:
        if catalog.snapshot is None:
            return Step(catalog)
        found = {item.key: item for item in (*catalog.snapshot.items, *heard.items)}
        return Step(evolve(catalog, snapshot=evolve(catalog.snapshot, items=(*found.values(),))))

    replace(patch, Page, {Phase.FRESH: put})


DEFECTS = (
    Defect("one-page-of-prompts", "paging:prompts", one_page_of_prompts),
    Defect("one-page-of-resources", "paging:resources", one_page_of_resources),
    Defect("one-page-of-templates", "paging:templates", one_page_of_templates),
    Defect("null-is-a-cursor", "paging:null-cursor", null_is_a_cursor),
    Defect("empty-page-ends", "paging:empty-page", empty_page_ends),
    Defect("short-page-ends", "paging:short-page", short_page_ends),
    Defect("trims-cursors", "paging:cursor-as-given", trims_cursors),
    Defect("cuts-cursors", "paging:cursor-long", cuts_cursors),
    Defect("refusal-is-dead", "paging:first-page-refused", every_refusal_is_a_dead_cursor),
    Defect("begins-again-for-ever", "paging:dead-cursors", begins_again_for_ever),
    Defect("later-pages-are-bare", "paging:metadata", later_pages_are_bare),
    Defect("takes-its-cursor-along", "paging:cursor-of-another-session", takes_its_cursor_along),
    Defect("folds-case", "names:case-sensitive", folds_case),
    Defect("refuses-odd-names", "names:any-text", refuses_odd_names),
    Defect("known-by-name", "names:identity", known_by_name),
    Defect("ignores-annotations", "names:faulty-header", ignores_annotations),
    Defect("sorts-by-name", "names:order", sorts_by_name),
    Defect("empty-is-nothing", "publication:empty-at-first", empty_is_nothing),
    Defect("rather-old-than-empty", "publication:empty-replaces", rather_old_than_empty),
    Defect("merges", "publication:removed-is-gone", merges),
    Defect("adds-it-again", "publication:listed-again", adds_it_again),
    Defect("shows-first-pages", "publication:first-walk", shows_first_pages),
    Defect("shows-later-pages", "publication:later-walk", shows_later_pages),
    Defect("keeps-pages", "publication:failure-midway", keeps_pages_of_a_failed_walk),
    Defect("failed-is-empty", "publication:failed-at-first", failed_is_empty),
    Defect("one-need-at-a-time", "publication:kinds-apart", one_need_at_a_time),
    Defect("late-page-gets-in", "late:page-of-an-older-walk", late_page_gets_in),
)
