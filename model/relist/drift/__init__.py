"""What a user once allowed, when the definition changes. Start with ``values.py``."""
