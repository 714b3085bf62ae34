from hardsave.vault import json_data


def test_ids_in_the_log_are_as_people_type_them() -> None:
    said = json_data.logged({"to": bytes(12), "checkpoints": 3, "files": [b"/home"]})
    assert said == {"to": "chk_" + "0" * 24, "checkpoints": 3, "files": [{"$bytes": "L2hvbWU="}]}
