"""JSON-RPC and MCP shapes as the referee writes them, and the check that they are well formed.

The referee uses no MCP server: it must be able to be wrong on purpose. What it does not mean to be
wrong is checked against the shapes of the revision under test (``mcp_types``: types only, no SDK).
Names of the protocol are spelled here and not taken from Relist's core: a judge that read them from
the client it judges would repeat its mistakes.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, Protocol, cast

from attrs import frozen
from mcp_types import methods
from pydantic import ValidationError

from relist.check.history import mapping

LEGACY: Final = "2025-11-25"
MODERN: Final = "2026-07-28"
SUBSCRIPTION_ID: Final = "io.modelcontextprotocol/subscriptionId"
PROTOCOL_VERSION: Final = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES: Final = "io.modelcontextprotocol/clientCapabilities"
_SERVER_INFO_KEY: Final = "io.modelcontextprotocol/serverInfo"

INVALID_REQUEST: Final = -32600
METHOD_NOT_FOUND: Final = -32601
INVALID_PARAMS: Final = -32602
INTERNAL_ERROR: Final = -32603
RESOURCE_NOT_FOUND: Final = -32002
HEADER_MISMATCH: Final = -32020
UNSUPPORTED_VERSION: Final = -32022

MAX_MESSAGE_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 64

RESULT_KEY: Final[Mapping[str, str]] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resource_templates": "resourceTemplates",
}
CAPABILITY: Final[Mapping[str, str]] = {
    "tools": "tools",
    "prompts": "prompts",
    "resources": "resources",
    "resource_templates": "resources",
}
"""Which capability declares which kind. Rule: CAP-04."""

FILTER_FIELD: Final[Mapping[str, str]] = {
    "tools": "toolsListChanged",
    "prompts": "promptsListChanged",
    "resources": "resourcesListChanged",
}
"""The field of a listen filter for each capability. Rule: SUB-04."""

URIS_FIELD: Final = "resourceSubscriptions"
"""The field for the resources whose updates are wanted."""

_CACHEABLE = frozenset(methods.CACHEABLE_METHODS)

Message = Mapping[str, Any]


class WireFault(Exception):
    """The referee is about to send something that the revision does not allow: our own bug."""


@frozen
class Unreadable:
    """Takes the place of a message that is not a JSON text, too long, or too deep."""

    text: str


def parse(data: bytes) -> object:
    """Decode one UTF-8 JSON text of a peer; ``Unreadable`` instead of an error."""
    if len(data) > MAX_MESSAGE_BYTES:
        return Unreadable(f"a message of {len(data)} bytes")
    try:
        value: object = json.loads(data.decode(), parse_constant=_refuse_constant)
    except (ValueError, RecursionError):
        return Unreadable(data[:200].decode(errors="replace"))
    return value if _is_shallow(value) else Unreadable(f"nested deeper than {MAX_DEPTH}")


def _is_shallow(value: object) -> bool:
    """Deep values are refused at the border: what handles them later may use recursion."""
    level: list[Any] = [value]
    for _ in range(MAX_DEPTH):
        level = [child for parent in level for child in _children(parent)]
        if not level:
            return True
    return False


def _children(value: object) -> list[Any]:
    if isinstance(value, dict):
        return list(cast("dict[str, Any]", value).values())
    return list(cast("Iterable[Any]", value)) if isinstance(value, list) else []


def _refuse_constant(text: str) -> object:
    raise ValueError(text)


def text_of(body: Message | str | None) -> bytes:
    """The body of an HTTP answer."""
    return encode(body) if isinstance(body, Mapping) else (body or "").encode()


def encode(message: Message) -> bytes:
    """One message as JSON without line breaks; ASCII, so that an echoed id may hold any text."""
    return json.dumps(message, separators=(",", ":")).encode()


def encode_any(value: object) -> str:
    """Any JSON value as a text."""
    return json.dumps(value)


def classify(message: object) -> Literal["request", "notification", "response", "malformed"]:
    """What a decoded message of a client is. Rule: LIFE-15 (ids are texts or whole numbers)."""
    found = mapping(message)
    if found is None or found.get("jsonrpc") != "2.0":
        return "malformed"
    has_id = type(found.get("id")) in (str, int)
    if isinstance(found.get("method"), str):
        if "params" in found and not isinstance(found["params"], Mapping):
            return "malformed"
        if "id" not in found:
            return "notification"
        return "request" if has_id else "malformed"
    is_response = has_id and ("result" in found) != ("error" in found)
    return "response" if is_response else "malformed"


def params_of(message: Message) -> Message:
    """The parameters of a message, empty when it has none."""
    return mapping(message.get("params")) or {}


def item(kind: str, label: str) -> dict[str, Any]:
    """The definition that ``name@version`` stands for."""
    name = label.rpartition("@")[0]
    described = {"name": name, "description": label}
    match kind:
        case "tools":
            return described | {"inputSchema": {"type": "object"}}
        case "resources":
            return {"uri": f"relist://{name}"} | described
        case "resource_templates":
            return {"uriTemplate": f"relist://{name}/{{x}}"} | described
        case _:
            return described


def filled(details: Message, url: str) -> dict[str, Any]:
    """The details with the URL of the server for ``{url}`` in them."""
    found: dict[str, Any] = json.loads(json.dumps(details).replace("{url}", url))
    return found


def contents(uri: str, text: str | None) -> dict[str, Any]:
    """The result of a read; empty where there is no text."""
    return {} if text is None else {"contents": [{"uri": uri, "text": text}]}


def prompt(text: str | None) -> dict[str, Any]:
    """A rendered prompt of one message; empty where there is no text."""
    content = {"type": "text", "text": text}
    return {} if text is None else {"messages": [{"role": "user", "content": content}]}


def result_message(request_id: object, result: Message) -> dict[str, Any]:
    """A successful response."""
    return {"jsonrpc": "2.0", "id": request_id, "result": dict(result)}


def error_message(
    request_id: object, code: int, message: str, data: object = None
) -> dict[str, Any]:
    """An error response; without an id when the request had no readable one."""
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    named = {} if request_id is None else {"id": request_id}
    return {"jsonrpc": "2.0", **named, "error": error}


def notification(method: str, params: Message | None = None) -> dict[str, Any]:
    """A notification."""
    return {"jsonrpc": "2.0", "method": method} | ({} if params is None else {"params": params})


def other_type(request_id: object) -> object:
    """The same id as the other JSON type, or one that is none. Rule: SUB-11."""
    if isinstance(request_id, str):
        return int(request_id) if request_id.isdecimal() else 0
    return str(request_id)


def notice(topic: str, subscription_id: object = None) -> dict[str, Any]:
    """The notice that a kind's list changed (templates share that of resources), or that what the
    resource of this URI contains did. Rule: NOTE-05, RES-01."""
    tag = None if subscription_id is None else {"_meta": {SUBSCRIPTION_ID: subscription_id}}
    if topic in CAPABILITY:
        return notification(f"notifications/{CAPABILITY[topic]}/list_changed", tag)
    return notification("notifications/resources/updated", {**(tag or {}), "uri": topic})


def reaches(subscribed: str, uri: str) -> bool:
    """Whether a subscription to the first URI is also one to the second. Rule: RES-05."""
    return f"{uri}/".startswith(f"{subscribed.removesuffix('/')}/")


def can_subscribe(capabilities: Message) -> bool:
    """Whether the server sends updates of single resources. Rule: CAP-08."""
    return (mapping(capabilities.get("resources")) or {}).get("subscribe") is True


class Hints(Protocol):
    """What a server says with each result of 2026-07-28."""

    @property
    def ttl_ms(self) -> int:
        """The lifetime of lists and discovery."""
        ...

    @property
    def cache_scope(self) -> str:
        """Who may keep them."""
        ...

    @property
    def server_info(self) -> Message:
        """Who the server is."""
        ...


def modern_result(method: str, result: Message, hints: Hints) -> dict[str, Any]:
    """A result with what 2026-07-28 adds to every one and to cacheable ones. Rule: EMIT-30."""
    added: dict[str, Any] = {"resultType": "complete"}
    if method in _CACHEABLE:
        added |= {"ttlMs": hints.ttl_ms, "cacheScope": hints.cache_scope}
    meta = {_SERVER_INFO_KEY: dict(hints.server_info)} | dict(mapping(result.get("_meta")) or {})
    return {**result, **added, "_meta": meta}


def check_request(method: str, revision: str, params: Message | None) -> str | None:
    """Why a client's parameters do not fit its method, or None.

    Raises ``KeyError`` when the revision has no such method.
    """
    try:
        methods.validate_client_request(method, revision, params)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        return f"{'.'.join(str(part) for part in first['loc'])}: {first['msg']}"
    return None


def check_result(method: str, revision: str, result: Message) -> None:
    """Raise ``WireFault`` unless the result fits the method in this revision."""
    try:
        methods.validate_server_result(method, revision, result)
    except (KeyError, ValueError, RecursionError) as error:
        raise WireFault(f"result of {method} in {revision}: {_short(error)}") from None


def check_outgoing(message: Message, revision: str) -> None:
    """Raise ``WireFault`` unless this notification or request fits the revision."""
    method, params = str(message["method"]), message.get("params")
    try:
        if "id" in message:
            methods.parse_server_request(method, revision, params)
        else:
            methods.parse_server_notification(method, revision, params)
    except (KeyError, ValidationError) as error:
        raise WireFault(f"{method} in {revision}: {_short(error)}") from None


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
