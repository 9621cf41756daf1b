"""Which row of a chart runs: for showing that all of them do, and that it is always exactly one."""

from typing import Any

from relist.machine import Table
from relist.policy import Policy


def row_of(table: Table, state: Any, heard: Any, policy: Policy) -> tuple[str | None, str | None]:
    """The name of the declared row that holds (None for a default), and what is wrong with that."""
    said: type[Any] = heard.__class__
    cell = table[said][state.phase]
    holding = [
        name
        for row, name in zip(cell.rows, cell.names, strict=True)
        if row.guard is None or row.guard(state, heard, policy)
    ]
    if len(holding) != 1:
        return None, f"one-row: {len(holding)} rows hold: {holding}"
    return (None if cell.because else row_name(state.phase, said, holding[0])), None


def row_name(phase: Any, heard: type[Any], row: tuple[str, str, str]) -> str:
    """How reports call a row."""
    guard, target, action = row
    condition = f" [{guard}]" if guard else ""
    return f"{phase.value} {heard.__name__}{condition} -> {target} {action}".rstrip()


def declared_rows(table: Table) -> frozenset[str]:
    """Every row that the chart of this table declares."""
    return frozenset(
        row_name(phase, heard, name)
        for heard, cells in table.items()
        for phase, cell in cells.items()
        if not cell.because
        for name in cell.names
    )
