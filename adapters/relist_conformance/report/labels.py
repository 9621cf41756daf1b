"""What one event of a history was, in a few words for people: one line, short and safe."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, cast

from relist.check.history import Event, EventKind, mapping
from relist.messages import is_list
from relist_conformance.errors import plain
from relist_conformance.wire import SUBSCRIPTION_ID

_LINE_MAX = 100
_ITEMS_MAX = 12
_LISTS = ("tools", "prompts", "resources", "resourceTemplates")
_NOTICE = "notifications/"
_OK = 200

Data = Mapping[str, Any]


def label(event: Event, most: int) -> str:
    """The event in one safe line of about so many characters."""
    return plain(_LABELS.get(event.kind, _other)(event), most)


def witness_lines(events: Sequence[Event], most: int) -> Iterator[str]:
    """The events that show a finding, one line each: when, who and what. Of many the two ends."""
    left_out = len(events) - most
    shown = events if left_out <= 0 else (*events[: most // 2], *events[-(most // 2) :])
    for number, event in enumerate(shown):
        if left_out > 0 and number == most // 2:
            yield f"and {left_out} events more"
        yield f"{event.at_ms} ms  {_WHO.get(event.kind, '')}{label(event, _LINE_MAX)}"


_WHO: Mapping[EventKind, str] = {
    "in": "client → ",
    "out": "server → ",
    "status": "server → ",
    "ask": "client: ",
    "answer": "client: ",
    "note": "server: ",
    "truth": "truth: ",
    "mark": "mark: ",
}


# --- messages -------------------------------------------------------------------------------------


def _message(event: Event) -> str:
    message, data = event.message or {}, event.data
    if "malformed" in data and event.kind == "in":
        return "no JSON-RPC message"
    if "relist-text" in message:
        return f"as text: {message['relist-text']}"
    said = _asked(message, data) if "method" in message else _answered(message)
    http = data.get("http", _OK)
    return _joined(said, "(malformed)" if "malformed" in data else "", _status(http))


def _status(code: object) -> str:
    return "" if code == _OK else f"(HTTP {code})"


def _asked(message: Data, data: Data) -> str:
    """A request or notification: what it is about, where that is not plain from its name."""
    method, params = str(message["method"]), mapping(message.get("params")) or {}
    page = data.get("page")
    about = {
        "tools/call": params.get("name"),
        "prompts/get": params.get("name"),
        "resources/read": params.get("uri"),
        "initialize": params.get("protocolVersion"),
        "subscriptions/listen": _fields(params.get("notifications")),
        "notifications/cancelled": f"request {params.get('requestId')}",
        "notifications/subscriptions/acknowledged": _fields(params.get("notifications")),
    }.get(method, f"(page {page})" if page not in (None, 1) else "")
    if "cursor" in params and page is None:
        about = f"(unknown cursor {params['cursor']!r})"
    stream = (mapping(params.get("_meta")) or {}).get(SUBSCRIPTION_ID)
    tag = f"for {stream!r}" if stream is not None and method.endswith("/list_changed") else ""
    return _joined(method.removeprefix(_NOTICE), about, tag)


def _fields(granted: object) -> str:
    """The fields of a filter that are set: ``tools`` for ``toolsListChanged``."""
    fields = mapping(granted) or {}
    return ", ".join(name.removesuffix("ListChanged") for name in fields if fields[name] is True)


def _answered(message: Data) -> str:
    error = mapping(message.get("error"))
    if error is not None:
        return f"error {error.get('code')}"
    return _result(mapping(message.get("result")) or {})


def _result(result: Data) -> str:
    for name in _LISTS:
        items = result.get(name)
        if is_list(items):
            more = ", and more" if result.get("nextCursor") is not None else ""
            return f"{name}: {_items(items)}{more}"
    version = result.get("protocolVersion")
    versions = result.get("supportedVersions")
    return _joined("result", version or (_listed(versions) if versions else ""))


def _items(items: Sequence[object]) -> str:
    more = f" and {len(items) - _ITEMS_MAX} more" if len(items) > _ITEMS_MAX else ""
    return (", ".join(_item(one) for one in items[:_ITEMS_MAX]) or "none") + more


def _item(item: object) -> str:
    found = mapping(item) or {}
    name, description = (str(found.get(field)) for field in ("name", "description"))
    return description if description.rpartition("@")[0] == name else name


# --- the driver -----------------------------------------------------------------------------------


def _ask(event: Event) -> str:
    data = event.data
    match data.get("op"):
        case "call":
            planned = mapping(data.get("planned"))
            told = "" if planned is None else f"as {_item(planned)}"
            return _joined("is asked to call", data.get("name"), told)
        case "credentials":
            return f"acts for {str(data.get('token')).removeprefix('relist-') or 'nobody'}"
        case "advance":
            return f"is told that {data.get('ms')} ms pass"
        case op:
            return f"is asked: {_joined(op, data.get('kind'))}"


def _answer(event: Event) -> str:
    data = event.data
    answer, op = mapping(data.get("ok")), data.get("op")
    if answer is None:
        return f"{op} fails: {data.get('error')}"
    match op:
        case "need" | "believe" | "refresh":
            items = answer.get("items")
            listed = _items(items) if is_list(items) else "no list"
            state = answer.get("state")
            return _joined(_SAYS[op], listed, f"({state})" if state else "")
        case "call":
            return _joined("call of", data.get("name"), "ends:", answer.get("outcome"))
        case "idle":
            return _IDLE.get(str(answer.get("idle")), "does not know whether it is idle")
        case _:
            return f"{op}: done"


_SAYS = {"need": "offers", "believe": "believes", "refresh": "refreshed:"}
_IDLE = {"True": "is idle", "False": "is busy"}


# --- the referee ----------------------------------------------------------------------------------


def _open(event: Event) -> str:
    kind = str(event.data.get("channel_kind", ""))
    told = f"HTTP {kind.upper()}" if kind in ("get", "delete") else "connection opened"
    return _joined(told, event.data.get("principal") and f"for {event.data['principal']}")


def _note(event: Event) -> str:
    for name, said in _NOTES.items():
        if name in event.data:
            return said(event.data)
    return ", ".join(f"{name} {value}" for name, value in event.data.items())


_NOTES: Mapping[str, Callable[[Data], str]] = {
    "held": lambda data: f"holds the answer '{data['held']}'",
    "released": lambda data: (
        f"releases '{data['released']}'" + ("" if data.get("sent") else ": nobody to send it to")
    ),
    "unanswered": lambda _: "never answers",
    "forgot": lambda data: f"forgets its {data['forgot']}",
    "wrote": lambda data: f"writes {data['wrote']!r}",
    "changed": lambda data: f"{_listed(data['changed'])}: changed",
    "ended": lambda _: "the end",
    "left_out": lambda data: f"and {data['left_out']} events that are not in this report",
}


def _truth(event: Event) -> str:
    pages = mapping(event.data.get("pages")) or {}
    told = "; ".join(f"{kind}: {_pages(held)}" for kind, held in pages.items())
    return _joined(event.data.get("principal"), told or "nothing", mark=": ")


def _pages(pages: object) -> str:
    if not isinstance(pages, list | tuple):
        return str(pages)
    some = [_listed(page) for page in cast("Sequence[object]", pages)[:_ITEMS_MAX]]
    return " | ".join(some) or "none"


def _listed(names: object) -> str:
    if isinstance(names, list | tuple):
        return ", ".join(map(str, cast("Sequence[object]", names)[:_ITEMS_MAX])) or "none"
    return str(names)


def _other(event: Event) -> str:
    return _joined(event.kind, event.channel)


def _joined(*parts: object, mark: str = " ") -> str:
    return mark.join(str(part) for part in parts if part not in (None, ""))


_LABELS: Mapping[EventKind, Callable[[Event], str]] = {
    "in": _message,
    "out": _message,
    "status": lambda event: f"HTTP {event.data.get('code', '')}",
    "ask": _ask,
    "answer": _answer,
    "open": _open,
    "close": lambda _: "closed by the client",
    "cut": lambda _: "cut off by the server",
    "mark": lambda event: str(event.data.get("name")),
    "fence": lambda event: "fence" if event.data.get("passed") else "fence, not passed",
    "note": _note,
    "truth": _truth,
    "step": lambda event: f"step: {event.data.get('op')}",
}
