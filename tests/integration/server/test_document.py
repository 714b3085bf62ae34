"""What the OpenAPI document allows is tried by another program, which knows nothing but that: no
request is a fault, every answer is as the document says, what it forbids is refused."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.integration.server.conftest import environment
from tests.integration.server.site import Site
from tests.unit.server.api_samples import STREAM

CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "unsupported_method",
    "allow_header_conformance",
)
SETTINGS = """
[parameters]
"query.project" = "{project}"

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 412, 413, 415, 416, 428]
"""
LIMIT = 600


@pytest.mark.parametrize(
    "examples", [3, pytest.param(500, marks=pytest.mark.torture)], ids=["quick", "long"]
)
def test_every_answer_is_as_the_document_says(site: Site, tmp_path: Path, examples: int) -> None:
    settings = tmp_path / "schemathesis.toml"
    with site.api() as client:
        settings.write_text(SETTINGS.format(project=client.get("/api/v1")["project"]))
    options = {
        "--header": f"Authorization: Bearer {site.server.token}",
        "--checks": ",".join(CHECKS),
        "--exclude-path": STREAM,  # which never ends
        "--phases": "coverage,fuzzing",
        "--max-examples": str(examples),
        "--warnings": "off",
        "--suppress-health-check": "all",
    }
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(settings), "run"]
    command += [
        "--no-color",
        "--generation-deterministic",
        f"{site.server.url}/api/v1/openapi.json",
    ]
    ran = subprocess.run(
        [*command, *(word for option in options.items() for word in option)],
        cwd=tmp_path,
        env=environment(tmp_path),
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert ran.returncode == 0, short(ran.stdout + ran.stderr)
    assert "Traceback" not in site.server.log()
    with site.server.vault() as vault:
        assert vault.store.verify().ok


def short(said: str) -> str:
    """Without the megabytes of some bodies."""
    return "\n".join(line[:300] for line in said.splitlines())
