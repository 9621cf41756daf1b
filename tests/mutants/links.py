"""Defects with connections that come and go, and with what their servers offer."""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import anyio
from attrs import evolve

from mutants.kit import Defect, Patch, replace
from relist import inputs as i
from relist import machine, messages
from relist.effects import Publish
from relist.policy import Policy
from relist.rules.base import Step
from relist.rules.walk import note_late
from relist.values import WALKING, Capabilities, Catalog, Phase
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection
from relist_mcp import Credentials
from relist_mcp.connection import Connection
from relist_mcp.exchange import now_ms

PAUSE_S = 0.2


def publishes_what_it_had(patch: Patch) -> None:
    """Offers the pages that it had when the connection was lost."""
    unlink = machine._CATALOG_ROWS[i.LinkLost][Phase.REFRESHING][0].action

    def lose(catalog: Catalog, heard: i.LinkLost, policy: Policy, to: Phase) -> Step:
        state, effects = unlink(catalog, heard, policy, to)
        had = () if catalog.walk is None else sum(catalog.walk.pages, ())
        if state.snapshot is None or not had:
            return Step(state, effects)
        torn = evolve(state.snapshot, items=had, generation=state.generation + 1)
        told = Publish(state.kind, torn, True)
        return Step(evolve(state, snapshot=torn, generation=torn.generation), (*effects, told))

    replace(patch, i.LinkLost, dict.fromkeys(WALKING, lose), Phase.DISCONNECTED)


def connects_for_each_call(patch: Patch) -> None:
    """Connects anew for each call that failed, one after the other."""
    real = ReferenceConnection.call
    turns: WeakKeyDictionary[ReferenceConnection, anyio.Lock] = WeakKeyDictionary()

    async def call(self: ReferenceConnection, name: str, arguments: Mapping[str, Any]) -> Answer:
        answer = await real(self, name, arguments)
        if answer["outcome"] != "result":
            async with turns.setdefault(self, anyio.Lock()):
                await anyio.sleep(PAUSE_S)
            self._open().change_credentials(Credentials())
        return answer

    patch.setattr(ReferenceConnection, "call", call)


def starts_it_once_more_only(patch: Patch) -> None:
    """Gives a server up that dies again."""
    real = Connection._lose

    def lose(self: Connection) -> None:
        if self._epoch > 1:
            self._tell(i.CloseWanted(now_ms()))
        real(self)

    patch.setattr(Connection, "_lose", lose)


def hears_the_old_session(patch: Patch) -> None:
    """Takes what still comes from a session that is gone for news."""

    gone: list[Connection] = []
    taken: list[Any] = []
    real = Connection._tell

    def tell(self: Connection, heard: Any) -> None:
        if self in gone:
            taken.append(heard)
        real(self, heard)

    def close(self: Connection) -> None:
        gone.append(self)

    def overwrite(catalog: Catalog, heard: i.PageArrived, policy: Policy, to: Phase) -> Step:
        if catalog.snapshot is None or not any(heard is one for one in taken):
            return note_late(catalog, heard, policy, to)
        old = evolve(catalog.snapshot, items=heard.items, generation=catalog.generation + 1)
        state = evolve(catalog, snapshot=old, generation=old.generation)
        return Step(state, (Publish(catalog.kind, old, True),))

    replace(patch, i.PageArrived, {Phase.FRESH: overwrite})
    patch.setattr(Connection, "_tell", tell)
    patch.setattr(Connection, "close", close)


def asks_what_there_is_once(patch: Patch) -> None:
    """Does not believe what the server says of its capabilities later on."""
    real = messages.read_capabilities
    first: list[Capabilities] = []
    init = Connection.__init__

    def begin(self: Connection, *given: Any) -> None:
        first.clear()
        init(self, *given)

    def read(value: object) -> Capabilities:
        first.append(real(value))
        return first[0]

    patch.setattr(Connection, "__init__", begin)
    patch.setattr(messages, "read_capabilities", read)


def offers_what_is_gone(patch: Patch) -> None:
    """Goes on offering a list of a kind that the server no longer has."""
    real = ReferenceConnection.need
    last: WeakKeyDictionary[ReferenceConnection, dict[str, Answer]] = WeakKeyDictionary()

    async def need(self: ReferenceConnection, kind: str) -> Answer:
        answer = await real(self, kind)
        own = last.setdefault(self, {})
        if answer["items"] is not None:
            own[kind] = answer
        return own.get(kind, answer)

    patch.setattr(ReferenceConnection, "need", need)


DEFECTS = (
    Defect("publishes-what-it-had", "reconnect:during-listing", publishes_what_it_had),
    Defect("connects-for-each-call", "reconnect:once-for-all", connects_for_each_call),
    Defect("starts-it-once-more-only", "reconnect:dies-while-it-starts", starts_it_once_more_only),
    Defect("hears-the-old-session", "session:late-answer-of-the-old", hears_the_old_session),
    Defect("asks-what-there-is-once", "capability:appears", asks_what_there_is_once),
    Defect("offers-what-is-gone", "capability:vanished", offers_what_is_gone),
)
