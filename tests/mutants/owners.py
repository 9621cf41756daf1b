"""Defects in whose a list is: principals, sessions and connections mixed up."""

from typing import Any
from weakref import WeakKeyDictionary

import httpx2
from attrs import evolve

from mutants.inside import Inside
from mutants.kit import Defect, Patch, replace
from relist import effects as e
from relist import inputs as i
from relist import paging, requests
from relist.messages import Heard, read_page
from relist.policy import Policy
from relist.rules import standing, walk
from relist.rules.base import Step
from relist.values import Catalog, Kind, Phase, Scope
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection
from relist_conformance.drivers.snapshots import told
from relist_mcp.connection import Connection
from relist_mcp.observed import ObservedTransport


def later_pages_go_unsigned(patch: Patch) -> None:
    """Sends no authorization with requests for further pages."""
    real = ObservedTransport.handle_async_request

    async def handle(self: ObservedTransport, request: httpx2.Request) -> httpx2.Response:
        if b'"cursor"' in await request.aread():
            request.headers.pop("authorization", None)
        return await real(self, request)

    patch.setattr(ObservedTransport, "handle_async_request", handle)


def carries_pages_over(patch: Patch) -> None:
    """Adds the pages that it had read for one user to the list of the next."""
    change = ReferenceConnection.credentials
    need = ReferenceConnection.need
    read: WeakKeyDictionary[ReferenceConnection, list[Any]] = WeakKeyDictionary()

    async def credentials(self: ReferenceConnection, token: str) -> Answer:
        walk = self._open().session.catalog(Kind.TOOLS).walk
        pages = () if walk is None else walk.pages
        read[self] = [item.key for page in pages for item in page]
        return await change(self, token)

    async def needing(self: ReferenceConnection, kind: str) -> Answer:
        answer = await need(self, kind)
        more = [{"name": key, "description": f"{key}@1"} for key in read.get(self, ())]
        return {**answer, "items": [*more, *(answer["items"] or ())]} if more else answer

    patch.setattr(ReferenceConnection, "credentials", credentials)
    patch.setattr(ReferenceConnection, "need", needing)


def anonymous_is_public(patch: Patch) -> None:
    """Goes on showing what was listed before anybody had logged in."""

    def change(catalog: Catalog, heard: Any, policy: Policy, to: Phase) -> Step:
        if catalog.snapshot is not None and catalog.standing.partition == "":
            shared = evolve(catalog.snapshot, scope=Scope.PUBLIC)
            catalog = evolve(catalog, snapshot=shared)
        return standing.change_partition(catalog, heard, policy, to)

    live = [phase for phase in Phase if phase is not Phase.DISCONNECTED]
    replace(patch, i.CredentialsChanged, dict.fromkeys(live, change), Phase.INITIALIZING)


def listens_for_nobody(patch: Patch) -> None:
    """Does not listen any more once it has credentials."""
    real = Connection.ask

    def ask(self: Connection, effect: Any) -> None:
        if not (isinstance(effect, e.OpenListen) and self._epoch > 1):  # a new link for each user
            real(self, effect)

    patch.setattr(Connection, "ask", ask)


def a_refresh_outlives_its_user(patch: Patch) -> None:
    """When credentials change during a refresh, the old list is shown until it would have ended."""
    real = ReferenceConnection.credentials
    believe = ReferenceConnection.believe
    need = ReferenceConnection.need
    kept: WeakKeyDictionary[ReferenceConnection, Answer] = WeakKeyDictionary()

    async def credentials(self: ReferenceConnection, token: str) -> Answer:
        reading, catalog = self._open().read(Kind.TOOLS), self._open().session.catalog(Kind.TOOLS)
        if catalog.walk is not None and reading.snapshot is not None:
            kept[self] = told(reading)
        return await real(self, token)

    async def needing(self: ReferenceConnection, kind: str) -> Answer:
        return kept[self] if self in kept else await need(self, kind)

    def believing(self: ReferenceConnection, kind: str) -> Answer:
        return kept[self] if self in kept else believe(self, kind)

    patch.setattr(ReferenceConnection, "credentials", credentials)
    patch.setattr(ReferenceConnection, "need", needing)
    patch.setattr(ReferenceConnection, "believe", believing)


def one_list_for_all(patch: Patch) -> None:
    """Gives every further connection of the process the list that the first one had."""
    real = ReferenceConnection.need
    first: WeakKeyDictionary[Any, tuple[ReferenceConnection, dict[str, Answer]]]
    first = WeakKeyDictionary()  # by play, which all its connections know by their tasks

    async def need(self: Inside, kind: str) -> Answer:
        owner, lists = first.setdefault(self._tasks, (self, {}))
        if self is owner:
            lists[kind] = await real(self, kind)
        return lists[kind]

    patch.setattr(ReferenceConnection, "need", need)


def absent_scope_means_public(patch: Patch) -> None:
    """Takes a list without a scope for one that anybody may see."""

    def read(kind: Kind, serial: int, result: Any, *more: Any) -> Heard[Any]:
        page = read_page(kind, serial, result, *more)
        heard = page.heard
        if isinstance(heard, i.PageArrived) and "cacheScope" not in result:
            return Heard(evolve(heard, scope=Scope.PUBLIC), page.notes)
        return page

    patch.setattr(requests, "read_page", read)


def last_page_decides(patch: Patch) -> None:
    """Takes the scope of the last page for that of the list."""
    real = paging.add_page

    def add(so_far: Any, page: i.PageArrived, *more: Any, **named: Any) -> Any:
        return evolve(real(so_far, page, *more, **named), scope=page.scope)

    patch.setattr(walk, "add_page", add)


DEFECTS = (
    Defect("later-pages-go-unsigned", "auth:every-request", later_pages_go_unsigned),
    Defect("carries-pages-over", "auth:one-walk", carries_pages_over),
    Defect("anonymous-is-public", "auth:anonymous-is-a-partition", anonymous_is_public),
    Defect("listens-for-nobody", "auth:listens-again", listens_for_nobody),
    Defect("a-refresh-outlives-its-user", "auth:notice-of-another", a_refresh_outlives_its_user),
    Defect("one-list-for-all", "auth:two-connections", one_list_for_all),
    Defect("one-list-for-all-sessions", "auth:sessions-are-apart", one_list_for_all),
    Defect("absent-scope-means-public", "scope:absent-is-private", absent_scope_means_public),
    Defect("last-page-decides", "scope:mixed-pages", last_page_decides),
)
