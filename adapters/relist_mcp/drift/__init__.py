"""Drift on real servers: definitions from lists, schemas compared, ledgers kept in a file."""
