//! TLS on the public listener, seen by curl and openssl (R32, T21). What is at stake: a shop without a proxy is heard at all, no
//! old version is spoken, and a renewal that went wrong does not take the listener with it.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::harness::{Issued, PATIENCE, Setup, Wire, World, skip, wait_for, wait_until};

fn quoted(path: &Path) -> String {
    format!("\"{}\"", path.display())
}

/// Certificates of a test's own.
struct Authority(tempfile::TempDir);

impl Authority {
    /// `None` when the machine lacks what is needed.
    fn new() -> Option<Self> {
        let has = |program: &str| {
            let found = Command::new(program)
                .arg("--version")
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .status();
            found.is_ok()
        };
        (has("openssl") && has("curl")).then(|| Self(tempfile::tempdir().expect("a directory")))
    }

    fn certificate(&self) -> PathBuf {
        self.0.path().join("own.pem")
    }

    fn key(&self) -> PathBuf {
        self.0.path().join("own.key")
    }

    /// Puts a new certificate in place of the last one, for the shop's name.
    fn issue(&self, days: &str) {
        let draft = |name: &str| self.0.path().join(format!("{name}.draft"));
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
            ])
            .args(["-nodes", "-subj", "/CN=shop.example", "-days", days])
            .args(["-addext", "subjectAltName=DNS:shop.example"])
            .args([Path::new("-out"), &draft("own.pem")])
            .args([Path::new("-keyout"), &draft("own.key")])
            .output()
            .expect("openssl");
        assert!(made.status.success(), "{made:?}");
        fs::set_permissions(draft("own.key"), fs::Permissions::from_mode(0o640)).expect("own file");
        for (name, place) in [("own.key", self.key()), ("own.pem", self.certificate())] {
            fs::rename(draft(name), place).expect("in place");
        }
    }

    fn setup(&self) -> Setup {
        Setup::new()
            .quiet()
            .set("listener.tls_certificate", quoted(&self.certificate()))
            .set("listener.tls_key", quoted(&self.key()))
    }
}

/// A notification over TLS by curl, which takes this authority's certificates alone; the status it got, or nothing.
fn tell(world: &World, authority: &Authority, issued: &Issued, flags: &[&str]) -> String {
    let url = format!("https://shop.example{}", World::target(&issued.reference));
    let ran = Command::new("curl")
        .args([
            "--silent",
            "--output",
            "/dev/null",
            "--write-out",
            "%{http_code} %{ssl_verify_result}",
        ])
        .args(["--connect-to", &format!("::{}", world.listen())])
        .args(["--max-time", "30", "--cacert"])
        .arg(authority.certificate())
        .args(["--header", "Content-Type: application/json", "--header"])
        .arg(format!("X-Notification-Token: {}", issued.token))
        .args(["--data-binary", &issued.object.to_string()])
        .args(flags)
        .arg(url)
        .output()
        .expect("curl");
    String::from_utf8(ran.stdout).expect("text")
}

/// What `openssl s_client` sees when it greets so.
fn greet(world: &World, flags: &[&str]) -> Output {
    Command::new("openssl")
        // No name is asked for.
        .args([
            "s_client",
            "-noservername",
            "-connect",
            &world.listen().to_string(),
        ])
        .args(flags)
        .stdin(Stdio::null())
        .output()
        .expect("openssl")
}

/// The certificate that is shown, as PEM.
fn shown(world: &World) -> String {
    let seen = String::from_utf8_lossy(&greet(world, &["-showcerts"]).stdout).into_owned();
    let begin = seen.find("-----BEGIN").unwrap_or_default();
    let end = seen.find("-----END").unwrap_or_default();
    seen.get(begin..end).unwrap_or_default().to_owned()
}

fn hang_up_signal(world: &World) {
    let pid = i32::try_from(world.serve_pid())
        .ok()
        .and_then(Pid::from_raw);
    kill_process(pid.expect("a process id"), Signal::HUP).expect("it runs");
}

#[test]
fn notifications_are_heard_over_tls_1_2_and_1_3_and_nothing_older() {
    let Some(authority) = Authority::new() else {
        skip!("there is no openssl or no curl");
    };
    authority.issue("365");
    let world = authority.setup().start();
    let paid = world.dictate(&world.create("A-1"), "paid");
    assert_eq!(
        tell(&world, &authority, &paid, &["--tls-max", "1.2"]),
        "200 0"
    );
    assert_eq!(tell(&world, &authority, &paid, &["--tlsv1.3"]), "200 0");
    assert_eq!(
        world.value("SELECT count(*) FROM events WHERE kind = 'paid'"),
        "1"
    );

    let weak = ["-cipher", "DEFAULT@SECLEVEL=0"];
    for (version, is_spoken) in [
        ("-tls1_3", true),
        ("-tls1_2", true),
        ("-tls1_1", false),
        ("-tls1", false),
    ] {
        let seen = greet(&world, &[&weak[..], &[version]].concat());
        assert_eq!(seen.status.success(), is_spoken, "{version}: {seen:?}");
    }
    // Not even a 400: whoever speaks plain HTTP is told by TLS.
    let answers = crate::framing::exchange(world.listen(), b"GET /n HTTP/1.1\r\nHost: a\r\n\r\n");
    assert!(answers.is_empty(), "{answers:?}");
}

#[test]
fn a_handshake_that_is_not_finished_has_the_time_of_a_head_and_makes_room() {
    let Some(authority) = Authority::new() else {
        skip!("there is no openssl or no curl");
    };
    authority.issue("365");
    let world = authority
        .setup()
        .set("listener.header_time_s", 2)
        .set("listener.connections", 20)
        .start();
    let known = world.dictate(&world.create("A-1"), "paid");
    let began = Instant::now();
    let mut held: Vec<Wire> = (0..60).map(|_| Wire::open(world.listen())).collect();
    for wire in &mut held {
        // The beginning of a greeting.
        wire.try_send("\u{16}\u{3}\u{1}");
    }
    assert_eq!(tell(&world, &authority, &known, &[]), "200 0");
    let took = began.elapsed();
    assert!(
        took < Duration::from_secs(2),
        "it waited for them: {took:?}"
    );
    for wire in &mut held {
        assert!(wire.is_closed_in_time());
    }
}

#[test]
fn a_new_certificate_is_shown_and_a_bad_one_changes_nothing() {
    let Some(authority) = Authority::new() else {
        skip!("there is no openssl or no curl");
    };
    authority.issue("10");
    let world = authority.setup().start();
    let known = world.dictate(&world.create("A-1"), "paid");
    wait_until(PATIENCE, "the end of the certificate to be told", || {
        let log = world.serve_log();
        log.contains("WARN") && log.contains("ends in 9 days")
    });
    // And on the list of what needs a person, as alarms are.
    let listed = || {
        let told = world.tilld(&["status", "--json"]).stdout;
        let told: Value = serde_json::from_str(&told).expect("JSON");
        let needs = told.get("needs").and_then(Value::as_array).cloned();
        let of_it = |need: &Value| need.get("reason") == Some(&json!("certificate"));
        let need = needs.unwrap_or_default().into_iter().find(of_it);
        need.map_or_else(String::new, |need| need.to_string())
    };
    assert!(listed().contains("ends in 9 days"), "{}", listed());
    let first = shown(&world);
    assert!(first.starts_with("-----BEGIN CERTIFICATE"), "{first}");

    authority.issue("365");
    hang_up_signal(&world);
    let second = wait_for(PATIENCE, "another certificate", || {
        Some(shown(&world)).filter(|shown| *shown != first)
    });
    assert_eq!(tell(&world, &authority, &known, &[]), "200 0");
    assert_eq!(listed(), "");

    let good = fs::read(authority.certificate()).expect("there");
    fs::write(authority.certificate(), "-----BEGIN CERTIFICATE-----\nno\n").expect("written");
    hang_up_signal(&world);
    wait_until(PATIENCE, "the bad one to be told", || {
        world.serve_log().contains("holds no certificate in PEM")
    });
    assert_eq!(shown(&world), second);
    // Told once it is no renewal that is half done.
    wait_until(PATIENCE, "it to be listed", || {
        listed().contains("would not start with it")
    });
    fs::write(authority.certificate(), good).expect("written");
    assert_eq!(tell(&world, &authority, &known, &[]), "200 0");
}

#[test]
fn what_cannot_be_used_is_told_before_the_start() {
    let Some(authority) = Authority::new() else {
        skip!("there is no openssl or no curl");
    };
    authority.issue("365");
    let world = authority.setup().logged_out().not_served().start();
    let check = || world.tilld(&["serve", "--check"]);
    check().ends_with(0);

    fs::set_permissions(authority.key(), fs::Permissions::from_mode(0o644)).expect("own file");
    let exposed = check().ends_with(15);
    assert!(
        exposed.stderr.contains("0644") && exposed.stderr.contains("chmod o="),
        "{exposed:?}"
    );
    // After this code the unit does not start it again: nothing changes by itself.
    let served = world.tilld(&["serve"]);
    assert_eq!((served.code, &served.stderr), (15, &exposed.stderr));
    fs::set_permissions(authority.key(), fs::Permissions::from_mode(0o600)).expect("own file");
    if rustix::process::geteuid().is_root() {
        chown(authority.key(), Some(65_533), None).expect("root may");
        let foreign = check().ends_with(15);
        assert!(
            foreign.stderr.contains("belongs to user 65533"),
            "{foreign:?}"
        );
        chown(authority.key(), Some(0), None).expect("root may");
    }

    let other = Authority::new().expect("as before");
    other.issue("365");
    fs::copy(other.certificate(), authority.certificate()).expect("copied");
    // It was changed just now, so it may be a renewal that is half done: the unit starts it again.
    let mismatch = check().ends_with(1);
    assert!(
        mismatch.stderr.contains("does not belong to"),
        "{mismatch:?}"
    );

    // So may one be that is not yet written to its end; one that was so for long is another's to put right.
    let whole = fs::read_to_string(authority.certificate()).expect("there");
    let (begun, _rest) = whole.split_at(whole.len() / 2);
    fs::write(authority.certificate(), begun).expect("written");
    let half = check().ends_with(1);
    assert!(half.stderr.contains("holds no certificate"), "{half:?}");
    let never = [("TILLD_LISTENER__TLS_CERTIFICATE", "/etc/passwd")];
    let never = world
        .tilld_with(&never, &["serve", "--check"])
        .ends_with(10);
    assert!(never.stderr.contains("holds no certificate"), "{never:?}");

    fs::remove_file(authority.certificate()).expect("it was there");
    let gone = check().ends_with(10);
    assert!(gone.stderr.contains("No such file"), "{gone:?}");

    let alone = [("TILLD_LISTENER__TLS_KEY", "/k.pem")];
    let bare = Setup::new().logged_out().not_served().start();
    let alone = bare.tilld_with(&alone, &["serve", "--check"]).ends_with(10);
    assert!(
        alone
            .stderr
            .contains("goes with `listener.tls_certificate` only"),
        "{alone:?}"
    );
}
