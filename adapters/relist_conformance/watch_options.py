"""The options of ``relist watch``, checked. No message shows a value that may be a secret."""

import math
import os
import re
import shutil
from collections.abc import Sequence
from pathlib import Path

import httpx2
from attrs import field, frozen

from relist.policy import Policy
from relist.presets import preset
from relist_conformance.errors import ConformanceError, plain, quoted
from relist_mcp.credentials import Credentials
from relist_mcp.targets import Http, Stdio, target_of

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_HEADER_VALUE = re.compile(r"[\t\x20-\x7e]*")
_SCHEMES = ("http", "https")


@frozen
class WatchOptions:
    """What to watch, how, and until when. ``title`` says what, and holds no secret."""

    target: Stdio | Http
    title: str
    credentials: Credentials = field(repr=False)
    policy: Policy = field(repr=False)
    json: bool
    record: Path | None
    for_s: float | None
    until_idle: bool


def target_from(words: Sequence[str]) -> tuple[Stdio | Http, str]:
    """The server that is meant, and a title for it: without what may be a secret in it.

    Raises ConformanceError.
    """
    try:
        target = target_of(words[0] if len(words) == 1 else tuple(words))
    except ValueError as error:  # no closing quotation, or no word
        raise ConformanceError(f"TARGET {quoted(' '.join(words))}: {error}") from None
    if isinstance(target, Http):
        return target, _title(target.url)
    assert isinstance(target, Stdio)  # words are nothing else
    program = target.command[0]
    if "://" in program:
        wrong = "a URL must begin with http:// or https://, and no word may follow it"
        raise ConformanceError(f"TARGET {quoted(_without_secrets(program))}: {wrong}")
    if shutil.which(program) is None:
        raise ConformanceError(f"TARGET: the command {quoted(program)} is not to be found")
    return target, _named(target)


def _named(target: Stdio) -> str:
    """The program, and the script that it runs: other words may be secrets."""
    program, *words = target.command
    script = words[:1] if words and Path(words[0]).is_file() else []
    return plain(" ".join((program, *script, *(["..."] if words[len(script) :] else []))))


def _title(url: str) -> str:
    """The URL without user, password and query. Raises ConformanceError if it is none."""
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        parts = httpx2.URL("")
    if parts.scheme not in _SCHEMES or not parts.host:
        raise ConformanceError(f"TARGET {quoted(_without_secrets(url))} is no URL")
    return plain(str(parts.copy_with(userinfo=b"", query=None, fragment=None)))


def _without_secrets(url: str) -> str:
    return re.sub(r"//[^/]*@", "//...@", url).partition("?")[0]


def credentials_from(
    target: Stdio | Http, headers: Sequence[str], from_env: Sequence[str], env: Sequence[str]
) -> Credentials:
    """What is shown to the server: headers to a URL, variables of our environment to a command.

    ``headers`` are ``Name: value``, ``from_env`` are ``Name: VARIABLE``. Raises ConformanceError.
    """
    if isinstance(target, Http) and env:
        raise ConformanceError("--env is for a command; a URL has --header and --header-env")
    if isinstance(target, Stdio) and (headers or from_env):
        raise ConformanceError("--header and --header-env are for a URL; a command has --env")
    found: dict[str, str] = {}
    for given in headers:
        _add(found, "--header", *_split("--header", given, "'Name: value'"))
    for given in from_env:
        name, variable = _split("--header-env", given, "'Name: VARIABLE'")
        _add(found, "--header-env", name, _variable("--header-env", variable))
    return Credentials(headers=found, env={name: _variable("--env", name) for name in env})


def _split(option: str, given: str, form: str) -> tuple[str, str]:
    name, colon, value = given.partition(":")
    if not colon or not _HEADER_NAME.fullmatch(name):
        raise ConformanceError(f"{option} must be {form}; what was given is not shown")
    return name, value.strip()


def _add(found: dict[str, str], option: str, name: str, value: str) -> None:
    if not _HEADER_VALUE.fullmatch(value):
        raise ConformanceError(f"{option} {name}: the value has characters that no header may have")
    if name.lower() in map(str.lower, found):
        raise ConformanceError(f"{option} {name}: this header was given before")
    found[name] = value


def _variable(option: str, name: str) -> str:
    value = os.environ.get(name)
    if value is None:
        raise ConformanceError(f"{option}: the environment has no variable {quoted(name)}")
    return value


def policy_from(revision: str | None, *, lazy: bool, poll_s: float | None) -> Policy:
    """How the client behaves, with a random seed. Raises ConformanceError."""
    if lazy and poll_s is not None:
        raise ConformanceError("--poll lists by itself, --lazy only when asked: choose one")
    poll_ms = None if poll_s is None else max(1, int(seconds("--poll", poll_s) * 1000))
    if revision is None:
        return Policy(seed=os.urandom(16), lazy=lazy, poll_ms=poll_ms)
    return preset(revision, os.urandom(16), lazy=lazy, poll_ms=poll_ms)


def seconds(option: str, given: float) -> float:
    """A duration. Raises ConformanceError for one that is not finite and more than nothing."""
    if not (math.isfinite(given) and given > 0):
        raise ConformanceError(f"{option} must be a number of seconds above 0, not {given}")
    return given
