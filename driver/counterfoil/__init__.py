"""Counterfoil: durable runs on PostgreSQL."""
