"""``counterfoil dispatch --concurrency`` says how many runs are in flight."""

from __future__ import annotations

import asyncio
import os
import signal
import sys

import pytest

from tests.py.driver.scene import INTERNAL, KEY, PATIENCE, Scene
from tests.py.driver.test_services import ended


@pytest.mark.parametrize("places", [1, 5])
async def test_the_flag_bounds_the_runs_in_flight(scene: Scene, places: int) -> None:
    for n in range(8):
        await scene.launch(f"run{n}")
    gate = asyncio.Event()
    scene.between.fault("/created", hold=gate, times=8)

    async def held() -> int:
        return len(
            await scene.rows("select run_id from counterfoil.lanes where lease_owner is not null")
        )

    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "counterfoil", "dispatch", "--concurrency", str(places)),
        env=os.environ
        | {
            "COUNTERFOIL_DSN": scene.dsn,
            "COUNTERFOIL_BASE_URL": scene.settings.base_url,
            "COUNTERFOIL_SIGNING_KEYS": f"{KEY[0]}:{KEY[1].reveal()}",
            "COUNTERFOIL_INTERNAL_TOKEN": INTERNAL.reveal(),
            "COUNTERFOIL_CONCURRENCY": "3",
        },
    )
    try:

        async def under_way() -> int:
            return len(scene.between.requests)

        await scene.eventually(under_way, lambda found: found >= places)
        # Long enough for one claim too many to show.
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.wait(), 0.5)
        assert (await under_way(), await held()) == (places, places)
        running.send_signal(signal.SIGTERM)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.wait(), 0.5)
        gate.set()
        assert await asyncio.wait_for(ended(running), PATIENCE) == 0
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()
    assert await held() == 0
    [ledger] = await scene.rows("select count(*) as events from counterfoil.ledger_events")
    assert ledger["events"] == places
