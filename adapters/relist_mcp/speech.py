"""From effects to JSON-RPC frames, in the manner of the era."""

from typing import Any, NamedTuple

from mcp.shared.inbound import (
    MCP_METHOD_HEADER,
    MCP_NAME_HEADER,
    MCP_PROTOCOL_VERSION_HEADER,
    encode_header_value,
)
from mcp_types import (
    CLIENT_CAPABILITIES_META_KEY,
    CLIENT_INFO_META_KEY,
    PROTOCOL_VERSION_META_KEY,
    JSONRPCNotification,
    JSONRPCRequest,
)

from relist import effects as e
from relist.effects import RequestEffect
from relist.requests import INITIALIZED, Client, cancellation_of, request_of
from relist.values import Era


class Frame(NamedTuple):
    """One message to send, never a batch, and its headers over HTTP. Rule: LIFE-09."""

    message: JSONRPCRequest | JSONRPCNotification
    headers: dict[str, str]


class Voice:
    """Who speaks, and how: the client's identity and capabilities, the era and version in force."""

    __slots__ = ("_capabilities", "_client_info", "_era", "_version")

    def __init__(self, client_info: dict[str, Any], capabilities: dict[str, Any]) -> None:
        self._client_info = client_info
        self._capabilities = capabilities
        self._era: Era | None = None
        self._version = ""

    @property
    def era(self) -> Era | None:
        """The era in force, once it is known."""
        return self._era

    @property
    def version(self) -> str:
        """The version in force; empty before it is known."""
        return self._version

    def settle(self, era: Era | None, version: str) -> None:
        """From now on speak in this era and version. Rule: LIFE-06."""
        self._era, self._version = era, version

    def meta(self, version: str) -> dict[str, Any]:
        """The metadata that each modern request carries. Rule: LIFE-20, LIFE-21."""
        return {
            PROTOCOL_VERSION_META_KEY: version,
            CLIENT_INFO_META_KEY: self._client_info,
            CLIENT_CAPABILITIES_META_KEY: self._capabilities,
        }

    def envelope(
        self, method: str, params: dict[str, Any], name: str | None = None
    ) -> tuple[dict[str, Any], dict[str, str]]:
        """Params and headers of an ordinary request, in the manner of the era in force.

        ``name`` is what the request is about: a tool, prompt or resource.
        Rule: DISC-34, LIFE-07, LIFE-22, LIFE-23.
        """
        headers = {MCP_PROTOCOL_VERSION_HEADER: self._version}
        if self._era is not Era.MODERN:
            return params, headers
        headers[MCP_METHOD_HEADER] = method
        if name is not None:
            headers[MCP_NAME_HEADER] = encode_header_value(name)
        return {**params, "_meta": self.meta(self._version)}, headers

    def request(self, request_id: str, effect: RequestEffect) -> Frame:
        """The request that an effect asks for. Rule: LIFE-01, SUB-02, SUB-03."""
        method, params = request_of(effect, Client(self._client_info, self._capabilities))
        match effect:
            case e.RequestDiscover():
                params["_meta"] = self.meta(effect.version)
                headers = {MCP_PROTOCOL_VERSION_HEADER: effect.version, MCP_METHOD_HEADER: method}
            case e.RequestInitialize():
                headers = {}
            case _:
                params, headers = self.envelope(method, params)
        body: dict[str, Any] = {"params": params} if params else {}
        return Frame(JSONRPCRequest(jsonrpc="2.0", id=request_id, method=method, **body), headers)

    def initialized(self) -> Frame:
        """``notifications/initialized``."""
        message = JSONRPCNotification(jsonrpc="2.0", method=INITIALIZED)
        return Frame(message, {MCP_PROTOCOL_VERSION_HEADER: self._version})

    def cancel(self, request_id: str, reason: str) -> Frame:
        """``notifications/cancelled``; the modern HTTP transport closes the stream instead.

        Rule: FAIL-11, FAIL-24, SUB-17, SUB-18.
        """
        method, params = cancellation_of(request_id, reason)
        message = JSONRPCNotification(jsonrpc="2.0", method=method, params=params)
        return Frame(message, {MCP_PROTOCOL_VERSION_HEADER: self._version})
