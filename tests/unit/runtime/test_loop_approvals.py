"""Tools that a person has to allow first: the run pauses, survives, and goes on either way."""

from collections.abc import Iterator
from typing import Any

import pytest
from pydantic_ai import Agent, ApprovalRequired, RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import hardsave
from hardsave.runtime import loop
from hardsave.runtime.loop import journal
from hardsave.runtime.loop.journal import Noted
from hardsave.vault.vault import Vault


class Bank:
    """An agent that looks, then pays twice at once, then says what came of it."""

    def __init__(self) -> None:
        self.requests: list[list[ModelMessage]] = []
        self.done: list[str] = []
        self.agent: Agent[None, Any] = Agent(FunctionModel(self._say))
        self.agent.tool_plain(metadata=loop.if_unknown("retry"))(self.look)
        self.agent.tool_plain(requires_approval=True)(self.pay)
        self.agent.tool(self.order)

    def look(self) -> str:
        """Look."""
        self.done.append("look")
        return "seen"

    def pay(self, amount: int) -> str:
        """Pay."""
        self.done.append(f"pay {amount}")
        return f"paid {amount}"

    def order(self, ctx: RunContext[None], what: str) -> str:
        """Order; only what is dear needs a word."""
        if what == "car" and not ctx.tool_call_approved:
            raise ApprovalRequired
        self.done.append(f"order {what}")
        return f"ordered {what}"

    def _say(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.requests.append(list(messages))
        if len(messages) == 1:
            wanted: list[tuple[str, dict[str, Any]]] = [
                ("look", {}),
                ("pay", {"amount": 7}),
                ("order", {"what": "car"}),
            ]
            return ModelResponse(
                parts=[ToolCallPart(tool, args, tool_call_id=f"id-{tool}") for tool, args in wanted]
            )
        results = [getattr(part, "content", "") for part in messages[-1].parts]
        return ModelResponse(parts=[TextPart(" | ".join(map(str, results)))])


@pytest.fixture
def vault() -> Iterator[Vault]:
    with hardsave.open("memory://") as opened:
        yield opened


def go(bank: Bank, vault: Vault, **options: Any) -> loop.Outcome[Any]:
    return loop.run_sync(bank.agent, "buy", run_id="job", line=vault.timeline("job"), **options)


def test_a_run_pauses_before_what_needs_approval_and_has_done_the_rest(vault: Vault) -> None:
    bank = Bank()
    with pytest.raises(loop.ApprovalNeeded) as pause:
        go(bank, vault)
    assert [(call.id, str(call)) for call in pause.value.calls] == [
        ("id-order", 'order({"what": "car"})'),
        ("id-pay", 'pay({"amount": 7})'),
    ]
    assert bank.done == ["look"]
    head = vault.timeline("job").head
    assert head is not None
    assert head.status == "waiting"
    assert head.read("calls").keys() == {"id-look"}  # what was put off has not begun


def test_asked_again_without_an_answer_it_waits_still_and_asks_no_model(vault: Vault) -> None:
    bank = Bank()
    for _ in range(2):
        with pytest.raises(loop.ApprovalNeeded):
            go(bank, vault)
    assert len(bank.requests) == 1
    assert bank.done == ["look"]


def test_what_is_approved_is_called_and_what_is_denied_is_not(vault: Vault) -> None:
    bank = Bank()
    with pytest.raises(loop.ApprovalNeeded):
        go(bank, vault)
    outcome = go(bank, vault, approvals={"id-pay": "too dear", "id-order": True})
    assert outcome.output == "seen | too dear | ordered car"
    assert bank.done == ["look", "order car"]
    assert len(bank.requests) == 2


def test_one_word_is_kept_while_the_other_is_waited_for(vault: Vault) -> None:
    bank = Bank()
    with pytest.raises(loop.ApprovalNeeded):
        go(bank, vault)
    with pytest.raises(loop.ApprovalNeeded) as pause:
        go(bank, vault, approvals={"id-pay": True})
    assert [call.id for call in pause.value.calls] == ["id-order"]
    assert bank.done == ["look"]
    outcome = go(bank, vault, approvals={"id-order": False})
    assert outcome.output == "seen | paid 7 | This call was not approved."
    assert bank.done == ["look", "pay 7"]


def test_an_approved_call_that_has_returned_is_not_made_again(vault: Vault) -> None:
    bank = Bank()
    with pytest.raises(loop.ApprovalNeeded):
        go(bank, vault)
    line = vault.timeline("job")
    go(bank, vault, approvals={"id-pay": True, "id-order": True})
    # as a crash before the second response would leave it: the two ran at once, in any order
    before = next(cp for cp in line.checkpoints() if cp.description.endswith(" returned"))
    line.rewind(before.id, what="state")
    again = go(bank, vault, approvals={"id-order": True, "id-pay": False})
    assert bank.done.count("pay 7") == 1
    assert bank.done.count("order car") == 1
    assert again.output == "seen | paid 7 | ordered car"


def test_an_approved_call_of_unknown_end_is_up_to_its_policy(vault: Vault) -> None:
    bank = Bank()
    with pytest.raises(loop.ApprovalNeeded):
        go(bank, vault)
    line = vault.timeline("job")
    go(bank, vault, approvals={"id-pay": True, "id-order": False})
    before = next(cp for cp in line.checkpoints() if cp.description == "before pay")
    line.rewind(before.id, what="state")
    again = go(bank, vault)
    assert bank.done.count("pay 7") == 1
    assert "It was not called again" in again.output


def careless(paid: list[int], *ids: str) -> Agent[None, Any]:
    """Pays more each time, and gives its calls whatever ids."""

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        turn = sum(isinstance(message, ModelResponse) for message in messages)
        if turn == len(ids):
            return ModelResponse(parts=[TextPart("done")])
        return ModelResponse(parts=[ToolCallPart("pay", {"amount": 10**turn}, ids[turn])])

    agent = Agent(FunctionModel(say))

    @agent.tool_plain(requires_approval=True)
    def pay(amount: int) -> str:
        paid.append(amount)
        return f"paid {amount}"

    return agent


def test_a_word_about_a_call_is_none_about_a_later_one_of_the_same_id(vault: Vault) -> None:
    paid: list[int] = []
    line, agent, same = vault.timeline("job"), careless(paid, "id", "id"), {"id": True}
    with pytest.raises(loop.ApprovalNeeded, match=r"amount\": 1}"):
        loop.run_sync(agent, "buy", line=line, approvals=same)  # nobody was asked yet
    for _ in range(2):
        with pytest.raises(loop.ApprovalNeeded, match=r"amount\": 10}"):
            loop.run_sync(agent, None, line=line, approvals=same if not paid else None)
    assert paid == [1]
    outcome = loop.run_sync(agent, None, line=line, approvals=same)
    assert (paid, outcome.output) == ([1, 10], "done")


def test_a_word_that_comes_again_after_a_crash_allows_no_later_call(vault: Vault) -> None:
    paid: list[int] = []
    line, agent, same = vault.timeline("job"), careless(paid, "id", "id"), {"id": True}
    for words in (None, same):
        with pytest.raises(loop.ApprovalNeeded):
            loop.run_sync(agent, "buy", line=line, approvals=words)
    # as a crash right after the second response would leave it
    before = next(cp for cp in line.checkpoints() if cp.description == "response 2")
    line.rewind(before.id, what="state")
    with pytest.raises(loop.ApprovalNeeded, match=r"amount\": 10}"):
        loop.run_sync(agent, None, line=line, approvals=same)
    assert paid == [1]


@pytest.mark.parametrize(
    ("noted", "given", "verdict"),
    [
        (None, None, None),
        (None, True, True),
        (None, "no", "no"),
        (Noted("pay", "approved", "now"), False, True),
        (Noted("pay", "denied", "now", "too dear"), True, "too dear"),
        (Noted("pay", "began", "now"), None, True),
        (Noted("pay", "returned", "now", "paid"), False, True),
    ],
)
def test_what_was_decided_stands(noted: Noted | None, given: Any, verdict: Any) -> None:
    assert journal.verdict(noted, given) == verdict


@pytest.mark.parametrize("needs_word", [False, True])
@pytest.mark.parametrize("redact", [False, True])
def test_a_call_that_has_lost_its_secret_is_told_and_not_made(
    *, redact: bool, needs_word: bool
) -> None:
    """Else it would write the mark in the place of the secret to wherever it was to be."""
    secret = "sk-ant-api03-" + "a1B2" * 24
    kept: list[str] = []

    def say(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            calls = [
                ToolCallPart("keep", {"text": text}, tool_call_id=id)
                for id, text in (("id-0", "plain"), ("id-1", secret))
            ]
            return ModelResponse(parts=calls)
        results = [str(getattr(part, "content", "")) for part in messages[-1].parts]
        return ModelResponse(parts=[TextPart(" | ".join(results))])

    agent: Agent[None, Any] = Agent(FunctionModel(say))

    @agent.tool_plain(requires_approval=needs_word)
    def keep(text: str) -> str:
        kept.append(text)
        return "kept"

    def dies(turn: int) -> None:
        raise KeyError("killed before any tool was called")

    with hardsave.open("memory://", redact=redact) as vault:
        way: dict[str, Any] = {"line": vault.timeline("job"), "run_id": "job"}
        with pytest.raises(loop.ApprovalNeeded if needs_word else KeyError):
            loop.run_sync(agent, "go", turns=None if needs_word else dies, **way)
        words = {"id-0": True, "id-1": True}
        outcome = loop.run_sync(agent, "go", approvals=words, **way)
    first, second = outcome.output.split(" | ")
    assert first == "kept"
    assert sorted(kept) == (["plain"] if redact else ["plain", secret])  # both at once, in threads
    assert ("was not made: it holds a secret" in second) is redact


def test_a_call_is_made_with_the_arguments_that_a_person_has_put_in_place(vault: Vault) -> None:
    bank = Bank()
    with pytest.raises(loop.ApprovalNeeded):
        go(bank, vault)
    outcome = go(bank, vault, approvals={"id-pay": {"amount": 3}, "id-order": True})
    assert sorted(bank.done) == ["look", "order car", "pay 3"]
    assert "paid 3" in outcome.output
    told = str(bank.requests[-1][-1])
    assert 'changed its arguments first. It was made with: {"amount": 3}' in told
    assert told.count("changed its arguments") == 1


def test_other_arguments_hold_when_the_process_dies_before_the_call_is_made(vault: Vault) -> None:
    bank = Bank()
    with pytest.raises(loop.ApprovalNeeded):
        go(bank, vault)
    with pytest.raises(loop.ApprovalNeeded):  # it stops before the other call
        go(bank, vault, approvals={"id-pay": {"amount": 3}})
    assert bank.done == ["look"]
    again = Bank()
    go(again, vault, approvals={"id-pay": True, "id-order": False})  # what was decided stands
    assert again.done == ["pay 3"]


def test_a_word_of_changed_arguments_goes_with_the_call_through_all_its_states() -> None:
    noted = Noted("pay", "began", "now", args={"amount": 3})
    assert journal.from_plain(journal.to_plain({"id": noted})) == {"id": noted}
    assert journal.verdict(noted, None) == {"amount": 3}
    plain = journal.to_plain({"id": Noted("pay", "began", "now")})
    assert "args" not in plain["id"]
