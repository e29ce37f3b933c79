//! The programs for alerts that docs/alarms.md gives to copy. What is at stake: an alert that nobody gets, and a program that says
//! it was delivered.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};

use tilld::hook::payload::ALARM_VARIABLES;

use super::{block, column, docs, table};
use crate::layout::has_function;

#[test]
fn the_variables_are_those_the_program_gets() {
    let named = column(&table(&docs(), "alert variable"), 0);
    assert_eq!(named, ALARM_VARIABLES);
}

/// A program that keeps its arguments and its input beside itself, and ends so.
fn fake(dir: &Path, name: &str, code: u8) -> String {
    let path = dir.join(name);
    let script =
        format!("#!/bin/sh\nprintf '%s\\n' \"$@\" >\"$0.args\"\ncat >\"$0.in\"\nexit {code}\n");
    fs::write(&path, script).expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("ours");
    path.display().to_string()
}

fn run(dir: &Path, script: &str) -> Output {
    let path = format!("{}:/usr/bin:/bin", dir.display());
    Command::new("/bin/sh")
        .args(["-c", script])
        .env_clear()
        .env("PATH", path)
        .env("TILLD_ALERT", "outage")
        .env("TILLD_MESSAGE", "no answer; 100% of \"all\"")
        .env("TILLD_ADVICE", "look at it")
        .output()
        .expect("a shell")
}

#[test]
fn the_example_of_a_mail_sends_one_or_fails() {
    for code in [0, 75] {
        let dir = tempfile::tempdir().expect("a directory");
        let sendmail = fake(dir.path(), "sendmail", code);
        let script = block(&docs(), "alert-mail").replace("/usr/sbin/sendmail", &sendmail);
        let ran = run(dir.path(), &script);
        assert_eq!(ran.status.code(), Some(i32::from(code)), "{ran:?}");
        let sent = fs::read_to_string(dir.path().join("sendmail.in")).expect("sent");
        let (head, text) = sent.split_once("\n\n").expect("a head");
        assert!(
            head.contains("To: owner@shop.example\nSubject: tilld: outage\n"),
            "{head}"
        );
        assert_eq!(text, "no answer; 100% of \"all\"\n\nlook at it\n");
    }
}

#[test]
fn the_example_of_a_message_sends_one_or_fails_and_shows_nobody_the_token() {
    for code in [0, 22] {
        let dir = tempfile::tempdir().expect("a directory");
        fake(dir.path(), "curl", code);
        let token = dir.path().join("token");
        fs::write(&token, "123:secret\n").expect("written");
        let token = token.display().to_string();
        let script = block(&docs(), "alert-message").replace("/etc/tilld/telegram-token", &token);
        let ran = run(dir.path(), &script);
        assert_eq!(ran.status.code(), Some(i32::from(code)), "{ran:?}");
        let read = |name: &str| fs::read_to_string(dir.path().join(name)).expect("kept");
        assert!(
            read("curl.in").contains("bot123:secret/sendMessage"),
            "{}",
            read("curl.in")
        );
        let arguments = read("curl.args");
        assert!(!arguments.contains("secret"), "{arguments}");
        assert!(
            arguments.contains("text=tilld: no answer; 100% of \"all\". look at it"),
            "{arguments}"
        );
    }
    // Without its token it sends nothing.
    let dir = tempfile::tempdir().expect("a directory");
    fake(dir.path(), "curl", 0);
    let script = block(&docs(), "alert-message").replace("/etc/tilld", "/no/such/place");
    let ran = run(dir.path(), &script);
    assert_ne!(ran.status.code(), Some(0), "{ran:?}");
}

/// Every alert, the test that shows how it comes, and the one that shows how it ends.
const SHOWN: [(&str, &str, &str); 40] = [
    (
        "abandoned",
        "each_episode_is_told_once_over_restarts_and_again_when_it_comes_back",
        "given_up_deliveries_and_invoices_are_acknowledged_by_the_same_verb",
    ),
    (
        "cannot_read",
        "what_cannot_be_seen_is_not_over",
        "what_cannot_be_seen_is_not_over",
    ),
    (
        "cannot_store",
        "a_full_disk_is_told_and_goods_are_handed_over_once_when_there_is_room",
        "a_full_disk_is_told_and_goods_are_handed_over_once_when_there_is_room",
    ),
    (
        "certificate",
        "a_new_certificate_is_shown_and_a_bad_one_changes_nothing",
        "a_new_certificate_is_shown_and_a_bad_one_changes_nothing",
    ),
    (
        "clock",
        "a_clock_that_is_ahead_raises_an_alert_and_what_it_dates_is_marked",
        "an_idle_shops_alert_ends_once_the_clock_is_set",
    ),
    (
        "daemon",
        "a_daemon_that_stands_still_is_not_called_well",
        "a_daemon_that_stands_still_is_not_called_well",
    ),
    (
        "descriptors_low",
        "few_descriptors_are_an_alert_until_there_are_more",
        "few_descriptors_are_an_alert_until_there_are_more",
    ),
    (
        "disk_low",
        "a_disk_that_becomes_full_is_told_by_the_alarm_and_the_log_is_said_to_want_room",
        "a_disk_that_becomes_full_is_told_by_the_alarm_and_the_log_is_said_to_want_room",
    ),
    (
        "held",
        "what_a_newly_sorted_name_would_run_is_held_until_a_person_releases_it",
        "what_a_newly_sorted_name_would_run_is_held_until_a_person_releases_it",
    ),
    (
        "hook_exposed",
        "a_script_that_others_could_change_waits_until_they_cannot",
        "a_script_that_others_could_change_waits_until_they_cannot",
    ),
    (
        "inodes_low",
        "without_inodes_scripts_wait_an_alert_says_so_and_no_attempt_is_used_up",
        "without_inodes_scripts_wait_an_alert_says_so_and_no_attempt_is_used_up",
    ),
    (
        "ledger_behind",
        "a_ledger_behind_its_mark_says_how_much_is_missing_until_that_is_acknowledged",
        "a_ledger_behind_its_mark_says_how_much_is_missing_until_that_is_acknowledged",
    ),
    (
        "ledger_new",
        "a_new_ledger_where_one_was_known_says_so",
        "a_ledger_behind_its_mark_says_how_much_is_missing_until_that_is_acknowledged",
    ),
    (
        "login",
        "a_rejected_login_is_told_alike_everywhere",
        "a_refused_login_needs_a_person_until_somebody_logs_in",
    ),
    (
        "missing",
        "a_delivery_that_another_program_took_away_is_missing",
        "a_delivery_that_another_program_took_away_is_missing",
    ),
    (
        "outage",
        "a_page_in_the_place_of_the_answer_is_an_outage_and_is_named",
        "an_outage_ends_although_nothing_is_due",
    ),
    (
        "polled",
        "a_revoked_login_and_lost_notifications_are_told_and_a_program_that_fails_is_run_again",
        "a_revoked_login_and_lost_notifications_are_told_and_a_program_that_fails_is_run_again",
    ),
    (
        "processes_low",
        "a_limit_on_threads_costs_no_request_and_no_attempt_and_is_told",
        "a_limit_on_threads_costs_no_request_and_no_attempt_and_is_told",
    ),
    (
        "read_only",
        "a_start_on_a_read_only_disk_ends_with_a_word_and_changes_nothing",
        "a_start_on_a_read_only_disk_ends_with_a_word_and_changes_nothing",
    ),
    (
        "reversed",
        "each_episode_is_told_once_over_restarts_and_again_when_it_comes_back",
        "each_episode_is_told_once_over_restarts_and_again_when_it_comes_back",
    ),
    (
        "silent",
        "silence_is_told_when_it_lasts_too_long",
        "silence_is_told_when_it_lasts_too_long",
    ),
    (
        "socket_lost",
        "a_socket_that_lost_its_name_is_an_alert_and_gets_it_back",
        "a_socket_that_lost_its_name_is_an_alert_and_gets_it_back",
    ),
    (
        "starts_fail",
        "without_inodes_scripts_wait_an_alert_says_so_and_no_attempt_is_used_up",
        "without_inodes_scripts_wait_an_alert_says_so_and_no_attempt_is_used_up",
    ),
    (
        "undelivered",
        "an_event_that_is_not_done_in_time_is_an_alert_until_it_is",
        "an_event_that_is_not_done_in_time_is_an_alert_until_it_is",
    ),
    (
        "unowned",
        "what_waits_for_a_hook_that_was_renamed_is_told_and_can_be_given_up",
        "what_waits_for_a_hook_that_was_renamed_is_told_and_can_be_given_up",
    ),
    (
        "unreadable",
        "an_invoice_that_cannot_be_read_is_told_once_and_holds_up_no_other",
        "an_invoice_that_cannot_be_read_is_told_once_and_holds_up_no_other",
    ),
    (
        "wal_full",
        "a_log_at_its_bound_turns_notifications_away_until_the_reader_is_gone",
        "a_log_at_its_bound_turns_notifications_away_until_the_reader_is_gone",
    ),
    (
        "wal_held",
        "a_disk_that_becomes_full_is_told_by_the_alarm_and_the_log_is_said_to_want_room",
        "a_disk_that_becomes_full_is_told_by_the_alarm_and_the_log_is_said_to_want_room",
    ),
    (
        "wal_large",
        "a_log_at_its_bound_turns_notifications_away_until_the_reader_is_gone",
        "a_log_at_its_bound_turns_notifications_away_until_the_reader_is_gone",
    ),
    (
        "amount_differs",
        "an_adopted_invoice_of_another_sum_is_not_handed_on",
        "an_invoice_of_another_sum_is_not_handed_on",
    ),
    (
        "amount_missing",
        "a_payment_without_an_amount_is_doubt_until_a_poll_names_one",
        "a_payment_without_an_amount_is_doubt_until_a_poll_names_one",
    ),
    (
        "mismatch",
        "an_acknowledged_invoice_raises_no_alert_until_something_new_does",
        "an_acknowledged_invoice_raises_no_alert_until_something_new_does",
    ),
    (
        "not_found",
        "an_id_the_service_does_not_have_wants_a_person",
        "an_id_the_service_does_not_have_wants_a_person",
    ),
    (
        "other_id",
        "a_second_id_in_the_answer_to_a_create_is_an_alert_until_it_is_acknowledged",
        "a_second_id_in_the_answer_to_a_create_is_an_alert_until_it_is_acknowledged",
    ),
    (
        "outcome_unknown",
        "a_create_whose_answer_was_lost_is_named_with_the_line_that_settles_it",
        "a_create_whose_answer_was_lost_is_named_with_the_line_that_settles_it",
    ),
    (
        "rewound",
        "what_the_service_takes_back_itself_is_believed_when_it_says_so_twice",
        "what_the_service_takes_back_itself_is_believed_when_it_says_so_twice",
    ),
    (
        "second_payment",
        "a_second_payment_is_never_paid",
        "a_second_payment_is_never_paid",
    ),
    (
        "unanswered",
        "an_invoice_that_alone_is_not_answered_past_its_horizon_is_an_alert",
        "an_invoice_that_alone_is_not_answered_past_its_horizon_is_an_alert",
    ),
    (
        "unresolved",
        "an_invoice_past_its_horizon_is_unresolved_and_never_called_failed",
        "an_invoice_past_its_horizon_is_unresolved_and_never_called_failed",
    ),
    (
        "unsorted_status",
        "what_needs_a_person_is_named_with_what_helps",
        "what_needs_a_person_is_named_with_what_helps",
    ),
];

#[test]
fn every_alert_is_shown_to_come_and_to_end() {
    let listed = column(&table(&docs(), "alert"), 0);
    let shown: Vec<&str> = SHOWN.iter().map(|(alert, ..)| *alert).collect();
    assert_eq!(listed, shown);
    for (alert, comes, ends) in SHOWN {
        for test in [comes, ends] {
            assert!(has_function(test), "{alert}: there is no test `{test}`");
        }
    }
}
