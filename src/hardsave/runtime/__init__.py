"""Agents at work: what they are, how they are kept, how several of them run.

`loop` runs an agent of Pydantic AI so that it survives, `Worker` runs queued jobs, `coding_tools`
are tools for an agent that codes; they need the extra `agents`. `scripted` is a model that needs
no key. `verify_webhook` is for the receiver of a callback, and needs no extra.
"""

TYPE_CHECKING = False  # typing itself takes longer to import than all of this
if TYPE_CHECKING:
    from hardsave.runtime import loop, scripted
    from hardsave.runtime.coding.tools import coding_tools
    from hardsave.runtime.jobs.worker import Worker
    from hardsave.runtime.webhooks.signature import verify_webhook

__all__ = ["Worker", "coding_tools", "loop", "scripted", "verify_webhook"]

_HOME_OF = {
    "Worker": "hardsave.runtime.jobs.worker",
    "coding_tools": "hardsave.runtime.coding.tools",
    "verify_webhook": "hardsave.runtime.webhooks.signature",
}


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        """What is exported, loaded when it is first asked for."""
        import importlib

        if name not in __all__:
            raise AttributeError(f"module 'hardsave.runtime' has no attribute {name!r}")
        if name not in _HOME_OF:
            return importlib.import_module(f"hardsave.runtime.{name}")
        found = getattr(importlib.import_module(_HOME_OF[name]), name)
        globals()[name] = found
        return found
