"""Jobs in the documented shapes, from plain data."""

from datetime import UTC, datetime, timedelta
from typing import Any, get_args

import pytest

from hardsave.server import job_json
from hardsave.vault.jobs.spec import JobResumption, JobSpec
from hardsave.vault.jobs.state import Job, JobState

AT = datetime(2026, 1, 1, 12, 0, 0, 123456, tzinfo=UTC)


def job(state: JobState = "failed", **changes: Any) -> Job:
    known: dict[str, Any] = {
        "id": "fix~2",
        "lineage": "fix",
        "state": state,
        "text": "Fix it",
        "spec": JobSpec(
            lineage="fix", prompt="Fix it", resumed=JobResumption(from_job="fix", at="now")
        ),
        "attempts": 1,
        "turns": 3,
        "max_turns": 50,
        "messages": 7,
        "model": None,
        "checkpoint": "chk_1",
        "updated_at": AT,
        "expires_at": AT + timedelta(days=7),
        "error": None,
        "question": None,
        "output": None,
        "why_not": None if state in ("failed", "rolled_back", "forgotten") else "busy",
    }
    return Job(**{**known, **changes})


def test_every_state_has_a_word_of_its_own() -> None:
    assert {*job_json.STATUS} == {*get_args(JobState)}
    assert len({*job_json.STATUS.values()}) == len(job_json.STATUS)


def test_a_listing_has_exactly_the_documented_fields() -> None:
    assert job_json.listing([(job(), 4)]) == {
        "total": 1,
        "checkpoints": [
            {
                "jobId": "fix~2",
                "metadata": {
                    "totalCheckpoints": 4,
                    "lastCheckpointAt": "2026-01-01T12:00:00.123+00:00",
                    "canResume": True,
                },
                "jobStatus": "failed",
            }
        ],
    }


def test_a_resumption_tells_where_it_goes_on() -> None:
    told = job_json.resumed(job("queued"))
    assert (told["originalJobId"], told["newJobId"]) == ("fix", "fix~2")
    assert told["resumedFrom"] == {
        "turns": 3,
        "messageCount": 7,
        "lastUpdated": "2026-01-01T12:00:00.123+00:00",
    }
    assert isinstance(told["message"], str)
    assert told.keys() == {"message", "originalJobId", "newJobId", "resumedFrom"}


@pytest.mark.parametrize("state", get_args(JobState))
def test_a_job_has_a_checkpoint_until_it_has_succeeded(state: JobState) -> None:
    told = job_json.resumable("fix", job(state))
    assert told["hasCheckpoint"] is (state != "succeeded")
    assert told["canResume"] is (state in ("failed", "rolled_back", "forgotten"))
    assert not job_json.resumable("fix", job(state, checkpoint=None))["hasCheckpoint"]


def test_a_job_that_is_not_known_is_told_in_the_same_shape() -> None:
    assert job_json.resumable("x", None).keys() == job_json.resumable("x", job()).keys()
