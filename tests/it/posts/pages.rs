//! The pages of `docs/posting-examples.md` as a shop has them. Relies on the interpreters, and on posts of the real daemon.
//! Promises that each page does its work once, takes two secrets, and answers 5xx to whatever keeps it from its work.

use std::fs;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;

use super::endpoint::Asked;
use super::results;
use super::verify::{NEW, posted};
use crate::docs::example;
use crate::harness::{
    Answer, PATIENCE, Process, SECRET, Setup, request, skip, sql, wait_until, write_secret,
};

/// Where the pages have their secret and their shop.
const SECRET_THERE: &str = "/etc/tilld/shop.secret";
const SHOP_THERE: &str = "/var/lib/shop";

/// One page of `docs/posting-examples.md`.
#[derive(Clone, Copy, Debug)]
struct Page {
    /// Its mark there.
    name: &'static str,
    program: &'static str,
    /// The line in the middle of its work, in front of which it is made to crash.
    middle: &'static str,
    /// What it runs there: the file of that name, while there is one.
    crash: &'static str,
    /// What that file may hold.
    crashes: &'static [&'static str],
}

const PHP: Page = Page {
    name: "page-php",
    program: "php",
    middle: "    // Your work, by the same connection",
    crash: "if (file_exists('CRASH')) { require 'CRASH'; }",
    crashes: &[
        "<?php echo 'half'; nowhere();",
        "<?php (",
        "<?php exit('bye');",
        "<?php throw new Exception('no');",
        "<?php echo $nothing['there'];",
        "<?php ini_set('memory_limit', '4M'); str_repeat('x', 99999999);",
    ],
};
const PYTHON: Page = Page {
    name: "page-python",
    program: "python3",
    middle: "                # Your work, by the same connection",
    crash: "                import os; os.path.exists('CRASH') and exec(open('CRASH').read())",
    crashes: &["raise ValueError('no')", "raise SystemExit(0)", "("],
};
const NODE: Page = Page {
    name: "page-node",
    program: "node",
    middle: "  try {\n    fs.linkSync",
    crash: "  if (fs.existsSync('CRASH')) new Function(fs.readFileSync('CRASH', 'utf8'))();",
    crashes: &["throw new Error('no')", "throw null", "null.x", "("],
};

/// Serves a WSGI application.
const WSGI: &str = "
import sys
from wsgiref.simple_server import make_server
from page import application
make_server(sys.argv[1], int(sys.argv[2]), application).serve_forever()
";

impl Page {
    /// Why it cannot be run here.
    fn lacks(self) -> Option<String> {
        let ran = Command::new(self.program).arg("--version").output();
        let goes = ran.is_ok_and(|ran| ran.status.success());
        (!goes).then(|| format!("{} is not installed", self.program))
    }
}

/// A shop that serves a page.
struct Shop {
    page: Page,
    address: SocketAddr,
    _server: Process,
    dir: tempfile::TempDir,
}

impl Shop {
    /// Starts it with [`SECRET`].
    #[track_caller]
    fn start(page: Page) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let here = |name: &str| dir.path().join(name).display().to_string();
        // Free when it was asked for; nobody else takes ports of this address.
        let [_, _, high, low] = std::process::id().to_be_bytes();
        let free = TcpListener::bind(format!("127.252.{high}.{low}:0")).expect("a port");
        let address = free.local_addr().expect("bound");
        drop(free);
        let mut text = example(page.name);
        let crash = page.crash.replace("CRASH", &here("crash"));
        let (ip, port) = (address.ip().to_string(), address.port().to_string());
        for (there, instead) in [
            (SECRET_THERE, here("shop.secret")),
            (SHOP_THERE, here("shop")),
            (page.middle, format!("{crash}\n{}", page.middle)),
        ] {
            assert!(text.contains(there), "{there}: {text}");
            text = text.replace(there, &instead);
        }
        text = text.replace("8080, \"127.0.0.1\"", &format!("{port}, \"{ip}\""));
        let mut command = Command::new(page.program);
        let file = match page.program {
            "php" => {
                // What a shop should not have, and often has.
                command.args([
                    "-d",
                    "display_errors=1",
                    "-S",
                    &address.to_string(),
                    "page.php",
                ]);
                "page.php"
            }
            "python3" => {
                command.args(["-c", WSGI, &ip, &port]);
                "page.py"
            }
            _node => {
                command.arg("page.cjs");
                "page.cjs"
            }
        };
        fs::write(dir.path().join(file), text).expect("written");
        fs::create_dir(dir.path().join("shop")).expect("a directory");
        write_secret(&dir.path().join("shop.secret"), SECRET);
        command.current_dir(dir.path());
        let server = Process::spawn(&mut command, dir.path(), "page");
        wait_until(PATIENCE, "the page to be served", || {
            TcpStream::connect(address).is_ok()
        });
        Self {
            page,
            address,
            _server: server,
            dir,
        }
    }

    fn file(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// The orders that it has to ship.
    #[track_caller]
    fn ships(&self) -> Vec<String> {
        let shop = self.file("shop");
        if self.page.program == NODE.program {
            let files = fs::read_dir(shop).expect("its directory").flatten();
            let files = files.map(|file| file.path());
            let drafts = |path: &PathBuf| path.to_string_lossy().contains("/draft-");
            let (drafts, listed): (Vec<_>, Vec<_>) = files.partition(drafts);
            assert!(drafts.len() <= self.page.crashes.len(), "{drafts:?}");
            let mut orders: Vec<String> = listed
                .iter()
                .map(|path| fs::read_to_string(path).expect("a file"))
                .collect();
            orders.sort();
            return orders;
        }
        let file = shop.join("shop.db");
        let is_there = file.exists()
            && sql(&file, "SELECT 1 FROM sqlite_master WHERE name = 'to_ship'") == [["1"]];
        if is_there {
            sql(&file, "SELECT order_id FROM to_ship ORDER BY order_id").concat()
        } else {
            Vec::new()
        }
    }

    /// One post with these headers.
    #[track_caller]
    fn post(&self, headers: &[(String, String)], body: &str) -> u16 {
        let headers: Vec<(&str, &str)> = headers
            .iter()
            .map(|(name, value)| (name.as_str(), value.as_str()))
            .collect();
        let answer: Answer = request(self.address, "POST", "/page?x=1", &headers, body);
        answer.status
    }
}

/// Headers of a post that these keys sign, so many seconds from now.
fn signed(keys: &[&[u8]], id: &str, body: &str, seconds: i64) -> Vec<(String, String)> {
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("after 1970");
    let at = i64::try_from(now.as_secs()).expect("a time") + seconds;
    let text = format!("{id}.{at}.{body}");
    let one = |key: &&[u8]| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, key);
        let tag = hmac::sign(&key, text.as_bytes());
        format!("v1,{}", STANDARD.encode(tag))
    };
    let signatures: Vec<String> = keys.iter().map(one).collect();
    [
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", at.to_string()),
        ("webhook-signature", signatures.join(" ")),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

fn key(secret: &str) -> Vec<u8> {
    let text = secret.strip_prefix("whsec_").expect("a secret");
    STANDARD.decode(text).expect("base64")
}

/// The daemon posts: once and again, through a rotation, and while the shop's data is away.
fn takes_what_the_daemon_posts(page: Page) {
    if let Some(why) = page.lacks() {
        skip!("{why}");
    }
    let shop = Shop::start(page);
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]")
        .post_hook(
            "shop",
            &["paid"],
            &format!("http://{}/page?x=1", shop.address),
        )
        .start();
    let (signs, takes) = (world.secret_file("shop"), shop.file("shop.secret"));
    let both = format!("{NEW}\n{SECRET}");
    // The steps of a rotation, in their order: tilld signs with both, the page takes both, tilld signs with the new one.
    for (order, daemons, pages) in [
        ("A-1", SECRET, SECRET),
        ("A-2", &both, SECRET),
        ("A-3", &both, &both),
        ("A-4", SECRET, &both),
        ("A-5", NEW, &both),
        ("A-6", NEW, NEW),
    ] {
        write_secret(&signs, daemons);
        write_secret(&takes, pages);
        world.pay(order);
        world.settle();
        assert_eq!(
            results(&world, "shop").last(),
            Some(&"http 204".to_owned()),
            "{order}"
        );
    }
    let all = ["A-1", "A-2", "A-3", "A-4", "A-5", "A-6"];
    assert_eq!(shop.ships(), all);
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid' AND order_id = 'A-1'");
    world.tilld(&["delivery", "replay", &event]).ends_with(0);
    world.settle();
    assert_eq!(results(&world, "shop"), ["http 204"; 7]);
    assert_eq!(shop.ships(), all, "posted twice");

    fs::rename(shop.file("shop"), shop.file("away")).expect("moved");
    world.pay("B-1");
    wait_until(PATIENCE, "a failed attempt", || {
        results(&world, "shop")
            .last()
            .is_some_and(|last| last == "http 500")
    });
    fs::rename(shop.file("away"), shop.file("shop")).expect("moved back");
    world.settle();
    assert_eq!(results(&world, "shop").last(), Some(&"http 204".to_owned()));
    assert_eq!(shop.ships(), [&all[..], &["B-1"]].concat());
}

/// Whatever breaks in the middle, the answer repeats the post, and nothing of the work is kept.
fn crashes_closed(page: Page) {
    if let Some(why) = page.lacks() {
        skip!("{why}");
    }
    let shop = Shop::start(page);
    let Asked { headers, body, .. } = posted();
    // The others are of the connection that it came on.
    let headers: Vec<_> = headers
        .into_iter()
        .filter(|(name, _)| name.starts_with("webhook-"))
        .collect();
    for crash in page.crashes {
        fs::write(shop.file("crash"), crash).expect("written");
        assert_eq!(shop.post(&headers, &body), 500, "{crash}");
        assert!(shop.ships().is_empty(), "{crash}");
    }
    fs::remove_file(shop.file("crash")).expect("removed");
    for _ in 0..2 {
        assert_eq!(shop.post(&headers, &body), 204);
        assert_eq!(shop.ships(), ["1042"]);
    }
}

/// Nothing is taken that no good secret has signed, and none is taken for one.
fn believes_nothing_unsigned(page: Page) {
    if let Some(why) = page.lacks() {
        skip!("{why}");
    }
    let shop = Shop::start(page);
    let body = posted().body;
    let good = key(SECRET);
    let file = shop.file("shop.secret");
    let short = "whsec_c2hvcnQ=";
    let damaged = SECRET.replace("dGls", "dGl%");
    for secrets in [
        "",
        "\n \n",
        "whsec_",
        SECRET.trim_start_matches("whsec_"),
        &damaged,
        short,
        &format!("{SECRET}\n{damaged}"),
        &format!("{SECRET}\nwhsec_"),
    ] {
        write_secret(&file, secrets);
        for by in [b"".as_slice(), b"short", &good] {
            let answer = shop.post(&signed(&[by], "e-1", &body, 0), &body);
            assert_eq!(answer, 500, "{secrets:?}");
        }
    }
    fs::remove_file(&file).expect("removed");
    for by in [b"".as_slice(), &good] {
        assert_eq!(shop.post(&signed(&[by], "e-1", &body, 0), &body), 500);
    }
    write_secret(&file, SECRET);
    let new = key(NEW);
    assert_eq!(shop.post(&[], &body), 401);
    assert_eq!(shop.post(&signed(&[b""], "e-1", &body, 0), &body), 401);
    assert_eq!(shop.post(&signed(&[&new], "e-1", &body, 0), &body), 401);
    for seconds in [-310, 310] {
        let late = signed(&[&good], "e-1", &body, seconds);
        assert_eq!(shop.post(&late, &body), 401, "{seconds}");
    }
    let headers = signed(&[&good], "e-1", &body, 0);
    assert_eq!(shop.post(&headers, &body.replace("1042", "1043")), 401);
    let failed = body.replace("\"outcome\":\"paid\"", "\"outcome\":\"failed\"");
    assert_ne!(failed, body);
    assert_eq!(
        shop.post(&signed(&[&good], "e-1", &failed, 0), &failed),
        410
    );
    assert!(shop.ships().is_empty());
    assert_eq!(
        shop.post(&signed(&[&new, &good], "e-1", &body, -290), &body),
        204
    );
    assert_eq!(shop.ships(), ["1042"]);
}

#[test]
fn the_page_in_php_takes_what_is_posted() {
    takes_what_the_daemon_posts(PHP);
}

#[test]
fn the_page_in_python_takes_what_is_posted() {
    takes_what_the_daemon_posts(PYTHON);
}

#[test]
fn the_page_in_node_takes_what_is_posted() {
    takes_what_the_daemon_posts(NODE);
}

#[test]
fn the_page_in_php_crashes_closed() {
    crashes_closed(PHP);
}

#[test]
fn the_page_in_python_crashes_closed() {
    crashes_closed(PYTHON);
}

#[test]
fn the_page_in_node_crashes_closed() {
    crashes_closed(NODE);
}

#[test]
fn the_page_in_php_believes_nothing_unsigned() {
    believes_nothing_unsigned(PHP);
}

#[test]
fn the_page_in_python_believes_nothing_unsigned() {
    believes_nothing_unsigned(PYTHON);
}

#[test]
fn the_page_in_node_believes_nothing_unsigned() {
    believes_nothing_unsigned(NODE);
}
