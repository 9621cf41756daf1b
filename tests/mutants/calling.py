"""Defects of the gate: calls, their arguments and headers, and what comes back."""

import json
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

import anyio
import anyio.to_thread

from mutants.kit import Defect, Patch
from relist import admission
from relist.failures import HEADER_MISMATCH
from relist.values import Catalog, Item, Kind
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection, _outcome
from relist_mcp import calls, hearing
from relist_mcp.arguments import Definition
from relist_mcp.calls import Calls

Given = Mapping[str, Any]


def calls_what_is_gone(patch: Patch) -> None:
    """Calls a tool that is listed no more, as it was planned."""
    real = ReferenceConnection.call_planned

    async def call(self: ReferenceConnection, name: str, given: Given, planned: Given) -> Answer:
        snapshot = self._open().read(Kind.TOOLS).snapshot
        if snapshot is not None and all(item.key != name for item in snapshot.items):
            return await self.call(name, given)
        return await real(self, name, given, planned)

    patch.setattr(ReferenceConnection, "call_planned", call)


def checks_no_arguments(patch: Patch) -> None:
    """Leaves it to the server whether arguments fit."""
    patch.setattr(Definition, "fault_of_call", lambda *_: None)


def calls_while_in_doubt(patch: Patch) -> None:
    """Calls on the list that it has, whatever is known against it."""
    patch.setattr(admission, "_needs_verification", lambda catalog, *_: catalog.snapshot is None)


def gives_up_calls_on_a_change(patch: Patch) -> None:
    """Cancels its calls when the list of tools changes."""
    real = ReferenceConnection.call

    async def call(self: ReferenceConnection, name: str, given: Given) -> Answer:
        catalogs = self._open()
        planned = catalogs.session.catalog(Kind.TOOLS).generation
        answer: Answer = {"outcome": "refused", "detail": "the list has changed"}

        async def watch() -> None:
            while catalogs.session.catalog(Kind.TOOLS).generation == planned:
                await catalogs._loop.moved()
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch)
            answer = await real(self, name, given)
            tasks.cancel_scope.cancel()
        return answer

    patch.setattr(ReferenceConnection, "call", call)


def calls_again_after_an_error(patch: Patch) -> None:
    """Makes a call that ended in an error once more, as it was."""
    real = ReferenceConnection.call

    async def call(self: ReferenceConnection, name: str, given: Given) -> Answer:
        answer = await real(self, name, given)
        if answer["outcome"] != "error":
            return answer
        return await _outcome(self._ungated(name, given))

    patch.setattr(ReferenceConnection, "call", call)


# --- headers ---


def sends_no_parameter_headers(patch: Patch) -> None:
    """Leaves out the headers that a tool asks for."""
    patch.setattr(Calls, "_headers", lambda *_: {})


def _first_seen() -> Callable[[Calls, Item], Item]:
    """Per client, the first definition of each tool that was called."""
    seen: WeakKeyDictionary[Calls, dict[str, Item]] = WeakKeyDictionary()
    return lambda self, item: seen.setdefault(self, {}).setdefault(item.key, item)


def headers_of_the_first_schema(patch: Patch) -> None:
    """Makes headers by the schema that a tool had when it was first called."""
    real, first = Calls._headers, _first_seen()

    def headers(self: Calls, item: Item | None, given: Given) -> dict[str, str]:
        return real(self, None if item is None else first(self, item), given)

    patch.setattr(Calls, "_headers", headers)


def takes_a_mismatch_for_final(patch: Patch) -> None:
    """Does not list again when the server asks for other headers."""
    stale, after = admission.proves_staleness, admission.after_rejection

    def proves(failure: Any, kind: Kind) -> bool:
        return failure.code != HEADER_MISMATCH and stale(failure, kind)

    def final(catalog: Catalog, call: admission.Call, failure: Any) -> admission.Admission:
        if failure.code == HEADER_MISMATCH:
            return admission._refuse(call, admission.Refusal.REJECTED)
        return after(catalog, call, failure)

    patch.setattr(calls, "proves_staleness", proves)
    patch.setattr(calls, "after_rejection", final)


def takes_any_annotation(patch: Patch) -> None:
    """Lists tools whose header annotations are faulty."""
    patch.setattr(hearing, "find_invalid_x_mcp_header", lambda _: None)


# --- schemas ---


def fetches_references(patch: Patch) -> None:
    """Fetches what the schema of a listed tool refers to."""
    real = ReferenceConnection.need

    async def need(self: ReferenceConnection, kind: str) -> Answer:
        answer = await real(self, kind)
        snapshot = self._open().read(Kind.TOOLS).snapshot
        for item in () if snapshot is None else snapshot.items:
            ref = json.loads(item.canonical_json).get("outputSchema", {}).get("$ref", "")
            if ref.startswith("http"):
                await anyio.to_thread.run_sync(_fetch, ref)
        return answer

    patch.setattr(ReferenceConnection, "need", need)


def _fetch(url: str) -> None:
    with suppress(OSError):  # it is refused, but it was sent
        urllib.request.urlopen(url, timeout=5).close()


def checks_no_results(patch: Patch) -> None:
    """Gives structured results as they come."""
    patch.setattr(Definition, "fault_of_result", lambda *_: None)


def checks_by_the_first_schema(patch: Patch) -> None:
    """Checks results by the schema that the tool had when it was first called."""
    real, first = Calls._check_result, _first_seen()

    def check(self: Calls, item: Item, raw: Given, result: Any) -> None:
        real(self, first(self, item), raw, result)

    patch.setattr(Calls, "_check_result", check)


DEFECTS = (
    Defect("calls-what-is-gone", "call:vanished-tool", calls_what_is_gone),
    Defect("checks-no-arguments", "call:arguments-are-checked", checks_no_arguments),
    Defect("calls-while-in-doubt", "call:verified-while-stale", calls_while_in_doubt),
    Defect(
        "gives-up-calls-on-a-change",
        "call:survives-a-change-of-the-list",
        gives_up_calls_on_a_change,
    ),
    Defect(
        "calls-again-after-an-error",
        "call:unknown-tool-is-not-repeated",
        calls_again_after_an_error,
    ),
    Defect("sends-no-parameter-headers", "call:headers-from-arguments", sends_no_parameter_headers),
    Defect(
        "headers-of-the-first-schema",
        "call:headers-follow-the-newest-schema",
        headers_of_the_first_schema,
    ),
    Defect("takes-a-mismatch-for-final", "call:header-mismatch", takes_a_mismatch_for_final),
    Defect("takes-any-annotation", "names:faulty-header", takes_any_annotation),
    Defect("fetches-references", "call:no-references-to-the-network", fetches_references),
    Defect("checks-no-results", "call:result-is-checked", checks_no_results),
    Defect("checks-by-the-first-schema", "call:result-is-checked-anew", checks_by_the_first_schema),
)
