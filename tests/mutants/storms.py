"""Defects in when the client acts: on notices, on failures, on silence, on what never ends."""

from collections.abc import Mapping
from typing import Any

from attrs import evolve

from mutants import inside
from mutants.kit import Defect, Patch, pages, replace
from relist import inputs as i
from relist import machine, messages, requests, session
from relist.effects import OpenListen
from relist.failures import METHOD_NOT_FOUND
from relist.inputs import SessionInput
from relist.machine import Row
from relist.messages import Heard
from relist.policy import Policy
from relist.rules import doubt, guards, walk
from relist.rules.base import Step, unchanged
from relist.values import WALKING, Catalog, Kind, Phase
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection
from relist_mcp import hearing
from relist_mcp.connection import Connection
from relist_mcp.hearing import Hearing

FOR_EVER_MS = 10**9


def _deaf(patch: Patch, kind: Kind) -> None:
    real = machine.step

    def step(catalog: Catalog, heard: Any, policy: Policy) -> Step:
        deaf = catalog.kind is kind and isinstance(heard, i.ListChangedHeard)
        return unchanged(catalog) if deaf else real(catalog, heard, policy)

    patch.setattr(session, "step", step)


def deaf_to_prompts(patch: Patch) -> None:
    """Does not hear notices of prompts."""
    _deaf(patch, Kind.PROMPTS)


def deaf_to_resources(patch: Patch) -> None:
    """Does not renew the resources on their notice."""
    _deaf(patch, Kind.RESOURCES)


def forgets_templates(patch: Patch) -> None:
    """Does not know that the notice of resources is about templates, too."""
    _deaf(patch, Kind.TEMPLATES)


def hears_nothing_during_a_call(patch: Patch) -> None:
    """Handles notices when the call that is open has been answered."""
    real_tell, real_call = Connection._tell, ReferenceConnection.call
    waiting: list[tuple[Connection, SessionInput]] = []
    calls = [0]

    def tell(self: Connection, heard: SessionInput) -> None:
        if calls[0] and isinstance(heard, i.NoticeHeard):
            waiting.append((self, heard))
        else:
            real_tell(self, heard)

    async def call(self: ReferenceConnection, name: str, arguments: Mapping[str, Any]) -> Answer:
        calls[0] += 1
        try:
            return await real_call(self, name, arguments)
        finally:
            calls[0] -= 1
            while waiting and not calls[0]:
                real_tell(*waiting.pop(0))

    patch.setattr(Connection, "_tell", tell)
    patch.setattr(ReferenceConnection, "call", call)


def lists_on_each_notice(patch: Patch) -> None:
    """Neither gathers notices nor spaces listings."""
    patch.setattr(doubt, "_spaced", lambda _, __, now_ms, ___: (now_ms, 0))


def does_not_space(patch: Patch) -> None:
    """Gathers notices, but leaves no gap between listings."""
    patch.setattr(Policy, "gap_ms", lambda *_: 0)


def waits_for_quiet(patch: Patch) -> None:
    """Each notice moves the listing that the one before it had made due."""

    def later(catalog: Catalog, heard: i.ListChangedHeard, policy: Policy, _: Phase) -> Step:
        due_ms = heard.now_ms + policy.gather_ms
        return Step(evolve(catalog, pacing=evolve(catalog.pacing, due_at_ms=due_ms)))

    replace(patch, i.ListChangedHeard, {Phase.STALE: later})


def retries_at_once(patch: Patch) -> None:
    """Tries again after a fixed moment, however often it failed."""
    patch.setattr(Policy, "backoff_ms", lambda *_: 100)


def empties_on_silence(patch: Patch) -> None:
    """A listing that is given up leaves an empty list."""

    def emptied(catalog: Catalog, heard: i.TimePassed, policy: Policy, to: Phase) -> Step:
        state, effects = walk.give_up(catalog, heard, policy, to)
        if state.snapshot is None:
            return Step(state, effects)
        return Step(evolve(state, snapshot=evolve(state.snapshot, items=())), effects)

    rows = dict(machine._CATALOG_ROWS)
    cells = dict(rows[i.TimePassed])
    for phase in WALKING:
        cells[phase] = (Row(guards.gave_up, Phase.STALE, emptied), *cells[phase])
    rows[i.TimePassed] = cells
    patch.setattr(machine, "_CATALOG_ROWS", rows)


def repeated_cursor_ends(patch: Patch) -> None:
    """Takes a cursor that comes twice for the end of the list."""
    last: dict[Kind, str | None] = {}

    def cut(heard: i.PageArrived) -> i.PageArrived:
        again = heard.next_cursor is not None and heard.next_cursor == last.get(heard.kind)
        last[heard.kind] = None if again else heard.next_cursor
        return evolve(heard, next_cursor=None) if again else heard

    pages(patch, cut)


def _policy(patch: Patch, **changes: Any) -> None:
    for name, value in changes.items():
        patch.setitem(inside.POLICY, name, value)


def walks_without_end(patch: Patch) -> None:
    """Has no bound on pages."""
    _policy(patch, pages_max=FOR_EVER_MS)


def waits_for_the_acknowledgment(patch: Patch) -> None:
    """Lists nothing before its subscription is acknowledged."""
    _policy(patch, ack_limit_ms=FOR_EVER_MS)


def waits_for_the_probe(patch: Patch) -> None:
    """Never gives a probe up."""
    _policy(patch, probe_limit_ms=FOR_EVER_MS)


def _other_code(patch: Patch, code: int, otherwise: int) -> None:
    real = messages.read_failure

    def read_failure(error: Any, *more: Any) -> Any:
        found = real(error, *more)
        return evolve(found, code=otherwise) if found.code == code else found

    patch.setattr(hearing, "read_failure", read_failure)


def method_not_found_passes(patch: Patch) -> None:
    """Takes an unknown method for a failure that will pass."""
    _other_code(patch, METHOD_NOT_FOUND, -32603)


def hammers_listen(patch: Patch) -> None:
    """Subscribes again and again, at once."""
    real = Policy.backoff_ms

    def backoff_ms(self: Policy, failures: int, owner: str, *more: Any) -> int:
        return 100 if owner == "listen" else real(self, failures, owner, *more)

    patch.setattr(Policy, "backoff_ms", backoff_ms)
    real_failed = requests.failed

    def failed(effect: Any, failure: Any, now_ms: int) -> Heard[SessionInput]:
        if isinstance(effect, OpenListen):
            failure = evolve(failure, code=-32603, status=None)
        return real_failed(effect, failure, now_ms)

    patch.setattr(hearing, "failed", failed)


def _unending(patch: Patch, read: str, frame: str) -> None:
    """Such a frame about a subscription is not taken for its end."""
    real = Hearing._read

    def reading(self: Hearing, message: Any, now_ms: int) -> Heard[SessionInput] | None:
        of_listen = str(getattr(message, "id", "")).startswith(requests.LISTEN_ID)
        if type(message).__name__ == frame and (of_listen or frame == read):
            cancels = getattr(message, "method", requests.CANCELLED) == requests.CANCELLED
            return None if cancels else real(self, message, now_ms)
        return real(self, message, now_ms)

    patch.setattr(Hearing, "_read", reading)


def result_ends_nothing(patch: Patch) -> None:
    """Does not take a result for the end of its subscription."""
    _unending(patch, "", "JSONRPCResponse")


def error_ends_nothing(patch: Patch) -> None:
    """Does not take an error for the end of its subscription."""
    _unending(patch, "", "JSONRPCError")


def cancellation_ends_nothing(patch: Patch) -> None:
    """Does not hear that the server cancels its subscription."""
    _unending(patch, "JSONRPCNotification", "JSONRPCNotification")


DEFECTS = (
    Defect("deaf-to-prompts", "notice:prompts", deaf_to_prompts),
    Defect("deaf-to-resources", "notice:resources", deaf_to_resources),
    Defect("forgets-templates", "notice:templates", forgets_templates),
    Defect("hears-nothing-during-a-call", "notice:during-call", hears_nothing_during_a_call),
    Defect("lists-on-each-notice", "storm:burst", lists_on_each_notice),
    Defect("does-not-space", "storm:feedback", does_not_space),
    Defect("waits-for-quiet", "storm:steady", waits_for_quiet),
    Defect("retries-at-once", "failure:backs-off", retries_at_once),
    Defect("empties-on-silence", "failure:never-answered", empties_on_silence),
    Defect("repeated-cursor-ends", "paging:repeated-cursor", repeated_cursor_ends),
    Defect("walks-without-end", "paging:endless", walks_without_end),
    Defect("waits-for-the-ack", "listen:never-acknowledged", waits_for_the_acknowledgment),
    Defect("waits-for-the-probe", "era:silence-means-legacy", waits_for_the_probe),
    Defect("method-not-found-passes", "capability:method-not-found", method_not_found_passes),
    Defect("hammers-listen", "listen:refused", hammers_listen),
    Defect("result-ends-nothing", "listen:ended:by-result", result_ends_nothing),
    Defect("error-ends-nothing", "listen:ended:by-error", error_ends_nothing),
    Defect("cancellation-ends-nothing", "listen:ended:by-cancellation", cancellation_ends_nothing),
)
