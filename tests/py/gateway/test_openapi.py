"""The gateway's description of itself is true: schemathesis tries it against a running gateway.

Requests that fit the description are accepted (or refused for what only the database knows), those
that do not are refused, and every answer has a described status, header and shape.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Match, Route

from counterfoil.gateway import create_app
from counterfoil.receiving.openapi import document
from tests.py.driver.scene import INTERNAL, ORG, Scene, serving
from tests.py.gateway.client import Client

HOOKS = "tests.py.gateway.schemathesis_hooks"
ROOT = Path(__file__).parents[3]


@pytest.fixture
async def scene_app(scene: Scene) -> Starlette:
    return create_app(scene.database, scene.settings)


@pytest.fixture
async def gateway(client: Client, scene: Scene) -> AsyncIterator[Client]:
    """A gateway with one delivered run, whose runtime API is the scene's own gateway."""
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    # By another name, so that it does not take the scene's gateway for itself.
    allowing = replace(
        scene.settings, allow_private_upstreams=True, base_url="http://gateway.example"
    )
    async with serving(create_app(scene.database, allowing), allowing) as url:
        client.url = url
        yield client


async def test_the_description_is_true(gateway: Client, tmp_path: Path) -> None:
    tokens = {
        "executorToken": gateway.token("executor"),
        "dispatchToken": gateway.token("dispatch"),
        "internalToken": INTERNAL.reveal(),
        "readerToken": gateway.scene.signer.mint(org_id=ORG, use="reader").reveal(),
    }
    environment = {
        "GATEWAY_TOKENS": json.dumps(tokens),
        "GATEWAY_SCOPE": json.dumps({"runId": "run", "playName": "play", "orgId": ORG}),
        "SCHEMATHESIS_HOOKS": HOOKS,
        "PYTHONPATH": str(ROOT),
    }
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "schemathesis.cli", "run", f"{gateway.url}/openapi.json"),
        *("--phases", "coverage,fuzzing", "--checks", "all", "--max-examples", "6"),
        *("--continue-on-failure", "--no-color", "--seed", "1", "--workers", "2"),
        # PostgreSQL's jsonb cannot hold U+0000; the hostile bodies have tests of their own.
        *("--generation-allow-x00", "false"),
        cwd=tmp_path,
        env=os.environ | environment,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    said, _ = await running.communicate()
    assert running.returncode == 0, said.decode()


def test_every_route_is_described_and_nothing_else(scene_app: Starlette) -> None:
    described = {
        (method.upper(), path) for path, item in document()["paths"].items() for method in item
    }
    for method, path in described:
        found = [route for route in scene_app.routes if matches(route, method, path)]
        assert found, f"{method} {path} is described and not there"
    for route in scene_app.routes:
        assert isinstance(route, Route)
        for method in (route.methods or set()) - {"HEAD"}:
            fitting = [path for asked, path in described if asked == method]
            assert any(matches(route, method, path) for path in fitting), route


def matches(route: BaseRoute, method: str, path: str) -> bool:
    scope = {"type": "http", "method": method, "path": path, "headers": []}
    return route.matches(scope)[0] is Match.FULL
