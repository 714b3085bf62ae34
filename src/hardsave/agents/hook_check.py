"""Whether the hooks of an agent call us in a workspace, for `hardsave doctor` and the dashboard."""

from collections.abc import Mapping
from pathlib import Path

from hardsave import wording
from hardsave.agents import install
from hardsave.agents.spec import AgentSpec
from hardsave.vault import findings
from hardsave.vault.findings import Finding


def look(
    agent: AgentSpec, environment: Mapping[str, str], root: Path, *, start_pythons: bool
) -> Finding:
    """`start_pythons`: also start each Python that a hook calls, to see whether it finds us."""
    users = install.settings_file(agent, environment, None)
    own = install.settings_file(agent, environment, root)
    files = [path for path in (users, own) if path is not None]
    return findings.hooks(
        agent.title,
        agent.program,
        is_found=bool(files),
        events=[event for path in files for event in install.installed(agent, path)],
        wanted=agent.hooks,
        off=wording.shown(install.switched_off(agent, environment, root)),
        untrusted=[event for path in files for event in agent.untrusted_hooks(path)],
        how_to_trust=agent.how_to_trust,
        gone=[program for path in files for program in install.gone(agent, path)],
        without_us=[] if users is None or not start_pythons else install.without_us(agent, users),
        init=f"hardsave init{'' if _is_users(agent, users, own) else ' --project'}",
    )


def _is_users(agent: AgentSpec, users: Path | None, own: Path | None) -> bool:
    """Whether hooks that are to be renewed stand in a user's settings, and not in a project's."""
    if users is None or own is None:
        return True
    if install.gone(agent, users) or install.gone(agent, own):
        return bool(install.gone(agent, users))
    return bool(install.installed(agent, users))
