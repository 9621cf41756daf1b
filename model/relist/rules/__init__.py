"""The guards and actions that the catalog chart names.

A guard is ``(catalog, heard, policy) -> bool``; an action ``(catalog, heard, policy, to) -> Step``
where ``to`` is the phase the chart leads to. All are pure. An action that changes nothing returns
the very same catalog object.
"""
