"""Laws and sessions that get one thing wrong, which shows between two runs only."""

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve

import relist.session
from relist import inputs as i
from relist import machine
from relist.inputs import PageArrived
from relist.paging import Listing, add_page, join
from relist.policy import Policy
from relist.rules import doubt, guards, walk
from relist.rules.base import Step
from relist.values import KINDS, Catalog, Items, Kind, Phase, Scope, Walk
from support import altered

Seed = Callable[[pytest.MonkeyPatch], None]


def _ruled(**rules: Callable[..., Any]) -> Seed:
    """Sessions whose catalogs have these rules."""
    return lambda patch: patch.setattr(relist.session, "step", altered.altered(rules))


def _hearing(mishear: Callable[[Catalog, Any], Any]) -> Seed:
    """Sessions whose catalogs hear something else than was said."""

    def step(catalog: Catalog, heard: Any, policy: Policy) -> Any:
        return machine.step(catalog, mishear(catalog, heard), policy)

    return lambda patch: patch.setattr(relist.session, "step", step)


def _joining(wrong: Callable[[tuple[Items, ...]], Listing]) -> Seed:
    def seed(patch: pytest.MonkeyPatch) -> None:
        patch.setattr(walk, "join", wrong)
        patch.setattr(guards, "join", wrong)

    return seed


def _forgetting(**what: Any) -> Seed:
    """Walks that know nothing of their earlier pages in this respect."""

    def add(walk: Walk, *args: Any, **more: Any) -> Walk:
        return add_page(evolve(walk, **what), *args, **more)

    return lambda patch: patch.setattr(walk, "add_page", add)


def _no_empty_cursor(_: Catalog, heard: Any) -> Any:
    empty = isinstance(heard, PageArrived) and heard.next_cursor == ""
    return evolve(heard, next_cursor=None) if empty else heard


def _only_rising_cursors(catalog: Catalog, heard: Any) -> Any:
    if isinstance(heard, PageArrived) and heard.next_cursor and catalog.walk:
        falls = catalog.walk.cursor is not None and heard.next_cursor < catalog.walk.cursor
        return evolve(heard, next_cursor=None) if falls else heard
    return heard


def _sorted(pages: tuple[Items, ...]) -> Listing:
    items, ambiguous = join(pages)
    return Listing(tuple(sorted(items, key=lambda item: item.key)), ambiguous)


def _caseless(pages: tuple[Items, ...]) -> Listing:
    items, ambiguous = join(pages)
    return Listing(tuple({item.key.lower(): item for item in items}.values()), ambiguous)


def _deaf_templates(catalog: Catalog, heard: Any, policy: Policy, to: Phase) -> Any:
    spoil = walk.nothing if catalog.kind is Kind.TEMPLATES else doubt.spoil_noticed
    return spoil(catalog, heard, policy, to)


def _counted(catalog: Catalog, heard: Any, policy: Policy, to: Phase) -> Any:
    state, effects = doubt.spoil_noticed(catalog, heard, policy, to)
    exponent = policy.longer_gap(state.pacing.gap_exponent)
    return Step(evolve(state, pacing=evolve(state.pacing, gap_exponent=exponent)), effects)


def _on_a_grid(catalog: Catalog, heard: Any, policy: Policy, to: Phase) -> Any:
    state, effects = doubt.doubt_noticed(catalog, heard, policy, to)
    due_at_ms = (state.pacing.due_at_ms or 0) // 100 * 100
    return Step(evolve(state, pacing=evolve(state.pacing, due_at_ms=due_at_ms)), effects)


def updates_are_notices(patch: pytest.MonkeyPatch) -> None:
    """News of a resource is taken for news of the list of resources."""
    hear = relist.session.Run.updates

    def updates(run: Any, heard: Any) -> None:
        hear(run, heard)
        if isinstance(heard, i.UpdateHeard):
            run.catalog(Kind.RESOURCES, i.ListChangedHeard(heard.now_ms))

    patch.setattr(relist.session.Run, "updates", updates)


def one_counter(patch: pytest.MonkeyPatch) -> None:
    """Serials are counted over all kinds together."""
    hear = relist.session.Run.catalog

    def catalog(run: Any, kind: Kind, heard: Any) -> None:
        index, newest = KINDS.index(kind), max(catalog.serial for catalog in run._catalogs)
        run._catalogs[index] = evolve(run._catalogs[index], serial=newest)
        hear(run, kind, heard)

    patch.setattr(relist.session.Run, "catalog", catalog)


WINDOWS_ON_A_GRID = _ruled(doubt_noticed=_on_a_grid)
EMPTY_CURSOR_ENDS = _hearing(_no_empty_cursor)
CURSORS_MUST_RISE = _hearing(_only_rising_cursors)
LISTS_ARE_SORTED = _joining(_sorted)
KEYS_HAVE_NO_CASE = _joining(_caseless)
TEMPLATES_ARE_NOT_TOLD = _ruled(spoil_noticed=_deaf_templates)
NOTICES_ARE_COUNTED = _ruled(spoil_noticed=_counted)
WINDOWS_MOVE = _ruled(**altered.MOVED_WINDOW)
LAST_LIFETIME_COUNTS = _forgetting(expires_at_ms=None)
LAST_SCOPE_COUNTS = _forgetting(scope=Scope.PUBLIC)
