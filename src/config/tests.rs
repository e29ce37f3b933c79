//! The layers together: which of them wins, what is refused, and that a value never shows.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::PathBuf;

use super::*;

const EXAMPLE: &str = include_str!("../../config.example.toml");

/// A text no error may repeat.
const VALUE: &str = "hunter2";

fn loaded(file: &str, variables: &[(&str, &str)], flags: Flags) -> Result<Settings, Error> {
    let mut written = tempfile::NamedTempFile::new().expect("a file");
    written.write_all(file.as_bytes()).expect("written");
    let sources = Sources {
        file: ConfigFile::Named(written.path().to_owned()),
        variables: variables
            .iter()
            .map(|(name, text)| (OsString::from(name), OsString::from(text)))
            .collect(),
        flags,
    };
    load(&sources).map(|loaded| loaded.settings)
}

fn from_file(file: &str) -> Result<Settings, Error> {
    loaded(file, &[], Flags::default())
}

fn from_variables(variables: &[(&str, &str)]) -> Result<Settings, Error> {
    loaded("", variables, Flags::default())
}

/// Message and hint of an error, after looking that the value is in neither.
fn told(result: Result<Settings, Error>) -> String {
    let error = result.expect_err("must be refused");
    let told = format!("{error} | {}", error.hint().unwrap_or_default());
    assert!(!told.contains(VALUE), "{told}");
    assert!(!format!("{error:?}").contains(VALUE), "{error:?}");
    told
}

#[test]
fn each_layer_outranks_the_one_before() {
    let listen = |file: &str, variables: &[(&str, &str)], flag: Option<&str>| {
        let flags = Flags {
            listen: flag.map(str::to_owned),
            ..Flags::default()
        };
        let settings = loaded(file, variables, flags).expect("good");
        settings.listener.listen.port()
    };
    let file = "[listener]\nlisten = \"127.0.0.1:1\"\n";
    let variables = [("TILLD_LISTENER__LISTEN", "127.0.0.1:2")];
    assert_eq!(listen("", &[], None), 8480);
    assert_eq!(listen(file, &[], None), 1);
    assert_eq!(listen(file, &variables, None), 2);
    assert_eq!(listen(file, &variables, Some("127.0.0.1:3")), 3);
}

#[test]
fn the_example_equals_the_defaults() {
    assert_eq!(from_file(EXAMPLE).expect("loads"), Settings::default());
}

/// A line that begins `#key` or `#[` without a space is a setting that has no default.
fn uncommented() -> String {
    let setting = |c: char| c.is_ascii_lowercase() || c == '[';
    let line = |line: &'static str| match line.strip_prefix('#') {
        Some(rest) if rest.starts_with(setting) => rest,
        _ => line,
    };
    EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_commented_lines_of_the_example_load_too() {
    let settings = from_file(&uncommented()).expect("loads");
    assert!(settings.require_service().is_ok());
    assert!(settings.require_public().is_ok());
    assert!(settings.state_dir.is_some() && settings.client_name.is_some());
    assert!(!settings.hook.is_empty());
}

#[test]
fn the_example_has_every_key() {
    let mut table = String::new();
    let mut seen = Vec::new();
    let text = uncommented();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix('[') {
            table = name.trim_matches(['[', ']']).to_owned();
            seen.push(table.clone());
        } else if let Some((name, _)) = line.split_once(" = ") {
            seen.push(keys::join(&table, name.trim()));
        }
    }
    for key in keys() {
        let of_a_row = key.name.starts_with("poller.schedule.");
        // Of a script and an address only one can stand there.
        let other_way =
            ["on_abandoned.post", "on_abandoned.secret_file"].contains(&key.name.as_str());
        assert!(
            of_a_row || other_way || seen.contains(&key.name),
            "{}",
            key.name
        );
    }
}

#[test]
fn an_unknown_key_is_named_with_its_place_and_the_nearest() {
    let told = told(from_file(&format!("[listner]\nlisten = \"{VALUE}\"")));
    assert!(told.contains("unknown key `listner`, set in `/"), "{told}");
    assert!(
        told.contains("the nearest known key is `listener`"),
        "{told}"
    );
    let told = self::told(from_variables(&[("TILLD_SERVICE_URL", VALUE)]));
    assert!(
        told.contains("by the variable `TILLD_SERVICE_URL`"),
        "{told}"
    );
    assert!(told.contains("`TILLD_SERVICE__URL`"), "{told}");
    let told = self::told(from_variables(&[("TILLD_SERVCE__URL", VALUE)]));
    assert!(told.contains("`TILLD_SERVICE__URL`"), "{told}");
    let hook = format!(
        "[[hook]]\nname = \"a\"\non = [\"paid\"]\nrun = [\"/bin/true\"]\ntimeout = \"{VALUE}\""
    );
    let told = self::told(from_file(&hook));
    assert!(told.contains("`hook[1].timeout`"), "{told}");
    assert!(told.contains("`hook.timeout_s`"), "{told}");
    let told = self::told(from_file(&format!("[ledger]\nfrobnicate = \"{VALUE}\"")));
    assert!(told.contains("known keys: `ledger.batch`"), "{told}");
}

#[test]
fn an_ill_typed_key_is_named_with_its_place_and_its_range() {
    let cases = [
        (
            "[listener]\nconnections = \"V\"",
            "`listener.connections`",
            "whole number from 1 to 10000",
        ),
        (
            "[listener]\nconnections = -1",
            "`listener.connections`",
            "whole number from 1 to 10000",
        ),
        (
            "[listener]\nconnections = 0",
            "`listener.connections`",
            "whole number from 1 to 10000",
        ),
        (
            "[listener]\nconnections = 1.5",
            "`listener.connections`",
            "whole number",
        ),
        (
            "[listener]\nlisten = \"V\"",
            "`listener.listen`",
            "an address and a port",
        ),
        (
            "[listener]\npresentations = \"V\"",
            "`listener.presentations`",
            "`auto` or a list",
        ),
        (
            "[listener]\npresentations = 7",
            "`listener.presentations`",
            "must be a word or a list",
        ),
        ("log_level = \"V\"", "`log_level`", "one of `error`, `warn`"),
        ("client_name = 12345", "`client_name`", "must be a text"),
        (
            "client_name = 2020-01-01",
            "`client_name`",
            "must be a text",
        ),
        ("service = \"V\"", "`service`", "must be a table"),
        ("hook = \"V\"", "`hook`", "must be a list of tables"),
        (
            "[hook]\nname = \"V\"",
            "`hook`",
            "must be a list of tables | each hook is a block of its own below a line `[[hook]]`",
        ),
        (
            "[[hook]]\nname = \"v\"\non = [\"paid\", \"V\"]\nrun = [\"/v\"]",
            "`hook[1].on`",
            "`*` and nothing else: entry 2 is none",
        ),
        (
            "[outbox]\nschedule_s = [0, 604801]",
            "`outbox.schedule_s[2]`",
            "must be a whole number from 0 to 604800",
        ),
        ("[[hook]]\nname = \"V\"", "`hook[1]`", "must have `on`"),
        (
            "[statuses]\npaid = \"V\"",
            "`statuses.paid`",
            "must be a list of texts",
        ),
        (
            "[moves]\nconfirm_paid = \"V\"",
            "`moves.confirm_paid`",
            "`true` or `false`",
        ),
        (
            "[poller]\nschedule = [{ until_s = \"V\", every_s = 1 }]",
            "`poller.schedule[1].until_s`",
            "whole number",
        ),
        (
            "[poller]\nschedule = [9]",
            "`poller.schedule[1]`",
            "must be a table |",
        ),
        (
            "[poller]\nschedule = [{ until_s = 9, every_s = 0 }]",
            "`poller.schedule[1].every_s`",
            "from 1 to 86400 | `until_s` is the age up to which a step holds",
        ),
        (
            "[outbox]\nschedule_s = [0, 999999999]",
            "`outbox.schedule_s[2]`",
            "from 0 to 604800",
        ),
    ];
    for (file, key, rule) in cases {
        let told = told(from_file(&file.replace('V', VALUE)));
        assert!(told.contains(key) && told.contains(rule), "{file}: {told}");
        assert!(told.contains(", set in `/"), "{file}: {told}");
    }
}

#[test]
fn an_ill_typed_variable_is_named() {
    let cases = [
        (
            "TILLD_LISTENER__CONNECTIONS",
            "whole number from 1 to 10000",
        ),
        ("TILLD_SERVICE__START_DEAL", "`true` or `false`"),
        ("TILLD_SERVICE", "is a table"),
        ("TILLD_HOOK", "inline form"),
        ("TILLD_LOG_FORMAT", "one of `text`, `json`"),
        ("TILLD_SERVICE__URL", "must be an address"),
        ("TILLD_STATE_DIR", "absolute path"),
    ];
    for (name, rule) in cases {
        let told = told(from_variables(&[(name, VALUE)]));
        assert!(told.contains(rule), "{name}: {told}");
        assert!(
            told.contains(&format!("by the variable `{name}`")),
            "{told}"
        );
    }
}

#[test]
fn rules_beyond_ranges_hold() {
    let hook = |name: &str, on: &str, run: &str| {
        format!("[[hook]]\nname = \"{name}\"\non = [\"{on}\"]\nrun = [\"{run}\"]\n")
    };
    let twice = hook("a", "paid", "/bin/true").repeat(2);
    let steps = |count: u32| -> String {
        let steps = (1..=count).map(|n| format!("{{ until_s = {n}, every_s = 1 }}"));
        steps.collect::<Vec<_>>().join(", ")
    };
    let cases = [
        ("[poller]\ncadence_s = 7".to_owned(), "must divide 60"),
        ("[poller]\nschedule = []".to_owned(), "1 to 32 steps"),
        (
            "[poller]\nschedule = [{ until_s = 9, every_s = 1 }, { until_s = 9, every_s = 2 }]"
                .to_owned(),
            "later `until_s` in each step than in the one before: step 2 has none",
        ),
        (
            format!("[poller]\nschedule = [{}]", steps(33)),
            "`poller.schedule`",
        ),
        (
            format!("[poller]\nschedule = [{}]", steps(33)),
            "must have 1 to 32 steps",
        ),
        (
            "[statuses]\npaid = [\"V\"]\nfailed = [\"V\"]".to_owned(),
            "`paid` and `failed` share one",
        ),
        (
            "[statuses]\npaid = [\"V\", \"V\"]".to_owned(),
            "`paid` repeats one",
        ),
        (
            "[service]\nurl = \"http://V.example\"".to_owned(),
            "https://",
        ),
        (
            "[service]\nurl = \"https://me:V@example.com\"".to_owned(),
            "no user, password",
        ),
        (
            "[listener]\npublic_url = \"https://example.com/n?token=V\"".to_owned(),
            "query",
        ),
        (hook("V!", "paid", "/bin/true"), "`hook[1].name`"),
        (hook("a", "V", "/bin/true"), "`hook[1].on`"),
        (hook("a", "paid", "V"), "`hook[1].run`"),
        (twice, "`hook[2].name`"),
    ];
    for (file, rule) in cases {
        let told = told(from_file(&file.replace('V', VALUE)));
        assert!(told.contains(rule), "{file}: {told}");
    }
    let most = format!("[poller]\nschedule = [{}]", steps(32));
    let good = [
        most.as_str(),
        "[service]\nurl = \"http://127.0.0.1:9/base\"",
        "[service]\nurl = \"http://[::1]:9\"",
        "[service]\nurl = \"https://пример.рф\"",
        "[service]\nurl = \"http://pay.internal\"\nallow_plain_http = true",
        "[listener]\npresentations = [\"header:X-Notification-Token\"]",
    ];
    for file in good {
        assert!(from_file(file).is_ok(), "{file}");
    }
}

#[test]
fn a_hook_runs_one_program_or_posts_to_one_address() {
    let hook = |lines: &str| format!("[[hook]]\nname = \"a\"\non = [\"paid\"]\n{lines}\n");
    let post = |address: &str| format!("post = \"{address}\"\nsecret_file = \"/s\"");
    let shop = "https://shop.example/index.php?route=V";
    for (lines, rule) in [
        (
            "secret_file = \"/V\"\nrun = [\"/bin/true\"]".to_owned(),
            "`hook[1].secret_file`",
        ),
        (
            post(shop) + "\nrun = [\"/bin/true\"]",
            "must not stand beside `post`",
        ),
        (format!("post = \"{shop}\""), "`hook[1].secret_file`"),
        (
            format!("post = \"{shop}\"\nsecret_file = \"V\""),
            "must be the absolute path",
        ),
        (post("V"), "must be an address"),
        (post("http://shop.example/V"), "must begin with `https://`"),
        (post("https://me:V@shop.example/"), "no user, password"),
        (post("https://shop.example/#V"), "or fragment"),
    ] {
        let told = told(from_file(&hook(&lines).replace('V', VALUE)));
        assert!(told.contains(rule), "{lines}: {told}");
    }
    // A query is part of many a shop's addresses.
    for address in [
        shop,
        "http://127.0.0.1:8080/paid?a=b&c",
        "https://пример.рф",
    ] {
        assert!(from_file(&hook(&post(address))).is_ok(), "{address}");
    }
}

#[test]
fn a_syntax_error_names_the_place_and_not_the_line() {
    let told = told(from_file(&format!("[service]\nurl = {VALUE}\n")));
    assert!(told.contains("at line 2, column 7"), "{told}");
    let torn = [
        "V",
        "\"x\" V",
        "'V",
        "\"V",
        "\"\"\"V",
        "\"\\V\"",
        "0xV",
        "-V",
        "trueV",
        "2020-99-V",
        "[V",
        "[\"V\" V]",
        "{ a = V }",
        "\"V\"\nclient_name = \"V\"",
    ];
    for value in torn {
        let file = format!("client_name = {value}").replace('V', VALUE);
        let told = self::told(from_file(&file));
        assert!(told.contains("is not TOML at line "), "{told}");
    }
}

#[test]
fn a_text_by_variable_stays_a_text() {
    for text in ["12345", "true", "00123", "0.10"] {
        let settings = from_variables(&[("TILLD_CLIENT_NAME", text)]).expect(text);
        assert_eq!(settings.client_name.as_deref(), Some(text));
        let settings = from_variables(&[("TILLD_STATUSES__PAID", text)]).expect(text);
        assert_eq!(settings.statuses.paid, [text]);
    }
    let settings = from_variables(&[("TILLD_SERVICE__CONNECT_TIMEOUT_S", "7")]).expect("good");
    assert_eq!(settings.service.connect_timeout_s, 7);
}

#[test]
fn reserved_names_are_passed_over() {
    let all: Vec<(&str, &str)> = reserved().map(|name| (name, VALUE)).collect();
    assert_eq!(from_variables(&all).expect("good"), Settings::default());
}

#[test]
fn only_a_named_file_must_exist() {
    let sources = |file| Sources {
        file,
        variables: Vec::new(),
        flags: Flags::default(),
    };
    let nowhere = PathBuf::from("/no/such/config.toml");
    let there = load(&sources(ConfigFile::IfThere(nowhere.clone()))).expect("defaults");
    assert_eq!((there.settings, there.file), (Settings::default(), None));
    let error = load(&sources(ConfigFile::Named(nowhere))).expect_err("named");
    assert!(matches!(error, Error::Read { .. }), "{error}");
}
