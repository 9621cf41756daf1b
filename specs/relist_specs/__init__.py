"""Data only: the conformance cases and their JSON Schema."""
