"""Defects in what the client says: what it asks, when, and what it leaves unsaid."""

import json
from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

from attrs import evolve

from mutants.kit import Defect, Patch
from relist import effects as e
from relist import inputs as i
from relist import messages, requests
from relist.failures import METHOD_NOT_FOUND, UNSUPPORTED_VERSION
from relist.values import Kind
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection
from relist_mcp import hearing, speech
from relist_mcp.connection import Connection
from relist_mcp.exchange import now_ms


def resumes_where_it_was(patch: Patch) -> None:
    """Begins a listing with the last cursor of the one before."""
    last: dict[Kind, str] = {}
    real = requests.request_of

    def request_of(effect: Any, client: Any) -> requests.Request:
        if isinstance(effect, e.RequestDiscover | e.RequestInitialize):
            last.clear()
        if isinstance(effect, e.RequestPage) and effect.cursor is not None:
            last[effect.kind] = effect.cursor
        elif isinstance(effect, e.RequestPage) and effect.kind in last:
            effect = evolve(effect, cursor=last[effect.kind])
        return real(effect, client)

    patch.setattr(speech, "request_of", request_of)


def keeps_results_of_calls(patch: Patch) -> None:
    """Answers a call that it made before from memory."""
    real = ReferenceConnection.call
    kept: WeakKeyDictionary[ReferenceConnection, dict[str, Answer]] = WeakKeyDictionary()

    async def call(self: ReferenceConnection, name: str, arguments: Mapping[str, Any]) -> Answer:
        own, key = kept.setdefault(self, {}), json.dumps([name, arguments])
        if key not in own:
            own[key] = await real(self, name, arguments)
        return own[key]

    patch.setattr(ReferenceConnection, "call", call)


def lists_before_it_asks(patch: Patch) -> None:
    """Sends a list request ahead of discovery."""
    real = Connection.ask

    def ask(self: Connection, effect: Any) -> None:
        if isinstance(effect, e.RequestDiscover):
            self._voice.settle(None, effect.version)
            frame = self._voice.request("early", e.RequestPage(Kind.TOOLS, 0, None))
            meta = {"_meta": self._voice.meta(effect.version)}
            message = frame.message.model_copy(update={"params": meta})
            self._send(speech.Frame(message, frame.headers))
        real(self, effect)

    patch.setattr(Connection, "ask", ask)


def falls_back_on_any_error(patch: Patch) -> None:
    """Takes an unsupported version for a sign of a legacy server."""
    real = messages.read_failure

    def read_failure(error: Any, *more: Any) -> Any:
        found = real(error, *more)
        if found.code != UNSUPPORTED_VERSION:
            return found
        return evolve(found, code=METHOD_NOT_FOUND, supported=())

    patch.setattr(hearing, "read_failure", read_failure)


def gives_up_in_silence(patch: Patch) -> None:
    """Does not say that it no longer waits."""
    patch.setattr(Connection, "cancel", lambda *_: None)


def stays_on_a_dead_process(patch: Patch) -> None:
    """Gives the server up when its transport is gone."""

    def lose(self: Connection) -> None:
        self._tell(i.CloseWanted(now_ms()))
        self._over = True
        self._scope.cancel()

    patch.setattr(Connection, "_lose", lose)


def listens_once(patch: Patch) -> None:
    """Does not subscribe again after a reconnect."""
    real = Connection.ask

    def ask(self: Connection, effect: Any) -> None:
        if not isinstance(effect, e.OpenListen) or self._epoch == 1:
            real(self, effect)

    patch.setattr(Connection, "ask", ask)


DEFECTS = (
    Defect("resumes-where-it-was", "paging:starts-without-cursor", resumes_where_it_was),
    Defect("keeps-results-of-calls", "cache:input-required-is-not-kept", keeps_results_of_calls),
    Defect("lists-before-it-asks", "era:probe-first", lists_before_it_asks),
    Defect("falls-back-on-any-error", "era:unsupported-version", falls_back_on_any_error),
    Defect("gives-up-in-silence", "cancel:by-notification", gives_up_in_silence),
    Defect("stays-on-a-dead-process", "reconnect:process-is-restarted", stays_on_a_dead_process),
    Defect("listens-once", "reconnect:listens-again", listens_once),
)
