"""Defects in what is asked for, what a notice is taken to mean, and how long a list is good."""

from collections.abc import Callable, Mapping
from typing import Any

from attrs import evolve

from mutants.kit import Defect, Patch, anew, first, pages, replace
from relist import core, messages, snapshot
from relist import inputs as i
from relist.failures import METHOD_NOT_FOUND
from relist.freshness import snapshot_deadline_ms
from relist.machine import Hit, Reading, Row, read
from relist.messages import read_capabilities
from relist.policy import Policy
from relist.rules import guards, walk
from relist.session import Run
from relist.values import (
    CHANNEL_OF,
    KINDS,
    WALKING,
    Capabilities,
    Catalog,
    Doubt,
    Era,
    Kind,
    Phase,
    Walk,
)
from relist_conformance.drivers import reference, snapshots
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection

LONG_MS = 10**7


# --- what is declared ---


def _declares(patch: Patch, change: Callable[[frozenset[Kind], Any], frozenset[Kind]]) -> None:
    """Read otherwise which kinds are declared."""

    def reading(value: Any) -> Capabilities:
        found = read_capabilities(value)
        return evolve(found, kinds=change(found.kinds, value))

    patch.setattr(messages, "read_capabilities", reading)


def asks_for_tools(patch: Patch) -> None:
    """Takes tools for something that every server has."""
    _declares(patch, lambda kinds, _: kinds | {Kind.TOOLS})


def empty_object_declares_nothing(patch: Patch) -> None:
    """Takes prompts without sub-flags for undeclared."""
    _declares(patch, lambda kinds, value: kinds if value.get("prompts") else kinds - {Kind.PROMPTS})


def templates_declare_themselves(patch: Patch) -> None:
    """Waits for a capability of templates."""
    _declares(
        patch,
        lambda kinds, value: kinds if "resourceTemplates" in value else kinds - {Kind.TEMPLATES},
    )


def undeclared_is_empty(patch: Patch) -> None:
    """Has an empty list of whatever was not declared."""

    def told(real: Any) -> Any:
        def answer(reading: Reading) -> Answer:
            found: Answer = real(reading)
            return {**found, "items": []} if reading.hit is Hit.UNSUPPORTED else found

        return answer

    patch.setattr(reference, "told", told(snapshots.told))


def goes_and_looks(patch: Patch) -> None:
    """Lists whatever a notice speaks of."""
    real = Run.notice

    def notice(self: Run, heard: i.NoticeHeard) -> None:
        real(self, heard)
        fault = self._fault_of(heard)
        ungranted = fault is not None and fault.rule == "SUB-13"
        for kind in KINDS:
            if ungranted and CHANNEL_OF[kind] is heard.channel:
                self.catalog(kind, i.ListChangedHeard(heard.now_ms))

    patch.setattr(Run, "notice", notice)
    looks = {Phase.UNSUPPORTED: walk.begin}
    replace(patch, i.ListChangedHeard, looks, Phase.REFRESHING)


def no_templates_no_resources(patch: Patch) -> None:
    """Takes resources for unsupported when the method of templates is unknown."""
    real = Run.about_kind

    def about_kind(self: Run, heard: Any) -> None:
        real(self, heard)
        failed = isinstance(heard, i.PageFailed) and heard.failure.code == METHOD_NOT_FOUND
        if failed and heard.kind is Kind.TEMPLATES:
            gone = i.CapabilitiesChanged(declared=False, push=False, now_ms=heard.now_ms)
            self.catalog(Kind.RESOURCES, gone)

    patch.setattr(Run, "about_kind", about_kind)


# --- notices ---


def _refreshes(patch: Patch, truly: Callable[[Catalog], bool]) -> None:
    """Refresh truly only where this holds; else look at what is held."""
    real = ReferenceConnection.refresh

    async def refresh(self: ReferenceConnection, kind: str) -> Answer:
        held = self._open().session.catalog(Kind(kind))
        return await (real(self, kind) if truly(held) else self.need(kind))

    patch.setattr(ReferenceConnection, "refresh", refresh)


def fixed_without_notices(patch: Patch) -> None:
    """Never lists again what no notice was promised for, whoever asks."""
    _refreshes(patch, lambda held: held.standing.push)


def nothing_is_lost(patch: Patch) -> None:
    """Lists nothing again that notices are promised for and that none spoke of, whoever asks."""
    _refreshes(patch, lambda held: not held.standing.push)


def one_notice_for_all(patch: Patch) -> None:
    """Takes a notice for one of every kind."""
    real = Run.notice

    def notice(self: Run, heard: i.NoticeHeard) -> None:
        real(self, heard)
        for kind in KINDS if self._fault_of(heard) is None else ():
            self.catalog(kind, i.ListChangedHeard(heard.now_ms))

    patch.setattr(Run, "notice", notice)


def first_listing_is_deaf(patch: Patch) -> None:
    """Hears notices only once it has listed."""
    replace(patch, i.ListChangedHeard, {Phase.DISCOVERING: walk.nothing})


def clears_the_mark_at_the_end(patch: Patch) -> None:
    """Forgets the notices that came during a listing when the listing ends."""
    first(patch, i.PageArrived, WALKING, Row(guards.spoiled_end, Phase.FRESH, walk.publish))


def prompts_forget_to_walk_again(patch: Patch) -> None:
    """Takes a notice of prompts during their listing for answered by that listing."""

    def of_prompts(catalog: Catalog, _: object, __: Policy) -> bool:
        return catalog.kind is Kind.PROMPTS

    first(patch, i.ListChangedHeard, WALKING, Row(of_prompts, None, walk.nothing))


def _calls_fresh(patch: Patch, hit: Hit) -> None:
    patch.setitem(snapshots._STATES, hit, "fresh")


def doubted_is_fresh(patch: Patch) -> None:
    """Calls a list fresh while it is being renewed."""
    _calls_fresh(patch, Hit.DOUBTED)


def disconnected_is_fresh(patch: Patch) -> None:
    """Calls a list fresh that it cannot renew for want of a connection."""
    told = snapshots.told

    def answer(reading: Reading) -> Answer:
        lost = reading.doubt is Doubt.DISCONNECTED
        return {**told(reading), "state": "fresh"} if lost else told(reading)

    patch.setattr(reference, "told", answer)


# --- lifetimes ---


def expired_is_fresh(patch: Patch) -> None:
    """Calls a list fresh that has expired."""
    _calls_fresh(patch, Hit.EXPIRED)


def longest_lifetime_of_all(patch: Patch) -> None:
    """Keeps every kind as long as the one that lives longest."""
    ends_ms: dict[Kind, int] = {}
    anew(patch, ends_ms.clear)

    def noting(heard: i.PageArrived) -> i.PageArrived:
        ends_ms[heard.kind] = heard.now_ms + (heard.ttl_ms or 0)
        return heard

    def reading(catalog: Catalog, now_ms: int) -> Reading:
        found = read(catalog, now_ms)
        others = (end_ms for kind, end_ms in ends_ms.items() if kind is not catalog.kind)
        good = found.hit is Hit.EXPIRED and now_ms < max(others, default=0)
        return found._replace(hit=Hit.HIT) if good else found

    pages(patch, noting)
    patch.setattr(core, "read", reading)


def expires_once(patch: Patch) -> None:
    """Goes by the lifetime of the first list alone."""
    listed: set[Kind] = set()
    anew(patch, listed.clear)

    def other(heard: i.PageArrived) -> i.PageArrived:
        again = heard.kind in listed
        if heard.next_cursor is None:
            listed.add(heard.kind)
        return evolve(heard, ttl_ms=LONG_MS) if again else heard

    pages(patch, other)


def templates_never_expire(patch: Patch) -> None:
    """Gives templates no lifetime."""

    def other(heard: i.PageArrived) -> i.PageArrived:
        return evolve(heard, ttl_ms=LONG_MS) if heard.kind is Kind.TEMPLATES else heard

    pages(patch, other)


def quiet_is_fresh(patch: Patch) -> None:
    """Keeps a list as long as no notice comes, whatever its lifetime."""

    def deadline_ms(walked: Walk, era: Era | None, vouched: bool, policy: Policy) -> int | None:
        return None if vouched else snapshot_deadline_ms(walked, era, vouched, policy)

    patch.setattr(snapshot, "snapshot_deadline_ms", deadline_ms)


def lists_after_each_call(patch: Patch) -> None:
    """Lists the tools again after each call."""
    real = ReferenceConnection.call

    async def call(self: ReferenceConnection, name: str, arguments: Mapping[str, Any]) -> Answer:
        found = await real(self, name, arguments)
        await self.refresh("tools")
        return found

    patch.setattr(ReferenceConnection, "call", call)


DEFECTS = (
    Defect("asks-for-tools", "capability:undeclared:tools", asks_for_tools),
    Defect("empty-declares-nothing", "capability:empty-object", empty_object_declares_nothing),
    Defect("templates-declare-themselves", "capability:templates", templates_declare_themselves),
    Defect("undeclared-is-empty", "capability:undeclared:not-empty", undeclared_is_empty),
    Defect("goes-and-looks", "capability:undeclared:noticed", goes_and_looks),
    Defect(
        "no-templates-no-resources",
        "capability:method-not-found:templates",
        no_templates_no_resources,
    ),
    Defect("fixed-without-notices", "capability:no-notices", fixed_without_notices),
    Defect("nothing-is-lost", "notice:lost", nothing_is_lost),
    Defect("one-notice-for-all", "notice:own-kind-only", one_notice_for_all),
    Defect("first-listing-is-deaf", "notice:first-listing", first_listing_is_deaf),
    Defect("clears-the-mark", "notice:one-page-listing", clears_the_mark_at_the_end),
    Defect("prompts-forget", "notice:prompts-during-listing", prompts_forget_to_walk_again),
    Defect("disconnected-is-fresh", "reconnect:not-fresh-meanwhile", disconnected_is_fresh),
    Defect("templates-never-expire", "ttl:templates", templates_never_expire),
    Defect("doubted-is-fresh", "notice:not-fresh", doubted_is_fresh),
    Defect("expired-is-fresh", "ttl:expired-is-told", expired_is_fresh),
    Defect("longest-lifetime-of-all", "ttl:each-kind", longest_lifetime_of_all),
    Defect("expires-once", "ttl:expires-again", expires_once),
    Defect("quiet-is-fresh", "ttl:covered-expires-too", quiet_is_fresh),
    Defect("lists-after-each-call", "listing:not-after-a-call", lists_after_each_call),
)
