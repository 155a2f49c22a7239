"""Throwaway PostgreSQL servers and databases for the suites."""
