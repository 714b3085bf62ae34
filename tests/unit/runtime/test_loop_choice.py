"""Which model a conversation goes on with."""

from pydantic_ai.models.test import TestModel

from hardsave.runtime.loop.choice import Choice, chosen


def model(name: str) -> TestModel:
    made = TestModel()
    made._model_name = name
    return made


def test_an_agents_own_model_is_not_taken_for_another_of_the_same_name() -> None:
    """A private one, beside a public one that a caller has under a name of his own."""
    own, public = model("m-1"), model("m-1")
    found = chosen(None, {"public": public}, own, asked="m-1", answered="m-1-dated")
    assert found == Choice(None, "m-1")
    found = chosen(None, {"m-1": public}, own, asked="m-1", answered=None)
    assert found == Choice(public, "m-1")


def test_a_dated_name_leads_back_to_the_one_that_was_asked() -> None:
    other = model("m-2")
    found = chosen(None, {"cheap": other}, model("m-1"), asked="cheap", answered="m-2-dated")
    assert found == Choice(other, "cheap")
