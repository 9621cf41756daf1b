"""A server of the legacy era that writes its list of tools as it stands in a file, byte for byte.

    python raw_server.py FILE

No SDK would write what is in such files. The file is read for each listing; it is JSON in one line.
"""

import json
import sys
from pathlib import Path

VERSION = "2025-11-25"
INFO = {"name": "raw", "version": "1"}
WELCOME = {"protocolVersion": VERSION, "capabilities": {"tools": {}}, "serverInfo": INFO}


def answer(method: str, path: Path) -> bytes:
    """The rest of the answer, after the id."""
    if method == "initialize":
        return b'"result":' + json.dumps(WELCOME).encode()
    if method == "tools/list":
        return b'"result":{"tools":' + path.read_bytes().strip() + b"}"
    if method == "ping":
        return b'"result":{}'
    return b'"error":{"code":-32601,"message":"Method not found"}'


def main(path: str) -> None:
    """Until stdin closes."""
    for line in sys.stdin:
        asked = json.loads(line)
        if "id" in asked and "method" in asked:
            head = b'{"jsonrpc":"2.0","id":' + json.dumps(asked["id"]).encode() + b","
            sys.stdout.buffer.write(head + answer(asked["method"], Path(path)) + b"}\n")
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
