"""What is to happen later, by the clock that the recorder was told."""

from collections.abc import Callable
from heapq import heappop, heappush

from relist_conformance.history import Recorder

Act = Callable[[], object]


class Timers:
    """Acts that are due at a time, in the order of their times and then of their making."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._heap: list[tuple[int, int, Act]] = []
        self._made = 0

    @property
    def due_ms(self) -> int | None:
        """When the next act is due, None when there is none."""
        return self._heap[0][0] if self._heap else None

    def later(self, after_ms: int, act: Act) -> None:
        """Have this done so much later than now."""
        self._made += 1
        heappush(self._heap, (self._recorder.now_ms + after_ms, self._made, act))

    def run(self) -> None:
        """Do what is due by now, and what that makes due at once."""
        while self._heap and self._heap[0][0] <= self._recorder.now_ms:
            heappop(self._heap)[2]()
