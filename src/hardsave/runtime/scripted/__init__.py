"""A model that says what it was told to, over real HTTP: for tests and demos, without a key."""

from hardsave.runtime.scripted.script import Call, Fault, Reply, Script, Silence, Stall, Step
from hardsave.runtime.scripted.server import Request, ScriptedModel

__all__ = [
    "Call",
    "Fault",
    "Reply",
    "Request",
    "Script",
    "ScriptedModel",
    "Silence",
    "Stall",
    "Step",
]
