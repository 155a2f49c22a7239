"""A test kit for plays: run them in the test's process, kill them, move time, look at what is left.

    pytest_plugins = ["counterfoil.testing.plugin"]     # in conftest.py

    def test_nobody_pays_twice(kit):
        kit.kill_after("charge")
        assert kit.run(order, {"amount": 10}).killed
        outcome = kit.run_on()
        assert outcome.result == "paid"
        assert outcome.step("charge").calls == 1

Everything is real but the process that dies: the schema, the functions, the worker's engine and
the deliveries. docs/testing.md says the rest; without pytest, see `TestServer`.
"""

from counterfoil.testing.databases import TestServer
from counterfoil.testing.kit import Kit
from counterfoil.testing.outcome import Fact, LogLine, Outcome, StepOutcome

__all__ = ["Fact", "Kit", "LogLine", "Outcome", "StepOutcome", "TestServer"]
