"""Stores that are broken on purpose, and the tests of the contract that must notice."""

import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from xml.etree import ElementTree

import pytest

from hardsave.testing.hosts import WHY_NOT, can_unshare

BROKEN = Path(__file__).with_name("broken_stores.py")
BEYOND = Path(__file__).with_name("broken_processes.py")

# For each store, tests that must fail because it breaks what they say. Others may fail as well.
MUST_FAIL = {
    "TestBringsTitlesBack": {"test_a_title_stays_until_a_move_changes_it"},
    "TestListsTheHeadAsTheNewest": {
        "test_a_timeline_that_was_rewound_has_its_head_and_its_newest",
        "test_a_fork_without_a_save_has_a_head_alone",
    },
    "TestNeverLowersACount": {"test_counts_and_last_updates_follow_what_operations_do"},
    "TestUpdatesWithEverySave": {"test_counts_and_last_updates_follow_what_operations_do"},
    "TestFiltersTimelinesAfterTheLimit": {
        "test_timelines_are_found_by_the_status_of_their_newest",
    },
    "TestTakesPrefixesForPatterns": {
        "test_timelines_are_found_by_the_beginning_of_their_names",
    },
    "TestLooksForTextsInNamesAlone": {"test_timelines_are_found_by_a_text_in_name_or_title"},
    "TestFindsTheSuccessorAlone": {
        "test_children_of_a_rewound_timeline_are_all_found",
        "test_children_come_in_the_order_of_commits_from_every_timeline",
    },
    "TestForgetsTheChildrenOfTheDropped": {"test_children_of_what_was_dropped_are_found"},
    "TestTakesSuccessorsForBranches": {
        "test_branches_are_where_the_history_of_a_timeline_forks",
    },
    "TestStaysOnTheTimeline": {"test_ancestors_come_from_every_timeline_in_pages"},
    "TestPassesOverTheDropped": {"test_ancestors_end_where_one_was_dropped"},
    "TestFindsAnyOfTheLabels": {
        "test_a_page_has_the_checkpoints_with_all_labels_that_are_asked_for",
    },
    "TestFiltersLabelsAfterTheLimit": {
        "test_a_page_has_the_checkpoints_with_all_labels_that_are_asked_for",
    },
    "TestFindsWhatWasHidden": {
        "test_hidden_checkpoints_are_not_found_by_labels_and_keep_what_they_have",
    },
    "TestKeepsTheLabelsOfBefore": {"test_labels_take_the_place_of_those_before"},
    "TestLeavesLabelsToTheNextCommit": {
        "test_a_refused_save_leaves_no_label_and_no_note",
        "test_a_repeated_save_changes_no_label",
    },
    "TestKeepsNotesOfWhatIsDropped": {
        "test_what_is_dropped_takes_its_labels_and_notes_along",
    },
    "TestListsNotesByKey": {"test_notes_are_listed_in_the_order_in_which_their_keys_came"},
    "TestKeepsNotesWithoutData": {
        "test_a_note_without_data_removes_the_one_that_is_there",
    },
    "TestReplacesNotesAlways": {
        "test_a_note_that_is_there_stays_if_it_is_not_to_be_replaced",
    },
    "TestTakesNotesOfNothing": {"test_notes_of_a_checkpoint_that_is_not_there_are_refused"},
    "TestTakesTheBeginningForAPattern": {
        "test_timelines_are_found_by_what_their_names_begin_with",
    },
    "TestShowsCommitsLate": {"test_a_follower_beside_writers_misses_nothing"},
    "TestTakesALeaseOnce": {"test_leases_pins_and_objects_may_be_asked_for_again"},
    "TestTakesEveryTurn": {"test_a_turn_is_had_by_one_caller_until_its_block_ends"},
    "TestKnowsNoFences": {"test_a_fence_keeps_an_old_attempt_out"},
    "TestFollowsAnyEntry": {"test_of_two_who_follow_the_latest_entry_of_a_kind_one_does"},
    "TestMovesATaskAtAnyEpoch": {
        "test_a_move_at_an_old_epoch_is_refused_and_writes_nothing",
        "test_of_many_who_claim_a_task_one_gets_it",
    },
    "TestReclaimsRenewedLeases": {"test_a_lease_that_was_renewed_is_not_reclaimed"},
    "TestLetsAnOwnerWithoutALeaseClaim": {"test_only_an_owner_with_a_lease_can_claim"},
    "TestRevivesReclaimedLeases": {
        "test_a_lease_is_taken_renewed_and_given_back",
        "test_a_lease_that_was_renewed_is_not_reclaimed",
    },
    "TestTakesTasksInAnyOrder": {"test_due_tasks_come_by_priority_and_then_in_order"},
    "TestTakesTasksBeforeTheirTime": {
        "test_only_what_is_pending_and_whose_time_has_come_is_due",
    },
    "TestLooksForRetriesAmongTheFirst": {"test_retries_are_found_behind_many_other_tasks"},
    "TestPagesFromWhereTheNameIsNow": {
        "test_a_listing_goes_on_behind_tasks_that_are_forgotten_and_added_anew",
    },
    "TestWaitsForNoTask": {"test_a_task_waits_until_all_others_are_completed"},
    "TestForgetsTheTaskButNotItsPast": {"test_a_forgotten_task_is_gone_with_its_entries"},
    "TestShowsTasksToAllUsers": {"test_tasks_are_seen_by_their_user_only"},
    "TestMixesStepsIntoTheHistory": {"test_entries_come_by_task_in_order_and_in_pages"},
    "TestWritesBeforeItChecks": {
        "test_a_conflicting_batch_leaves_no_trace",
        "test_a_batch_whose_required_objects_are_gone_leaves_no_trace",
    },
    "TestKeepsTheObjectsOfARefusedBatch": {
        "test_a_conflicting_batch_leaves_no_trace",
        "test_of_two_writers_on_one_timeline_exactly_one_wins",
    },
    "TestKnowsNoRepeats": {
        "test_a_repeated_save_answers_as_before_and_changes_nothing",
        "test_a_repeated_log_entry_answers_as_before",
        "test_one_batch_from_many_threads_is_one_commit",
    },
    "TestKnowsARepeatOnlyAtTheHead": {
        "test_a_repeat_is_recognised_after_the_timeline_moved_on",
    },
    "TestLooksForRepeatsOnlyAfterAConflict": {
        "test_an_id_that_comes_twice_is_recognised_after_the_timeline_has_moved",
    },
    "TestListsTheNewestOfTheFirst": {
        "test_tasks_are_listed_newest_first_behind_those_that_are_gone",
    },
    "TestChecksTheExpectationFirst": {
        "test_a_repeated_save_answers_as_before_and_changes_nothing",
    },
    "TestIgnoresWhatIsExpected": {
        "test_a_conflicting_batch_leaves_no_trace",
        "test_a_timeline_with_another_head_or_number_is_a_conflict",
        "test_of_two_writers_on_one_timeline_exactly_one_wins",
        "test_one_of_many_creates_a_timeline",
    },
    "TestExpectsTheHeadOnly": {"test_a_timeline_with_another_head_or_number_is_a_conflict"},
    "TestExpectsTheNumberOnly": {"test_a_timeline_with_another_head_or_number_is_a_conflict"},
    "TestAcceptsMissingRequirements": {
        "test_one_required_object_that_is_gone_is_enough",
        "test_whether_another_user_has_an_object_cannot_be_found_out",
    },
    "TestScansTheObjectsOfAllUsers": {"test_a_scan_brings_every_object_and_no_other"},
    "TestScansByOffset": {"test_a_scan_loses_nothing_to_what_other_callers_do_meanwhile"},
    "TestLooksForTheFirstOfManyHashes": {"test_many_hashes_may_be_asked_for_at_once"},
    "TestSharesObjectsAmongUsers": {
        "test_objects_are_seen_by_their_user_only",
        "test_whether_another_user_has_an_object_cannot_be_found_out",
    },
    "TestShowsTheLogToAllUsers": {"test_the_log_is_seen_by_its_user_only"},
    "TestShowsALogEntryToAllUsers": {"test_a_log_entry_is_found_by_its_id"},
    "TestFindsNoLogEntry": {"test_a_log_entry_is_found_by_its_id"},
    "TestShowsCheckpointsToAllUsers": {"test_checkpoints_are_seen_by_their_user_only"},
    "TestTakesNoneForAllUsers": {"test_timelines_are_seen_by_their_user_only"},
    "TestNumbersEachTimelineApart": {"test_the_numbers_of_a_users_commits_rise"},
    "TestCountsSavesAloneAsTheLatest": {
        "test_the_latest_number_lies_between_what_has_returned_and_what_will",
    },
    "TestPagesByOffset": {
        "test_a_page_of_timelines_is_not_moved_by_new_ones",
        "test_timelines_after_a_name_that_does_not_exist",
    },
    "TestPagesAreAsLongAsTheyLike": {
        "test_saved_goes_on_after_a_number",
        "test_tombstones_come_page_by_page",
        "test_the_log_pages_by_number",
        "test_tasks_are_listed_in_the_order_they_were_added",
        "test_entries_come_by_task_in_order_and_in_pages",
    },
    "TestPagesIncludeTheirCursor": {
        "test_every_filter_narrows_alone_and_with_the_others",
        "test_a_page_of_checkpoints_is_not_moved_by_new_ones",
    },
    "TestFiltersAfterTheLimit": {"test_every_filter_narrows_alone_and_with_the_others"},
    "TestSinceExcludesItsMoment": {"test_since_and_until_include_their_moment"},
    "TestSortsNamesWithoutCase": {"test_timelines_come_by_name"},
    "TestForgetsOddObjects": {
        "test_many_objects_in_one_batch_come_back",
        "test_missing_is_exactly_what_is_not_stored",
    },
    "TestCountsWhatIsHidden": {"test_what_is_hidden_is_found_by_its_id_alone"},
    "TestShowsEverythingAgain": {"test_what_a_commit_hid_is_shown_again_and_nothing_else"},
    "TestLeavesNoTombstones": {
        "test_what_is_dropped_leaves_a_tombstone",
        "test_tombstones_come_page_by_page",
    },
    "TestDropsHeads": {
        "test_a_head_is_not_dropped",
        "test_what_becomes_a_head_is_not_dropped",
    },
    "TestKeepsNoCheckpoint": {"test_a_checkpoint_that_was_dropped_is_not_kept"},
    "TestDoesNotLookForTheLatest": {"test_an_operation_may_insist_on_being_the_next"},
    "TestReplacesThePlaceToo": {"test_a_checkpoint_is_replaced_but_for_its_place"},
    "TestMovesOneAfterTheOther": {"test_one_timeline_that_moved_on_stops_all_the_others"},
    "TestPurgesForAllUsers": {"test_the_last_purge_is_the_last_commit_that_said_so"},
    "TestTakesADropForAPurge": {"test_the_last_purge_is_the_last_commit_that_said_so"},
    "TestSavedLeavesOutWhatIsHidden": {
        "test_what_is_hidden_is_listed_if_a_query_asks_for_it",
    },
    "TestForgetsTheLogOfAllUsers": {"test_old_log_entries_are_forgotten"},
    "TestCollectsNothing": {
        "test_what_nothing_leads_to_goes",
        "test_what_only_a_dropped_checkpoint_led_to_goes",
    },
    "TestCollectsWhatIsHidden": {"test_what_a_hidden_checkpoint_leads_to_stays"},
    "TestCollectsAllButRoots": {
        "test_everything_that_a_checkpoint_leads_to_stays",
        "test_garbage_that_is_kept_to_save_work_has_all_that_it_refers_to",
        "test_collecting_beside_writers_takes_nothing_from_them",
    },
    "TestCollectsWhatIsPinned": {
        "test_what_is_pinned_stays_until_it_is_given_back",
        "test_a_pin_lasts_so_many_seconds_after_the_last_put",
    },
    "TestNeverUnpins": {"test_what_is_pinned_stays_until_it_is_given_back"},
    "TestPinsForAllUsers": {"test_one_users_pin_holds_nothing_of_anothers"},
    "TestCollectsBehindDamage": {"test_behind_what_is_missing_nothing_is_removed"},
    "TestRemembersWhatWasCollected": {"test_what_went_cannot_be_relied_on"},
    "TestStoresOnceForEver": {"test_what_went_can_be_stored_again"},
    "TestKnowsNoEpochOfAWorkspace": {
        "test_a_capture_that_began_before_a_takeover_is_refused_and_writes_nothing",
        "test_a_workspace_that_was_forgotten_is_not_captured_as_it_was",
    },
    "TestLetsTwoWorkspacesShareAPath": {"test_a_host_has_one_workspace_at_a_path"},
    "TestFindsAPathOfAnyHost": {"test_two_hosts_have_a_workspace_each_at_the_same_path"},
    "TestTakesAWorkspaceOverByARefusedBatch": {
        "test_a_refused_batch_leaves_its_workspace_as_it_was",
    },
    "TestCanBeUsedAfterClosing": {"test_every_use_after_closing_is_misuse"},
    "TestShowsTheHeadTooEarly": {"test_a_reader_never_sees_half_a_batch"},
    "TestForgetsWhenClosed": {
        "test_everything_is_there_when_opened_again",
        "test_work_goes_on_when_opened_again",
        "test_a_store_opened_twice_is_one_store",
    },
}

# The same for stores that are sound within one process of one host.
MUST_FAIL_BEYOND = {
    "TestIsAnotherStoreInEveryProcess": {
        "test_processes_that_save_on_one_timeline_lose_nothing",
        "test_a_follower_beside_other_processes_misses_nothing",
    },
    "TestKnowsItsOwnRepeatsOnly": {
        "test_a_save_whose_reply_was_lost_is_recognised_by_another_process",
        "test_an_entry_whose_reply_was_lost_is_recognised_by_another_process",
        "test_a_claim_whose_reply_was_lost_is_recognised_by_another_process",
        "test_one_batch_from_many_processes_is_one_commit",
    },
    "TestShowsCommitsOfOneProcessLate": {
        "test_a_follower_beside_other_processes_misses_nothing",
    },
    "TestTakesTurnsWithinItsProcess": {"test_a_turn_is_one_processs_until_it_leaves_or_dies"},
    "TestComparesTheClocksOfTwoHosts": {
        "test_the_clock_is_the_same_on_two_hosts_if_the_store_is_shared_and_only_then",
    },
    "TestSaysThatItIsShared": {
        "test_the_clock_is_the_same_on_two_hosts_if_the_store_is_shared_and_only_then",
        "test_what_another_host_has_pinned_stays",
    },
    "TestAsksAboutTheProcessesOfOthers": {"test_what_a_container_has_pinned_stays"},
}
NEED_A_SECOND_HOST = {
    *("TestComparesTheClocksOfTwoHosts", "TestSaysThatItIsShared"),
    "TestAsksAboutTheProcessesOfOthers",
}


@pytest.fixture(scope="module")
def failed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The tests that failed, by class; of a sound store all of them were run."""
    chosen = [f"{BROKEN}::TestSound", *_named(BROKEN, MUST_FAIL)]
    return _failures(chosen, tmp_path_factory.mktemp("broken"))


@pytest.fixture(scope="module")
def failed_beyond(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The same of those that a second process or host finds out."""
    every = {test for tests in MUST_FAIL_BEYOND.values() for test in tests}
    chosen = _named(BEYOND, {**MUST_FAIL_BEYOND, "TestASoundFile": every})
    return _failures(chosen, tmp_path_factory.mktemp("beyond"))


def _named(path: Path, tests: Mapping[str, set[str]]) -> list[str]:
    return [f"{path}::{store}::{test}" for store, some in tests.items() for test in sorted(some)]


def _failures(chosen: list[str], folder: Path) -> dict[str, set[str]]:
    (folder / "pytest.ini").write_text("[pytest]\n")
    report = folder / "report.xml"
    options = ["-q", "--tb=line", "--disable-plugin-autoload", "-pno:cacheprovider"]
    place = [
        "--import-mode=importlib",
        f"--rootdir={folder}",
        f"-c{folder / 'pytest.ini'}",
        f"--junitxml={report}",
    ]
    command = [sys.executable, "-m", "pytest", *chosen, *options, *place]
    done = subprocess.run(
        command, check=False, cwd=folder, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 1, done.stdout + done.stderr  # 1: some failed; others: it did not run
    found: dict[str, set[str]] = {}
    for case in ElementTree.parse(report).getroot().iter("testcase"):  # noqa: S314 # our own
        failures = found.setdefault(case.attrib["classname"].rpartition(".")[2], set())
        if case.find("failure") is not None:
            failures.add(case.attrib["name"])
        assert case.find("error") is None, done.stdout
    return found


def test_every_broken_store_is_listed_here() -> None:
    for path, listed in (
        (BROKEN, MUST_FAIL.keys() | {"TestSound"}),
        (BEYOND, MUST_FAIL_BEYOND.keys() | {"TestASoundFile"}),
    ):
        names = re.findall(r"^class (?:Test)?(\w+)\(", path.read_text(), re.MULTILINE)
        assert {f"Test{name}" for name in names} == listed


def test_a_sound_store_passes(failed: dict[str, set[str]]) -> None:
    assert failed["TestSound"] == set()


@pytest.mark.parametrize("name", MUST_FAIL)
def test_the_contract_notices(name: str, failed: dict[str, set[str]]) -> None:
    assert failed[name] == MUST_FAIL[name]


def test_a_sound_file_passes(failed_beyond: dict[str, set[str]]) -> None:
    assert failed_beyond["TestASoundFile"] == set()


@pytest.mark.parametrize("name", MUST_FAIL_BEYOND)
def test_the_contract_notices_what_others_find_out(
    name: str, failed_beyond: dict[str, set[str]]
) -> None:
    if name in NEED_A_SECOND_HOST and not can_unshare():
        pytest.skip(WHY_NOT)
    assert failed_beyond[name] == MUST_FAIL_BEYOND[name]
