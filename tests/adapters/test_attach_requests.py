"""What is asked over an attached connection: subscriptions, what the server offers, requests."""

from typing import Any

import anyio
import pytest
from mcp import Client, MCPError

from relist import inputs as i
from relist.machine import Hit
from relist.values import Kind, LinkPhase, ListenPhase, Wire
from relist_mcp import Catalogs
from relist_mcp.attached import Attached
from relist_mcp.exchange import now_ms
from support.brain import LEGACY, MODERN, notice
from support.live import ERAS, LIST, names, policy, serve
from support.loops import virtually
from support.owned import (
    attached,
    by_each_owner,
    owned,
    session_of,
    stands,
    until_listed,
)

LISTEN, CANCELLED = "subscriptions/listen", "notifications/cancelled"


# --- subscriptions, discovery, requests -----------------------------------------------------------


@by_each_owner
async def test_a_subscription_that_the_server_ends_is_made_again(owner: str) -> None:
    brain, pipe = serve(MODERN, "a")
    async with owned(owner, MODERN, pipe.target.connect) as client:
        rules = policy(backoff_base_ms=1, backoff_max_ms=4)
        async with Catalogs.attach(client, policy=rules) as catalogs:
            await catalogs.idle()
            for ends in ("cancel", "result", "error"):
                listen = brain.listens[-1]
                answer = {"jsonrpc": "2.0", "id": listen["id"]}
                error = {"error": {"code": -32000, "message": "scripted"}}
                brain.set_tools(ends)
                match ends:
                    case "cancel":
                        pipe.send(notice(CANCELLED, requestId=listen["id"]))
                    case "result":
                        pipe.send({**answer, "result": {}})
                    case "error":
                        pipe.send({**answer, **error})
                await until_listed(catalogs, ends)
                assert catalogs.session.listen.phase is ListenPhase.OPEN
                assert brain.listens[-1]["id"] != listen["id"]
            pipe.send(brain.acknowledgement({**listen, "id": "somebody else's"}))
            await catalogs.tools.refresh()  # whose answer is behind it
            assert catalogs.session.listen.phase is ListenPhase.OPEN
            dispatcher: Any = session_of(client)._dispatcher
            assert list(dispatcher._pending) == [brain.listens[-1]["id"]]
            binding = catalogs._binding
            assert isinstance(binding, Attached)
            assert binding._hold is not None
            assert list(binding._hold._listens) == list(dispatcher._pending)


@virtually
async def test_what_the_server_offers_is_asked_on_the_wire_when_it_is_needed_again() -> None:
    brain, pipe = serve(MODERN, "a")
    async with (
        owned("client", MODERN, pipe.target.connect) as client,
        Catalogs.attach(client, policy=policy(discovery_gap_ms=5_000)) as catalogs,
    ):
        await catalogs.idle()
        brain.lists["prompts"] = [{"name": "p"}]
        asked = brain.count("server/discover")
        await anyio.sleep(6)
        assert brain.count("server/discover") == asked
        await catalogs.tools.refresh()
        await brain.until_seen("server/discover", asked + 1)
        await catalogs.idle()
        assert (await catalogs.prompts.get()).hit is Hit.HIT


@virtually
async def test_a_server_that_gives_up_the_version_is_met_anew_and_the_subscription_too() -> None:
    brain, pipe = serve(MODERN, "a")
    rules = policy(discovery_gap_ms=5_000, modern_versions=("2099-01-01", MODERN))
    brain.answers["server/discover"] = lambda _: {
        "result": {**brain.discovery(), "supportedVersions": ["2099-01-01", MODERN]}
    }
    async with attached("client", MODERN, pipe.target.connect, rules) as catalogs:
        await catalogs.idle()
        assert catalogs.session.link.version == MODERN  # the session speaks no other
        (first,) = brain.listens
        gone = {**brain.discovery(), "supportedVersions": ["2099-01-01"]}
        brain.answers["server/discover"] = lambda _: {"result": gone}
        await anyio.sleep(6)
        await catalogs.tools.refresh()
        await brain.until_seen(LISTEN, 2)
        await catalogs.idle()
        assert catalogs.session.link.epoch == 2
        assert [stands(brain, one) for one in brain.listens] == [False, True]
        assert brain.listens[0] is first


@ERAS
@virtually
async def test_what_is_not_awaited_any_more_is_cancelled(era: str) -> None:
    brain, pipe = serve(era, "a")
    rules = policy(request_limit_ms=1_000, backoff_base_ms=10_000, backoff_max_ms=10_000)
    async with attached("session", era, pipe.target.connect, rules, Wire.HTTP) as catalogs:
        await catalogs.idle()
        brain.hold.add(LIST)
        catalogs.tell(i.RefreshWanted(Kind.TOOLS, now_ms()))
        held = await brain.until_held(LIST)
        brain.hold.clear()
        await brain.until_seen(CANCELLED)
        assert not stands(brain, held)
        pipe.reply(held)  # too late
        brain.set_tools("b")
        assert names(await catalogs.tools.refresh()) == ["b"]


@virtually
async def test_a_client_that_is_pinned_to_a_version_knows_nothing_so_the_server_is_asked() -> None:
    brain, pipe = serve(MODERN, "a")
    async with Client(pipe.target.connect(), mode=MODERN) as client:
        assert not brain.seen
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            assert names(await catalogs.tools.get()) == ["a"]
            assert brain.count("server/discover") == 1


@pytest.mark.parametrize(
    ("era", "ours"), [(MODERN, {"modern_versions": ()}), (LEGACY, {"legacy_versions": ()})]
)
@virtually
async def test_a_session_in_a_version_that_policy_rules_out_is_refused(
    era: str, ours: dict[str, Any]
) -> None:
    brain, pipe = serve(era, "a")
    async with (
        owned("client", era, pipe.target.connect) as client,
        Catalogs.attach(client, policy=policy(**ours)) as catalogs,
    ):
        assert (await catalogs.tools.get()).hit is Hit.MISS
        assert catalogs.session.link.phase is LinkPhase.REFUSED
        assert not brain.count(LIST)


@ERAS
@by_each_owner
async def test_requests_of_the_application_go_as_the_session_sends_them(
    owner: str, era: str
) -> None:
    brain, pipe = serve(era, "a")
    brain.answers["prompts/get"] = lambda _: {"result": {"messages": [], "x-new": 1}}
    brain.answers["resources/read"] = lambda _: {"error": {"code": -32002, "message": "scripted"}}
    async with (
        owned(owner, era, pipe.target.connect) as client,
        Catalogs.attach(client, policy=policy()) as catalogs,
    ):
        params = {"name": "p", "_meta": {"mine": 1}}
        assert (await catalogs.request("prompts/get", params, name="p"))["x-new"] == 1
        assert params == {"name": "p", "_meta": {"mine": 1}}
        (sent,) = brain.params("prompts/get")
        assert sent["_meta"]["mine"] == 1
        assert ("io.modelcontextprotocol/protocolVersion" in sent["_meta"]) is (era == MODERN)
        assert (await catalogs.call_tool("a", {})).content
        with pytest.raises(MCPError) as refused:
            await catalogs.request("resources/read", {"uri": "x:y"})
        assert refused.value.error.code == -32002


@virtually
async def test_the_owners_time_limit_is_for_requests_and_not_for_subscriptions() -> None:
    brain, pipe = serve(MODERN, "a")
    async with (
        owned("client", MODERN, pipe.target.connect, read_timeout_seconds=5.0) as client,
        Catalogs.attach(client, policy=policy()) as catalogs,
    ):
        await catalogs.idle()
        brain.hold.add("tools/call")
        with pytest.raises(MCPError, match="timed out"):
            await catalogs.call_tool("a", {})
        await anyio.sleep(60)
        assert brain.count(LISTEN) == 1
