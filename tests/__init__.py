"""Counterfoil's tests: pgTAP files, isolation specs, pytest, and the servers they run against."""
