"""The gates of `make lint`: our own house rules, and the ready-made linters."""
