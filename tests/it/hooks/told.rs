//! What a hook is told, to the letter: its document, its variables, its surroundings, and nothing besides (A22, A37).

use std::fs;

use serde_json::{Value, json};

use crate::harness::{Issued, Setup, World};

/// Writes down everything a script can see of what it was given.
const LOOKS_AROUND: &str = r#"
    { env; } > "$1.env"
    cat > "$1.stdin"
    { pwd; umask; ls -A; cat "$TILLD_PAYLOAD_FILE"; } > "$1.around"
    { cut -d' ' -f5 /proc/$$/stat; echo $$; } > "$1.group"
    echo ran >> "$1"
"#;

fn read(world: &World, end: &str) -> String {
    fs::read_to_string(world.dir().join(format!("hooks/fulfil.log.{end}"))).expect("written")
}

/// Every variable of the contract with its value, sorted.
fn variables(world: &World, paid: &Issued) -> Vec<String> {
    let of_event =
        |column: &str| world.value(&format!("SELECT {column} FROM events WHERE kind = 'paid'"));
    let around = read(world, "around");
    let mut wanted = vec![
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin".to_owned(),
        "LANG=C.UTF-8".to_owned(),
        format!("HOME={}", world.dir().display()),
        "TILLD_EVENT=paid".to_owned(),
        format!("TILLD_EVENT_ID={}", of_event("event_id")),
        "TILLD_ATTEMPT=1".to_owned(),
        "TILLD_REPLAY=0".to_owned(),
        "TILLD_SOURCE=notification".to_owned(),
        format!("TILLD_ORDER_ID={}", paid.order),
        format!("TILLD_INVOICE_ID={}", paid.id),
        format!("TILLD_REF={}", paid.reference),
        "TILLD_STATUS=paid".to_owned(),
        "TILLD_PREVIOUS_STATUS=new".to_owned(),
        "TILLD_OUTCOME=paid".to_owned(),
        "TILLD_ORDER_OUTCOME=paid".to_owned(),
        "TILLD_AMOUNT=599.80".to_owned(),
        "TILLD_AGREED_AMOUNT=599.80".to_owned(),
        "TILLD_CURRENCY=RUB".to_owned(),
        "TILLD_MODE=h2h".to_owned(),
        format!("TILLD_OCCURRED_AT={}", of_event("at")),
        "TILLD_ABANDONED_HOOK=".to_owned(),
        "TILLD_ABANDONED_EVENT_ID=".to_owned(),
        "TILLD_ABANDONED_RESULT=".to_owned(),
        format!(
            "TILLD_PAYLOAD_FILE={}/payload.json",
            around.lines().next().unwrap_or_default()
        ),
    ];
    wanted.sort_unstable();
    wanted
}

fn check_document(document: &Value, paid: &Issued, event_id: &str) {
    for (pointer, value) in [
        ("/schema", json!(1)),
        ("/event/id", json!(event_id)),
        ("/event/kind", json!("paid")),
        ("/event/previous_outcome", json!("open")),
        ("/attempt", json!(1)),
        ("/hook", json!("fulfil")),
        ("/invoice/order_id", json!(paid.order)),
        ("/invoice/invoice_id", json!(paid.id)),
        ("/invoice/amount_reported", json!("599.80")),
        ("/service/status", json!("paid")),
        ("/service/internalId", json!(paid.order)),
        ("/abandoned", Value::Null),
    ] {
        assert_eq!(
            document.pointer(pointer),
            Some(&value),
            "{pointer}: {document}"
        );
    }
    let phone = document.pointer("/invoice/requisites/phoneNumber");
    assert!(phone.is_some_and(Value::is_string), "{document}");
}

#[test]
fn a_hook_is_told_the_document_and_the_variables_and_nothing_else() {
    let world = Setup::new()
        .quiet()
        .hook("fulfil", &["paid"], LOOKS_AROUND)
        .noting_hook("mail", &["paid", "*"])
        .start();
    // An order id is a stranger's text: no shell ever reads it.
    let paid = world.pay("Заказ 1; touch $HOME/forged");
    world.settle();

    let env = read(&world, "env");
    // A shell adds these of its own.
    let own = ["PWD=", "OLDPWD=", "SHLVL=", "_="];
    let given = |line: &&str| !own.iter().any(|name| line.starts_with(name));
    let mut lines: Vec<&str> = env.lines().filter(given).collect();
    lines.sort_unstable();
    assert_eq!(lines, variables(&world, &paid));
    // The docs name the fixed ones to the letter.
    let docs = crate::docs::docs();
    for fixed in lines
        .iter()
        .filter(|line| line.starts_with("PATH=") || line.starts_with("LANG="))
    {
        assert!(docs.contains(&format!("`{fixed}`")), "{fixed}");
    }

    let stdin = read(&world, "stdin");
    let document = serde_json::from_str(&stdin).expect("JSON");
    let event_id = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    check_document(&document, &paid, &event_id);
    for secret in [paid.token.as_str(), "Bearer"] {
        assert!(!env.contains(secret) && !stdin.contains(secret));
    }

    // A fresh directory with the document alone, files private by default, and a group of its own.
    let around = read(&world, "around");
    let wanted = format!("\n0027\npayload.json\n{stdin}");
    assert!(around.ends_with(&wanted), "{around}");
    let group = read(&world, "group");
    let numbers: Vec<&str> = group.lines().collect();
    assert!(
        matches!(numbers.as_slice(), [group, pid] if group == pid),
        "{numbers:?}"
    );
    let left = fs::read_dir(world.state_dir().join("run")).expect("a directory");
    assert_eq!(left.count(), 0, "the directory is removed");
    assert!(!world.dir().join("forged").exists());

    // The other hook had each event once, though two of its selectors match one.
    assert_eq!(world.hook_log("mail").len(), 2);
    assert_eq!(world.hook_log("fulfil"), ["ran"]);
}
