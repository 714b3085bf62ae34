import hardsave
from hardsave.vault import json_data


def test_ids_in_the_log_are_as_people_type_them() -> None:
    said = json_data.logged({"to": bytes(12), "checkpoints": 3, "files": [b"/home"]})
    assert said == {"to": "chk_" + "0" * 24, "checkpoints": 3, "files": [{"$bytes": "L2hvbWU="}]}


def test_errors_of_tasks_name_commands_and_no_python() -> None:
    advice = "look what it did, then tasks.retry(id, unknown='retry') or 'skip' goes on"
    with hardsave.open("memory://") as vault:
        vault.tasks.add("push", max_attempts=1)
        vault.tasks.claim("push").fail(OSError(advice))
        told = json_data.task(vault.tasks.get("push"))
        failed = json_data.happening(vault.tasks.history("push")[-1])
    for said in (told["error_message"], failed["about"]["error"]):
        assert said.endswith("then 'hardsave tasks retry ID --unknown retry' or 'skip' goes on")
