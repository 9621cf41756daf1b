"""A client of the official suite, in a few lines: it lists the tools as its environment says.

Usage: ``official.py [FAULT] URL``. The fault ``first-page`` reads one page only. For stdio the last
argument is a command. It uses nothing but the standard library.
"""

import json
import os
import shlex
import subprocess
import sys
import urllib.request
from collections.abc import Callable
from typing import Any

VERSION = os.environ["MCP_CONFORMANCE_PROTOCOL_VERSION"]
SCENARIO = os.environ["MCP_CONFORMANCE_SCENARIO"]
MODERN = VERSION >= "2026"
META = {
    "io.modelcontextprotocol/protocolVersion": VERSION,
    "io.modelcontextprotocol/clientInfo": {"name": "wire", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
Message = dict[str, Any]
Exchange = Callable[[Message], Any]


def over_http(url: str) -> Exchange:
    session: dict[str, str] = {}

    def exchange(message: Message) -> Any:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": VERSION,
            "Mcp-Method": message["method"],
            **session,
        }
        if "name" in message.get("params", {}):
            headers["Mcp-Name"] = message["params"]["name"]
        request = urllib.request.Request(url, json.dumps(message).encode(), headers)
        with urllib.request.urlopen(request) as answer:
            if "mcp-session-id" in answer.headers:
                session["Mcp-Session-Id"] = answer.headers["mcp-session-id"]
            body = answer.read().decode()
        for line in body.splitlines():
            if line.startswith("data: {"):
                body = line.removeprefix("data: ")
        return json.loads(body) if body else None

    return exchange


def over_stdio(command: str) -> Exchange:
    assert json.loads(os.environ["MCP_CONFORMANCE_CONTEXT"])["command"] == shlex.split(command)
    server = subprocess.Popen(
        shlex.split(command), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1
    )
    reader, writer = server.stdout, server.stdin
    assert reader
    assert writer

    def exchange(message: Message) -> Any:
        writer.write(json.dumps(message) + "\n")
        return json.loads(reader.readline()) if "id" in message else None

    return exchange


def main(fault: str, target: str) -> None:
    if SCENARIO not in ("tools_call", "initialize"):
        print(f"Unknown scenario: {SCENARIO}", file=sys.stderr)
        sys.exit(1)
    exchange = over_http(target) if target.startswith("http") else over_stdio(target)

    def request(number: int, method: str, params: Message) -> Any:
        sent = {**params, "_meta": META} if MODERN else params
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": sent}
        return exchange(message)["result"]

    if MODERN:
        request(0, "server/discover", {})
    else:
        client = {"name": "wire", "version": "1"}
        hello = {"protocolVersion": VERSION, "capabilities": {}, "clientInfo": client}
        request(0, "initialize", hello)
        exchange({"jsonrpc": "2.0", "method": "notifications/initialized"})
    page = request(1, "tools/list", {})
    tool = page["tools"][0]["name"]
    for number in range(2, 100):
        if "nextCursor" not in page or fault == "first-page":
            break
        page = request(number, "tools/list", {"cursor": page["nextCursor"]})
    if SCENARIO == "tools_call":
        request(100, "tools/call", {"name": tool, "arguments": {}})


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 2 else "", sys.argv[-1])
