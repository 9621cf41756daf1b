"""The command line: ``relist check``, ``list``, ``explain``, ``explore``, and what others declare.

Imports that cost time happen in the commands, so that ``relist --help`` is quick. Exit codes: 0
pass or warn, 1 fail, 2 the harness or its input is wrong, 3 inconclusive, 130 interrupted. For
``explore``: 0 all holds, 1 something does not or never happens, 3 a world was given up. For
``watch`` and ``replay`` see ``live_commands``, for ``pin`` to ``verify`` ``drift.commands``.
"""

import logging
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import attrs
import typer

import relist
from relist_conformance.commands import console_of, one_line_errors
from relist_conformance.drift.commands import register
from relist_conformance.errors import ConformanceError, quoted
from relist_conformance.live_commands import replay, watch
from relist_conformance.report_command import (
    BaselineFile,
    Html,
    Junit,
    Markdown,
    Sarif,
    chosen,
    report,
)

if TYPE_CHECKING:
    from relist_conformance.script import Case

REVISIONS = ("2025-11-25", "2026-07-28")
TRANSPORTS = ("stdio", "http")
PROFILES = ("relist", "mcp")

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="How an MCP client keeps its catalogs while the server changes: judged, and watched.",
)


@attrs.frozen
class CheckOptions:
    """The options of one ``relist check``, already checked. ``driver`` None is the reference;
    ``files`` are those to write, by option."""

    driver: str | None
    command: str | None
    url: str | None
    scenario: str
    patterns: tuple[str, ...]
    revisions: tuple[str, ...]
    transports: tuple[str, ...]
    profile: str
    cases: Path | None
    files: Mapping[str, Path]
    baseline: Path | None
    strict: bool
    port: int
    jobs: int
    patience_ms: int
    driver_timeout_s: float


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"relist {relist.__version__}")
        raise typer.Exit


@app.callback()
def _relist(
    _wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


_Driver = Annotated[
    str | None,
    typer.Option(metavar="COMMAND", help="The driver of the client to judge [the reference]."),
]
_Command = Annotated[
    str | None,
    typer.Option(
        metavar="COMMAND",
        help="Instead of a driver: a client of the official suite, started for each play with "
        "the server's URL as its last argument, and judged by what the server sees.",
    ),
]
_Url = Annotated[
    str | None,
    typer.Option(
        metavar="URL",
        help="Instead of a driver: a client that you connect by hand, case by case, to this URL "
        "(http://127.0.0.1:PORT/PATH), judged by what the server sees.",
    ),
]
_Scenario = Annotated[
    str,
    typer.Option(metavar="NAME", help="What --command is told to do; initialize only lists."),
]
_Patterns = Annotated[
    list[str] | None, typer.Option(metavar="GLOB", help="Only cases whose id matches.")
]
_Revisions = Annotated[
    list[str] | None, typer.Option(metavar="REVISION", help=f"Of {', '.join(REVISIONS)}.")
]
_Transports = Annotated[
    list[str] | None, typer.Option(metavar="TRANSPORT", help=f"Of {', '.join(TRANSPORTS)}.")
]
_Profile = Annotated[
    str, typer.Option(metavar="PROFILE", help="relist: all rules; mcp: those of MCP itself.")
]
_Cases = Annotated[
    Path | None, typer.Option("--cases", metavar="DIR", help="Add the cases of this folder.")
]
_Json = Annotated[Path | None, typer.Option(metavar="FILE", help="Also write the result as JSON.")]
_Strict = Annotated[bool, typer.Option("--strict", help="Count warn and untestable as failures.")]
_Port = Annotated[
    int, typer.Option(min=0, max=65535, help="Port of the HTTP server; 0 takes a free one.")
]
_Jobs = Annotated[int, typer.Option("-j", "--jobs", min=1, help="Plays at the same time.")]
_Patience = Annotated[
    int | None,
    typer.Option(
        metavar="MS",
        min=1,
        help="How long a step waits for the client [8000; with --url 60000].",
    ),
]
_DriverTimeout = Annotated[
    float, typer.Option(metavar="S", min=0.1, help="How long a driver may take to answer.")
]
_Worlds = Annotated[
    list[str] | None, typer.Option(metavar="GLOB", help="Only worlds whose name matches.")
]
_Larger = Annotated[
    bool, typer.Option("--larger", help="Explore the larger worlds as well: ten minutes.")
]
_OnlyList = Annotated[bool, typer.Option("--list", help="Only list the worlds, larger ones too.")]
_ScenesMax = Annotated[
    int | None, typer.Option(metavar="N", min=1, help="Give a world up beyond so many scenes.")
]


@app.command()
def check(
    driver: _Driver = None,
    command: _Command = None,
    url: _Url = None,
    scenario: _Scenario = "tools_call",
    case: _Patterns = None,
    revision: _Revisions = None,
    transport: _Transports = None,
    profile: _Profile = "relist",
    cases: _Cases = None,
    json: _Json = None,
    junit: Junit = None,
    sarif: Sarif = None,
    markdown: Markdown = None,
    html: Html = None,
    baseline: BaselineFile = None,
    strict: _Strict = False,
    port: _Port = 0,
    jobs: _Jobs = 8,
    patience: _Patience = None,
    driver_timeout: _DriverTimeout = 60.0,
) -> None:
    """Play all cases against a client and judge it. Without options: the reference client."""
    with one_line_errors():
        if sum(one is not None for one in (driver, command, url)) > 1:
            raise ConformanceError("--driver, --command and --url exclude each other")
        if (command or url) is not None and transport is None:
            transport = ["http"]  # all that the official suite has, and all that has a URL
        from relist_conformance.by_hand import PATIENCE_MS as BY_HAND_MS
        from relist_conformance.referee import PATIENCE_MS

        options = CheckOptions(
            driver=driver,
            command=command,
            url=url,
            scenario=scenario,
            patterns=tuple(case or ()),
            revisions=_among("--revision", revision, REVISIONS),
            transports=_among("--transport", transport, TRANSPORTS),
            profile=_among("--profile", [profile], PROFILES)[0],
            cases=cases,
            files=chosen(json=json, junit=junit, sarif=sarif, markdown=markdown, html=html),
            baseline=baseline,
            strict=strict,
            port=port,
            jobs=jobs if url is None else 1,
            patience_ms=patience or (PATIENCE_MS if url is None else BY_HAND_MS),
            driver_timeout_s=driver_timeout,
        )
        raise typer.Exit(_run(options))


@app.command("list")
def list_cases(cases: _Cases = None) -> None:
    """List the cases."""
    with one_line_errors():
        from relist_conformance.report.explain import print_list

        print_list(console_of(), _load(cases))


@app.command()
def explain(
    wanted: Annotated[str, typer.Argument(metavar="CASE|RULE", help="A case or rule id.")],
    cases: _Cases = None,
) -> None:
    """Explain a case, or each case that shows a rule."""
    with one_line_errors():
        from relist_conformance.report.explain import print_explanation

        print_explanation(console_of(), _load(cases), wanted)


@app.command()
def explore(
    world: _Worlds = None,
    larger: _Larger = False,
    only_list: _OnlyList = False,
    scenes_max: _ScenesMax = None,
    json: _Json = None,
) -> None:
    """Look at everything that can happen in small worlds of the law itself."""
    with one_line_errors():
        from relist_conformance.explore import chosen, run_explore
        from relist_conformance.report.worlds import print_list

        patterns = tuple(world or ())
        if only_list:
            print_list(console_of(), chosen(patterns, larger=True))
            return
        entries = chosen(patterns, larger=larger)
        err = console_of(stderr=True)
        raise typer.Exit(run_explore(entries, console_of(), err, scenes_max=scenes_max, json=json))


app.command()(report)


@app.command()
def new_driver(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Where to write it.")] = Path(),
    lang: Annotated[
        str, typer.Option(metavar="LANGUAGE", help="python or typescript (for Node).")
    ] = "python",
) -> None:
    """Write a commented driver to begin with."""
    with one_line_errors():
        from relist_conformance.new_driver import write_driver

        files = write_driver(lang, folder)
        for file in files:
            typer.echo(f"wrote {file}")
        runs = "python" if lang == "python" else "node"
        typer.echo(f'next: relist check --driver "{runs} {files[0]}"')


app.command()(watch)
app.command()(replay)
register(app)


def main() -> None:
    """The entry point of the ``relist`` command."""
    app()


def _run(options: CheckOptions) -> int:
    import anyio

    from relist_conformance.check import run_check, run_until_interrupted

    # A driver that dies is reported in our words; asyncio's about its pipe only confuse.
    logging.getLogger("asyncio").setLevel(logging.ERROR)
    run = partial(run_check, options, console_of(), console_of(stderr=True))
    code = anyio.run(run_until_interrupted, run)
    if code is None:
        raise KeyboardInterrupt
    return code


def _load(folder: Path | None) -> "tuple[Case, ...]":
    from relist_conformance.check import all_cases

    return all_cases(folder)


def _among(option: str, given: list[str] | None, known: tuple[str, ...]) -> tuple[str, ...]:
    for value in given or ():
        if value not in known:
            raise ConformanceError(f"{option} {quoted(value)} is not one of {', '.join(known)}")
    return tuple(value for value in known if value in (given or known))


if __name__ == "__main__":
    main()
