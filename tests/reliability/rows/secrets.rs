//! R36, every secret of an installation, each as random as the next: the access token, the notify tokens, the key that
//! seals them, the secret that signs posts, and a token a stranger presented. They are searched for, as they are and in the
//! usual encodings, in every file of the world, in the daemon's command line and environment, in what scripts are given,
//! in answers, in figures and pages, and in what the commands print.
//!
//! The control is the same search once each of them was written into a log in each form: all must be found there, and
//! those that have a file of their own in that, too.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::json;

use super::told;
use crate::harness::{
    PATIENCE, SECRET, Setup, World, access_token, holding, request_to, wait_until,
};
use crate::verdict::{Found, Verdict};

const STRANGER: &str = "canary-of-a-stranger-7f31c0d2a9";
/// What a script sees of its world, told loudly.
const SCRIPT: &str =
    "env > \"$1\"; cat >> \"$1\"; cat /proc/self/cmdline >> \"$1\"; env; env >&2; exit 1";

/// A secret, and where it may be: parts of paths.
struct Secret {
    what: &'static str,
    text: String,
    at_home: Vec<&'static str>,
}

pub(crate) fn searched() -> Verdict {
    let (setup, admin) = told(Setup::new());
    let mut world = setup
        .set("log_level", "\"trace\"")
        .set("outbox.schedule_s", "[0]")
        .hook("tells", &["*"], SCRIPT)
        .post_hook("posts", &["*"], "http://127.0.0.1:9/paid")
        .start();
    let secrets = lived(&world);
    world.kill9_serve();
    world.start_serve();
    printed(&world);
    asked(&world, admin);
    let found = search(&world, &secrets, |secret| secret.at_home.clone());
    let forms = plant(&world, &secrets);
    let control = search(&world, &secrets, |_secret| Vec::new());
    let all = control
        .missed
        .iter()
        .map(|told| told.matches(PLANTED).count());
    let control_found: usize = all.sum();
    let control = control.needs(control_found == forms, "not each planted one was found");
    Verdict::new(found).control(
        "each written into a log, and their own files searched too",
        control,
    )
}

/// Makes all happen in which a secret has a part. Gives the secrets.
fn lived(world: &World) -> Vec<Secret> {
    let own = |name: &str| world.state_dir().join("secret").join(name);
    let access = access_token(&fs::read_to_string(own("credentials")).expect("stored"));
    let invoices = ["A-1", "A-2"].map(|order| world.create(order));
    let echo = json!({ "error": format!("Bearer {access}") }).to_string();
    world.faults(
        &json!({ "api_status": { "endpoint": "create", "status": 500, "body": echo, "times": 1 } }),
    );
    assert_ne!(world.try_create("A-3").code, 0);
    let wrong = [("X-Notification-Token", STRANGER)];
    for invoice in &invoices {
        let body = invoice.object.to_string();
        assert_eq!(world.notify(&invoice.reference, &wrong, &body).status, 401);
        let paid = world.dictate(invoice, "paid");
        let body = paid
            .with(&json!({ "notificationToken": paid.token }))
            .to_string();
        let answer = world.tell(&paid, &body);
        assert_eq!(answer.status, 200);
        fs::write(
            world.log_dir().join(format!("{}.answer", paid.order)),
            format!("{answer:?}"),
        )
        .expect("written");
    }
    let given_up = "SELECT count(*) > 3 FROM deliveries WHERE state = 'abandoned'";
    wait_until(PATIENCE, "the hooks to be given up", || {
        world.value(given_up) == "1"
    });
    let key = fs::read(own("ledger-key")).expect("stored");
    let key = String::from_utf8_lossy(&key).trim().to_owned();
    let [first, second] = invoices.map(|invoice| invoice.token);
    let one = |what, text: &str, at_home: &[&'static str]| Secret {
        what,
        text: text.to_owned(),
        at_home: at_home.to_vec(),
    };
    vec![
        one("access token", &access, &["/secret/credentials"]),
        one("first notify token", &first, &[]),
        one("second notify token", &second, &[]),
        one("sealing key", &key, &["/secret/ledger-key"]),
        one("secret that signs", SECRET, &["/posts.secret"]),
        one("token of a stranger", STRANGER, &[]),
    ]
}

/// Everything every command has to say, and a backup, into the logs of the world.
fn printed(world: &World) {
    let copy = world.dir().join("copy.db").display().to_string();
    for args in [
        ["status"].as_slice(),
        &["status", "--json"],
        &["invoice", "list", "--json"],
        &["invoice", "show", "A-1", "--json"],
        &["explain", "A-1"],
        &["event", "list", "--json"],
        &["delivery", "list", "--json"],
        &["refusal", "list", "--json"],
        &["invoice", "list"],
        &["event", "list"],
        &["hook", "list", "--json"],
        &["whoami", "--json"],
        &["doctor"],
        &["doctor", "--json"],
        &["serve", "--check", "--json"],
        &["db", "check"],
        &["db", "schema"],
        &["control", "openapi"],
        &["db", "backup", &copy],
    ] {
        // It is what it says that is searched, and it must be a command.
        assert_ne!(world.tilld(args).code, 2, "{args:?}");
    }
    assert!(fs::exists(copy).expect("ours"), "a backup was made");
}

/// What is asked of the admin listener, into a log.
fn asked(world: &World, admin: SocketAddr) {
    let host = admin.to_string();
    for (number, path) in ["/", "/healthz", "/readyz", "/metrics"].iter().enumerate() {
        let answer = request_to(&host, admin, "GET", path, &[], "");
        assert!(matches!(answer.status, 200 | 503), "{path}: {answer:?}");
        let file = world.log_dir().join(format!("admin-{number}.answer"));
        fs::write(file, format!("{answer:?}")).expect("written");
    }
}

/// The log that the control writes.
const PLANTED: &str = "planted.err";

/// Writes every secret in every form into a log. Gives how many there were.
fn plant(world: &World, secrets: &[Secret]) -> usize {
    let all: Vec<String> = secrets
        .iter()
        .flat_map(|secret| forms(&secret.text))
        .collect();
    fs::write(world.log_dir().join(PLANTED), all.join("\n")).expect("written");
    all.len()
}

fn search(world: &World, secrets: &[Secret], but: impl Fn(&Secret) -> Vec<&'static str>) -> Found {
    let mut places = Vec::new();
    let mut found = Found::default();
    let process = world.serve_pid();
    let own = ["cmdline", "environ"].map(|name| PathBuf::from(format!("/proc/{process}/{name}")));
    let files = files(world.dir()) + own.len();
    let mut forms_of_all = 0;
    for secret in secrets {
        let but = but(secret);
        let forms = forms(&secret.text);
        forms_of_all += forms.len();
        for form in &forms {
            assert!(
                form.len() > 10,
                "{} is too short to be searched for",
                secret.what
            );
            let files = holding(world.dir(), form, &but).into_iter();
            let own = own.iter().filter(|file| {
                let bytes = fs::read(file).unwrap_or_default();
                String::from_utf8_lossy(&bytes).contains(form)
            });
            let here = files.chain(own.cloned());
            places.extend(here.map(|place| format!("{} in {}", secret.what, place.display())));
        }
    }
    found.n = format!(
        "{} secrets in {forms_of_all} forms, {files} places",
        secrets.len()
    );
    found.figure = format!("found in {}", places.len());
    found
        .bar(places.is_empty(), places.join(", "))
        .needs(files > 30, "there was little to search")
}

/// Files below a directory.
fn files(dir: &Path) -> usize {
    let entries = fs::read_dir(dir).expect("a directory").flatten();
    let count = |path: PathBuf| if path.is_dir() { files(&path) } else { 1 };
    entries.map(|entry| count(entry.path())).sum()
}

/// A secret as it is, in base64 wherever it begins, and in hex.
fn forms(text: &str) -> Vec<String> {
    let encoded = ["", "u", "u:"].map(|before| STANDARD.encode(format!("{before}{text}")));
    let cores = encoded.iter().map(|text| {
        let core = text.trim_end_matches('=').chars().skip(4);
        core.take(20).collect::<String>()
    });
    let hex: Vec<String> = text.bytes().map(|byte| format!("{byte:02x}")).collect();
    [text.to_owned(), hex.concat()]
        .into_iter()
        .chain(cores)
        .collect()
}
