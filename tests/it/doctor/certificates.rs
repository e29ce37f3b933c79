//! The doctor on certificates: the listener's own and the one the public address shows. What is at stake: a renewal that stopped
//! months ago and is noticed when no notification comes.

use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Command;

use rustix::process::Signal;

use super::{doctor, found};
use crate::harness::{PATIENCE, Setup, skip, wait_until};

/// Puts a new certificate for this address and its key in place, which ends in so many days.
#[track_caller]
fn issue(dir: &Path, address: IpAddr, days: &str) {
    let run = |args: &[&str]| {
        let ran = Command::new("openssl").args(args).current_dir(dir).output();
        let ran = ran.expect("openssl");
        assert!(ran.status.success(), "{ran:?}");
    };
    let extensions = format!("subjectAltName=IP:{address}\nbasicConstraints=critical,CA:FALSE\n");
    fs::write(dir.join("extensions"), extensions).expect("written");
    let curve = "ec_paramgen_curve:P-256";
    run(&[
        "req", "-newkey", "ec", "-pkeyopt", curve, "-nodes", "-subj", "/CN=shop", "-keyout",
        "own.key", "-out", "own.csr",
    ]);
    fs::set_permissions(dir.join("own.key"), Permissions::from_mode(0o640)).expect("ours");
    run(&[
        "x509",
        "-req",
        "-in",
        "own.csr",
        "-signkey",
        "own.key",
        "-days",
        days,
        "-extfile",
        "extensions",
        "-out",
        "own.pem",
    ]);
}

#[test]
fn a_certificate_that_ends_or_cannot_be_shown_is_told_of() {
    if Command::new("openssl").arg("version").output().is_err() {
        skip!("openssl is not installed");
    }
    let dir = tempfile::tempdir().expect("a directory");
    let dir = dir.path();
    let own = |name: &str| dir.join(name).display().to_string();
    issue(dir, Ipv4Addr::LOCALHOST.into(), "365");
    let world = Setup::new()
        .quiet()
        .set(
            "listener.tls_certificate",
            format!("\"{}\"", own("own.pem")),
        )
        .set("listener.tls_key", format!("\"{}\"", own("own.key")))
        .start();
    // Each world listens at an address of its own.
    let address = world.listen().ip();
    issue(dir, address, "10");
    world.signal_serve(Signal::HUP);
    wait_until(PATIENCE, "the certificate to be shown", || {
        world.serve_log().contains("is shown from now on")
    });
    let public = format!("https://{}/n", world.listen());
    fs::copy(own("own.pem"), own("trusted.pem")).expect("copied");
    let seen = [
        ("TILLD_LISTENER__PUBLIC_URL", public.as_str()),
        ("SSL_CERT_FILE", &own("trusted.pem")),
    ];
    let told = doctor(&world, 0, &seen);
    let ends = Command::new("openssl")
        .args(["x509", "-noout", "-enddate", "-dateopt", "iso_8601", "-in"])
        .arg(own("own.pem"))
        .output()
        .expect("openssl");
    let ends = String::from_utf8(ends.stdout).expect("text");
    let ends = ends.trim().replace("notAfter=", "").replace(' ', "T");
    assert!(!ends.is_empty(), "the date is known");
    for check in ["tls", "public_certificate"] {
        let told = found(&told, check);
        assert!(
            told.starts_with("warn: the certificate ")
                && told.contains(&format!(" days, at {ends} (renew it")),
            "{told}"
        );
    }
    assert!(
        found(&told, "public_address").starts_with("ok: "),
        "{told:?}"
    );

    // The daemon shows the old one on; what the next start or look would meet is told.
    let meets = |state: &str, part: &str| {
        let nowhere = [("TILLD_LISTENER__PUBLIC_URL", "https://127.0.0.1:9/n")];
        let told = found(&doctor(&world, 16, &nowhere), "tls");
        assert!(told.starts_with(state) && told.contains(part), "{told}");
    };
    issue(dir, address, "365");
    meets("ok: ", "holds until ");
    issue(dir, address, "-1");
    meets("fail: ", "no sender takes it any more");
    issue(dir, address, "365");
    fs::copy(own("trusted.pem"), own("own.pem")).expect("copied");
    meets("fail: ", "does not belong to the certificate");
    fs::remove_file(own("own.key")).expect("there");
    meets("fail: could not read ", "own.key");
}
