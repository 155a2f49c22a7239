"""One run on which every public function has something to lock, and a call of each of them."""

from __future__ import annotations

import json

import psycopg

PUBLIC_FUNCTIONS = """
select
    p.proname || '(' || coalesce((
        select string_agg(t::regtype::text, ', ' order by n)
        from unnest(p.proargtypes) with ordinality as a (t, n)
    ), '') || ')'
from pg_proc as p
where
    p.pronamespace = 'counterfoil'::regnamespace and p.provolatile = 'v'
    and exists (
        select from aclexplode(p.proacl) as a
        where a.grantee <> p.proowner and a.privilege_type = 'EXECUTE'
    )
order by 1
"""
"""Signatures of the functions that some role may call and that may write or lock."""

LOCKING_READERS = r"""
with recursive reached as (
    select p.proname as reader, p.oid, p.prosrc
    from pg_proc as p
    where
        p.pronamespace = 'counterfoil'::regnamespace and p.provolatile <> 'v'
        and exists (
            select from aclexplode(p.proacl) as a
            where a.grantee <> p.proowner and a.privilege_type = 'EXECUTE'
        )
    union
    select r.reader, g.oid, g.prosrc
    from reached as r
    inner join pg_proc as g
        on g.pronamespace = 'counterfoil'::regnamespace
        and r.prosrc ~ ('counterfoil\.' || g.proname || '\(')
)
select distinct r.reader from reached as r
where
    r.prosrc ~* '\mfor\s+(no\s+key\s+)?(update|(key\s+)?share)\M'
    or r.prosrc ~* '\m(insert into|update counterfoil|delete from)\M'
"""
"""Functions that say they only read, and call one that writes or locks rows: PostgreSQL allows it.

One that locks no more than a table, as ``next_attempt_due_at`` does, holds nothing while it waits.
"""

HEAD = "'org', 'run'"
ATTEMPT = "'org', 'run', 1, 'lease'"
LOST = "'org', 'lost', array[pg_temp.id('lost', 'run.started')]"
FACTS = "array['e1']"
MANY = "array['org'], array['run']"


def _json(value: object) -> str:
    return "'" + json.dumps(value) + "'::jsonb"


def _launch(run_id: str) -> dict[str, object]:
    return {
        "orgId": "org",
        "runId": run_id,
        "playId": "play",
        "playName": "play",
        "executorToken": "token",
        "baseUrl": "https://receiver.example",
        "concurrencyKey": "key" if run_id in ("run", "new") else None,
        "parentRunId": None if run_id == "run" else "run",
    }


def _given(launch: dict[str, object]) -> dict[str, object]:
    return {key: value for key, value in launch.items() if value is not None}


def _receipts(*keys: str, **fields: object) -> str:
    return _json([{"key": key, "leaseId": f"of {key}", "runAttempt": 1} | fields for key in keys])


SCOPE = {"orgId": "org", "runId": "run", "playName": "play"}
AWARE = {"leaseAware": True}
NEW = _given(_launch("new"))
APPEND = f"{HEAD}, pg_temp.key(), 'd', pg_temp.events()"

CRON = {
    "expression": "0 0 1 1 *",  # at New Year only: due when the scene says so
    "minutes": [0],
    "hours": [0],
    "days": [1],
    "months": [1],
    "weekdays": [0, 1, 2, 3, 4, 5, 6],
    "nthWeekdays": [],
    "lastDay": False,
    "lastWorkingDay": False,
    "dayAndWeekday": True,
    "everyRealHour": False,
}
SCHEDULED = {
    key: value for key, value in NEW.items() if key not in ("orgId", "runId", "parentRunId")
}
SCHEDULE = f"{_json(CRON)}, 'UTC', {_json(SCHEDULED)}, 'allow', 'one'"

CALLS: dict[str, str] = {
    "acknowledge_deliveries(text[], text[], text, bigint[], text)": (
        f"{MANY}, 'lifecycle', array[pg_temp.seq()], 'd'"
    ),
    "acknowledge_delivery(text, text, text[], text, integer, integer, boolean)": (
        f"{HEAD}, {FACTS}, 'd', 64, 30, true"
    ),
    "admit_launch(jsonb)": _json(NEW),
    "admit_launches(jsonb)": _json([NEW, NEW | {"runId": "newer"}]),
    "append_fact(text, text, text, text, jsonb, integer, text)": (
        f"{HEAD}, 'x', 'run.progress', {_json({})}, 1, 'lease'"
    ),
    "append_facts(text, text, jsonb, integer, text)": (
        HEAD
        + ", "
        + _json(
            [
                {"eventId": "x", "eventType": "run.progress", "payload": {}},
                {"eventId": "y", "eventType": "runner.logs", "payload": {"searchOnly": True}},
            ]
        )
        + ", 1, 'lease'"
    ),
    "append_run_created(text, text, text, text, jsonb)": (
        "'org', 'queued', pg_temp.key('queued', 'run.created'), 'c',"
        " pg_temp.events('queued', 'run.created')"
    ),
    "append_run_events(text, text, text, text, jsonb, integer, integer)": APPEND,
    "append_run_started(text, text, text, text, jsonb, jsonb)": (
        "'org', 'lost', pg_temp.key('lost', 'run.started'), 's',"
        " pg_temp.events('lost', 'run.started'), pg_temp.launch_of('lost')"
    ),
    "assert_delivery(text, text, text, text, jsonb, integer, integer)": (
        f"{HEAD}, 'd', pg_temp.key(), pg_temp.events()"
    ),
    "cancel_run(text, text, text)": f"{HEAD}, null",
    "cancel_run(text, text, text, boolean)": f"{HEAD}, null, true",
    "claim_attempts(text, integer, integer, text[], text)": "'w', 10, 300, null, 'default'",
    "claim_deliveries(text, integer, integer, integer, text, text, text, text, boolean,"
    " timestamp with time zone[])": (f"'n', 30, 64, 1, {HEAD}, 'lifecycle', 'oldest_ready', true"),
    "claim_receipts(text, text, integer, text[], text[], jsonb)": (
        f"{HEAD}, 1, array['b', 'a', 'new'], array['x', 'y', 'z'], {_json(AWARE)}"
    ),
    "complete_attempt(text, text, integer, text, jsonb)": (
        ATTEMPT + ", " + _json({"result": 1, "terminalLogLines": ["line"]})
    ),
    "complete_receipts(text, text, jsonb, boolean)": f"{HEAD}, {_receipts('b', 'a', output=1)}",
    "create_schedule(text, text, jsonb, text, jsonb, text, text, integer, boolean)": (
        f"'org', 'due', {SCHEDULE.replace('allow', 'skip')}, null, true"
    ),
    "delete_schedule(text, text)": "'org', 'due'",
    "direct_complete_runner_terminal(text, text, integer, text, jsonb)": (
        f"{ATTEMPT}, {_json({'status': 'completed'})}"
    ),
    "dispatch_authority_for_lease(text, text, text, text)": f"{HEAD}, 'e1', 'd'",
    "dispatch_launch_for_lease(text, text, text, text)": f"{HEAD}, 'e1', 'd'",
    "dispatch_ledger_action(jsonb, text, jsonb)": (
        f"{_json(SCOPE)}, 'events', jsonb_build_object('runId', 'run', 'leaseOwner', 'd',"
        " 'idempotencyKey', pg_temp.key(), 'events', pg_temp.events())"
    ),
    "dispatch_receipt_action(jsonb, jsonb, integer)": (
        f"{_json(SCOPE)}, {_json({'action': 'get_receipt', 'playName': 'play', 'key': 'a'})}, 3"
    ),
    "fail_attempt(text, text, integer, text, jsonb)": (
        f"{ATTEMPT}, {_json({'error': {'message': 'no', 'retryable': False}})}"
    ),
    "fail_receipts(text, text, jsonb)": (
        f"{HEAD}, {_receipts('a', 'b', error='no', failureKind='terminal')}"
    ),
    "fire_due_schedules(integer)": "10",
    "heartbeat_attempts(text[], text[], integer[], text[], integer)": (
        f"{MANY}, array[1], array['lease'], 300"
    ),
    "heartbeat_receipts(text, text, jsonb, integer)": f"{HEAD}, {_receipts('b', 'a')}, 300",
    "look_for_deliveries(text[], text[])": "array['lifecycle', 'search'], array['l', 'l']",
    "look_for_work(text, text[], text, integer, text)": "'w', null, 'default', 10, null",
    "maintain(integer)": "1000",
    "mark_receipts_queued(text, text, jsonb)": f"{HEAD}, {_receipts('a', 'b')}",
    "mark_receipts_running(text, text, jsonb, integer)": f"{HEAD}, {_receipts('b', 'a')}, 300",
    "materialize_runtime_outbox_event(text, text)": "'raw', 'm'",
    "materialize_runtime_outbox_event(text, text, text)": "'org', 'raw', 'm'",
    "next_delivery_due_at(text, text, text)": "'lifecycle', 'run', 'org'",
    "observe_docflow_node(text, text, jsonb)": (
        f"{HEAD}, {_json({'nodeId': 'n', 'status': 'started', 'attempt': 1, 'at': 1})}"
    ),
    "park_attempt(text, text, integer, text, interval)": ATTEMPT,
    "pause_schedule(text, text)": "'org', 'due'",
    "plan_delivery_pieces(text, text, text[], text)": f"{LOST}, 's'",
    "purge_delivered(integer)": "1000",
    "purge_journal(integer)": "1000",
    "purge_ledgers(integer)": "1000",
    "purge_receipts(integer)": "1000",
    "recall_receipts(text, text, text, integer, integer)": f"{HEAD}, 'a', 100, 1000",
    "record_receipt(text, text, integer, text, text, jsonb)": f"{ATTEMPT}, 'a', '1'",
    "record_runner_terminal(text, text, integer, text, jsonb)": (
        f"{ATTEMPT}, {_json({'status': 'completed'})}"
    ),
    "recover_attempts(integer, text)": "100, 'default'",
    "release_attempt(text, text, integer, text)": ATTEMPT,
    "release_delivery(text[], text)": f"{FACTS}, 'd'",
    "release_delivery(text, text, text[], text, boolean)": f"{HEAD}, {FACTS}, 'd', true",
    "release_receipts(text, text, jsonb)": f"{HEAD}, {_receipts('a', 'b')}",
    "renew_deliveries(text[], text[], text, bigint[], text, integer, boolean)": (
        f"{MANY}, 'lifecycle', array[pg_temp.seq()], 'd', 300, true"
    ),
    "renew_delivery(text[], text, integer, boolean)": f"{FACTS}, 'd', 300, true",
    "renew_delivery(text, text, text[], text, integer, boolean)": (
        f"{HEAD}, {FACTS}, 'd', 300, true"
    ),
    "replay_all_blocked(text, text, text, timestamp with time zone, integer)": "'mended'",
    "replay_blocked(text, text, text, text)": f"{HEAD}, 'bad', 'mended'",
    "resume_run(text, text, text, jsonb, text)": f"{HEAD}, 'event', 'null', 'signal'",
    "resume_schedule(text, text)": "'org', 'paused'",
    "set_admission_limits(text, text, jsonb)": f"'org', 'org', {_json({'maxActive': 9})}",
    "set_org_retention(text, text, bigint)": "'org', 'log_retention', 86400000",
    "set_setting(text, jsonb)": "'prefix_max_facts', '32'",
    "settle_delivery_failure(text[], text, jsonb)": f"{FACTS}, 'd', {_json({'message': 'no'})}",
    "settle_delivery_failure(text, text, text[], text, jsonb)": (
        f"{HEAD}, {FACTS}, 'd', {_json({'message': 'no'})}"
    ),
    "skip_blocked(text, text, text, text)": f"{HEAD}, 'bad', 'nonsense'",
    "skip_receipts(text, text, jsonb)": f"{HEAD}, {_receipts('a', 'b', output=1)}",
    "start_listening(text, text, integer)": "'listener', 'lifecycle', 60",
    "stop_listening(text)": "'listener'",
    "suspend_attempt(text, text, integer, text, text, text, interval, text)": (
        f"{ATTEMPT}, 'reason', 'event'"
    ),
    "take_over_delivery(text, text, text, integer, integer, boolean)": (
        "'org', 'ending', 'canceller'"
    ),
    "widen_delivery(text, text, text, text, integer, integer)": f"{HEAD}, 'e1', 'd'",
}
"""Arguments for each public function, by signature, such that each succeeds in the scene."""


OTHERS = [
    "append_fact('org', 'ending', 'x', 'run.progress', '{}')",
    "append_fact('org', 'lost', 'x', 'run.progress', '{}')",
    "append_fact('org', 'raw', 'x', 'runner.logs', '{\"searchOnly\": true}')",
    "cancel_run('org', 'lost', null)",
    "cancel_run('org', 'queued', null)",
    "acknowledge_delivery('org', 'queued', array[pg_temp.id('queued', 'run.created')], 'c')",
    "acknowledge_delivery('org', 'raw', array['raw'], 'm')",
    f"acknowledge_delivery({LOST}, 's', 64, 30, true)",
    f"settle_delivery_failure({LOST}, 's', {_json({'message': 'no'})})",
    "take_over_delivery('org', 'ending')",
]
"""Further calls on the other runs, which some of those above are about."""


def statement(signature: str) -> str:
    """The call of a function in the scene."""
    return f"select count(*) from counterfoil.{signature.split('(')[0]}({CALLS[signature]}) as f"


def statements() -> list[str]:
    """All calls."""
    others = [f"select count(*) from counterfoil.{call} as f" for call in OTHERS]
    return [statement(signature) for signature in CALLS] + others


HELPERS = """
create function pg_temp.id(p_run text, p_event text) returns text language sql as $$
    select event_id from counterfoil.outbox
    where org_id = 'org' and run_id = p_run and p_event in (event_id, event_type) $$;
create function pg_temp.seq() returns bigint language sql as $$
    select seq from counterfoil.outbox where org_id = 'org' and event_id = 'e1' $$;
create function pg_temp.key(p_run text default 'run', p_event text default 'e1')
returns text language sql as $$
    select counterfoil.delivery_idempotency_key('org', p_run, array[pg_temp.id(p_run, p_event)]) $$;
create function pg_temp.events(p_run text default 'run', p_event text default 'e1')
returns jsonb language sql as $$
    select coalesce(jsonb_agg(p.event order by p.item), '[]')
    from counterfoil.project_fact('org', p_run, pg_temp.id(p_run, p_event)) as p $$;
create function pg_temp.launch_of(p_run text) returns jsonb language sql as $$
    select launch from counterfoil.launches where org_id = 'org' and run_id = p_run $$;
"""

_DELIVER = """
select count(*) from counterfoil.claim_deliveries('d', 300, p_org_id => 'org', p_run_id => '{run}');
select count(*) from counterfoil.append_run_{event}(
    'org', '{run}', pg_temp.key('{run}', 'run.{event}'), 'd', pg_temp.events('{run}', 'run.{event}')
    {more});
select count(*) from counterfoil.acknowledge_delivery(
    'org', '{run}', array[pg_temp.id('{run}', 'run.{event}')], 'd');
"""


def _claim(run_id: str, owner: str, lane: str = "lifecycle") -> str:
    return (
        f"select count(*) from counterfoil.claim_deliveries('{owner}', 300, 64, 1, 'org',"
        f" '{run_id}', '{lane}');"
    )


def _fact(run_id: str, event_id: str, event_type: str, payload: object) -> str:
    return (
        f"select count(*) from counterfoil.append_fact('org', '{run_id}', '{event_id}',"
        f" '{event_type}', {_json(payload)});"
    )


SCENE = [
    "select counterfoil.set_admission_limits('org', 'org', '{\"maxActive\": 50}')",
    *(
        f"select count(*) from counterfoil.admit_launch({_json(_given(_launch(run_id)))})"
        for run_id in ("run", "lost", "ending", "raw")
    ),
    "select count(*) from counterfoil.claim_attempts('w', 10, 300, null, 'default')",
    f"select count(*) from counterfoil.admit_launch({_json(_given(_launch('queued')))})",
    *(
        f"select count(*) from counterfoil.create_schedule('org', '{name}', {SCHEDULE})"
        for name in ("due", "paused")
    ),
    "select count(*) from counterfoil.pause_schedule('org', 'paused')",
    "update counterfoil.schedules set look_at = date_trunc('minute', now()),"
    " next_fire_at = date_trunc('minute', now()) where name = 'due'",
    "update counterfoil.attempts set lease_id = 'lease' where run_id = 'run'",
    "update counterfoil.attempts set lease_expires_at = now() - interval '1 h'"
    " where run_id = 'lost'",
    "select count(*) from counterfoil.cancel_run('org', 'ending', null)",
    _DELIVER.format(run="run", event="created", more=""),
    _DELIVER.format(run="run", event="started", more=", pg_temp.launch_of('run')"),
    _DELIVER.format(run="lost", event="created", more=""),
    _fact("run", "e1", "run.events", {"events": [{"type": "row.done"}]}),
    _fact("run", "e2", "run.waiting", {"reason": "why"}),
    _fact("run", "bad", "runner.logs", {"searchOnly": True, "lines": ["line"]}),
    _fact("raw", "raw", "runner.logs", {"deferredProjection": True, "searchOnly": True}),
    _claim("run", "d", "search"),
    "select count(*) from counterfoil.settle_delivery_failure("
    "'org', 'run', array['bad'], 'd', '{\"message\": \"no\", \"retryable\": false}')",
    _claim("run", "d"),
    _claim("queued", "c"),
    _claim("raw", "m", "search"),
    _claim("lost", "s"),
    "select count(*) from counterfoil.renew_delivery("
    "'org', 'lost', array[pg_temp.id('lost', 'run.started')], 's', 300, true)",
    f"select count(*) from counterfoil.claim_receipts({HEAD}, 1, array['a', 'b'],"
    f" array['of a', 'of b'], {_json({'leaseAware': True, 'leaseSeconds': 300})})",
]


def build(connection: psycopg.Connection) -> None:
    """Set the scene; ``connection`` has the helpers of the calls from then on."""
    connection.execute(HELPERS.encode())
    for step in SCENE:
        connection.execute(step.encode())
