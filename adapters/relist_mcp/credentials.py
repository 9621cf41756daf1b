"""What a client shows to be let in, and whose it is. Never logged, never part of a state."""

import os
from collections.abc import Mapping
from hashlib import blake2b

import httpx2
from attrs import Factory, field, frozen

from relist import effects as e
from relist.session import Session
from relist.values import Kind, LinkPhase, Parked
from relist_mcp.loop import Fed

_SALT = os.urandom(16)


def _partition(credentials: "Credentials") -> str:
    """A digest that says nothing outside of this process: equal exactly for equal credentials."""
    if not (credentials.headers or credentials.env or credentials.auth):
        return ""
    digest = blake2b(key=_SALT, digest_size=16)
    auth = "" if credentials.auth is None else str(id(credentials.auth))
    for part in (*_flat(credentials.headers), "", *_flat(credentials.env), "", auth):
        digest.update(len(part).to_bytes(8, "big") + part.encode())
    return digest.hexdigest()


def _flat(pairs: Mapping[str, str]) -> list[str]:
    return [part for pair in sorted(pairs.items()) for part in pair]


@frozen(kw_only=True)
class Credentials:
    """``headers`` and ``auth`` go with each HTTP request, ``env`` to a process that is started.

    ``partition`` names whose they are, and is no secret: lists that are private are readable under
    the partition they were listed in. By default each change of credentials is another partition;
    name one where only a token is renewed. Rule: AUTH-02 to AUTH-04, AUTH-10.
    """

    headers: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    env: Mapping[str, str] = field(factory=dict[str, str], repr=False)
    auth: httpx2.Auth | None = field(default=None, repr=False)
    partition: str = field(default=Factory(_partition, takes_self=True))


NOBODY = Credentials()


@frozen
class NeedsCredentials:
    """Authorization failed, and nothing is tried again until credentials change.

    ``kinds`` are those whose lists were refused; none if it is the link. Rule: AUTH-05, FAIL-04.
    """

    kinds: frozenset[Kind]


def needed(session: Session) -> NeedsCredentials | None:
    """What authorization has failed by now, if any."""
    if session.link.phase is LinkPhase.PARKED:
        return NeedsCredentials(frozenset())
    refused = frozenset(
        catalog.kind
        for catalog in session.catalogs
        if catalog.pacing.parked is Parked.AUTHORIZATION
    )
    return NeedsCredentials(refused) if refused else None


class Needs:
    """Counts how often credentials turned out not to do: one need lasts until they do again."""

    __slots__ = ("count",)

    def __init__(self) -> None:
        self.count = 0

    def observe(self, fed: Fed) -> None:
        """See ``loop``."""
        if not fed.effects:  # as in most of a storm
            return
        failed = any(isinstance(effect, e.NeedCredentials) for effect in fed.effects)
        if failed and needed(fed.before) is None:
            self.count += 1
