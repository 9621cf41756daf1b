"""``relist pin``, ``status``, ``review``, ``approve``, ``reject``, ``rebind``, ``confirm``,
``audit``, ``lock`` and ``verify``: their options.

Exit codes: 0 nothing is open, or done; 1 something is open, declined, or has drifted; 2 bad input,
or a store or lock file that cannot be relied on; 3 the server could not be observed completely; 130
interrupted. Whatever asks, asks on stderr and reads a line of stdin; no answer is a no.
"""

import logging
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from relist_conformance.commands import console_of, one_line_errors
from relist_conformance.errors import ConformanceError, quoted

if TYPE_CHECKING:
    from relist.drift.values import Chosen
    from relist_conformance.drift.acting import Said
    from relist_conformance.drift.target import Asked

_CONSUMER = "default"
_METAVAR = "TARGET..."
_HELP = "A URL, or the command of a server; put -- before a command that has options."

_Target = Annotated[list[str], typer.Argument(metavar=_METAVAR, help=_HELP)]
_Perhaps = Annotated[
    list[str] | None, typer.Argument(metavar=f"[{_METAVAR}]", help=f"Observe it first. {_HELP}")
]
_Store = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", envvar="RELIST_STORE", help="Where approvals are kept [your data folder]."
    ),
]
_Consumer = Annotated[str, typer.Option(metavar="NAME", help="Whom it is for.")]
_OfConsumer = Annotated[
    str | None, typer.Option("--consumer", metavar="NAME", help="Only for this one.")
]
_Who = Annotated[
    str | None, typer.Option(metavar="NAME", help="Who decides, for the history [you].")
]
_Why = Annotated[str, typer.Option(metavar="TEXT", help="Why, for the history.")]
_Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_Json = Annotated[bool, typer.Option("--json", help="Tell it as JSON on stdout.")]
_Id = Annotated[
    str | None, typer.Option(metavar="NAME", help="What you call the server [as it is reached].")
]
_Endpoint = Annotated[
    str | None,
    typer.Option(metavar="TEXT", help="What to keep as evidence of where it is [TARGET]."),
]
_Artefact = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Evidence: package or image, and publisher.")
]
_Audience = Annotated[
    str | None, typer.Option(metavar="TEXT", help="Evidence: whom its tokens are for.")
]
_Headers = Annotated[
    list[str] | None, typer.Option("--header", metavar="'NAME: VALUE'", help="Send it to a URL.")
]
_HeadersFromEnv = Annotated[
    list[str] | None,
    typer.Option(metavar="'NAME: VARIABLE'", help="The same, from the environment."),
]
_Env = Annotated[
    list[str] | None, typer.Option(metavar="VARIABLE", help="Give this variable to a command.")
]
_Partition = Annotated[
    str, typer.Option(metavar="NAME", help="Whose view of the server this is, if it has several.")
]
_Timeout = Annotated[float, typer.Option(metavar="S", min=0.1, help="How long observing may take.")]
_Items = Annotated[
    list[str],
    typer.Argument(metavar="ITEM...", help="An id as 'relist review' shows it, or a key."),
]
_Only = Annotated[
    list[str] | None,
    typer.Option(metavar="GLOB", help="Only what has such a key, or SUBJECT/KEY."),
]
_WholeServer = Annotated[
    bool, typer.Option("--whole-server", help="Also what it offers later, as candidates.")
]
_Join = Annotated[
    bool, typer.Option("--join", help="With --whole-server: newcomers but tools need no review.")
]
_Rule = Annotated[str, typer.Option(metavar="RULE", help="allow, ask or deny.")]
_Risk = Annotated[
    str, typer.Option(metavar="RISK", help="'read only', 'side effects' or 'destructive'.")
]
_Import = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Import: wishes and approvals of this lock file."),
]
_LockFile = Annotated[Path, typer.Option("--lock", metavar="FILE", help="The lock file.")]


def pin(
    target: _Target,
    consumer: _Consumer = _CONSUMER,
    only: _Only = None,
    whole_server: _WholeServer = False,
    join: _Join = False,
    rule: _Rule = "ask",
    risk: _Risk = "destructive",
    lock: _Import = None,
    id: _Id = None,
    endpoint: _Endpoint = None,
    artefact: _Artefact = None,
    audience: _Audience = None,
    header: _Headers = None,
    header_env: _HeadersFromEnv = None,
    env: _Env = None,
    partition: _Partition = "",
    timeout: _Timeout = 30.0,
    store: _Store = None,
    who: _Who = None,
    why: _Why = "baseline",
    yes: _Yes = False,
    json: _Json = False,
) -> None:
    """Observe a server completely, show what it offers, and approve it as the baseline."""
    with one_line_errors():
        from relist_conformance.drift import acting, keeping
        from relist_conformance.drift.pinning import Wish

        _check_wish(only, lock, whole_server=whole_server, join=join)
        wish = Wish(
            consumer=consumer,
            whole_server=whole_server,
            join=join,
            only=tuple(only or ()),
            choice=_chosen(rule, risk),
            lock=None if lock is None else keeping.read_lock(lock),
        )
        given = (header, header_env, env)
        asked = _asked(target, id, endpoint, artefact, audience, given, partition, timeout)
        raise typer.Exit(acting.pin(_said(store, who, why, yes=yes, json=json), asked, wish))


def _check_wish(
    only: list[str] | None, lock: Path | None, *, whole_server: bool, join: bool
) -> None:
    if whole_server and only:
        raise ConformanceError("--only names items, --whole-server all of them: choose one")
    if join and not whole_server:
        raise ConformanceError("--join is for --whole-server")
    if lock is not None and (whole_server or only):
        raise ConformanceError("--lock says what is selected: neither --only nor --whole-server")


def status(
    target: _Perhaps = None,
    id: _Id = None,
    endpoint: _Endpoint = None,
    artefact: _Artefact = None,
    audience: _Audience = None,
    header: _Headers = None,
    header_env: _HeadersFromEnv = None,
    env: _Env = None,
    partition: _Partition = "",
    timeout: _Timeout = 30.0,
    store: _Store = None,
    json: _Json = False,
) -> None:
    """What each consumer sees, and what waits for a review."""
    with one_line_errors():
        from relist_conformance.drift import acting

        given = (header, header_env, env)
        asked = _asked(target, id, endpoint, artefact, audience, given, partition, timeout)
        said = _said(store, None, "", json=json)
        raise typer.Exit(acting.status(said, asked if target else None))


def review(
    target: _Perhaps = None,
    consumer: _OfConsumer = None,
    id: _Id = None,
    endpoint: _Endpoint = None,
    artefact: _Artefact = None,
    audience: _Audience = None,
    header: _Headers = None,
    header_env: _HeadersFromEnv = None,
    env: _Env = None,
    partition: _Partition = "",
    timeout: _Timeout = 30.0,
    store: _Store = None,
    who: _Who = None,
    why: _Why = "",
    json: _Json = False,
) -> None:
    """Decide about what is open, one after the other; with --json only list it."""
    with one_line_errors():
        from relist_conformance.drift import reviewing

        given = (header, header_env, env)
        asked = _asked(target, id, endpoint, artefact, audience, given, partition, timeout)
        said = _said(store, who, why, json=json)
        raise typer.Exit(reviewing.review(said, asked if target else None, consumer))


def approve(
    items: _Items,
    consumer: _Consumer = _CONSUMER,
    store: _Store = None,
    who: _Who = None,
    why: _Why = "",
    yes: _Yes = False,
) -> None:
    """Let definitions through; with --yes they are named by id, so that it is what was seen."""
    with one_line_errors():
        from relist_conformance.drift import acting

        raise typer.Exit(acting.approve(_said(store, who, why, yes=yes), consumer, items))


def reject(
    items: _Items,
    consumer: _Consumer = _CONSUMER,
    store: _Store = None,
    who: _Who = None,
    why: _Why = "",
    yes: _Yes = False,
) -> None:
    """Do not let definitions through; the wish for the item stays."""
    with one_line_errors():
        from relist_conformance.drift import acting

        raise typer.Exit(acting.reject(_said(store, who, why, yes=yes), consumer, items))


def rebind(
    old: Annotated[str, typer.Argument(metavar="OLD", help="The key of what was selected.")],
    new: Annotated[str, typer.Argument(metavar="NEW", help="The id or key of what it is now.")],
    consumer: _Consumer = _CONSUMER,
    store: _Store = None,
    who: _Who = None,
    why: _Why = "",
    yes: _Yes = False,
) -> None:
    """Say that an item has a new name, and approve it; the history of the old one stays."""
    with one_line_errors():
        from relist_conformance.drift import acting

        raise typer.Exit(acting.rebind(_said(store, who, why, yes=yes), consumer, old, new))


def confirm(
    server: Annotated[str, typer.Argument(metavar="SERVER", help="What you call the server.")],
    store: _Store = None,
    who: _Who = None,
    why: _Why = "",
    yes: _Yes = False,
) -> None:
    """Say that a server whose evidence has changed is still the same."""
    with one_line_errors():
        from relist_conformance.drift import acting

        raise typer.Exit(acting.confirm(_said(store, who, why, yes=yes), server))


def audit(
    after: Annotated[int, typer.Option(metavar="N", min=0, help="Only later entries.")] = 0,
    consumer: _OfConsumer = None,
    key: Annotated[str | None, typer.Option(metavar="KEY", help="Only about this item.")] = None,
    store: _Store = None,
    json: _Json = False,
) -> None:
    """The history: what was seen and decided, when, by whom and why."""
    with one_line_errors():
        from relist_conformance.drift import acting

        raise typer.Exit(acting.audit(_said(store, None, "", json=json), after, consumer, key))


def lock(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Where to write it.")] = Path(
        "relist.lock"
    ),
    store: _Store = None,
) -> None:
    """Write what is approved to a lock file, to be reviewed and committed."""
    with one_line_errors():
        from relist_conformance.drift import acting

        raise typer.Exit(acting.lock(_said(store, None, ""), file))


def verify(
    target: _Target,
    lock: _LockFile = Path("relist.lock"),
    sarif: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Also write a SARIF 2.1.0 log.")
    ] = None,
    id: _Id = None,
    endpoint: _Endpoint = None,
    artefact: _Artefact = None,
    audience: _Audience = None,
    header: _Headers = None,
    header_env: _HeadersFromEnv = None,
    env: _Env = None,
    partition: _Partition = "",
    timeout: _Timeout = 30.0,
    json: _Json = False,
) -> None:
    """Whether a server is as the lock file says: 0 yes, 1 no, 3 it could not be seen."""
    with one_line_errors():
        from relist_conformance.drift import verifying

        given = (header, header_env, env)
        asked = _asked(target, id, endpoint, artefact, audience, given, partition, timeout)
        said = _said(None, None, "", json=json)
        raise typer.Exit(verifying.verify(said, asked, lock, sarif))


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (pin, status, review, approve, reject, rebind, confirm, audit, lock, verify):
        app.command()(command)


# --- options to values ----------------------------------------------------------------------------


def _said(
    store: Path | None, who: str | None, why: str, *, yes: bool = False, json: bool = False
) -> "Said":
    from relist_conformance.drift.acting import Said
    from relist_conformance.drift.keeping import whoever

    # What a server does wrong is told as a failure; what its client says of it only confuses.
    logging.getLogger().addHandler(logging.NullHandler())
    out, err = console_of(), console_of(stderr=True)
    return Said(out, err, store, who or whoever(), why, yes, json)


def _asked(
    target: list[str] | None,
    id: str | None,
    endpoint: str | None,
    artefact: str | None,
    audience: str | None,
    given: tuple[list[str] | None, list[str] | None, list[str] | None],
    partition: str,
    timeout_s: float,
) -> "Asked":
    from relist_conformance.drift.target import Asked

    headers, from_env, env = (tuple(one or ()) for one in given)
    return Asked(
        words=tuple(target or ()),
        id=id,
        endpoint=endpoint,
        artefact=artefact,
        audience=audience,
        headers=headers,
        headers_from_env=from_env,
        env=env,
        partition=partition,
        timeout_s=timeout_s,
    )


def _chosen(rule: str, risk: str) -> "Chosen":
    from relist.drift.values import Chosen, Rule
    from relist.policy import Risk

    return Chosen(_member("--rule", rule, Rule), _member("--risk", risk, Risk))


_E = TypeVar("_E", bound=Enum)


def _member(option: str, given: str, kind: type[_E]) -> _E:
    try:
        return kind(given)
    except ValueError:
        known = ", ".join(str(one.value) for one in kind)
        raise ConformanceError(f"{option} {quoted(given)} is not one of {known}") from None
