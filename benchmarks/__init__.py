"""Measurements behind docs/benchmarks.md. Nothing here is a test: a figure never fails a build."""
