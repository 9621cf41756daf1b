"""A page as a real browser sees it: headless Chromium, which asks nobody for anything."""

import json
import re
import shutil
import subprocess
from pathlib import Path

from attrs import frozen

CHROMIUM = shutil.which("chromium")
_BROWSERS_OWN = "not an origin"
_FLAGS = (
    "--headless",
    "--no-sandbox",  # containers have none; the pages are ours
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--host-resolver-rules=MAP * ~NOTFOUND",
    "--enable-logging=stderr",
    "--virtual-time-budget=3000",
)


@frozen
class Seen:
    """What became of the page: its elements, what it said on the console, what it asked for."""

    dom: str
    console: tuple[str, ...]
    requests: tuple[str, ...]


def see(page: Path, fragment: str = "") -> Seen:
    """Open a page, let its script run, and look at it. ``page`` stands in a folder of its own."""
    assert CHROMIUM is not None
    net_log = page.with_suffix(".net.json")
    done = subprocess.run(
        [
            CHROMIUM,
            *_FLAGS,
            f"--user-data-dir={page.parent / 'profile'}",
            f"--log-net-log={net_log}",
            "--dump-dom",
            f"{page.as_uri()}{fragment}",
        ],
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=True,
    )
    said = re.findall(r"CONSOLE:\d+\] (.*)", done.stderr)
    found = (event.get("params", {}) for event in json.loads(net_log.read_text())["events"])
    asked = {
        one["url"]
        for one in found
        if "url" in one and one.get("initiator") not in (None, _BROWSERS_OWN)
    }
    return Seen(done.stdout, tuple(said), tuple(sorted(asked)))
