"""Which server is meant, and who it is, by evidence that is ours: never by what it says of itself.

Rule: DRIFT-11, DRIFT-12.
"""

import shlex
from collections.abc import Iterable

import httpx2
from attrs import field, frozen

from relist.drift.values import ServerIdentity
from relist_conformance.errors import ConformanceError, quoted
from relist_conformance.watch_options import credentials_from, target_from
from relist_mcp.credentials import Credentials
from relist_mcp.targets import Http, Stdio


@frozen
class Asked:
    """A target, and what was said of it on the command line."""

    words: tuple[str, ...]
    id: str | None = None
    endpoint: str | None = None
    artefact: str | None = None
    audience: str | None = None
    headers: tuple[str, ...] = field(default=(), repr=False)
    headers_from_env: tuple[str, ...] = ()
    env: tuple[str, ...] = ()
    partition: str = ""
    timeout_s: float = 30.0

    def target(self) -> Stdio | Http:
        """Where it is. Raises ConformanceError."""
        return target_from(self.words)[0]

    def credentials(self) -> Credentials:
        """What it is shown. Raises ConformanceError."""
        found = credentials_from(self.target(), self.headers, self.headers_from_env, self.env)
        return Credentials(
            headers=found.headers, env=found.env, auth=found.auth, partition=self.partition
        )


def identity(asked: Asked, known: Iterable[ServerIdentity]) -> ServerIdentity:
    """Who it is. What is known under its id, or else by its endpoint, is taken as said again.

    Without a name of ours it is called as it is reached. Raises ConformanceError.
    """
    endpoint = asked.endpoint or _endpoint(asked.target())
    by_id = {server.id: server for server in known}
    same = [server for server in by_id.values() if server.endpoint == endpoint]
    id = asked.id or (same[0].id if len(same) == 1 else endpoint)
    before = by_id.get(id, ServerIdentity(id))
    return ServerIdentity(
        id, endpoint, asked.artefact or before.artefact, asked.audience or before.audience
    )


def _endpoint(target: Stdio | Http) -> str:
    """How it is reached: this is kept and shown, so it must hold no secret."""
    if isinstance(target, Stdio):
        return shlex.join(target.command)
    url = httpx2.URL(target.url)
    if url.userinfo or url.query:
        raise ConformanceError(
            "TARGET: the URL has a user or a query, which may be secret: say with --endpoint what"
            " is to be kept of it"
        )
    return str(url.copy_with(fragment=None))


def must_be_known(server: ServerIdentity, known: Iterable[ServerIdentity]) -> None:
    """Raises ConformanceError where this id is none of those."""
    ids = [one.id for one in known]
    if server.id not in ids:
        named = ", ".join(quoted(id) for id in ids) or "none"
        raise ConformanceError(
            f"no server is known as {quoted(server.id)}: say with --id which it is, of {named}"
        )
