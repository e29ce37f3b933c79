//! What lies where a file of secrets or settings belongs and is none, or is another's: each command and the daemon say so at once,
//! with a code after which systemd does not start them again (A22). Opened the usual way, a pipe holds up whoever reads it.

use std::fs;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::thread;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::harness::{PATIENCE, Ran, Setup, World, skip, wait_until};

/// A pipe that nobody writes into, in the place of whatever lies there.
fn pipe(path: &Path) {
    drop(fs::remove_file(path));
    let mode = Mode::from_bits_truncate(0o600);
    mknodat(CWD, path, FileType::Fifo, mode, 0).expect("a pipe");
}

fn secret(world: &World, name: &str) -> PathBuf {
    world.state_dir().join("secret").join(name)
}

const KINDLESS: &str = "a pipe, not a file";

/// Runs all these at once; each must end with its code and say what it found.
#[track_caller]
fn all_say(world: &World, told: &str, commands: &[(&[&str], i32)]) {
    thread::scope(|scope| {
        for (args, code) in commands {
            scope.spawn(move || {
                let ran = world.tilld(args).ends_with(*code);
                let said = format!("{}{}", ran.stderr, ran.stdout);
                assert!(said.contains(told), "{args:?}: {ran:?}");
            });
        }
    });
}

#[test]
fn a_pipe_in_the_place_of_a_secret_holds_nobody_up() {
    let mut world = Setup::new().not_served().start();
    world.create("A-1");
    let token = world.dir().join("token");
    pipe(&token);
    let token = token.to_string_lossy();
    let track = [
        "invoice",
        "track",
        "B-1",
        "--id",
        "b",
        "--amount",
        "1",
        "--currency",
        "RUB",
        "--token-file",
        &token,
    ];
    let create = [
        "invoice",
        "create",
        "--order",
        "B-2",
        "--amount",
        "1",
        "--currency",
        "RUB",
        "--method",
        "SBP",
    ];
    let create = &create[..];

    pipe(&secret(&world, "credentials"));
    all_say(
        &world,
        KINDLESS,
        &[
            (&["whoami"], 15),
            (&["whoami", "--check"], 15),
            (&["invoice", "poll", "A-1"], 15),
            (create, 15),
            (&["doctor"], 16),
            (&track, 1),
        ],
    );
    // Nothing is lost by it but the polls: notifications are taken in, and a login puts a file in its place.
    world.start_serve();
    wait_until(PATIENCE, "the poller to tell", || {
        world.serve_log().contains(KINDLESS)
    });
    world.login();
    world.tilld(&["whoami"]).ends_with(0);
    assert_eq!(world.stop_serve(PATIENCE), 0);

    pipe(&secret(&world, "ledger-key"));
    all_say(
        &world,
        KINDLESS,
        &[
            (&["serve"], 15),
            (create, 15),
            (&["invoice", "poll", "A-1"], 15),
        ],
    );
}

#[test]
fn a_pipe_in_the_place_of_settings_or_a_credential_holds_nobody_up() {
    let world = Setup::new().logged_out().not_served().start();
    let credentials = world.dir().join("credentials");
    fs::create_dir(&credentials).expect("a directory");
    pipe(&credentials.join("access-token"));
    let variable = [("CREDENTIALS_DIRECTORY", credentials.to_str().expect("text"))];
    let certificate = world.dir().join("pipe.pem");
    pipe(&certificate);
    let certificate = certificate.to_str().expect("text");
    let tls = [
        ("TILLD_LISTENER__TLS_CERTIFICATE", certificate),
        ("TILLD_LISTENER__TLS_KEY", certificate),
    ];
    pipe(&world.dir().join("other.toml"));
    let other = world.dir().join("other.toml");
    let other = other.to_str().expect("text");
    let said = |ran: Ran| assert!(ran.stderr.contains(KINDLESS), "{ran:?}");
    thread::scope(|scope| {
        scope.spawn(|| said(world.tilld_with(&variable, &["whoami"]).ends_with(15)));
        scope.spawn(|| said(world.tilld_with(&tls, &["serve"]).ends_with(10)));
        scope.spawn(|| {
            let roots = [
                ("SSL_CERT_FILE", certificate),
                ("TILLD_SERVICE__URL", "https://127.0.0.1:9"),
            ];
            said(world.tilld_with(&roots, &["login"]).ends_with(10));
        });
        scope.spawn(|| {
            let ran = world.tilld_without_config(&[], &["--config", other, "serve"]);
            said(ran.ends_with(10));
        });
        scope.spawn(|| {
            // Read with the secret by which a hook's posts are signed.
            let hook = format!(
                "[[hook]]\nname = \"a\"\non = [\"*\"]\npost = \"http://127.0.0.1:1/\"\nsecret_file = {certificate:?}\n"
            );
            let text = fs::read_to_string(world.dir().join("config.toml")).expect("a config");
            let config = world.dir().join("posting.toml");
            fs::write(&config, format!("{text}\n{hook}")).expect("written");
            let config = config.to_str().expect("text");
            said(world.tilld_without_config(&[], &["--config", config, "serve"]).ends_with(10));
        });
    });
    // One that may not be read back: the lock by which commands know whether a daemon runs.
    let lock = world.state_dir().join("serve.lock");
    fs::create_dir_all(world.state_dir()).expect("made");
    pipe(&lock);
    world.tilld(&["status"]).ends_with(3);
}

/// Whoever owns a file reads it whatever its mode, and puts another in its place.
#[test]
fn a_secret_of_another_user_is_refused() {
    if !rustix::process::geteuid().is_root() {
        skip!("only root can give a file away");
    }
    let world = Setup::new().not_served().start();
    world.create("A-1");
    let other = Some(65_533);
    let credentials = secret(&world, "credentials");
    chown(&credentials, other, None).expect("root may");
    all_say(
        &world,
        "belongs to user 65533",
        &[(&["whoami"], 15), (&["doctor"], 16)],
    );
    chown(&credentials, Some(0), None).expect("root may");
    let key = secret(&world, "ledger-key");
    chown(&key, other, None).expect("root may");
    all_say(
        &world,
        "belongs to user 65533",
        &[(&["serve"], 15), (&["doctor"], 16)],
    );
    chown(&key, Some(0), None).expect("root may");
    chown(secret(&world, ""), other, None).expect("root may");
    all_say(&world, "65533", &[(&["whoami"], 15), (&["serve"], 15)]);
    chown(secret(&world, ""), Some(0), None).expect("root may");
}
