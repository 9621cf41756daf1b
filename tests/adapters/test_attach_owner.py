"""What remains the owner's while catalogs are attached, and the session as it is left."""

from typing import Any

import anyio
import mcp_types as types
from anyio.lowlevel import checkpoint
from mcp.client._memory import InMemoryTransport
from mcp.client.extension import ClientExtension, NotificationBinding
from mcp.client.subscriptions import ToolsListChanged
from pydantic import BaseModel

from relist import effects as e
from relist import inputs as i
from relist.values import Kind, Wire
from relist_mcp import Catalogs, Fed
from relist_mcp.exchange import now_ms
from support.brain import LEGACY, MODERN, SUBSCRIPTION, Brain, Frame, notice
from support.live import ERAS, LIST, policy, serve
from support.loops import everywhere
from support.owned import (
    attached,
    by_each_owner,
    condition,
    owned,
    session_of,
    stands,
    until_listed,
)
from support.pipe import Pipe
from support.sdk import ChangingServer

LISTEN, CANCELLED = "subscriptions/listen", "notifications/cancelled"


# --- what remains the owner's ---------------------------------------------------------------------


class _Vendor(BaseModel):
    text: str


class _Vendors(ClientExtension):
    """How a client that is not a bare session binds a notification."""

    identifier = "com.example/x"

    def __init__(self, binding: NotificationBinding[_Vendor]) -> None:
        self._binding = binding

    def notifications(self) -> list[NotificationBinding[Any]]:
        return [self._binding]


class _Heard:
    """Handlers of an owner, and what each of them got."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.logs: list[Any] = []
        self.asked: list[str] = []
        self.bound: list[str] = []

    def handlers(self, owner: str) -> dict[str, Any]:
        """As this kind of client takes them."""
        bound = NotificationBinding(method="vendor/x", params_type=_Vendor, handler=self._bound)
        by_extension = {"extensions": [_Vendors(bound)]}
        if owner == "fastmcp":
            return {
                "message_handler": self._message,
                "log_handler": self._log,
                "sampling_handler": lambda _, params, context: self._sample(context, params),
                "elicitation_handler": lambda *_: self._elicit(None, None),
                "roots": self._note_roots,
                **by_extension,
            }
        return {
            "message_handler": self._message,
            "logging_callback": self._log,
            "sampling_callback": self._sample,
            "elicitation_callback": self._elicit,
            "list_roots_callback": self._roots,
            **(by_extension if owner == "client" else {"notification_bindings": [bound]}),
        }

    async def _message(self, message: Any) -> None:
        self.messages.append(message.method)

    async def _log(self, params: Any) -> None:
        self.logs.append(params.data)

    async def _sample(self, _: Any, params: Any) -> types.CreateMessageResult:
        self.asked.append("sampling")
        content = types.TextContent(text="x")
        return types.CreateMessageResult(role="assistant", content=content, model="m")

    async def _elicit(self, _: Any, params: Any) -> types.ElicitResult:
        self.asked.append("elicitation")
        return types.ElicitResult(action="decline")

    async def _roots(self, _: Any) -> types.ListRootsResult:
        return types.ListRootsResult(roots=self._note_roots(None))

    def _note_roots(self, _: Any) -> list[Any]:
        self.asked.append("roots")
        return []

    async def _bound(self, params: _Vendor) -> None:
        self.bound.append(params.text)


def _everything(brain: Brain) -> list[Frame]:
    """What a server sends of its own accord."""
    message = {"role": "user", "content": {"type": "text", "text": "?"}}
    form = {"message": "?", "requestedSchema": {"type": "object", "properties": {}}}
    asked: dict[str, Frame] = {
        "sampling/createMessage": {"messages": [message], "maxTokens": 1},
        "elicitation/create": {"mode": "form", **form},
        "roots/list": {},
    }
    requests = [
        {"jsonrpc": "2.0", "id": 70 + n, "method": method, "params": params}
        for n, (method, params) in enumerate(asked.items())
    ]
    kinds = ("tools", "prompts", "resources")
    return [
        *(notice(f"notifications/{kind}/list_changed") for kind in kinds),
        notice("notifications/resources/updated", uri="x:y"),
        notice("notifications/message", level="info", data="line"),
        notice("notifications/progress", progressToken=99, progress=1),
        notice("vendor/x", text="hello"),
        notice("notifications/subscriptions/acknowledged", notifications={}),
        *(requests if brain.era == LEGACY else ()),
    ]


async def _let_happen(brain: Brain, pipe: Pipe, heard: _Heard) -> None:
    """Until all of it has arrived, and what comes besides."""
    before, sent = len(brain.seen), _everything(brain)
    pipe.send(*sent)
    asked = {frame["id"] for frame in sent if "id" in frame}
    while len(heard.messages) < (7 if brain.era == MODERN else 6) or not (
        heard.logs and heard.bound
    ):
        await checkpoint()
    await brain.until(lambda: asked <= {frame.get("id") for frame in brain.seen[before:]})
    await anyio.wait_all_tasks_blocked()


@ERAS
@by_each_owner
async def test_every_handler_of_the_owner_gets_what_it_got_before(owner: str, era: str) -> None:
    """Before attaching, while attached, also in the middle of a listing, and afterwards."""
    brain, pipe = serve(era, "a")
    heard = _Heard()
    async with owned(owner, era, pipe.target.connect, **heard.handlers(owner)) as client:
        seen: list[dict[str, list[Any]]] = []

        async def observe() -> None:
            await _let_happen(brain, pipe, heard)
            lists = {name: vars(heard)[name] for name in ("messages", "logs", "asked", "bound")}
            seen.append({name: sorted(got) for name, got in lists.items()})
            for got in lists.values():
                got.clear()

        await observe()
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            await catalogs.idle()
            brain.hold.add(LIST)
            catalogs.tell(i.RefreshWanted(Kind.TOOLS, now_ms()))
            request = await brain.until_held(LIST)
            brain.hold.clear()
            await observe()
            pipe.reply(request)
            await catalogs.idle()
            await observe()
        await observe()
        assert len(seen[0]["asked"]) == (3 if era == LEGACY else 0)
        assert seen == [seen[0]] * 4


@everywhere
async def test_our_subscription_is_ours_but_its_notices_are_for_all() -> None:
    """The acknowledgement is no message to anybody; the notice evicts what the client caches."""
    heard = _Heard()
    brain, pipe = serve(MODERN, "a")
    async with owned("client", MODERN, pipe.target.connect, **heard.handlers("client")) as client:
        assert [one.name for one in (await client.list_tools()).tools] == ["a"]
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            await catalogs.idle()
            assert heard.messages == []
            brain.set_tools("b")
            assert [one.name for one in (await client.list_tools()).tools] == ["a"]  # its cache
            pipe.send(brain.change())
            await until_listed(catalogs, "b")
            await anyio.wait_all_tasks_blocked()
            assert [one.name for one in (await client.list_tools()).tools] == ["b"]
            assert heard.messages == ["notifications/tools/list_changed"]


@everywhere
async def test_the_owners_own_subscription_works_beside_ours() -> None:
    changing = ChangingServer(["a"])
    notes: list[e.Note] = []
    transport = InMemoryTransport(changing.server)
    async with (
        owned("client", MODERN, lambda: transport) as client,
        client.listen(tools_list_changed=True) as before,
    ):
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            catalogs.observe(
                lambda fed: notes.extend(n for n in fed.effects if isinstance(n, e.Note))
            )
            await catalogs.idle()
            async with client.listen(tools_list_changed=True) as during:
                await changing.become("b")
                for subscription in (before, during):
                    assert await anext(subscription) == ToolsListChanged()
            await until_listed(catalogs, "b")
            assert [one.name for one in (await client.list_tools()).tools] == ["b"]
        await changing.become("c")
        assert await anext(before) == ToolsListChanged()
    assert not notes  # somebody else's subscription is no fault of the server


# --- leaving --------------------------------------------------------------------------------------


async def _stay(
    client: Any, leave: anyio.Event, *, task_status: anyio.abc.TaskStatus[Catalogs]
) -> None:
    async with Catalogs.attach(client, policy=policy(), wire=Wire.PIPE) as catalogs:
        await catalogs.idle()
        task_status.started(catalogs)
        await leave.wait()


@ERAS
@by_each_owner
async def test_leaving_restores_the_session_in_whatever_order(owner: str, era: str) -> None:
    brain, pipe = serve(era, "a")
    async with owned(owner, era, pipe.target.connect) as client:
        before = condition(client)
        for early in (0, 1):
            leaves = [anyio.Event(), anyio.Event()]
            async with anyio.create_task_group() as tasks:
                kept = [await tasks.start(_stay, client, leave) for leave in leaves][1 - early]
                tools = f"b{early}"
                leaves[early].set()
                if era == MODERN:
                    await brain.until_seen(CANCELLED, 2 * early + 1)
                    brain.listens[:] = [one for one in brain.listens if stands(brain, one)]
                brain.set_tools(tools)
                pipe.send(brain.change())
                await until_listed(kept, tools)
                leaves[1 - early].set()
            assert condition(client) == before
        if era == MODERN:
            await brain.until_seen(CANCELLED, 4)
        ids = [frame["id"] for frame in brain.seen if frame.get("method") == LISTEN]
        assert len(ids) == len(set(ids)) == (4 if era == MODERN else 0)
        assert not [listen for listen in brain.listens if stands(brain, listen)]


@everywhere
async def test_what_others_built_upon_us_is_left_alone() -> None:
    brain, pipe = serve(LEGACY, "a")
    heard: list[str] = []
    async with owned("client", LEGACY, pipe.target.connect) as client:
        dispatcher: Any = session_of(client)._dispatcher
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            await catalogs.idle()
            ours = dispatcher._on_notify_intercept

            def theirs(method: str, params: Any) -> bool:
                heard.append(method)
                taken: bool = ours(method, params)
                return taken

            dispatcher._on_notify_intercept = theirs
        assert dispatcher._on_notify_intercept is theirs
        async with Catalogs.attach(client, policy=policy()) as catalogs:
            await catalogs.idle()
            brain.set_tools("b")
            pipe.send(brain.change())
            await until_listed(catalogs, "b")
        assert dispatcher._on_notify_intercept is theirs
        assert heard == ["notifications/tools/list_changed"]


def _watching_resources(era: str) -> tuple[Brain, Pipe]:
    brain, pipe = serve(era, "a")
    offered: Frame = {"tools": {}, "resources": {"subscribe": True}}
    brain.answers["initialize"] = lambda _: {
        "result": {**brain.greeting(), "capabilities": offered}
    }
    offer = "server/discover"
    brain.answers[offer] = lambda _: {"result": {**brain.discovery(), "capabilities": offered}}
    for method in ("resources/subscribe", "resources/unsubscribe"):
        brain.answers[method] = lambda _: {"result": {}}
    return brain, pipe


@ERAS
@by_each_owner
async def test_resources_are_watched_and_given_back(owner: str, era: str) -> None:
    brain, pipe = _watching_resources(era)
    changed: list[str] = []

    def observe(fed: Fed) -> None:
        changed.extend(one.uri for one in fed.effects if isinstance(one, e.ContentChanged))

    async with attached(owner, era, pipe.target.connect, policy()) as catalogs:
        catalogs.observe(observe)
        await catalogs.idle()
        for wanted in (frozenset({"x:1", "x:2"}), frozenset({"x:2"})):
            catalogs.tell(i.UpdatesWanted(wanted, now_ms()))
            while _watched(catalogs) != wanted:
                await catalogs._loop.moved()
        meta = {SUBSCRIPTION: brain.listens[-1]["id"]} if era == MODERN else {}
        pipe.send(notice("notifications/resources/updated", uri="x:2", _meta=meta))
        while not changed:
            await catalogs._loop.moved()
    given_back = [params["uri"] for params in brain.params("resources/unsubscribe")]
    assert given_back == ([] if era == MODERN else ["x:1", "x:2"])
    if era == MODERN:
        assert changed == ["x:2"]
        await brain.until(lambda: not [one for one in brain.listens if stands(brain, one)])


def _watched(catalogs: Catalogs) -> frozenset[str]:
    updates = catalogs.session.updates
    granted = updates.held | {uri for uri in updates.listen.granted if isinstance(uri, str)}
    return frozenset() if updates.asked else granted
