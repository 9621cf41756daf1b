"""Defects in the use of resources and prompts: reads, what is kept of them, and subscriptions."""

from collections.abc import Callable, Mapping
from typing import Any
from weakref import WeakKeyDictionary

from attrs import evolve
from mcp_types import GetPromptResult

from mutants.kit import Defect, Patch
from relist import effects as e
from relist import inputs as i
from relist import messages, resources, updates
from relist.freshness import lifetime_ms
from relist.messages import read_capabilities
from relist.resources import Content, Contents
from relist.values import Capabilities, Kind, Scope
from relist_conformance.drivers.base import Answer
from relist_conformance.drivers.reference import ReferenceConnection, _outcome
from relist_mcp import Catalogs
from relist_mcp.connection import Connection
from relist_mcp.exchange import now_ms
from relist_mcp.loop import Fed

LONG_MS = 10**7


# --- subscriptions ---


def _ignores(patch: Patch, op: str) -> None:
    """The command is taken note of, and nothing is done."""

    async def nothing(_: ReferenceConnection, __: str) -> Answer:
        return {}

    patch.setattr(ReferenceConnection, op, nothing)


def subscribes_to_nothing(patch: Patch) -> None:
    """Takes note of what is to be watched and never asks for it."""
    _ignores(patch, "subscribe")


def never_unsubscribes(patch: Patch) -> None:
    """Goes on being told of what nobody wants any more."""
    _ignores(patch, "unsubscribe")


def takes_subscribe_for_declared(patch: Patch) -> None:
    """Takes resources that can be listed for resources that can be subscribed to."""

    def subscribable(value: object) -> Capabilities:
        return evolve(read_capabilities(value), subscribe=True)

    patch.setattr(messages, "read_capabilities", subscribable)


def subscribes_once(patch: Patch) -> None:
    """Does not subscribe to resources again on a new link."""
    real = Connection.ask

    def ask(self: Connection, effect: Any) -> None:
        if self._epoch == 1 or not isinstance(effect, e.OpenUpdates | e.RequestSubscribe):
            real(self, effect)

    patch.setattr(Connection, "ask", ask)


# --- notices ---


def _watching(patch: Patch, act: Callable[[Catalogs, Fed], None]) -> None:
    """After each step of the core do this as well."""
    real = Catalogs.__init__

    def init(self: Catalogs, *args: Any, **more: Any) -> None:
        real(self, *args, **more)
        self.observe(lambda fed: act(self, fed))

    patch.setattr(Catalogs, "__init__", init)


def _lists_resources(catalogs: Catalogs) -> None:
    catalogs.tell(i.RefreshWanted(Kind.RESOURCES, now_ms()))


def update_renews_the_list(patch: Patch) -> None:
    """Lists the resources when one of them has changed."""

    def act(catalogs: Catalogs, fed: Fed) -> None:
        if any(isinstance(effect, e.ContentChanged) for effect in fed.effects):
            _lists_resources(catalogs)

    _watching(patch, act)


def heeds_any_update(patch: Patch) -> None:
    """Lists the resources when it is told of one that it did not ask about."""

    def act(catalogs: Catalogs, fed: Fed) -> None:
        heard = isinstance(fed.heard, i.UpdateHeard)
        if heard and not any(isinstance(effect, e.ContentChanged) for effect in fed.effects):
            _lists_resources(catalogs)

    _watching(patch, act)


def unlisting_ends_subscriptions(patch: Patch) -> None:
    """Unsubscribes from what is listed no more."""

    def act(catalogs: Catalogs, fed: Fed) -> None:
        for effect in fed.effects:
            if isinstance(effect, e.Publish) and effect.kind is Kind.RESOURCES:
                listed = {item.key for item in effect.snapshot.items}
                for uri in catalogs._contents.wanted - listed:
                    catalogs.unsubscribe(uri)

    _watching(patch, act)


def reads_all_of_a_new_list(patch: Patch) -> None:
    """Reads again what it has read before, each time that the list of resources was renewed."""
    need, read = ReferenceConnection.need, ReferenceConnection.read
    known: WeakKeyDictionary[ReferenceConnection, dict[str, int]] = WeakKeyDictionary()

    async def reading(self: ReferenceConnection, uri: str) -> Answer:
        known.setdefault(self, {})[uri] = self._open().session.catalog(Kind.RESOURCES).generation
        return await read(self, uri)

    async def needing(self: ReferenceConnection, kind: str) -> Answer:
        answer = await need(self, kind)
        newest = self._open().session.catalog(Kind.RESOURCES).generation
        for uri, generation in known.get(self, {}).items():
            if kind == "resources" and generation < newest:
                self._open()._contents._contents = {}
                await reading(self, uri)
        return answer

    patch.setattr(ReferenceConnection, "read", reading)
    patch.setattr(ReferenceConnection, "need", needing)


def lifetime_beats_updates(patch: Patch) -> None:
    """Keeps what it has read for as long as the server said, also when it hears of a change."""
    patch.setattr(resources, "updated", lambda contents, _: contents)


def exact_uris_only(patch: Patch) -> None:
    """Takes an update for one of the very resource that it names, if it asked for that one."""
    patch.setattr(resources, "contains", lambda _, __: False)
    patch.setattr(updates, "contains", lambda _, __: False)


# --- what is kept ---


def gives_what_it_read_last(patch: Patch) -> None:
    """Answers a read of any resource with the newest it has kept."""
    real = resources.look_up

    def look_up(contents: Contents, _: str, partition: str, at_ms: int) -> Content | None:
        newest = next(reversed(list(contents)), "")
        return real(contents, newest, partition, at_ms)

    patch.setattr(resources, "look_up", look_up)


def keeps_reads_for_ever(patch: Patch) -> None:
    """Does not look at the lifetime of what it has read."""
    real = resources.look_up
    patch.setattr(
        resources,
        "look_up",
        lambda contents, uri, partition, _: real(contents, uri, partition, -LONG_MS),
    )


def zero_lets_reads_be_kept(patch: Patch) -> None:
    """Takes a lifetime of zero of a read for none at all."""

    def longer(ttl_ms: object, policy: Any) -> int | None:
        return LONG_MS if ttl_ms == 0 else lifetime_ms(ttl_ms, policy)

    patch.setattr(resources, "lifetime_ms", longer)


def _kept_otherwise(patch: Patch, **changes: Any) -> None:
    real = resources.keep

    def keep(contents: Contents, uri: str, body: bytes, **how: Any) -> Contents:
        return real(contents, uri, body, **(how | changes))

    patch.setattr(resources, "keep", keep)


def reads_are_public(patch: Patch) -> None:
    """Gives anybody what was read for somebody."""
    _kept_otherwise(patch, scope=Scope.PUBLIC)


def keeps_what_depends_on_input(patch: Patch) -> None:
    """Keeps reads that were completed by a retry."""
    _kept_otherwise(patch, by_retry=False)


def reads_only_what_is_listed(patch: Patch) -> None:
    """Refuses to read a resource that is not in the list."""
    real = ReferenceConnection.read

    async def read(self: ReferenceConnection, uri: str) -> Answer:
        snapshot = (await self._open().get(Kind.RESOURCES)).snapshot
        if snapshot is None or all(item.key != uri for item in snapshot.items):
            return {"outcome": "refused", "detail": "not listed"}
        return await real(self, uri)

    patch.setattr(ReferenceConnection, "read", read)


# --- prompts ---


def asks_for_any_prompt(patch: Patch) -> None:
    """Has a prompt rendered without a look at the list."""

    async def get_prompt(self: ReferenceConnection, name: str, _: Mapping[str, str]) -> Answer:
        request = self._open().request("prompts/get", {"name": name}, name=name)

        async def rendered() -> GetPromptResult:
            return GetPromptResult.model_validate(await request)

        return await _outcome(rendered())

    patch.setattr(ReferenceConnection, "get_prompt", get_prompt)


def keeps_rendered_prompts(patch: Patch) -> None:
    """Renders each prompt once."""
    real = ReferenceConnection.get_prompt
    kept: WeakKeyDictionary[ReferenceConnection, dict[str, Answer]] = WeakKeyDictionary()

    async def get_prompt(self: ReferenceConnection, name: str, given: Mapping[str, str]) -> Answer:
        own = kept.setdefault(self, {})
        if name not in own:
            own[name] = await real(self, name, given)
        return own[name]

    patch.setattr(ReferenceConnection, "get_prompt", get_prompt)


_AGAIN = "resource:subscribed-again"
DEFECTS = (
    Defect("subscribes-to-nothing", "resource:subscription", subscribes_to_nothing),
    Defect("never-unsubscribes", "resource:unsubscribe", never_unsubscribes),
    Defect(
        "takes-subscribe-for-declared",
        "resource:subscribe-undeclared",
        takes_subscribe_for_declared,
    ),
    Defect("subscribes-once", f"{_AGAIN}-after-a-reconnect", subscribes_once),
    Defect("subscribes-in-one-session", f"{_AGAIN}-after-a-lost-session", subscribes_once),
    Defect("subscribes-in-one-process", f"{_AGAIN}-in-a-new-process", subscribes_once),
    Defect("update-renews-the-list", "resource:update-is-no-list-change", update_renews_the_list),
    Defect("heeds-any-update", "resource:update-nobody-asked-for", heeds_any_update),
    Defect(
        "unlisting-ends-subscriptions",
        "resource:unlisted-stays-watched",
        unlisting_ends_subscriptions,
    ),
    Defect(
        "reads-all-of-a-new-list", "resource:list-change-reads-nothing", reads_all_of_a_new_list
    ),
    Defect("lifetime-beats-updates", "resource:update-beats-lifetime", lifetime_beats_updates),
    Defect("exact-uris-only", "resource:update-from-below", exact_uris_only),
    Defect("gives-what-it-read-last", "resource:kept-by-uri", gives_what_it_read_last),
    Defect("keeps-reads-for-ever", "resource:lifetime-runs-out", keeps_reads_for_ever),
    Defect("zero-lets-reads-be-kept", "resource:zero-lifetime", zero_lets_reads_be_kept),
    Defect("reads-are-public", "resource:private-stays-private", reads_are_public),
    Defect(
        "keeps-what-depends-on-input",
        "resource:input-required-is-not-kept",
        keeps_what_depends_on_input,
    ),
    Defect("reads-only-what-is-listed", "resource:unlisted-can-be-read", reads_only_what_is_listed),
    Defect("asks-for-any-prompt", "prompt:vanished", asks_for_any_prompt),
    Defect("keeps-rendered-prompts", "prompt:rendered-anew", keeps_rendered_prompts),
)
