"""A state machine of deliveries: two dispatchers, a canceller, and everything that goes wrong.

It speaks to the stored functions as dispatchers and receiver do. The model is small: the facts of
the run in the order in which they were recorded, what each becomes in the ledger, and which
deliveries were frozen.
"""

from __future__ import annotations

import itertools
import json
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.py.properties.delivery_model import (
    ACCIDENTS,
    CANCELLER,
    FATES,
    INVALID_STATE,
    KINDS,
    LEASE_LOST,
    ORG,
    Fact,
    Hand,
    Model,
    holders,
    several,
)


class DeliveryMachine(Model, RuleBasedStateMachine):
    """One run from its launch to the last of its facts."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = itertools.count(1)
        self.receipts: dict[str, tuple[str, list[str]]] = {}
        """First fact of a frozen delivery: its key and its facts."""
        self.appended: dict[str, int] = {}
        """How many pieces of a delivery the ledger has, by key."""
        self.has_ended = False
        self.is_cancelled = False

    # What the run does.

    @initialize(delivered=st.sampled_from((True, True, False)), names=several)
    def start(self, delivered: bool, names: list[str]) -> None:
        self.call("admit_launch", json.dumps(self.launch()))
        [claimed] = self.call("claim_attempts", "worker", 1, 300, [self.run], "default")
        assert claimed["run_id"] == self.run
        self.attempt = (ORG, self.run, claimed["attempt"], claimed["lease_id"])
        for name in ("run.created", "run.started"):
            self.facts.append(Fact(self.id_of(name), name, None, [name]))
        while delivered and not all(fact.delivered for fact in self.facts):
            self.step("d1", 1, False)
        self.facts_are_recorded(names)

    @rule(
        names=several,
        work=st.lists(
            st.tuples(
                holders,
                st.integers(1, 8),
                st.sampled_from((64, 64, 2, 1)),
                st.booleans(),
                st.sampled_from(FATES),
            ),
            min_size=1,
            max_size=4,
        ),
        accident=st.sampled_from(ACCIDENTS),
    )
    def a_while_passes(
        self,
        names: list[str],
        work: list[tuple[str, int, int, bool, str]],
        accident: str,
    ) -> None:
        """Some facts, some work of several dispatchers, and one thing that goes wrong.

        All in one rule: Hypothesis would leave out whole rules, and most runs would be dull.
        """
        if len(names) % 2:
            self.facts_are_recorded(names)
        for owner, steps, limit, capable, fate in work:
            self.a_dispatcher_works(owner, steps, limit, capable, fate)
        getattr(self, accident)()

    def facts_are_recorded(self, names: list[str]) -> None:
        for name in names:
            event_type, payload, becomes = KINDS[name]
            is_carrier = event_type in ("runner.logs", "step.receipt")
            if self.has_ended and not is_carrier:
                continue
            event_id = f"{self.run}/{next(self.numbers)}"
            recorded = (ORG, self.run, event_id, event_type, json.dumps(payload))
            [answer] = self.call("append_fact", *recorded)
            assert answer["recorded"] is True
            search = "searchOnly" in payload
            self.facts.append(Fact(event_id, event_type, payload, becomes, search))

    def facts_are_repeated(self) -> None:
        for fact in self.facts[-3:]:
            if fact.payload:
                known = (ORG, self.run, fact.event_id, fact.event_type)
                [answer] = self.call("append_fact", *known, json.dumps(fact.payload))
                assert answer["recorded"] is False
                other = json.dumps(fact.payload | {"other": 1})
                assert self.refusal("append_fact", *known, other) == "RL003"

    def the_run_completes(self) -> None:
        self.the_run_ends(logged=len(self.facts) % 2 == 0, cancelled=False)

    def the_run_is_cancelled(self) -> None:
        self.the_run_ends(logged=False, cancelled=True)

    def the_run_ends(self, logged: bool, cancelled: bool) -> None:
        if self.has_ended:
            return
        if cancelled:
            self.call("cancel_run", ORG, self.run, None)
            error = json.dumps({"error": {"message": "stopped", "code": "cancelled"}})
            [end] = self.call("fail_attempt", *self.attempt, error)
        else:
            lines = ["the last line"] * logged
            completion = json.dumps({"result": 1, "terminalLogLines": lines})
            [end] = self.call("complete_attempt", *self.attempt, completion)
        self.has_ended, self.is_cancelled = True, cancelled
        name = "run.cancelled" if cancelled else "run.completed"
        becomes = ["log.appended"] * (logged and not cancelled) + [name]
        self.facts.append(Fact(end["event_id"], name, None, becomes))

    # What dispatchers do.

    def a_dispatcher_works(
        self, owner: str, steps: int, limit: int, capable: bool, fate: str
    ) -> None:
        """Take some steps of the way of a delivery; ``fate`` is that of the last one's request.

        The canceller begins by taking over.
        """
        if owner == CANCELLER and owner not in self.hands:
            if not self.is_cancelled:
                return
            rows = self.call("take_over_delivery", ORG, self.run, owner, 30, limit)
            assert bool(rows) == self.can_be_claimed()
            self.take(owner, rows, limit)
        for left in reversed(range(steps)):
            if owner == CANCELLER and owner not in self.hands:
                break
            self.step(owner, limit, capable, "sent" if left else fate)
            if owner not in self.hands:
                break

    def everybody_crashes(self) -> None:
        self.hands.clear()

    def everybody_gives_back(self) -> None:
        for owner in list(self.hands):
            hand = self.hands.pop(owner)
            self.call("release_delivery", ORG, self.run, hand.event_ids, owner)
            self.holder = None if owner == self.holder else self.holder

    def step(self, owner: str, limit: int, capable: bool, fate: str = "sent") -> None:
        """Do what comes next for one that holds what it holds."""
        hand = self.hands.get(owner)
        if hand is None:
            priority = "admission_first" if capable else "oldest_ready"
            told = capable and limit > 1  # else it learns from the receiver, and widens
            claim = (owner, 30, limit, 1, ORG, self.run, "lifecycle", priority, told)
            rows = self.call("claim_deliveries", *claim)
            assert bool(rows) == (self.holder is None and self.can_be_claimed())
            self.take(owner, rows, limit)
        elif not hand.frozen:
            if capable and len(hand.facts) == 1:
                self.widen(owner, hand)
            if owner in self.hands:
                self.freeze(owner, self.hands[owner])
        elif hand.sent < len(hand.pieces):
            self.send(owner, hand, fate)
        else:
            if fate == "late":
                self.leases_lapse()
            self.acknowledge(owner, hand, limit - 1, capable, fate == "lost")

    def widen(self, owner: str, hand: Hand) -> None:
        rows = self.attempted(owner, "widen_delivery", ORG, self.run, hand.event_ids[0], owner)
        if rows:
            assert rows[0]["event_id"] == hand.event_ids[0]
            self.take(owner, rows, 64)

    def freeze(self, owner: str, hand: Hand) -> None:
        """Materialise first, as a projector does."""
        for fact in hand.facts:
            if fact["deferred"] and not self.attempted(
                owner, "materialize_runtime_outbox_event", ORG, fact["event_id"], owner
            ):
                return
        held = (ORG, self.run, hand.event_ids, owner)
        frozen = self.attempted(owner, "renew_delivery", *held, 30, True)
        if frozen:
            hand.key = frozen[0]["idempotency_key"]
            first = self.receipts.setdefault(hand.event_ids[0], (hand.key, hand.event_ids))
            assert first == (hand.key, hand.event_ids)
            hand.pieces = self.attempted(owner, "plan_delivery_pieces", *held) or []

    def send(self, owner: str, hand: Hand, fate: str) -> None:
        """Send the next piece; its reply can be lost, and the request before it arrives."""
        if fate in ("ahead", "late"):
            self.send_in_vain(owner, hand, fate)
            return
        for _ in range({"failed": 0, "refused": 0, "twice": 2}.get(fate, 1)):
            held = (ORG, self.run, hand.event_ids, owner, 30, True)
            if self.attempted(owner, "renew_delivery", *held) is None:
                return
            piece = hand.pieces[hand.sent]
            if self.attempted(owner, *self.request(owner, hand, piece)) is None:
                return
            self.appended[hand.key] = max(piece["chunk"], self.appended.get(hand.key, 0))
        if fate in ("sent", "twice"):
            hand.sent += 1
            return
        del self.hands[owner]
        error = json.dumps({"message": fate, "retryable": fate != "refused"})
        rows = self.call("settle_delivery_failure", ORG, self.run, hand.event_ids, owner, error)
        if owner == self.holder:
            self.holder, self.must_wait = None, True
            expected = "blocked" if fate == "refused" else "retrying"
        else:
            expected = "not_owned"
        assert {row["outcome"] for row in rows} == {expected}

    def send_in_vain(self, owner: str, hand: Hand, fate: str) -> None:
        """Pieces ahead of their turn, or after their lease: refused, or known from before."""
        before, known = self.ledger(), self.appended.get(hand.key, 0)
        if fate == "late":
            self.leases_lapse()
        for piece in hand.pieces:
            # The next one is in turn, whoever appended those before it.
            if fate == "ahead" and piece["chunk"] == known + 1:
                continue
            refused = self.refusal(*self.request(owner, hand, piece))
            if piece["chunk"] <= known:
                assert refused is None
            elif owner == self.holder:
                assert refused == INVALID_STATE
            else:
                assert refused == LEASE_LOST
        assert self.ledger() == before

    def acknowledge(
        self, owner: str, hand: Hand, allowance: int, capable: bool, repeated: bool
    ) -> None:
        call = (ORG, self.run, hand.event_ids, owner, allowance, 30, capable)
        rows = self.attempted(owner, "acknowledge_delivery", *call)
        if rows is None:
            return
        if repeated:  # the reply was lost
            rows = self.call("acknowledge_delivery", *call)
        acknowledged = [row["event_id"] for row in rows if row["kind"] == "acknowledged"]
        assert acknowledged == hand.event_ids
        for fact in self.facts:
            fact.delivered |= fact.event_id in acknowledged
        del self.hands[owner]
        self.holder = None
        self.take(owner, [row for row in rows if row["kind"] == "claimed"], allowance)

    # What time and operators do.

    def nothing(self) -> None:
        """Nothing goes wrong."""

    def leases_lapse(self) -> None:
        self.holder = None
        self.execute(
            "update counterfoil.lanes set lease_expires_at = now() - interval '1 s'"
            " where run_id = %s and lease_owner is not null"
        )

    def an_operator_replays(self) -> None:
        for blocked in self.call("list_blocked", ORG):
            if blocked["run_id"] == self.run:
                # The facts of one frozen delivery are replayed together.
                fact = (ORG, self.run, blocked["event_id"], "mended")
                assert self.refusal("replay_blocked", *fact) in (None, "RL005")

    def backoff_ends(self) -> None:
        """The dead letter queue is seen to before, or what is blocked would go on waiting."""
        self.an_operator_replays()
        self.must_wait = False
        self.execute(
            "update counterfoil.fact_failures set next_attempt_at = now() - interval '1 s'"
            " where run_id = %s and state = 'retrying'"
        )
        self.execute(
            "update counterfoil.lanes set due_at = now() - interval '1 s' where run_id = %s"
        )

    # What must hold.

    @invariant()
    def the_ledger_is_what_the_model_says_so_far(self) -> None:
        if not self.facts:
            return
        found, expected = self.ledger(), self.expected()
        assert found == expected[: len(found)]
        acknowledged = [f for f in self.facts if f.delivered and not f.is_search]
        assert len(found) >= sum(len(fact.becomes) for fact in acknowledged)

    def teardown(self) -> None:
        """Let every fact arrive; then compare."""
        if not self.facts:
            return
        if not self.has_ended:
            self.the_run_ends(logged=True, cancelled=False)
        self.hands.clear()
        self.leases_lapse()
        for _ in range(len(self.facts)):
            self.backoff_ends()
            self.step("d1", 64, True)
            if "d1" not in self.hands:
                break
            while "d1" in self.hands:
                self.step("d1", 64, True)
        self.search_lane()
        assert self.ledger() == self.expected()
        assert self.execute("select * from counterfoil.lanes where run_id = %s") == []

    # Helpers.

    def search_lane(self) -> None:
        """Materialise and acknowledge what only goes to the journal."""
        while rows := self.call("claim_deliveries", "s", 30, 64, 1, ORG, self.run, "search"):
            for row in rows:
                if row["deferred"]:
                    self.call("materialize_runtime_outbox_event", ORG, row["event_id"], "s")
            ids = [row["event_id"] for row in rows]
            self.call("acknowledge_delivery", ORG, self.run, ids, "s")

    def take(self, owner: str, rows: list[dict[str, Any]], limit: int) -> None:
        """Check a claim against the model, and hold it."""
        if not rows:
            return
        assert not self.must_wait
        self.holder = owner
        ids = [row["event_id"] for row in rows]
        pending = [f.event_id for f in self.facts if not (f.is_search or f.delivered)]
        assert ids == pending[: len(ids)]
        frozen = self.receipts.get(ids[0])
        if frozen is None:
            assert len(ids) <= limit
            assert not any(row["frozen"] for row in rows)
        else:
            assert frozen == (rows[0]["idempotency_key"], ids)
            assert all(row["frozen"] for row in rows)
        types = [row["event_type"] for row in rows]
        assert len(types) == 1 or not {"run.created", "run.started"} & set(types)
        self.hands[owner] = Hand(rows)

    def request(self, owner: str, hand: Hand, piece: dict[str, Any]) -> tuple[Any, ...]:
        events = json.dumps(piece["events"])
        to = (ORG, self.run, hand.key, owner, events)
        match hand.facts[0]["event_type"]:
            case "run.created":
                return ("append_run_created", *to)
            case "run.started":
                return ("append_run_started", *to, None)
        return ("append_run_events", *to, piece["chunk"], piece["chunk_count"])
