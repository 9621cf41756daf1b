"""``Catalogs.attach``: lists kept correct over a connection that somebody else owns and uses."""

from typing import Any

import anyio
import pytest
from mcp import Client, ClientSession
from mcp.client._memory import InMemoryTransport

from relist import effects as e
from relist import inputs as i
from relist.machine import Hit
from relist.values import Kind, ListenPhase, Wire
from relist_mcp import Catalogs, Credentials, Fed, NotConnected
from relist_mcp.exchange import now_ms
from support.brain import LEGACY, MODERN, SUBSCRIPTION, notice, tool
from support.live import ERAS, LIST, names, policy, serve
from support.loops import everywhere, virtually
from support.owned import (
    attached,
    by_each_owner,
    condition,
    fastmcp_client,
    owned,
    until_listed,
)
from support.sdk import ChangingServer
from support.watch import under_watch

LISTEN = "subscriptions/listen"


# --- lists ----------------------------------------------------------------------------------------


@ERAS
@by_each_owner
async def test_all_pages_and_every_change_of_a_server_of_the_sdk(owner: str, era: str) -> None:
    changing = ChangingServer(["a", "b", "become"])
    broken: list[str] = []
    async with owned(owner, era, lambda: InMemoryTransport(changing.server)) as client:
        with under_watch(broken):
            async with Catalogs.attach(client, policy=policy(), wire=Wire.PIPE) as catalogs:
                assert names(await catalogs.tools.get()) == ["a", "b", "become"]
                assert (await catalogs.prompts.get()).hit is Hit.UNSUPPORTED
                await catalogs.idle()
                await catalogs.call_tool("become", {"names": ["c", "d", "e", "become"]})
                await until_listed(catalogs, "c", "d", "e", "become")
                assert catalogs.session.catalog(Kind.TOOLS).vouched
                assert catalogs.session.link.version == era
                assert catalogs.status().server.name == "changing"
        assert not broken


@everywhere
async def test_a_server_that_is_called_without_any_transport() -> None:
    changing = ChangingServer(["a", "b", "become"])
    async with owned("client", MODERN, changing.server) as client:
        before = condition(client)
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            assert names(await catalogs.tools.get()) == ["a", "b", "become"]
            await catalogs.call_tool("become", {"names": ["c"]})
            await until_listed(catalogs, "c")
            assert catalogs.session.catalog(Kind.TOOLS).vouched
        assert condition(client) == before
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            assert names(await catalogs.tools.get()) == ["c"]


@by_each_owner
async def test_what_is_negotiated_is_not_asked_again(owner: str) -> None:
    for era in (MODERN, LEGACY):
        brain, pipe = serve(era, "a")
        async with owned(owner, era, pipe.target.connect) as client:
            await anyio.wait_all_tasks_blocked()  # until ``initialized`` is there
            seen = len(brain.seen)
            async with Catalogs.attach(client, policy=policy()) as catalogs:
                assert names(await catalogs.tools.get()) == ["a"]
                sent = [frame["method"] for frame in brain.seen[seen:]]
                assert sent == ([LISTEN, LIST] if era == MODERN else [LIST])


@ERAS
@everywhere
async def test_entries_are_kept_as_they_came_and_a_bad_one_spoils_no_list(era: str) -> None:
    brain, pipe = serve(era)
    brain.lists["tools"] = [tool("a", **{"x-new": {"b": [1]}}), {"name": 7}, tool("b")]
    async with (
        owned("client", era, pipe.target.connect) as client,
        Catalogs.attach(client, policy=policy()) as catalogs,
    ):
        listed = (await catalogs.tools.get()).snapshot
        assert listed is not None
        assert [item.key for item in listed.items] == ["a", "b"]
        assert b'"x-new":{"b":[1]}' in listed.items[0].canonical_json


@pytest.mark.parametrize(("wire", "usable"), [(Wire.HTTP, ["b"]), (Wire.PIPE, ["a", "b"])])
@virtually
async def test_what_http_cannot_call_is_left_out_where_it_may_be_http(
    wire: Wire, usable: list[str]
) -> None:
    brain, pipe = serve(MODERN)
    faulty = {"type": "object", "properties": {"x": {"type": "object", "x-mcp-header": "X"}}}
    brain.lists["tools"] = [tool("a", inputSchema=faulty), tool("b")]
    async with (
        owned("client", MODERN, pipe.target.connect) as client,
        Catalogs.attach(client, policy=policy(), wire=wire) as catalogs,
    ):
        assert names(await catalogs.tools.get()) == usable


@virtually
async def test_a_legacy_session_that_may_be_over_http_is_heeded_but_vouches_for_nothing() -> None:
    brain, pipe = serve(LEGACY, "a")
    async with owned("session", LEGACY, pipe.target.connect) as client:
        quick = policy(unvouched_lifetime_ms=7_000)
        async with Catalogs.attach(client, policy=quick) as catalogs:
            await catalogs.tools.get()
            assert catalogs.session.listen.phase is ListenPhase.OFF
            brain.set_tools("b")
            pipe.send(brain.change())
            await until_listed(catalogs, "b")
            await anyio.sleep(8)
            assert catalogs.tools.read().hit is Hit.EXPIRED
            brain.set_tools("c")
            assert names(await catalogs.tools.get()) == ["c"]


@pytest.mark.parametrize("push", [True, False])
@virtually
async def test_a_tag_means_nothing_in_the_legacy_era_and_nothing_is_a_fault(push: bool) -> None:
    brain, pipe = serve(LEGACY, "a")
    brain.push = push
    notes: list[e.Note] = []
    async with attached("session", LEGACY, pipe.target.connect, policy(), Wire.HTTP) as catalogs:
        catalogs.observe(lambda fed: notes.extend(_notes(fed)))
        await catalogs.idle()
        brain.set_tools("b")
        if push:
            pipe.send(notice("notifications/tools/list_changed", _meta={SUBSCRIPTION: 7}))
            await until_listed(catalogs, "b")
    assert not notes


def _notes(fed: Fed) -> list[e.Note]:
    return [effect for effect in fed.effects if isinstance(effect, e.Note)]


@ERAS
@virtually
async def test_a_storm_is_merged_and_nothing_piles_up(era: str) -> None:
    brain, pipe = serve(era, "a")
    waiting: list[int] = []
    async with (
        owned("client", era, pipe.target.connect) as client,
        Catalogs.attach(client, policy=policy(), wire=Wire.PIPE) as catalogs,
    ):
        await catalogs.idle()
        catalogs.observe(lambda _: waiting.append(catalogs._loop.waiting))
        walks = brain.count(LIST)
        brain.set_tools("b")
        pipe.send(*[brain.change()] * 2_000)
        await until_listed(catalogs, "b")
        await catalogs.idle()
        assert brain.count(LIST) - walks <= 3
        assert max(waiting) < 10


@ERAS
@virtually
async def test_a_notice_before_an_answer_spoils_it_and_one_after_it_is_not_lost(era: str) -> None:
    """Whatever their tasks do: what came first is never told last."""
    brain, pipe = serve(era, "a")
    async with (
        owned("session", era, pipe.target.connect) as client,
        Catalogs.attach(client, policy=policy(), wire=Wire.PIPE) as catalogs,
    ):
        await catalogs.idle()
        for before in (True, False):
            brain.hold.add(LIST)
            catalogs.tell(i.RefreshWanted(Kind.TOOLS, now_ms()))
            request = await brain.until_held(LIST)
            brain.hold.clear()
            old = brain.answer(request)
            assert old is not None
            brain.set_tools(f"new {before}")
            pipe.send(*([brain.change(), old] if before else [old, brain.change()]))
            await until_listed(catalogs, f"new {before}")
            await catalogs.idle()
            assert catalogs.session.catalog(Kind.TOOLS).vouched


# --- who can be attached to -----------------------------------------------------------------------


@virtually
async def test_only_a_connected_client_of_the_sdk_can_be_attached_to() -> None:
    _, pipe = serve(MODERN, "a")
    async with pipe.target.connect() as streams, ClientSession(*streams) as bare:
        client = Client(pipe.target.connect())
        for early in (bare, client, fastmcp_client(pipe.target.connect, MODERN)):
            with pytest.raises(NotConnected, match="not connected"):
                async with Catalogs.attach(early):
                    raise AssertionError
    _, pipe = serve(LEGACY, "a")
    async with owned("client", LEGACY, pipe.target.connect) as dead:
        pipe.cut()
        await anyio.wait_all_tasks_blocked()
        with pytest.raises(NotConnected, match="not connected"):
            async with Catalogs.attach(dead):
                raise AssertionError
    wrong: Any
    for wrong in (object(), type("X", (), {"session": "text"})()):
        with pytest.raises(TypeError, match="session"):
            async with Catalogs.attach(wrong):
                raise AssertionError


@virtually
async def test_a_session_over_a_dispatcher_of_its_own_making_cannot_be_heard() -> None:
    _, pipe = serve(MODERN, "a")
    async with Catalogs.connect(pipe.target, policy=policy()) as catalogs:
        await catalogs.idle()

        class Other:
            pass

        odd = ClientSession(dispatcher=Other())  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="Other"):
            async with Catalogs.attach(odd):
                raise AssertionError


@virtually
async def test_the_credentials_are_the_owners() -> None:
    _, pipe = serve(MODERN, "a")
    partitions = set()
    async with owned("client", MODERN, pipe.target.connect) as client:
        for named in (None, None, "mine"):
            async with Catalogs.attach(client, partition=named) as catalogs:
                with pytest.raises(TypeError, match="owner"):
                    catalogs.change_credentials(Credentials(headers={"authorization": "x"}))
                partitions.add(catalogs.session.catalogs[0].standing.partition)
    assert len(partitions) == 3
    assert "mine" in partitions
