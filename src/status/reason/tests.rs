//! Words in order, and forms that are worse.

use super::*;

#[test]
fn words_are_in_order_and_read_back_from_json() {
    let own = Reason::OWN;
    assert!(own.is_sorted_by(|a, b| a < b && a.as_str() < b.as_str()));
    for reason in Reason::all() {
        let word = serde_json::to_string(&reason).expect("a word");
        assert_eq!(word, format!("\"{reason}\""));
        let read: Reason = serde_json::from_str(&word).expect("one of ours");
        assert_eq!(read, reason);
    }
    let newer: Reason = serde_json::from_str("\"newer\"").expect("a word");
    assert_eq!(newer, Reason::Other);
}

#[test]
fn a_worse_form_is_no_less_severe() {
    for reason in Reason::all() {
        let worse = reason.worse().iter();
        assert!(
            worse
                .clone()
                .all(|worse| worse.severity() <= reason.severity()),
            "{reason}"
        );
    }
}
