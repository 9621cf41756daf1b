"""Defects in what is made of answers and notices: lifetimes, scopes, cursors, tags, shapes."""

from collections.abc import Callable
from typing import Any

import anyio
from attrs import evolve

from mutants.kit import Defect, Patch, pages
from relist import freshness, messages, requests, snapshot
from relist import inputs as i
from relist.effects import RequestDiscover, RequestPage
from relist.inputs import SessionInput
from relist.messages import FILTERS, Heard
from relist.policy import Policy
from relist.requests import Tags
from relist.values import Scope
from relist_mcp import hearing
from relist_mcp.hearing import Hearing

LONG_MS = 10**7
Page = i.PageArrived


def _lifetimes(patch: Patch, change: Callable[[int], int]) -> None:
    """Read lifetimes that are there otherwise."""

    def other(heard: Page) -> Page:
        return heard if heard.ttl_ms is None else evolve(heard, ttl_ms=change(heard.ttl_ms))

    pages(patch, other)


def zero_means_no_limit(patch: Patch) -> None:
    """Takes a lifetime of zero for none at all."""
    _lifetimes(patch, lambda ttl_ms: ttl_ms or LONG_MS)


def negative_means_no_limit(patch: Patch) -> None:
    """Takes a negative lifetime for none at all."""
    _lifetimes(patch, lambda ttl_ms: LONG_MS if ttl_ms < 0 else ttl_ms)


def milliseconds_for_seconds(patch: Patch) -> None:
    """Takes the number for seconds."""
    _lifetimes(patch, lambda ttl_ms: ttl_ms * 1_000)


def absent_means_no_limit(patch: Patch) -> None:
    """Takes a list without a lifetime for good until further notice."""
    real = freshness.snapshot_deadline_ms
    patch.setattr(
        snapshot, "snapshot_deadline_ms", lambda walk, era, _, policy: real(walk, era, True, policy)
    )


def counts_from_sending(patch: Patch) -> None:
    """The lifetime begins when the page is asked for."""
    sent_ms: dict[int, int] = {}
    expect = Hearing.expect

    def expecting(self: Hearing, effect: Any) -> str:
        sent_ms[effect.serial] = int(anyio.current_time() * 1000)
        return expect(self, effect)

    def older(heard: Page) -> Page:
        took_ms = heard.now_ms - sent_ms[heard.serial]
        return evolve(heard, ttl_ms=max(0, (heard.ttl_ms or 0) - took_ms))

    patch.setattr(Hearing, "expect", expecting)
    pages(patch, older)


def _polls(patch: Patch, jitter: Callable[[int], int]) -> None:
    def due_ms(_: Policy, now_ms: int, __: str, serial: int) -> int:
        return now_ms + 300 + jitter(serial)

    patch.setattr(Policy, "next_poll_ms", due_ms)


def polls(patch: Patch) -> None:
    """Lists again and again, at varied pauses, whether anybody needs it or not."""
    _polls(patch, lambda serial: serial * 37 % 100)


def polls_in_step(patch: Patch) -> None:
    """Lists again and again at one fixed period."""
    _polls(patch, lambda _: 0)


def first_page_lifetime(patch: Patch) -> None:
    """Goes by the lifetime of the first page alone."""
    walking: set[object] = set()

    def other(heard: Page) -> Page:
        later = heard.kind in walking
        (walking.discard if heard.next_cursor is None else walking.add)(heard.kind)
        return evolve(heard, ttl_ms=LONG_MS) if later else heard

    pages(patch, other)


def counts_from_the_last_page(patch: Patch) -> None:
    """All lifetimes begin with the receipt of the last page."""
    least: dict[object, int] = {}

    def other(heard: Page) -> Page:
        if heard.ttl_ms is None:
            return heard
        least[heard.kind] = min(heard.ttl_ms, least.get(heard.kind, LONG_MS))
        if heard.next_cursor is not None:
            return evolve(heard, ttl_ms=LONG_MS)
        return evolve(heard, ttl_ms=least.pop(heard.kind))

    pages(patch, other)


def private_is_public(patch: Patch) -> None:
    """Takes every list for one that anybody may see."""
    pages(patch, lambda heard: evolve(heard, scope=Scope.PUBLIC))


def dead_cursor_ends(patch: Patch) -> None:
    """Takes a cursor that is refused for the end of the list."""
    real = requests.failed

    def failed(effect: Any, failure: Any, now_ms: int) -> Heard[SessionInput]:
        if isinstance(effect, RequestPage) and effect.cursor is not None:
            end = Page(effect.kind, effect.serial, (), None, LONG_MS, Scope.PRIVATE, now_ms)
            return Heard(end, ())
        return real(effect, failure, now_ms)

    patch.setattr(hearing, "failed", failed)


def keyed_by_cursor(patch: Patch) -> None:
    """Keeps pages by their cursor alone, whichever list it belongs to."""
    kept: dict[str, Any] = {}
    real = requests.answered

    def answered(effect: Any, *rest: Any) -> Heard[SessionInput]:
        found = real(effect, *rest)
        heard = found.heard
        if isinstance(effect, RequestDiscover):
            kept.clear()  # another play
        if not isinstance(heard, Page) or effect.cursor is None:
            return found
        items = kept.setdefault(effect.cursor, heard.items)
        return Heard(evolve(heard, items=items), found.notes)

    patch.setattr(hearing, "answered", answered)


def takes_interim_answers(patch: Patch) -> None:
    """Takes a list out of any result that has one."""
    real = messages._fault_of

    def fault_of(kind: Any, result: Any) -> str | None:
        return real(kind, {key: result[key] for key in result if key != "resultType"})

    patch.setattr(messages, "_fault_of", fault_of)


def any_tag_will_do(patch: Patch) -> None:
    """Does not look at the subscription id of a notice."""
    real = hearing._tags

    def tags(params: Any) -> Tags:
        found = real(params)
        return Tags() if found.lists == 0 else found

    patch.setattr(hearing, "_tags", tags)


def any_number_is_its_own(patch: Patch) -> None:
    """Takes a number for the id of its subscription, which was a text."""
    real = hearing._serial

    def serial(wire_id: object, prefix: str) -> int:
        return 1 if isinstance(wire_id, int) else real(wire_id, prefix)

    patch.setattr(hearing, "_serial", serial)


def trusts_its_own_filter(patch: Patch) -> None:
    """Takes what it asked for, and not what was acknowledged, for granted."""
    patch.setattr(messages, "read_granted", lambda _: frozenset(FILTERS))


DEFECTS = (
    Defect("zero-means-no-limit", "ttl:zero-is-stale", zero_means_no_limit),
    Defect("negative-means-no-limit", "ttl:negative-is-zero", negative_means_no_limit),
    Defect("milliseconds-for-seconds", "ttl:expired-is-fetched-again", milliseconds_for_seconds),
    Defect("absent-means-no-limit", "ttl:absent-is-zero", absent_means_no_limit),
    Defect("counts-from-sending", "ttl:from-receipt", counts_from_sending),
    Defect("polls", "ttl:no-polling", polls),
    Defect("polls-in-step", "ttl:polling-is-paced", polls_in_step),
    Defect("first-page-lifetime", "ttl:expired-page", first_page_lifetime),
    Defect("counts-from-the-last-page", "ttl:first-page-received-first", counts_from_the_last_page),
    Defect("private-is-public", "scope:private-stays-private", private_is_public),
    Defect("dead-cursor-ends", "paging:dead-cursor", dead_cursor_ends),
    Defect("keyed-by-cursor", "cache:same-method-and-parameters", keyed_by_cursor),
    Defect("takes-interim-answers", "cache:input-required-list", takes_interim_answers),
    Defect("any-tag-will-do", "notice:foreign-tag", any_tag_will_do),
    Defect("any-number-is-its-own", "notice:tag-of-another-type", any_number_is_its_own),
    Defect("trusts-its-own-filter", "listen:partial-acknowledgment", trusts_its_own_filter),
)
