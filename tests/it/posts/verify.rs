//! What is posted is taken by the public `standardwebhooks` libraries of two languages, and a changed body is refused by both.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::json;

use super::endpoint::{Asked, Endpoint, says};
use crate::harness::{SECRET, Setup, skip, write_secret};

/// A second secret, as in the middle of a rotation.
pub(super) const NEW: &str = "whsec_YSBuZXcgc2VjcmV0IGluIHRoZSBtaWRkbGUgb2YgYSByb3RhdGlvbg==";

/// Where `.ci/run` puts the libraries.
fn libraries(of: &str) -> PathBuf {
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/webhooks");
    target.join(of)
}

/// One post of the real daemon, signed with [`SECRET`] and [`NEW`].
pub(super) fn posted() -> Asked {
    let endpoint = Endpoint::start(&[says(200)]);
    let world = Setup::new()
        .quiet()
        .not_served()
        .post_hook("shop", &["paid"], &endpoint.url());
    let mut world = world.start();
    write_secret(&world.secret_file("shop"), &format!("{NEW}\n{SECRET}"));
    world.start_serve();
    world.pay("1042");
    world.settle();
    endpoint.asked().into_iter().next().expect("it was posted")
}

/// Lets `run` judge the post under each secret, and with one thing changed: the library must tell them apart. `run` gets
/// a file with `body`, `headers` and `secret`; the program prints the order's id, or an error and fails.
fn judged(asked: &Asked, dir: &Path, run: impl Fn(&Path) -> Output) {
    let file = dir.join("posted.json");
    let look = |asked: &Asked, secret: &str| {
        let headers: serde_json::Map<String, serde_json::Value> = asked
            .headers
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        let posted = json!({ "body": asked.body, "headers": headers, "secret": secret });
        fs::write(&file, posted.to_string()).expect("written");
        run(&file)
    };
    for secret in [SECRET, NEW] {
        let taken = look(asked, secret);
        assert!(taken.status.success(), "{taken:?}");
        assert_eq!(String::from_utf8_lossy(&taken.stdout).trim(), "1042");
    }
    let mut changed = asked.clone();
    changed.body = changed.body.replace("599.80", "9.80");
    assert_ne!(changed.body, asked.body);
    let mut later = asked.clone();
    for (name, value) in &mut later.headers {
        if name == "webhook-id" {
            value.push('0');
        }
    }
    let other = SECRET.replace("dGls", "dGlt");
    for (asked, secret) in [
        (&changed, SECRET),
        (&changed, NEW),
        (&later, SECRET),
        (asked, other.as_str()),
    ] {
        let refused = look(asked, secret);
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert!(
            !refused.status.success() && said.contains("No matching signature found"),
            "{refused:?}"
        );
    }
}

#[test]
fn the_public_library_for_python_takes_it() {
    let libraries = libraries("python");
    if !libraries.join("standardwebhooks").exists() {
        skip!(
            "standardwebhooks for Python is not in {}",
            libraries.display()
        );
    }
    let dir = tempfile::tempdir().expect("a directory");
    let program = dir.path().join("verify.py");
    let driver = "import json, sys\nfrom standardwebhooks.webhooks import Webhook\nposted = json.load(open(sys.argv[1]))\n\
        event = Webhook(posted['secret']).verify(posted['body'], posted['headers'])\nprint(event['invoice']['order_id'])\n";
    fs::write(&program, driver).expect("written");
    judged(&posted(), dir.path(), |file| {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", &libraries);
        command.arg(&program).arg(file);
        command.output().expect("python3 runs")
    });
}

#[test]
fn the_public_library_for_node_takes_it() {
    let libraries = libraries("node").join("node_modules");
    if !libraries.join("standardwebhooks").exists() {
        skip!(
            "standardwebhooks for Node is not in {}",
            libraries.display()
        );
    }
    let dir = tempfile::tempdir().expect("a directory");
    let program = dir.path().join("verify.js");
    let driver = "const { Webhook } = require('standardwebhooks');\n\
        const posted = JSON.parse(require('fs').readFileSync(process.argv[2], 'utf8'));\n\
        const event = new Webhook(posted.secret).verify(posted.body, posted.headers);\nconsole.log(event.invoice.order_id);\n";
    fs::write(&program, driver).expect("written");
    judged(&posted(), dir.path(), |file| {
        let mut command = Command::new("node");
        command.env("NODE_PATH", &libraries);
        command.arg(&program).arg(file);
        command.output().expect("node runs")
    });
}
