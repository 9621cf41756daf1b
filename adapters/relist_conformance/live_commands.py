"""``relist watch`` and ``relist replay``.

Exit codes of ``watch``: 0 it ended as asked, 1 ``--until-idle`` and not all lists are fresh, 130
interrupted. Of ``replay``: 0 every promise holds, 1 one is broken, or with ``--strict`` a step is
otherwise than recorded; of a result of ``relist check``: 0 every verdict is as recorded, 1 one
differs, or with ``--strict`` a finding does or something cannot be judged anew. Of both commands: 2
for bad input.
"""

import logging
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from relist.presets import PRESETS
from relist_conformance.commands import console_of, one_line_errors
from relist_conformance.errors import ConformanceError, quoted

_Target = Annotated[
    list[str],
    typer.Argument(
        metavar="TARGET...",
        help="A URL, or the command of a server; put -- before a command that has options.",
    ),
]
_Headers = Annotated[
    list[str] | None,
    typer.Option(
        "--header",
        metavar="'NAME: VALUE'",
        help="Send this header to a URL. Others on this machine may see it: prefer --header-env.",
    ),
]
_HeadersFromEnv = Annotated[
    list[str] | None,
    typer.Option(
        metavar="'NAME: VARIABLE'",
        help="Send this header to a URL; its value is that of an environment variable.",
    ),
]
_Env = Annotated[
    list[str] | None,
    typer.Option(metavar="VARIABLE", help="Give this variable of the environment to a command."),
]
_Json = Annotated[
    bool, typer.Option("--json", help="One JSON object a line (watch.schema.json); no live view.")
]
_Record = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Write a trace for 'relist replay'. It holds the lists as the server sent them, and"
        " no credentials.",
    ),
]
_Revision = Annotated[
    str | None,
    typer.Option(
        metavar="REVISION", help=f"Speak just this one, of {', '.join(PRESETS)} [both eras]."
    ),
]
_Lazy = Annotated[
    bool, typer.Option("--lazy", help="List nothing: only watch connection and notices.")
]
_Poll = Annotated[
    float | None,
    typer.Option(metavar="SECONDS", help="List again this often, for servers that never notify."),
]
_For = Annotated[float | None, typer.Option("--for", metavar="SECONDS", help="End after so long.")]
_UntilIdle = Annotated[
    bool,
    typer.Option(
        "--until-idle",
        help="End when nothing is under way; with --for, at the latest then. Exit with 1 if not"
        " all lists are fresh.",
    ),
]


def watch(
    target: _Target,
    header: _Headers = None,
    header_env: _HeadersFromEnv = None,
    env: _Env = None,
    json: _Json = False,
    record: _Record = None,
    revision: _Revision = None,
    lazy: _Lazy = False,
    poll: _Poll = None,
    for_: _For = None,
    until_idle: _UntilIdle = False,
) -> None:
    """Watch a live server: phases, notices, walks, what changes, retries. Ctrl-C ends it."""
    with one_line_errors():
        if revision is not None and revision not in PRESETS:
            known = ", ".join(PRESETS)
            raise ConformanceError(f"--revision {quoted(revision)} is not one of {known}")
        import anyio

        from relist_conformance import watch_options as w
        from relist_conformance.watch import run_watch

        found, title = w.target_from(target)
        options = w.WatchOptions(
            target=found,
            title=title,
            credentials=w.credentials_from(found, header or (), header_env or (), env or ()),
            policy=w.policy_from(revision, lazy=lazy, poll_s=poll),
            json=json,
            record=record,
            for_s=None if for_ is None else w.seconds("--for", for_),
            until_idle=until_idle,
        )
        # What a server does wrong is told as an event; what its client says of it only confuses.
        logging.getLogger().addHandler(logging.NullHandler())
        code = anyio.run(partial(run_watch, options, console_of(), console_of(stderr=True)))
        if code is None:
            raise KeyboardInterrupt
        raise typer.Exit(code)


def replay(
    file: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="A trace of 'relist watch', or a result of 'relist check --json'."
        ),
    ],
    strict: Annotated[
        bool, typer.Option("--strict", help="Count a difference from the recording as a failure.")
    ] = False,
    case: Annotated[
        list[str] | None,
        typer.Option(metavar="GLOB", help="Of a result: only cases whose id matches."),
    ] = None,
    revision: Annotated[
        list[str] | None, typer.Option(metavar="REVISION", help="Of a result: only this one.")
    ] = None,
    transport: Annotated[
        list[str] | None, typer.Option(metavar="TRANSPORT", help="Of a result: only this one.")
    ] = None,
    cases: Annotated[
        Path | None,
        typer.Option("--cases", metavar="DIR", help="Of a result: add the cases of this folder."),
    ] = None,
) -> None:
    """Feed a recorded trace to the law, or judge the plays of a recorded result anew."""
    with one_line_errors():
        from relist_conformance.rejudge import Choice, is_result, run_rejudge
        from relist_conformance.replay import run_replay

        out, err = console_of(), console_of(stderr=True)
        choice = Choice(tuple(case or ()), tuple(revision or ()), tuple(transport or ()))
        if is_result(file):
            raise typer.Exit(run_rejudge(file, choice, cases, out, strict=strict))
        if choice != Choice() or cases is not None:
            raise ConformanceError("--case, --revision, --transport and --cases are for results")
        raise typer.Exit(run_replay(file, out, err, strict=strict))
