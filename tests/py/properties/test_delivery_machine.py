"""Whatever happens to deliveries, the ledger is what the model says."""

from __future__ import annotations

import psycopg
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.py.properties.delivery_machine import DeliveryMachine

BOUNDS = settings(
    max_examples=25,
    stateful_step_count=15,
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    phases=(Phase.generate,),  # add Phase.shrink to look into a failure: it takes minutes
    suppress_health_check=list(HealthCheck),
)

SETTINGS = {
    "delivery_piece_max_events": "2",
    # Only the machine lets time pass.
    "delivery_backoff_base_ms": "600000",
    "delivery_backoff_max_ms": "600000",
}


def test_the_ledger_equals_the_model(installed: str) -> None:
    with psycopg.connect(installed, autocommit=True) as connection:
        for name, value in SETTINGS.items():
            connection.execute("select counterfoil.set_setting(%s, %s)", [name, value])
        DeliveryMachine.connection = connection
        run_state_machine_as_test(DeliveryMachine, settings=BOUNDS)
