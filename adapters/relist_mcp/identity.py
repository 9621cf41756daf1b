"""Who a server is: where we were told to find it, and what it says of itself.

What it says proves nothing (AGG-12) and is for people to read. It is the one text of a server that
may be logged and shown as it is, so it is cut short and holds no character that could be taken for
anything else.
"""

import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import PurePath
from typing import Any
from urllib.parse import urlsplit

from attrs import frozen
from mcp_types import SERVER_INFO_META_KEY

from relist.messages import is_object
from relist_mcp.targets import Http, Stdio, Target

CLIENT_VERSION = version("relist")
TEXT_MAX = 64  # characters of a name or version
_UNSAFE = re.compile(r"[^A-Za-z0-9 ._:+/@-]")


@frozen
class Identity:
    """``address``: a host and port, or a program; empty for streams that somebody else opens.

    ``name`` and ``version`` are empty until the server of this epoch has said them.
    """

    address: str = ""
    name: str = ""
    version: str = ""


NOBODY_YET = Identity()


def plain(text: object) -> str:
    """A text that is safe to print anywhere: cut short, ``?`` for what is not a plain character."""
    return _UNSAFE.sub("?", text[:TEXT_MAX]) if isinstance(text, str) else ""


def identity_in(result: Mapping[str, Any]) -> Identity:
    """What the result of ``initialize`` or ``server/discover`` says of its server. Never raises."""
    meta = result.get("_meta")
    stamp = meta.get(SERVER_INFO_META_KEY) if is_object(meta) else None
    said = stamp if stamp is not None else result.get("serverInfo")
    if not is_object(said):
        return NOBODY_YET
    return Identity("", plain(said.get("name")), plain(said.get("version")))


def instructions_in(result: Mapping[str, Any]) -> str | None:
    """How to use the server, as it says itself: a text for models, never logged."""
    said = result.get("instructions")
    return said if isinstance(said, str) else None


def address_of(target: Target) -> str:
    """Where a target is, without what may be secret: no path, no query, no user, no argument."""
    match target:
        case Http():
            try:
                parts = urlsplit(target.url)
                host, port = parts.hostname or "", parts.port
            except ValueError:
                return ""
            return plain(host if port is None else f"{host}:{port}")
        case Stdio():
            return plain(PurePath(target.command[0]).name)
        case _:
            return ""
