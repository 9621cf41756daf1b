"""What all commands share: a console, and one clear line for whatever is wrong."""

import traceback
from collections.abc import Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING, cast

import typer

from relist_conformance.errors import ConformanceError, plain

if TYPE_CHECKING:
    from rich.console import Console

_PIPED_WIDTH = 110


def console_of(*, stderr: bool = False) -> "Console":
    """The console of stdout or stderr; markup and emoji names in texts are not interpreted."""
    from rich.console import Console

    console = Console(stderr=stderr, markup=False, highlight=False, emoji=False)
    if not console.is_terminal:
        console.width = max(console.width, _PIPED_WIDTH)
    return console


@contextmanager
def one_line_errors() -> Generator[None]:
    """What is wrong becomes one line on stderr and an exit code.

    An error that nobody foresaw is a fault of the suite: it shows its traceback, and exits with 2
    all the same, because 1 would blame the client.
    """
    try:
        yield
    except (typer.Exit, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        typer.echo("relist: interrupted", err=True)
        raise typer.Exit(130) from None
    except Exception as error:
        first = _first(error)
        if isinstance(first, ConformanceError):
            typer.echo(f"relist: {plain(str(first), 1000)}", err=True)
        else:
            traceback.print_exception(error)
        raise typer.Exit(2) from None


def _first(error: Exception) -> Exception:
    """The error itself, or the first one in a group of them, however deep."""
    while isinstance(error, ExceptionGroup):
        error = cast("ExceptionGroup[Exception]", error).exceptions[0]
    return error
