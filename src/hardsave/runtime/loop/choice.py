"""Which model a conversation goes on with.

A model is known by the name that it was asked by. What it calls itself in its answers may be
another one: providers put a date behind it, or lead from one name to the next.
"""

from collections.abc import Mapping

from pydantic_ai.models import Model

from hardsave.logs import log
from hardsave.tuples import NamedTuple

Models = Mapping[str, Model]


class Choice(NamedTuple):
    """A model to ask, and the name to remember it by; None is the agent's own."""

    model: Model | str | None
    name: str | None


def name_of(model: Model | str | None, models: Models) -> str | None:
    """What a model is asked by: the name that the caller has for it, else its own."""
    if model is None or isinstance(model, str):
        return model
    ours = (name for name, each in models.items() if each is model)
    return next(ours, model.model_name)


def chosen(
    given: Model | str | None,
    models: Models,
    own: Model | str | None,
    *,
    asked: str | None,
    answered: str | None,
) -> Choice:
    """The caller's word, else the one of `models` that the conversation was held with, else the
    agent's `own`. That it goes on with another one than it was held with is told."""
    if given is not None:
        return Choice(given, name_of(given, models))
    name = name_of(own, models)
    is_own = name is not None and name == (asked or answered) and name not in models
    known = None if is_own else _known(models, asked, answered)
    if known is not None:
        return known
    if asked is not None and name is not None and asked != name:
        log(__name__).warning(
            "this conversation was held with model %r and goes on with %r; model= or models= "
            "let it go on with its own",
            asked,
            name,
        )
    return Choice(None, name)


def _known(models: Models, asked: str | None, answered: str | None) -> Choice | None:
    for name in (asked, answered):
        if name is not None and name in models:
            return Choice(models[name], name)
    for name, model in models.items():
        if model.model_name in (asked, answered):
            return Choice(model, name)
    return None
