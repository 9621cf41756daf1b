"""A server of the legacy era that offers what a file says, at the moment it is asked.

    python offering.py FILE

The file is an object with lists of ``tools``, ``prompts`` and ``resources`` as MCP spells them; a
kind that it does not name when the server starts is not offered. ``log`` is written to stderr,
``exit`` ends the process. It needs no SDK, which takes a second to load: many commands start one.
"""

import json
import sys
from pathlib import Path
from typing import Any

KINDS = ("tools", "prompts", "resources")
INFO = {"name": "offering", "version": ""}


def answer(method: str, path: Path, kinds: list[str]) -> dict[str, Any]:
    """The result or the error of one request."""
    kind = method.removesuffix("/list")
    if method == "initialize":
        capabilities: dict[str, Any] = {kind: {} for kind in kinds}
        welcome = {"protocolVersion": "2025-11-25", "capabilities": capabilities}
        return {"result": {**welcome, "serverInfo": INFO}}
    if method == "ping":
        return {"result": {}}
    if kind != method and kind in kinds:
        return {"result": {kind: json.loads(path.read_text())[kind]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


def main(path: str) -> None:
    """Serve what the file says, until stdin closes."""
    offered = json.loads(Path(path).read_text())
    print(offered.get("log", ""), file=sys.stderr, flush=True)
    if "exit" in offered:
        sys.exit(offered["exit"])
    kinds = [kind for kind in KINDS if kind in offered]
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            said = answer(asked["method"], Path(path), kinds)
            print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
