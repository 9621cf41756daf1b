"""Cancel what runs at any step that is asked for."""

import trio


class CancelAt(trio.abc.Instrument):
    """Cancels a scope before the step with this number of whatever task."""

    def __init__(self, step: int) -> None:
        self.steps = 0
        self._at = step
        self.scope: trio.CancelScope | None = None

    def before_task_step(self, _: trio.lowlevel.Task) -> None:
        if self.scope is None:
            return
        self.steps += 1
        if self.steps == self._at:
            self.scope.cancel()
