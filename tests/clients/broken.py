"""A driver that breaks the contract in the way its first argument names."""

import json
import sys
import time

HELLO = {
    "contract": 1,
    "name": "broken",
    "version": "1",
    "level": "full",
    "ops": [],
    "transports": ["stdio"],
    "revisions": ["2025-11-25"],
    "kinds": ["tools"],
}


def say(line: str) -> None:
    print(line, flush=True)


def main(how: str) -> None:
    if how == "exits":
        print("starting", file=sys.stderr)
        print("no such module: [bold]client", file=sys.stderr)
        sys.exit(3)
    for line in sys.stdin:
        command = json.loads(line)
        answer = {"id": command["id"], "ok": HELLO}
        hello = command["op"] == "hello"
        if command["op"] == "stop":
            say(json.dumps({"id": command["id"], "ok": {}}))
        elif how == "garbage":
            say("\x1b[31m[bold]Hello! " + "x" * 500)
        elif how == "endless":
            say("x" * (5 * 1024 * 1024))
        elif how == "foreign id":
            say(json.dumps({"id": 99, "ok": {}}))
        elif how == "contract":
            say(json.dumps({"id": command["id"], "ok": {**HELLO, "contract": 2}}))
        elif how == "hello field":
            say(json.dumps({"id": command["id"], "ok": {**HELLO, "level": "[red]godlike"}}))
        elif how == "hangs":
            pass
        elif hello:
            say(json.dumps(answer))
        elif how == "exits later":
            print("Traceback\nKeyError: 'kind'", file=sys.stderr)
            sys.exit(4)
        elif how == "neither":
            say(json.dumps({"id": command["id"], "result": {}}))
        elif how == "stays":
            pass
    if how == "stays":  # past the end of its stdin
        time.sleep(600)


if __name__ == "__main__":
    main(sys.argv[1])
