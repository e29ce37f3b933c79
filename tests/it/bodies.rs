//! What bodies cost while they are here, however they are written and whoever sends them: a stranger's must neither grow the
//! daemon by many times their size, nor take the room of the shop's own webhooks.

use std::fs;

use crate::harness::{PATIENCE, Service, Setup, Wire, World, head, wait_until};

const MIB: usize = 1024 * 1024;

/// The most memory the daemon ever had, KiB.
fn most_kib(world: &World) -> u64 {
    let path = format!("/proc/{}/status", world.serve_pid());
    let status = fs::read_to_string(path).expect("it runs");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.and_then(|line| line.trim().strip_suffix(" kB"));
    number.and_then(|number| number.parse().ok()).expect("KiB")
}

/// So many bytes of JSON: small pieces again and again, within an invoice object.
fn full_of(begin: &str, piece: &str, end: &str, bytes: usize) -> String {
    let room = bytes - begin.len() - end.len();
    let whole = begin.to_owned() + &piece.repeat(room / piece.len()) + end;
    padded(&whole, bytes)
}

/// An object of as many names as there is room for, none of which occurs twice.
fn of_names(begin: &str, end: &str, bytes: usize) -> String {
    let mut whole = begin.to_owned();
    for number in 0_usize.. {
        let name = format!("\"{number:x}\":1,");
        if whole.len() + name.len() + end.len() > bytes {
            break;
        }
        whole.push_str(&name);
    }
    padded(&(whole + end), bytes)
}

/// With blanks behind it, which JSON may have.
fn padded(json: &str, bytes: usize) -> String {
    json.to_owned() + &" ".repeat(bytes - json.len())
}

fn post(target: &str, length: usize) -> String {
    head("shop.example", "POST", target, &[], Some(length))
}

/// The status that it is answered with, on a connection of its own.
fn answer(world: &World, request: &str) -> u16 {
    let mut wire = Wire::open(world.listen());
    wire.send(request);
    wire.answer().expect("an answer").status
}

/// Each of them made a tree of forty to eighty times its size, or a list of twenty times.
#[test]
fn a_body_costs_a_few_times_its_size_whatever_is_in_it() {
    let world = Setup::new().quiet().start();
    let target = World::target("AAAAAAAAAAAAAAAAAAAAAA");
    let begin = r#"{"id":"i","status":"new","a":["#;
    let bodies = [
        (full_of(begin, r#"{"a":{}},"#, "1]}", MIB), 401),
        (full_of(begin, "[],", "1]}", MIB), 401),
        (full_of("[", r#"{"b":1,"a":[0]},"#, "1]", MIB), 400),
        (
            full_of(
                r#"{"id":"i","status":"new","dealRequisites":"["#,
                "[1],",
                r#"1]"}"#,
                MIB,
            ),
            401,
        ),
        (
            full_of(begin, r#"{"a":1,"b":"c","d":null},"#, "1]}", MIB),
            401,
        ),
        // Beyond the names that one object may have.
        (full_of(r#"{"id":"i","#, r#""":1,"#, r#""b":1}"#, MIB), 400),
        (of_names(r#"{"id":"i","#, r#""z":1}"#, MIB), 400),
        (of_names(r#"{"id":"i","a":[{"#, r#""z":1}]}"#, MIB), 400),
        (
            full_of(
                r#"{"id":"i","status":"new","dealRequisites":"{"#,
                r#"\"\":1,"#,
                r#"\"b\":1}"}"#,
                MIB,
            ),
            401,
        ),
    ];
    assert_eq!(answer(&world, &(post(&target, 2) + "{}")), 400);
    let before = most_kib(&world);
    for (body, code) in &bodies {
        let (begin, _rest) = body.split_at(60);
        let answered = answer(&world, &(post(&target, body.len()) + body));
        assert_eq!(answered, *code, "{begin}");
        let grown = most_kib(&world) - before;
        assert!(grown <= 10 * 1024, "{begin}: it grew by {grown} KiB");
    }
}

/// Forty bytes were kept for each.
#[test]
fn a_body_in_pieces_of_a_byte_costs_its_size() {
    const PIECES: usize = 64 * 1024;
    let world = Setup::new().quiet().start();
    let target = World::target("AAAAAAAAAAAAAAAAAAAAAA");
    let whole = post(&target, PIECES) + &" ".repeat(PIECES);
    assert_eq!(answer(&world, &whole), 400);
    let before = most_kib(&world);
    let coding = [("Transfer-Encoding", "chunked")];
    let chunked = head("shop.example", "POST", &target, &coding, None);
    let pieces = chunked + &"1\r\n \r\n".repeat(PIECES) + "0\r\n\r\n";
    assert_eq!(answer(&world, &pieces), 400);
    let grown = most_kib(&world) - before;
    assert!(grown <= 1024, "it grew by {grown} KiB");
}

/// A buffer that had grown lay beside another one that the head held.
#[test]
fn a_connection_with_half_a_body_costs_little_beside_it() {
    const CONNECTIONS: u64 = 200;
    let length = 9 * 1024;
    let world = Setup::new().quiet().start();
    let target = World::target("AAAAAAAAAAAAAAAAAAAAAA");
    assert_eq!(answer(&world, &(post(&target, 2) + "{}")), 400);
    let before = most_kib(&world);
    let begun = post(&target, length) + &" ".repeat(length - 1);
    let open = |_| {
        let mut wire = Wire::open(world.listen());
        wire.send(&begun);
        wire
    };
    let wires: Vec<Wire> = (0..CONNECTIONS).map(open).collect();
    // What came before it has been read by then.
    assert_eq!(answer(&world, &(post(&target, 2) + "{}")), 400);
    for mut wire in wires {
        wire.send(" ");
        assert_eq!(wire.answer().expect("an answer").status, 400);
    }
    let of_each = (most_kib(&world) - before) / CONNECTIONS;
    assert!(of_each <= 40, "each took {of_each} KiB");
}

/// The service's word is stored and told as it is, so it passes several hands.
#[test]
fn an_answer_of_the_service_costs_a_few_times_its_size() {
    let service = Service::start(|_heard| {
        let begin = r#"{"id":"inv-1","status":"new","internalId":"A-1","amount":"599.80","currency":"RUB","a":["#;
        (200, full_of(begin, r#"{"a":{}},"#, "1]}", 250 * 1024))
    });
    let world = Setup::new().quiet().service(&service.url()).start();
    assert_eq!(world.tilld(&["login"]).code, 0);
    let before = most_kib(&world);
    let ran = world.open("A-1", "599.80", &[]);
    assert_eq!(ran.code, 0, "{ran:?}");
    let grown = most_kib(&world) - before;
    assert!(grown <= 8 * 1024, "it grew by {grown} KiB");
}

/// A wall of bodies, each of which could go on. Two of them are a third more than strangers may have together.
#[test]
fn strangers_leave_room_for_the_bodies_of_known_invoices() {
    let world = Setup::new()
        .quiet()
        .set("listener.body_limit_bytes", 128 * 1024)
        .set("listener.bodies_limit_bytes", 256 * 1024)
        .start();
    let invoice = world.create("A-1");
    let target = World::target("AAAAAAAAAAAAAAAAAAAAAA");
    let length = 128 * 1024;
    let begun = post(&target, length) + &" ".repeat(length - 1);
    let (mut half, mut codes) = (None, Vec::new());
    wait_until(PATIENCE, "a stranger to find no room", || {
        // It may be the one that finds none, where the next is read faster: then it comes again.
        let mut wire = Wire::open(world.listen());
        wire.try_send(&begun);
        half = Some(wire);
        let mut next = Wire::open(world.listen());
        next.try_send(&(post(&target, length) + &" ".repeat(length)));
        let answer = next.answer().expect("an answer");
        assert!(answer.status != 503 || answer.header("retry-after") == Some("1"));
        codes.push(answer.status);
        answer.status == 503
    });
    let body = padded(&invoice.object.to_string(), length);
    assert_eq!(world.tell(&invoice, &body).status, 200, "{codes:?}");
    let log = world.serve_log();
    assert!(
        log.contains("take all of `listener.bodies_limit_bytes`"),
        "{log}"
    );
    drop(half);
    wait_until(PATIENCE, "its room to come back", || {
        let mut next = Wire::open(world.listen());
        next.try_send(&(post(&target, length) + &" ".repeat(length)));
        next.answer().is_some_and(|answer| answer.status == 400)
    });
}
