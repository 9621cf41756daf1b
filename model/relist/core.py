"""``Relist``: one small stateful object for embedders, around the pure session.

core = Relist(Wire.PIPE, Policy(seed=os.urandom(16)))
core.receive(ConnectWanted(now_ms))
for effect in core.effects():
    ...  # perform it; tell the outcome to receive()
wake_at_ms = core.deadline_ms()  # then receive(TimePassed(now_ms))
"""

from relist.admission import Admission, Call, admit
from relist.effects import Effect
from relist.inputs import SessionInput
from relist.machine import Reading, read
from relist.policy import Policy
from relist.session import Session, deadline_ms, new_session, receive
from relist.values import Kind, Wire


class Relist:
    """The four catalogs of one server. Not thread safe; never blocks; holds no clock."""

    def __init__(self, wire: Wire, policy: Policy, partition: str = "") -> None:
        self._session = new_session(wire, partition)
        self._policy = policy
        self._effects: list[Effect] = []

    @property
    def session(self) -> Session:
        """The frozen state."""
        return self._session

    @property
    def policy(self) -> Policy:
        """The policy in force."""
        return self._policy

    def receive(self, heard: SessionInput) -> None:
        """Hear something. After calling this you must perform ``effects()`` and re-arm the timer.

        Raises ImpossibleAct, with nothing changed, for an act that a caller cannot do now.
        """
        self._session, effects = receive(self._session, heard, self._policy)
        self._effects.extend(effects)

    def effects(self) -> tuple[Effect, ...]:
        """What is to be done now, in order; each is handed out once."""
        effects, self._effects = tuple(self._effects), []
        return effects

    def deadline_ms(self) -> int | None:
        """When to call ``receive(TimePassed(now_ms))``; None: not before something happens."""
        return deadline_ms(self._session, self._policy)

    def admit(self, call: Call, kind: Kind, now_ms: int) -> Admission:
        """Judge a planned call on the list as it is now. See ``admission``."""
        return admit(self._session.catalog(kind), call, now_ms, self._policy)

    def read(self, kind: Kind, now_ms: int) -> Reading:
        """Look at a catalog: free, pure, no traffic."""
        return read(self._session.catalog(kind), now_ms)
