"""The stored functions by room, as typed methods."""
