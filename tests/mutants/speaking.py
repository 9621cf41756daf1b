"""Defects in the frames of the client: handshakes, ids, metadata, answers nobody asked for."""

from collections.abc import Callable, Iterator
from typing import Any

from attrs import evolve
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from mutants import inside
from mutants.kit import Defect, Patch
from relist import effects as e
from relist import inputs as i
from relist import messages, requests
from relist.failures import METHOD_NOT_FOUND
from relist.inputs import SessionInput
from relist.messages import Heard
from relist.policy import Policy
from relist.values import Capabilities, Era, Failure, Kind
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection
from relist_mcp import hearing
from relist_mcp.connection import Connection
from relist_mcp.exchange import now_ms
from relist_mcp.hearing import Hearing
from relist_mcp.speech import Frame, Voice

LEGACY = "2025-11-25"


def _ahead(patch: Patch, made: Callable[[Connection, Any], Iterator[Frame]]) -> None:
    """Send these frames ahead of the request that an effect asks for."""
    real = Connection.ask

    def ask(self: Connection, effect: Any) -> None:
        for frame in made(self, effect):
            self._send(frame)
        real(self, effect)

    patch.setattr(Connection, "ask", ask)


def _without(frame: Frame, key: str) -> Frame:
    assert isinstance(frame.message, JSONRPCRequest)
    params = {name: value for name, value in (frame.message.params or {}).items() if name != key}
    return Frame(frame.message.model_copy(update={"params": params}), frame.headers)


def introduces_itself_late(patch: Patch) -> None:
    """Says who it is only in a second ``initialize``, when the first was refused."""

    def made(connection: Connection, effect: Any) -> Iterator[Frame]:
        if isinstance(effect, e.RequestInitialize):
            yield _without(connection._voice.request("early", effect), "clientInfo")

    _ahead(patch, made)


def speaks_without_metadata(patch: Patch) -> None:
    """Sends its first list request without metadata, and again whole when it was refused."""

    def made(connection: Connection, effect: Any) -> Iterator[Frame]:
        modern = connection._voice.era is Era.MODERN
        if modern and isinstance(effect, e.RequestPage) and effect.serial == 1:
            yield _without(connection._voice.request("bare", effect), "_meta")

    _ahead(patch, made)


def shakes_hands_anyway(patch: Patch) -> None:
    """Sends ``initialize`` to a server that answered its discovery."""

    def made(connection: Connection, effect: Any) -> Iterator[Frame]:
        modern = connection._voice.era is Era.MODERN
        if modern and isinstance(effect, e.RequestPage) and effect.serial == 1:
            yield connection._voice.request("hello", e.RequestInitialize(0, LEGACY))

    _ahead(patch, made)


def probes_again(patch: Patch) -> None:
    """Probes a process of a known era before each listing of the tools."""

    def made(connection: Connection, effect: Any) -> Iterator[Frame]:
        legacy = connection._voice.era is Era.LEGACY
        if legacy and isinstance(effect, e.RequestPage) and effect.kind is Kind.TOOLS:
            probe = e.RequestDiscover(0, "2026-07-28")
            yield connection._voice.request(f"again-{requests.id_of(effect)}", probe)

    _ahead(patch, made)


def accepts_any_version(patch: Patch) -> None:
    """Goes on with whatever version it is offered."""
    real = messages.read_initialization

    def read(serial: int, result: Any, at_ms: int) -> Heard[Any]:
        known = isinstance(result, dict) and result.get("protocolVersion", "") >= "2024"
        return real(serial, result if known else {**result, "protocolVersion": LEGACY}, at_ms)

    patch.setattr(requests, "read_initialization", read)


def names_its_own_version(patch: Patch) -> None:
    """Names the version that it asked for, and not the one that was agreed upon."""
    real = Voice.settle

    def settle(self: Voice, era: Era | None, version: str) -> None:
        real(self, era, LEGACY if era is Era.LEGACY else version)

    patch.setattr(Voice, "settle", settle)


def cancels_the_handshake(patch: Patch) -> None:
    """Sends a cancellation of the handshake that it gives up."""
    patch.setitem(inside.POLICY, "handshake_limit_ms", 1_000)
    real = Connection.close

    def close(self: Connection) -> None:
        for wire_id, effect in self._hearing._asked.items():
            if isinstance(effect, e.RequestInitialize):
                self._send(self._voice.cancel(str(wire_id), "no longer awaited"))
        real(self)

    patch.setattr(Connection, "close", close)


def lists_while_it_waits(patch: Patch) -> None:
    """Asks for a list that is needed while a handshake goes slowly."""
    waiting: dict[Connection, int] = {}
    real_ask, real_need = Connection.ask, ReferenceConnection.need

    def ask(self: Connection, effect: Any) -> None:
        waiting.pop(self, None)
        if isinstance(effect, e.RequestInitialize):
            waiting[self] = now_ms()
        real_ask(self, effect)

    async def need(self: ReferenceConnection, kind: str) -> Answer:
        for connection, since_ms in waiting.items():
            if now_ms() - since_ms >= 500:
                early = e.RequestPage(Kind(kind), 0, None)
                connection._send(connection._voice.request(f"early-{kind}", early))
        return await real_need(self, kind)

    patch.setattr(Connection, "ask", ask)
    patch.setattr(ReferenceConnection, "need", need)


def knows_all_capabilities(patch: Patch) -> None:
    """Trusts no server that names a capability which it does not know."""
    real = messages.read_capabilities
    known = {"tools", "prompts", "resources", "logging", "completions", "experimental", "tasks"}

    def read(value: Any) -> Capabilities:
        found = real(value)
        return found if set(value) <= known else evolve(found, kinds=frozenset())

    patch.setattr(messages, "read_capabilities", read)


def shakes_hands_again(patch: Patch) -> None:
    """Begins a new handshake when it hears a second notice."""
    heard: dict[Connection, int] = {}
    real = Connection._on_frame

    def on_frame(self: Connection, message: Any) -> bool:
        notice = str(getattr(message, "method", "")).endswith("list_changed")
        heard[self] = heard.get(self, 0) + notice
        if notice and heard[self] == 2 and self._voice.era is Era.LEGACY:
            self._send(self._voice.request("again", e.RequestInitialize(0, LEGACY)))
            self._send(self._voice.initialized())
        return real(self, message)

    patch.setattr(Connection, "_on_frame", on_frame)


def answers_notices(patch: Patch) -> None:
    """Sends a result for each change notice."""
    real = Connection._on_frame

    def on_frame(self: Connection, message: Any) -> bool:
        if isinstance(message, JSONRPCNotification) and message.method.endswith("list_changed"):
            thanks: Any = JSONRPCResponse(jsonrpc="2.0", id="thanks", result={})
            self._send(Frame(thanks, {}))
        return real(self, message)

    patch.setattr(Connection, "_on_frame", on_frame)


def uses_ids_again(patch: Patch) -> None:
    """Gives a list request the lowest number that is free again."""
    real, real_id = Hearing.expect, requests.id_of
    given: dict[str, str] = {}

    def expect(self: Hearing, effect: Any) -> str:
        if not isinstance(effect, e.RequestPage):
            return real(self, effect)
        wire_id = next(f"low/{n}" for n in range(1, 1_000) if f"low/{n}" not in self._asked)
        given[real_id(effect)] = wire_id
        self._asked[wire_id] = effect
        return wire_id

    patch.setattr(Hearing, "expect", expect)
    patch.setattr(hearing, "id_of", lambda effect: given.get(real_id(effect), real_id(effect)))


def borrows_an_id(patch: Patch) -> None:
    """Asks for the prompts under the id of its open subscription."""
    real_expect, real_forget = Hearing.expect, Hearing._forget
    lent: dict[Any, Any] = {}

    def expect(self: Hearing, effect: Any) -> str:
        if isinstance(effect, e.RequestPage) and effect.kind is Kind.PROMPTS:
            for wire_id, other in self._asked.items():
                if isinstance(other, e.OpenListen):
                    lent[wire_id] = other
                    self._asked[wire_id] = effect
                    return str(wire_id)
        return real_expect(self, effect)

    def forget(self: Hearing, wire_id: Any) -> Any:
        found = real_forget(self, wire_id)
        if found[0] is not None and wire_id in lent:
            self._asked[wire_id] = lent.pop(wire_id)
        return found

    patch.setattr(Hearing, "expect", expect)
    patch.setattr(Hearing, "_forget", forget)


def takes_a_late_refusal_for_its_own(patch: Patch) -> None:
    """Takes a late refusal of its probe for one of its handshake, and gives the server up."""
    real = Connection._on_frame

    def on_frame(self: Connection, message: Any) -> bool:
        asked = self._hearing._asked
        shaking = any(isinstance(effect, e.RequestInitialize) for effect in asked.values())
        probe = isinstance(asked.get(getattr(message, "id", "")), e.RequestDiscover)
        if isinstance(message, JSONRPCError) and shaking and probe:
            self._tell(i.CloseWanted(now_ms()))
            return True
        return real(self, message)

    patch.setattr(Connection, "_on_frame", on_frame)


def _probes_failing(patch: Patch, change: Callable[[Failure], Failure]) -> None:
    """Read the failures of probes otherwise."""
    real = requests.failed

    def failed(effect: Any, failure: Failure, at_ms: int) -> Heard[SessionInput]:
        probe = isinstance(effect, e.RequestDiscover)
        return real(effect, change(failure) if probe else failure, at_ms)

    patch.setattr(hearing, "failed", failed)


def gives_up_on_a_bad_request(patch: Patch) -> None:
    """Takes a refusal of its probe that is no message of MCP for an outage."""

    def change(failure: Failure) -> Failure:
        bare = failure.status == 400 and failure.code is None
        return evolve(failure, status=503) if bare else failure

    _probes_failing(patch, change)


def falls_back_on_outages(patch: Patch) -> None:
    """Takes an outage for a sign of a legacy server."""

    def change(failure: Failure) -> Failure:
        outage = failure.status == 503
        return Failure("legacy", METHOD_NOT_FOUND, 400) if outage else failure

    _probes_failing(patch, change)


def reconnects_at_once(patch: Patch) -> None:
    """Connects again at once, however often the connection was lost."""
    real = Policy.backoff_ms

    def backoff_ms(self: Policy, failures: int, owner: str, *more: Any) -> int:
        return 50 if owner == "link" else real(self, failures, owner, *more)

    patch.setattr(Policy, "backoff_ms", backoff_ms)


DEFECTS = (
    Defect("introduces-itself-late", "handshake:initialize-is-complete", introduces_itself_late),
    Defect("accepts-any-version", "handshake:unimplemented-version", accepts_any_version),
    Defect("names-its-own-version", "handshake:older-version", names_its_own_version),
    Defect("cancels-the-handshake", "handshake:not-cancelled", cancels_the_handshake),
    Defect("lists-while-it-waits", "handshake:nothing-meanwhile", lists_while_it_waits),
    Defect("knows-all-capabilities", "handshake:unknown-capabilities", knows_all_capabilities),
    Defect("shakes-hands-again", "handshake:once", shakes_hands_again),
    Defect("shakes-hands-anyway", "era:modern-stays-modern", shakes_hands_anyway),
    Defect("probes-again", "era:verdict-is-kept", probes_again),
    Defect("gives-up-on-a-bad-request", "era:bad-request-means-legacy", gives_up_on_a_bad_request),
    Defect("falls-back-on-outages", "era:server-fault-is-no-verdict", falls_back_on_outages),
    Defect("takes-a-late-refusal", "late:probe-answer", takes_a_late_refusal_for_its_own),
    Defect("speaks-without-metadata", "meta:in-each-request", speaks_without_metadata),
    Defect("uses-ids-again", "ids:once-in-a-session", uses_ids_again),
    Defect("borrows-an-id", "ids:unlike-open-ones", borrows_an_id),
    Defect("answers-notices", "notice:not-answered", answers_notices),
    Defect("reconnects-at-once", "reconnect:flapping", reconnects_at_once),
)
