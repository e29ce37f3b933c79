//! No call gives a secret, whatever it is asked and whatever the service says back: sought in the very bytes that came, as it is
//! and as hex and base64 have it. Each search is tried on a place where the secret is.

use std::fmt::Write as _;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;

use base64::{Engine as _, engine::general_purpose};
use serde_json::json;

use super::client::wish;
use super::events::STOPS_WITHIN;
use crate::harness::{PATIENCE, SECRET, Setup, World, head, wait_until};

/// Nobody posts from here, and nobody listens there.
const NOBODY: &str = "http://127.0.0.1:9/";

/// A request whose answer ends with the connection.
fn send(socket: &Path, method: &str, target: &str, accept: &str, body: &str) -> UnixStream {
    let mut stream = UnixStream::connect(socket).expect("it listens");
    stream.set_read_timeout(Some(PATIENCE)).expect("an option");
    let headers = [("Accept", accept), ("Connection", "close")];
    let head = head("tilld", method, target, &headers, Some(body.len()));
    stream.write_all((head + body).as_bytes()).expect("read");
    stream
}

/// All bytes that come.
fn rest(mut stream: UnixStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).expect("an end");
    assert!(bytes.starts_with(b"HTTP/1.1 "), "{bytes:?}");
    bytes
}

fn raw(world: &World, method: &str, target: &str, body: &str) -> Vec<u8> {
    rest(send(&world.control_socket(), method, target, "*/*", body))
}

/// Everything the calls answer, whatever they are asked.
fn answers(world: &World) -> Vec<u8> {
    let mut all = Vec::new();
    let mut ask = |method: &str, target: &str, body: &str| {
        all.extend(raw(world, method, target, body));
    };
    let (good, bad) = (wish("A-1", &json!("599.80")), wish("A-1", &json!("600")));
    for body in [good.as_str(), bad.as_str(), "{"] {
        ask("POST", "/v1/invoices", body);
    }
    for name in ["A-1", "A-2", "A-3", "nobody"] {
        ask("GET", &format!("/v1/orders/{name}"), "");
        ask("GET", &format!("/v1/orders/{name}/wait?timeout=0"), "");
        ask("POST", &format!("/v1/orders/{name}/poll"), "");
    }
    for target in [
        "/v1/invoices",
        "/v1/events?after=0",
        "/v1/status",
        "/v1/openapi.json",
        "/v1",
    ] {
        ask("GET", target, "");
    }
    all
}

fn holds(bytes: &[u8], needle: &[u8]) -> bool {
    bytes.windows(needle.len()).any(|window| window == needle)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").expect("text grows");
        hex
    })
}

/// The letters of a base64 text that these bytes alone make, where so many others stand before them.
fn core(bytes: &[u8], before: usize) -> String {
    let text = general_purpose::STANDARD_NO_PAD.encode([&vec![0; before], bytes].concat());
    let (from, upto) = ((before * 8).div_ceil(6), (before + bytes.len()) * 8 / 6);
    text.chars().skip(from).take(upto - from).collect()
}

/// How these bytes stand in an answer, if they do.
fn told(answers: &[u8], secret: &[u8]) -> Option<&'static str> {
    assert!(secret.len() > 6, "{secret:?} is too short to be sought");
    let hex = hex(secret);
    let base64 = [0, 1, 2].map(|before| core(secret, before));
    let for_addresses = |text: &String| text.replace('+', "-").replace('/', "_");
    if holds(answers, secret) {
        Some("as it is")
    } else if [hex.to_uppercase(), hex]
        .iter()
        .any(|hex| holds(answers, hex.as_bytes()))
    {
        Some("in hex")
    } else if base64.iter().any(|text| {
        [text, &for_addresses(text)].map(|text| holds(answers, text.as_bytes())) != [false; 2]
    }) {
        Some("in base64")
    } else {
        None
    }
}

/// What an answer would look like that tells.
fn tellers(secret: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let mut all = vec![
        ("as it is", [b"{\"note\":\"", secret, b"\"}"].concat()),
        ("in hex", hex(secret).into_bytes()),
        ("in hex", hex(secret).to_uppercase().into_bytes()),
    ];
    for before in ["", "u", "u:", "key"] {
        let text = [before.as_bytes(), secret, b" and more"].concat();
        for engine in [general_purpose::STANDARD, general_purpose::URL_SAFE] {
            let encoded = format!("\"{}\"", engine.encode(&text));
            all.push(("in base64", encoded.into_bytes()));
        }
    }
    all
}

/// What a merchant's machine holds and no shop may.
fn secrets(world: &World, access: &str) -> Vec<(&'static str, Vec<u8>)> {
    let decoded = |text: &str| general_purpose::STANDARD.decode(text).expect("base64");
    let key = fs::read_to_string(world.state_dir().join("secret/ledger-key")).expect("a key");
    let (_, after_colon) = access.split_once(':').unwrap_or(("", access));
    let hooks = SECRET.split_once('_').expect("a prefix").1;
    let mut secrets = vec![
        ("the access token", access.as_bytes().to_vec()),
        ("part of the access token", after_colon.as_bytes().to_vec()),
        ("the key", decoded(key.trim())),
        ("the key's file", key.trim().as_bytes().to_vec()),
        ("the hook's secret", decoded(hooks)),
        ("the hook's secret file", hooks.as_bytes().to_vec()),
    ];
    let issued = world.all_issued().into_iter();
    secrets.extend(issued.map(|issued| ("a notify token", issued.token.into_bytes())));
    secrets
}

#[test]
fn no_answer_holds_a_secret() {
    let mut world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .post_hook("shop", &["*"], NOBODY)
        .start();
    let stream = "/v1/events?after=0";
    let socket = world.control_socket();
    let follows = send(&socket, "GET", stream, "text/event-stream", "");
    let first = world.create("A-1");
    world.pay("A-2");
    let credentials = fs::read_to_string(world.state_dir().join("secret/credentials"));
    let access = crate::harness::access_token(&credentials.expect("stored"));
    // A service that gives back what it was sent: the access token, and the notify token in its document.
    let echo = json!({ "error": format!("Bearer {access}"), "token": first.token }).to_string();
    world.faults(&json!({ "drop_create_answer": 1 }));
    let anew = |order: &str| {
        let body = wish(order, &json!("599.80"));
        raw(&world, "POST", "/v1/invoices", &body)
    };
    let mut all = anew("A-3");
    for endpoint in ["create", "fetch"] {
        let fault = json!({ "endpoint": endpoint, "status": 500, "body": echo, "times": 3 });
        world.faults(&json!({ "api_status": fault }));
        let before = world.requests(endpoint);
        all.extend(anew("A-4"));
        all.extend(answers(&world));
        assert!(world.requests(endpoint) > before, "{endpoint} was answered");
    }
    let holder = first.with(
        &json!({ "notificationToken": first.token, "status": "step", "updatedAt": first.at(1) }),
    );
    assert_eq!(world.tell(&first, &holder.to_string()).status / 100, 2);
    wait_until(PATIENCE, "the hook to be given up", || {
        world.value("SELECT count(*) > 1 FROM deliveries WHERE state = 'abandoned'") == "1"
    });
    all.extend(answers(&world));
    let secrets = secrets(&world, &access);
    assert_eq!(world.stop_serve(STOPS_WITHIN), 0);
    let streamed = rest(follows);

    for (said, part) in [
        (&all, "\"A-2\""),
        (&all, "HTTP/1.1 503"),
        (&all, "HTTP/1.1 404"),
        (&streamed, "event: paid"),
        (&streamed, "\"step\""),
    ] {
        assert!(holds(said, part.as_bytes()), "nothing was said of {part}");
    }
    all.extend(streamed);
    for (what, secret) in secrets {
        assert_eq!(told(&all, &secret), None, "{what} was told");
        for (how, teller) in tellers(&secret) {
            assert_eq!(told(&teller, &secret), Some(how), "{what}");
        }
    }
}
