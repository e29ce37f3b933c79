//! A shop behind TLS: it is told when this machine trusts its certificate, and nothing is sent when it does not.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::results;
use crate::harness::{PATIENCE, Process, Setup, World, skip, wait_for};

/// Answers every POST with 200, behind TLS; says its port first and one line for each post.
const SHOP: &str = "
import http.server, ssl
class Page(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        self.rfile.read(int(self.headers['content-length']))
        self.send_response(200)
        self.send_header('content-length', '0')
        self.end_headers()
        print('posted', flush=True)
server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), Page)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain('shop.pem', 'shop.key')
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print(server.server_port, flush=True)
server.serve_forever()
";

/// A certificate for 127.0.0.1 that no machine trusts by itself.
fn certificate(dir: &Path) -> bool {
    let mut command = Command::new("openssl");
    command
        .args(["req", "-x509", "-newkey", "ec", "-nodes", "-days", "2"])
        .args(["-pkeyopt", "ec_paramgen_curve:prime256v1"])
        .args([
            "-subj", "/CN=shop", "-keyout", "shop.key", "-out", "shop.pem",
        ])
        .args(["-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"]);
    let made = command.current_dir(dir).output();
    made.is_ok_and(|made| made.status.success())
}

fn paid(port: &str, certificates: &Path) -> World {
    let trusted = format!("SSL_CERT_FILE={}", certificates.display());
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .under(&["/usr/bin/env", &trusted])
        .post_hook("shop", &["paid"], &format!("https://127.0.0.1:{port}/"))
        .start();
    world.pay("A-1");
    world.settle();
    world
}

#[test]
fn only_a_shop_whose_certificate_is_trusted_is_told() {
    let dir = tempfile::tempdir().expect("a directory");
    if !certificate(dir.path()) {
        skip!("openssl is not installed");
    }
    if Command::new("python3").arg("--version").output().is_err() {
        skip!("python3 is not installed");
    }
    // Another certificate, so that there are roots, and not this one.
    let other = dir.path().join("other");
    fs::create_dir(&other).expect("made");
    assert!(certificate(&other), "another certificate");
    let mut command = Command::new("python3");
    command.args(["-c", SHOP]).current_dir(dir.path());
    let shop = Process::spawn(&mut command, dir.path(), "shop");
    let port = wait_for(PATIENCE, "the shop to listen", || {
        let said = shop.stdout();
        let (port, _) = said.split_once('\n')?;
        Some(port.to_owned())
    });
    let posts = || shop.stdout().matches("posted").count();

    let strange = paid(&port, &other.join("shop.pem"));
    let refused = results(&strange, "shop");
    assert!(
        matches!(refused.as_slice(), [why] if why.starts_with("no answer: invalid peer certificate")),
        "{refused:?}"
    );
    assert_eq!(posts(), 0);

    let trusted = paid(&port, &dir.path().join("shop.pem"));
    assert_eq!(results(&trusted, "shop"), ["http 200"]);
    assert_eq!(posts(), 1);
}
