"""Judging what a client did: histories of a run and the pure predicates over them.

``history`` says what was seen, ``expect`` what a case demands of it, ``judge`` decides.
"""
