"""Which commands have effects beyond the files here: programs and their verbs. Pure."""

from collections.abc import Sequence

from hardsave.agents.outside import requests
from hardsave.agents.outside.wrappers import after_options


def phrase(program: str, given: Sequence[str]) -> str:
    """What a program with these words does outside; nothing: it is not known to do anything."""
    if found := requests.phrase(program, given):
        return found
    if program not in _VERBS or _is_dry(program, given):
        return ""
    plain = _without_options(program, given)
    verbs = (verb for verb in _VERBS[program] if plain[: len(verb.split())] == verb.split())
    return next((f"{program} {verb}".rstrip() for verb in verbs), "")


def _is_dry(program: str, given: Sequence[str]) -> bool:
    """Whether it only says what it would do."""
    short = _DRY_SHORT.get(program)
    long = (each for each in given if each.startswith(_DRY))
    return short in given or any(not each.endswith(("=none", "=false")) for each in long)


def _without_options(program: str, given: Sequence[str]) -> list[str]:
    """The words that are no options, as far as can be told."""
    values = _VALUES.get(program, frozenset())
    plain: list[str] = []
    rest = after_options(given, values)
    while rest:
        plain.append(rest[0])
        rest = after_options(rest[1:], values)
    return plain


_DRY = ("--dry-run", "--dryrun", "--help", "--version", "--simulate")
_DRY_SHORT = {"git": "-n", "apt": "-s", "apt-get": "-s"}
_VALUES: dict[str, frozenset[str]] = {
    # options that may stand before a verb, and whose next word is their value
    "git": frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"}),
    "gh": frozenset({"-R", "--repo", "--hostname"}),
    "kubectl": frozenset({"-n", "--namespace", "--context", "--kubeconfig", "--cluster"}),
    "helm": frozenset({"-n", "--namespace", "--kube-context"}),
    "docker": frozenset({"--context", "-c", "-H", "--host", "--config", "-f", "--file", "-p"}),
    "docker-compose": frozenset({"-f", "--file", "-p", "--project-name"}),
    "podman": frozenset({"--connection", "-c", "--url"}),
    "npm": frozenset({"--prefix", "-C", "-w", "--workspace"}),
    "pnpm": frozenset({"-C", "--dir", "--filter", "-F"}),
    "yarn": frozenset({"--cwd"}),
    "cargo": frozenset({"-C", "--config", "--color", "-Z"}),
    "pip": frozenset({"--python", "--proxy", "--log"}),
    "systemctl": frozenset({"-H", "--host", "-M"}),
}


def _each(noun: str, verbs: str) -> tuple[str, ...]:
    """`pr create`, `pr merge`, …"""
    return tuple(f"{noun} {verb}" for verb in verbs.split())


_PACKAGES = ("install", "uninstall", "upgrade", "remove")
_RELEASED = ("apply", "destroy", "import", *_each("state", "rm mv push"), "taint")
_VERBS: dict[str, tuple[str, ...]] = {
    # an empty verb: the program always does something outside
    "git": ("push", "send-email", "svn dcommit", "lfs push"),
    "gh": (
        *_each("pr", "create merge close comment edit review ready reopen"),
        *_each("issue", "create close comment edit delete reopen transfer"),
        *_each("release", "create upload edit delete"),
        *_each("repo", "create delete edit rename archive fork sync"),
        *_each("run", "rerun cancel delete"),
        *_each("workflow", "run enable disable"),
        *_each("secret", "set delete"),
        *_each("variable", "set delete"),
        *_each("gist", "create edit delete"),
        *_each("label", "create edit delete"),
    ),
    "glab": (
        *_each("mr", "create merge close note update approve"),
        *_each("issue", "create close note"),
        *_each("release", "create delete"),
    ),
    # packages
    "pip": ("install", "uninstall"),
    "pip3": ("install", "uninstall"),
    "pipx": ("install", "uninstall", "upgrade", "inject"),
    "uv": (*_each("pip", "install uninstall sync"), *_each("tool", "install uninstall"), "publish"),
    "conda": ("install", "remove", "create", "update"),
    "mamba": ("install", "remove", "create", "update"),
    "npm": ("install", "i", "ci", "add", "uninstall", "publish", "unpublish", "deprecate"),
    "pnpm": ("install", "i", "add", "remove", "publish"),
    "yarn": ("install", "add", "remove", "publish", "npm publish", "global add"),
    "bun": ("install", "add", "remove", "publish"),
    "apt": (*_PACKAGES, "purge", "full-upgrade"),
    "apt-get": (*_PACKAGES, "purge", "dist-upgrade"),
    "dnf": _PACKAGES,
    "yum": _PACKAGES,
    "zypper": _PACKAGES,
    "apk": ("add", "del", "upgrade"),
    "brew": (*_PACKAGES, *_each("services", "start stop restart")),
    "snap": ("install", "remove"),
    "gem": ("install", "uninstall", "push", "yank"),
    "go": ("install",),
    "cargo": ("install", "uninstall", "publish", "yank"),
    # publishing
    "poetry": ("publish",),
    "hatch": ("publish",),
    "flit": ("publish",),
    "twine": ("upload",),
    # containers and clusters
    "docker": (
        *("push", "rm", "rmi", "stop", "kill"),
        *_each("compose", "up down rm"),
        *_each("volume", "rm prune"),
        *_each("image", "push rm prune"),
        *_each("container", "rm prune stop"),
        "system prune",
    ),
    "docker-compose": ("up", "down", "rm"),
    "podman": ("push", "rm", "rmi", "volume rm"),
    "kubectl": (
        *("apply", "delete", "create", "replace", "patch", "edit", "scale", "set", "label"),
        *("annotate", "drain", "cordon", "uncordon", "taint", "expose", "run", "exec", "cp"),
        *_each("rollout", "restart undo pause resume"),
    ),
    "helm": ("install", "upgrade", "uninstall", "rollback", "push"),
    "terraform": _RELEASED,
    "tofu": _RELEASED,
    "pulumi": ("up", "destroy", "import"),
    "ansible-playbook": ("",),
    # deployments
    "vercel": ("deploy", "remove", "rollback"),
    "netlify": ("deploy",),
    "fly": ("deploy", "launch", "apps destroy", "secrets set"),
    "flyctl": ("deploy", "launch", "apps destroy", "secrets set"),
    "firebase": ("deploy",),
    "serverless": ("deploy", "remove"),
    "wrangler": ("deploy", "publish", "delete", "secret put"),
    "heroku": ("create", "config:set", "apps:destroy", "pg:reset", "releases:rollback"),
    "supabase": ("db push", "db reset", "functions deploy"),
    # this machine
    "systemctl": ("start", "stop", "restart", "reload", "enable", "disable", "mask"),
    "mail": ("",),
    "sendmail": ("",),
    "createdb": ("",),
    "dropdb": ("",),
    "pg_restore": ("",),
}
