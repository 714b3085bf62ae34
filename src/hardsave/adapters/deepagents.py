"""Deep Agents: a backend whose files are committed with the state. Needs the extra `deepagents`."""

from deepagents.backends import FilesystemBackend

import hardsave
from hardsave.adapters.langgraph import HardsaveSaver

__all__ = ["HardsaveBackend"]


class HardsaveBackend(FilesystemBackend):
    """The files of a saver's workspace, for the tools of a deep agent. Paths begin at its root, and
    none leads out of it.

        saver = HardsaveSaver(vault, workspace="site")
        agent = create_deep_agent(model, backend=HardsaveBackend(saver), checkpointer=saver)

    The saver captures what the tools of a step have written, and commits it with the checkpoint of
    that step: a rewind of the thread's timeline takes both back.
    """

    def __init__(self, saver: HardsaveSaver, *, max_file_size_mb: int = 10) -> None:
        if saver.workspace is None:
            raise hardsave.Misuse(
                "the saver has no workspace to keep files of; make it with "
                "HardsaveSaver(vault, workspace=DIRECTORY)"
            )
        root = saver.workspace.path
        super().__init__(root, virtual_mode=True, max_file_size_mb=max_file_size_mb)
