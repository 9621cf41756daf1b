"""The guards and actions that the charts name.

Of the catalog chart: ``guards``, ``standing``, ``doubt``, ``walk``; of the link chart:
``connection``, ``negotiation``; of the listen chart: ``push``. A guard is ``(state, heard, policy)
-> bool``; an action ``(state, heard, policy, to) -> Step`` where ``to`` is the phase the chart
leads to. All are pure. An action that changes nothing returns the very same state object.
"""
