"""The loop that the documentation shows is complete: it runs against a server that misbehaves."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]

# Lists two pages; after the first listing it says something odd, changes, and announces it; after
# the second it dies, as it does when its ping is not answered. So does its successor.
SERVER = """
import json, os, sys

tools, listings, answered = ["a"], 0, False

def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

for line in sys.stdin:
    asked = json.loads(line)
    if "result" in asked:
        answered = asked["id"] == 7
    elif asked["method"] == "initialize":
        version = asked["params"]["protocolVersion"]
        offer = {"tools": {"listChanged": True}}
        about = {"protocolVersion": version, "capabilities": offer, "serverInfo": {}}
        say(id=asked["id"], result=about)
    elif asked["method"] == "tools/list":
        first = "cursor" not in asked["params"]
        if listings == 1 and not answered:
            os._exit(2)
        page = tools[:1] if first else tools[1:]
        entries = [{"name": name, "inputSchema": {"type": "object"}} for name in page]
        more = {"nextCursor": "x"} if first else {}
        say(id=asked["id"], result={"tools": entries, **more})
        listings += not first
        if not first and listings == 1:
            tools.append("b")
            print("no json\\n" + "[" * 200_000, flush=True)
            say(id="unknown", result={})
            say(id=7, method="ping")
            say(method="notifications/tools/list_changed")
        elif not first:
            os._exit(1)
"""

HOST = """
import itertools, sys

for kind, snapshot in itertools.islice(lists([sys.executable, sys.argv[1]]), 4):
    print(kind.value, snapshot.epoch, *(item.key for item in snapshot.items))
"""


def test_the_loop_lists_hears_and_restarts(tmp_path: Path) -> None:
    text = (ROOT / "specs" / "embedding.md").read_text()
    found = re.search(r"<!-- test: loop -->\n```python\n(.*?)```", text, re.DOTALL)
    assert found is not None
    assert len([line for line in found[1].splitlines() if line]) <= 40
    (tmp_path / "server.py").write_text(SERVER)
    result = subprocess.run(
        [sys.executable, "-c", found[1] + HOST, str(tmp_path / "server.py")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert result.stdout.splitlines() == ["tools 1 a", "tools 1 a b", "tools 2 a", "tools 2 a b"]
