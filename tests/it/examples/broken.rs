//! Each example beside a socket whose answers are broken. Relies on a server of its own, which says what a case wants.
//! Promises that none takes a broken answer for a payment.

use std::fs;
use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::Command;
use std::thread;

use super::{ALL, Example};
use crate::harness::{PATIENCE, Process, skip};

/// Answers each request on the socket with these bytes, and closes.
fn answers(socket: &Path, answer: &'static str) {
    let listener = UnixListener::bind(socket).expect("a socket");
    drop(thread::spawn(move || {
        for client in listener.incoming().flatten() {
            // A client that has left is what the case is about.
            drop(answer_one(&client, answer));
        }
    }));
}

fn answer_one(client: &UnixStream, answer: &str) -> io::Result<()> {
    let mut reader = BufReader::new(client);
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line)? > 2 {
        let head = line.to_ascii_lowercase();
        if let Some(number) = head.strip_prefix("content-length:") {
            length = number.trim().parse().unwrap_or_default();
        }
        line.clear();
    }
    reader.read_exact(&mut vec![0; length])?;
    (&*client).write_all(answer.as_bytes())
}

#[test]
fn none_takes_a_broken_answer_for_a_payment() {
    if let Some(why) = ALL.into_iter().find_map(Example::lacks) {
        skip!("{why}");
    }
    let json = "Content-Type: application/json\r\nConnection: close\r\n";
    let answer = |status: &str, length: usize, body: &str| -> &'static str {
        let head = format!("HTTP/1.1 {status}\r\n{json}Content-Length: {length}\r\n\r\n");
        Box::leak(format!("{head}{body}").into_boxed_str())
    };
    let paid = r#"{"type":"urn:tilld:problem:already_paid","invoice":{"outcome":"paid""#;
    for (case, answer) in [
        ("nothing", ""),
        ("half a head", "HTTP/1.1 409 Con"),
        ("half a document", answer("409 Conflict", 900, paid)),
        (
            "half an outcome",
            answer("200 OK", 900, r#"{"outcome":"paid""#),
        ),
        ("no document", answer("200 OK", 5, "hello")),
        ("no outcome", answer("200 OK", 2, "{}")),
        (
            "an error",
            answer("404 Not Found", 18, r#"{"outcome":"paid"}"#),
        ),
    ] {
        let dir = tempfile::tempdir().expect("a directory");
        let socket = dir.path().join("control.sock");
        answers(&socket, answer);
        for example in ALL {
            fs::write(dir.path().join(example.file), example.text()).expect("written");
            let mut command = Command::new(example.program);
            command
                .arg(example.file)
                .arg(&socket)
                .args(["A-1", "150.00"]);
            command.current_dir(dir.path());
            let mut running = Process::spawn(&mut command, dir.path(), example.file);
            let code = running.wait(PATIENCE);
            let said = running.stdout();
            assert!(code != 0, "{case}: {example:?}: {said}");
            assert!(!said.contains(": paid"), "{case}: {example:?}: {said}");
        }
    }
}
