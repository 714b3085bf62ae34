"""The workspace of a job on a store that hosts share: an id, which each attempt takes over.

Contract. The id is the job's; host, path and epoch are those of its latest attempt. Once an attempt
has taken it over, a capture that an earlier one has begun, on any host, is refused. Its directory
is new, and has the files of the checkpoint that the job goes on from, all of them, before its work
begins.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from hardsave.objects.hashing import digest
from hardsave.objects.records import ID_BYTES
from hardsave.vault.checkpoint import Checkpoint, record_of
from hardsave.vault.restore import copy_into
from hardsave.vault.vault import Vault
from hardsave.vault.workspace import Workspace
from hardsave.vault.workspaces.attempt_directories import AttemptDirectories, AttemptDirectory
from hardsave.vault.workspaces.local_data import attempts_folder, host_fetch
from hardsave.vault.workspaces.takeover import take_over


def has_own_directories(vault: Vault) -> bool:
    """Whether attempts at jobs work in directories of their own: where hosts share the store. Else
    they work in those that the jobs name."""
    return vault._context.store.is_shared


class AttemptWorkspace:
    """Where an attempt works."""

    def __init__(self, workspace: Workspace, directory: AttemptDirectory) -> None:
        self.workspace = workspace
        self._directory = directory

    def __str__(self) -> str:
        return str(self.workspace.path)

    def saved(self) -> None:
        """All that is in it is stored: it may go."""
        self._directory.is_saved = True


@contextmanager
def attempt_workspace(
    vault: Vault, job: str, files: Checkpoint | None
) -> Iterator[AttemptWorkspace]:
    """The workspace of a job in a new directory for the block, with the files of a checkpoint.

    Called inside of the attempt: where that has lost its job, taking over is refused.
    """
    context = vault._context
    folder = attempts_folder(context)
    with AttemptDirectories(folder).new(job) as directory:
        context.places.lend(directory.root, directory.own)
        try:
            take_over(context, context.places.at(directory.root), id_of(job))
            if files is not None:
                at = os.fsencode(directory.root)
                with host_fetch(context, record_of(files)) as fetch:
                    copy_into.fill_own(context, record_of(files), at, fetch)
            yield AttemptWorkspace(vault.workspace(directory.root), directory)
        finally:
            context.places.leave(directory.root)


def id_of(job: str) -> bytes:
    """The workspace of a job, by its lineage: the same on every host."""
    return b"\0" + digest(b"job\0" + job.encode())[: ID_BYTES - 1]
