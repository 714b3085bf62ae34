"""What one host does in a directory, and what it sees there: run by `test_two_hosts`, perhaps in
namespaces of its own.

    python -m tests.unit.vault.host_process STORE WORK NAME

It tells how it is, as one line of JSON, for each line that it reads.
"""

import json
import sys
from pathlib import Path
from typing import Any

import hardsave
from hardsave.stores.host.identity import host_id


def act(vault: hardsave.Vault, work: Path, name: str, asked: str) -> Any:
    line = vault.timeline(f"on-{name}")
    if asked == "who":
        return host_id()
    if asked == "save":
        (work / f"{name}.txt").write_text(name)
        return line.save_files(work).id
    if asked == "status":
        found = vault.workspace(work).status().files
        return [*found.added, *found.changed, *found.removed]
    if asked == "moments":
        return [each.timeline for each in vault.moments(work)]
    if asked == "sessions":
        return [each.timeline for each in vault.sessions(workspace=work)]
    if asked == "files":
        return sorted(each.name for each in work.iterdir())
    try:  # back to a checkpoint
        line.rewind(asked, what="files")
    except hardsave.HardsaveError as error:
        return f"{type(error).__name__}: {error}"
    return "done"


def main(store: str, work: str, name: str) -> None:
    with hardsave.open(f"sqlite:///{store}") as vault:
        for asked in sys.stdin:
            sys.stdout.write(json.dumps(act(vault, Path(work), name, asked.strip())) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
