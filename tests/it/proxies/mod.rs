//! Behind a proxy (A14, R22, T22): what the docs show for nginx and Caddy is run as it stands there. What is at stake: a proxy
//! may drop the header with the token, change the path, answer by itself, or let a stranger's bytes become a request.

mod programs;
mod smuggled;

use std::net::SocketAddr;

use crate::harness::{
    Answer, Issued, PATIENCE, Setup, Wire, World, head, request_to, skip, wait_for, wait_until,
};
use programs::{Proxy, SHOP, lacks};
use smuggled::hides_nothing;

fn start() -> World {
    Setup::new()
        .quiet()
        .set("listener.trusted_proxies", "[\"127.0.0.1\"]")
        .set(
            "listener.presentations",
            "[\"header:X-Notification-Token\", \"header:notification_token\"]",
        )
        .start()
}

fn tell(to: SocketAddr, target: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let all = [&[("Content-Type", "application/json")], headers].concat();
    request_to(SHOP, to, "POST", target, &all, body)
}

/// What must come through, and what must come back as it is.
fn passes_on(world: &World, proxy: SocketAddr) {
    let count = || world.value("SELECT count(*) FROM events WHERE kind = 'paid'");
    for (number, (end, header)) in [
        ("", "X-Notification-Token"),
        ("/", "X-Notification-Token"),
        // nginx drops names with underscores unless it is told not to.
        ("", "notification_token"),
    ]
    .into_iter()
    .enumerate()
    {
        let paid = world.dictate(&world.create(&format!("A-{number}")), "paid");
        let target = World::target(&paid.reference) + end;
        let token = (header, paid.token.as_str());
        // A header of one hop more or less changes nothing.
        let headers = [token, ("Connection", "close")];
        let answer = tell(proxy, &target, &headers, &paid.object.to_string());
        assert_eq!(
            (answer.status, answer.body.as_str()),
            (200, "ok\n"),
            "{header} {end}"
        );
        assert_eq!(count(), (number + 1).to_string(), "{header} {end}");
    }
    let known = world.create("B-1");
    let target = World::target(&known.reference);
    let object = known.object.to_string();
    let direct = tell(world.listen(), &target, &[], &object);
    let answer = tell(proxy, &target, &[], &object);
    assert_eq!(
        (answer.status, &answer.body),
        (401, &direct.body),
        "it is handed on as it is"
    );
    assert_eq!(
        answer.header("www-authenticate"),
        direct.header("www-authenticate")
    );

    // Nearly as long as tilld takes, and longer than a buffer of the proxy.
    let filled = format!("{}{object}", " ".repeat(1_000_000));
    let token = [("X-Notification-Token", known.token.as_str())];
    assert_eq!(tell(proxy, &target, &token, &filled).status, 200);
    let filled = format!("{}{object}", " ".repeat(1_100_000));
    let answer = tell(proxy, &target, &token, &filled);
    // Caddy says 502 for it, since it has begun to hand it on.
    assert!(matches!(answer.status, 413 | 502), "{answer:?}");
    for (method, target) in [("GET", "/n"), ("GET", "/n/"), ("HEAD", target.as_str())] {
        let mut wire = Wire::open(proxy);
        wire.send(&head(
            SHOP,
            method,
            target,
            &[("Connection", "close")],
            None,
        ));
        assert_eq!(
            wire.answer().map(|answer| answer.status),
            Some(200),
            "{method} {target}"
        );
    }
    // The shop itself is nobody's business of tilld.
    assert!(!world.serve_log().contains("/cart"));
    let answer = tell(proxy, "/cart", &[], "{}");
    assert_ne!(answer.body, "not found\n", "{answer:?}");
}

/// Whom the newest refusal names.
fn refused_peer(world: &World, known: &Issued, to: SocketAddr, claims: &[(&str, &str)]) -> String {
    let count = "SELECT count(*) FROM refusal";
    let before = world.value(count);
    let answer = tell(
        to,
        &World::target(&known.reference),
        claims,
        &known.object.to_string(),
    );
    assert_eq!(answer.status, 401);
    wait_until(PATIENCE, "the refusal to be written", || {
        world.value(count) != before
    });
    world.value("SELECT peer FROM refusal ORDER BY rowid DESC LIMIT 1")
}

#[test]
fn nginx_as_readme_has_it() {
    if let Some(why) = lacks("nginx") {
        skip!("{why}");
    }
    let world = start();
    let proxy = Proxy::nginx(&world);
    passes_on(&world, proxy.address);
    let known = world.create("D-1");
    let claims = [("X-Forwarded-For", "203.0.113.7")];
    // It writes the sender behind what was claimed; here the sender is this machine, so all that is trusted is followed.
    let named = refused_peer(&world, &known, proxy.address, &claims);
    assert_eq!(named, "203.0.113.7");
    hides_nothing(&world, proxy.address);
}

#[test]
fn caddy_as_readme_has_it() {
    if let Some(why) = lacks("caddy") {
        skip!("{why}");
    }
    let world = start();
    let proxy = Proxy::caddy(&world);
    passes_on(&world, proxy.address);
    // It forgets what was claimed before it.
    let known = world.create("D-1");
    let claims = [("X-Forwarded-For", "203.0.113.7")];
    assert_eq!(
        refused_peer(&world, &known, proxy.address, &claims),
        "127.0.0.1"
    );
    // What the docs warn of: a name that is no site of it is answered 200, and tilld hears nothing.
    let target = World::target(&known.reference);
    let before = world.value("SELECT count(*) FROM refusal");
    let answer = request_to(
        "mistyped.example",
        proxy.address,
        "POST",
        &target,
        &[],
        "{}",
    );
    assert_eq!((answer.status, answer.body.as_str()), (200, ""));
    assert_eq!(tell(proxy.address, &target, &[], "{}").status, 400);
    let refused = "SELECT count(*) FROM refusal";
    let one_more = (before.parse::<u32>().expect("a number") + 1).to_string();
    wait_until(PATIENCE, "the other one to be written", || {
        world.value(refused) == one_more
    });
    hides_nothing(&world, proxy.address);
}

/// Anybody may claim anything.
#[test]
fn a_claim_about_the_sender_counts_from_trusted_proxies_alone() {
    let claims = [
        ("X-Forwarded-For", "198.51.100.9, 203.0.113.7"),
        ("Forwarded", "for=192.0.2.1"),
    ];
    for (trusted, wanted) in [
        ("[]", "127.0.0.1"),
        ("[\"10.0.0.0/8\"]", "127.0.0.1"),
        ("[\"127.0.0.0/8\"]", "203.0.113.7"),
        ("[\"127.0.0.0/8\", \"203.0.113.0/24\"]", "198.51.100.9"),
    ] {
        let world = Setup::new()
            .quiet()
            .set("listener.trusted_proxies", trusted)
            .start();
        let known = world.create("A-1");
        let named = refused_peer(&world, &known, world.listen(), &claims);
        assert_eq!(named, wanted, "{trusted}");
        wait_until(PATIENCE, "the log to name the same", || {
            world.serve_log().contains(&format!("http.peer={wanted} "))
                || world.serve_log().contains(&format!("http.peer={wanted}\n"))
        });
        // Of what came to no address of ours, too, and no ref in it is told.
        let astray = format!("/{}.json", known.reference);
        let object = known.object.to_string();
        assert_eq!(tell(world.listen(), &astray, &claims, &object).status, 404);
        let log = wait_for(PATIENCE, "a line about it", || {
            let log = world.serve_log();
            let line = log
                .lines()
                .find(|line| line.contains("a POST came to `/REF.json`"))?;
            Some((
                line.contains(&format!("http.peer={wanted}")),
                log.contains(&known.reference),
            ))
        });
        assert_eq!(log, (true, false), "{trusted}");
    }
    let world = Setup::new().logged_out().not_served().start();
    let wrong = [("TILLD_LISTENER__TRUSTED_PROXIES", "127.0.0.1,10.0.0.1/8")];
    let ran = world
        .tilld_with(&wrong, &["serve", "--check"])
        .ends_with(10);
    assert!(ran.stderr.contains("entry 2 is none of these"), "{ran:?}");
}
