"""A process that tells a store one decision after another, until it is killed.

    python storing.py STORE FIRST LAST [CONSUMER]

Says the number of each decision once ``tell`` has returned for it. What the decisions are depends
on their numbers alone, so that whoever reads the store can work out what must be in it.
"""

import sys
from pathlib import Path

from relist.drift import inputs as i
from relist.drift.inputs import LedgerInput
from relist.drift.ledger import Ledger
from relist.drift.receive import receive
from relist_mcp.drift.store import Store
from support.drift import definition, exactly, inventory, ref

KEYS = tuple(f"k{number}" for number in range(8))
SHOWN = {ref(key): definition(key).id for key in KEYS}


def told(number: int, consumer: str = "one") -> LedgerInput:
    """The decision of this number: all of a surface at once, or none of it."""
    if number == 0:
        return i.ProfileSet(exactly(consumer, *SHOWN), "p", "", 0)
    if number == 1:
        return inventory(dict.fromkeys(KEYS, "1"), at_ms=1)
    made = i.Approved if number % 2 == 0 else i.Rejected
    return made(consumer, SHOWN, consumer, f"decision {number}", number)


def replayed(last: int) -> list[Ledger]:
    """The ledgers after each decision, up to this one."""
    ledgers = [Ledger()]
    for number in range(last + 1):
        ledgers.append(receive(ledgers[-1], told(number)).state)
    return ledgers[1:]


def main(path: str, first: str, last: str, consumer: str = "one") -> None:
    """Tell until killed."""
    with Store(Path(path)) as store:
        for number in range(int(first), int(last)):
            store.tell(told(number, consumer))
            print(number, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
