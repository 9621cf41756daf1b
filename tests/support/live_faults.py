"""Faults to seed in a live client, of the law and of the adapter, and what of them a run shows.

What shows is told from the outside: by what the server had and served, not by the core's state.
"""

from collections.abc import Mapping

import pytest
from attrs import evolve

from relist import inputs as i
from relist.effects import AbandonWalk, RequestEffect, RequestPage
from relist.inputs import SessionInput
from relist.messages import Heard
from relist.policy import Policy
from relist.requests import Tags, answered, notified
from relist.rules import doubt, standing, walk
from relist.rules.base import Step
from relist.values import Catalog, Channel, Kind, Phase, Snapshot, Walk
from relist_mcp import hearing, view
from relist_mcp.changes import Change, change
from relist_mcp.connection import Connection
from support import faults
from support.faults import Fault, recompile


def first_page_only(patch: pytest.MonkeyPatch) -> None:
    """A cursor is not looked at: the first page is taken for the list."""

    def without_cursor(effect: RequestEffect, *args: object) -> Heard[SessionInput]:
        heard = answered(effect, *args)  # type: ignore[arg-type]
        if not isinstance(heard.heard, i.PageArrived):
            return heard
        return heard._replace(heard=evolve(heard.heard, next_cursor=None))

    patch.setattr(hearing, "answered", without_cursor)


def lost_walk_continued(patch: pytest.MonkeyPatch) -> None:
    """The first walk of a link goes on where that of the lost one stopped."""
    stopped: dict[Kind, Walk] = {}
    unlink = standing._unlink

    def remembering(catalog: Catalog, to: Phase) -> Step:
        if catalog.walk is not None and catalog.walk.pages:
            stopped[catalog.kind] = catalog.walk
        return unlink(catalog, to)

    def going_on(catalog: Catalog, heard: i.CatalogInput, policy: Policy, to: Phase) -> Step:
        begun = walk.begin(catalog, heard, policy, to)
        old, new = stopped.pop(catalog.kind, None), begun.state.walk
        if old is None or new is None or catalog.serial == 0:  # that was another client's
            return begun
        kept = evolve(new, pages=old.pages, count=old.count, cursor=old.cursor)
        asks = RequestPage(catalog.kind, new.serial, old.cursor)
        return Step(evolve(begun.state, walk=kept), (asks,))

    patch.setattr(standing, "_unlink", remembering)
    patch.setattr(standing, "begin", going_on)
    recompile(patch)


def lost_link_trusted(patch: pytest.MonkeyPatch) -> None:
    """A list that push vouched for is taken for vouched across a lost link."""
    unlink = standing._unlink

    def trusting(catalog: Catalog, to: Phase) -> Step:
        state, effects = unlink(catalog, to)
        if catalog.doubt is not None:
            return Step(state, effects)
        kept = evolve(state, doubt=None, vouched=catalog.vouched)
        return Step(kept, tuple(one for one in effects if isinstance(one, AbandonWalk)))

    def covering(catalog: Catalog, *_: object) -> Step:
        return Step(evolve(catalog, standing=evolve(catalog.standing, covered=True)))

    patch.setattr(standing, "_unlink", trusting)
    patch.setattr(doubt, "cover", covering)
    patch.setattr(doubt, "cover_and_doubt", covering)
    recompile(patch)


def end_of_listen_missed(patch: pytest.MonkeyPatch) -> None:
    """Nobody notices that the server ended the subscription."""
    tell = Connection._tell

    def deaf(connection: Connection, heard: SessionInput) -> None:
        if not isinstance(heard, i.PushEnded):
            tell(connection, heard)

    patch.setattr(Connection, "_tell", deaf)


def prompts_taken_for_tools(patch: pytest.MonkeyPatch) -> None:
    """A notice about prompts is taken for one about tools."""

    def confused(
        method: str, params: Mapping[str, object], tags: Tags, now_ms: int
    ) -> Heard[SessionInput] | None:
        heard = notified(method, params, tags, now_ms)
        if heard is None or not isinstance(heard.heard, i.NoticeHeard):
            return heard
        return heard._replace(heard=evolve(heard.heard, channel=Channel.TOOLS))

    patch.setattr(hearing, "notified", confused)


def refresh_joins(patch: pytest.MonkeyPatch) -> None:
    """A refresh is content with the walk that is open already."""
    want = walk.want

    def joining(catalog: Catalog, heard: i.WishInput, policy: Policy, to: Phase) -> Step:
        joins = catalog.walk is not None and isinstance(heard, i.RefreshWanted)
        return Step(catalog) if joins else want(catalog, heard, policy, to)

    patch.setattr(walk, "want", joining)
    recompile(patch)


def removals_untold(patch: pytest.MonkeyPatch) -> None:
    """Whoever follows the changes is not told what was removed."""

    def forgetful(kind: Kind, before: Snapshot | None, after: Snapshot | None) -> Change | None:
        found = change(kind, before, after)
        return None if found is None else evolve(found, removed=())

    patch.setattr(view, "change", forgetful)


CURRENT = frozenset({"current", "converges"})
LIVE_FAULTS = (
    Fault("forgotten-rewalk", CURRENT, faults.forgotten_rewalk),
    Fault("first-page-only", frozenset({"as-served"}), first_page_only),
    Fault("lost-walk-continued", frozenset({"as-served"}), lost_walk_continued),
    Fault("lost-link-trusted", CURRENT, lost_link_trusted),
    Fault("prompts-taken-for-tools", CURRENT, prompts_taken_for_tools),
    Fault("private-kept", frozenset({"private-stays-private"}), faults.private_kept),
    Fault("refresh-joins", frozenset({"refresh"}), refresh_joins),
    Fault("removals-untold", frozenset({"changes"}), removals_untold),
)
MODERN_FAULTS = (Fault("end-of-listen-missed", CURRENT, end_of_listen_missed),)
"""Of what only the modern era has."""
