//! Hooks that are addresses of the shop, seen from the shop: what it is sent, what each of its answers means, and what
//! becomes of a post when the shop, its address, its secret or tilld itself is gone.

mod endpoint;
mod pages;
mod secret;
mod stop;
mod tls;
mod verify;

use std::fs;
use std::net::TcpListener;

use serde_json::{Value, json};

use crate::harness::{PATIENCE, Setup, World, wait_until};

use endpoint::{Asked, Endpoint, Say, says, says_that, says_with};

/// The results of a hook's attempts, by their number.
fn results(world: &World, hook: &str) -> Vec<String> {
    let query =
        format!("SELECT result FROM attempts WHERE hook = '{hook}' ORDER BY started_ms, number");
    world.sql(&query).concat()
}

/// The states of a hook's deliveries.
fn state(world: &World, hook: &str) -> String {
    let query = format!("SELECT DISTINCT state FROM deliveries WHERE hook = '{hook}'");
    world.sql(&query).concat().join(" ")
}

/// What `delivery show` says of the first attempt of the only delivery to a hook: the answer's body.
fn answered(world: &World, hook: &str) -> String {
    let event = world.value(&format!(
        "SELECT event_id FROM deliveries WHERE hook = '{hook}'"
    ));
    let args = ["delivery", "show", &event, "--hook", hook, "--json"];
    let shown = world.tilld(&args).ends_with(0).json();
    let body = shown.pointer("/ended_attempts/0/stdout/data");
    body.and_then(Value::as_str).unwrap_or_default().to_owned()
}

#[test]
fn a_payment_is_posted_with_the_scripts_document_and_signed_headers() {
    let endpoint = Endpoint::start(&[says_that(202, "thanks \u{1b}[2J")]);
    let world = Setup::new()
        .quiet()
        .post_hook("shop", &["paid"], &endpoint.url())
        .hook("script", &["paid"], "cat > \"$1\"")
        .start();
    world.pay("A-1");
    world.settle();
    assert_eq!(results(&world, "shop"), ["http 202"]);
    let asked = endpoint.asked();
    let [asked] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    assert_eq!(
        asked.request_line,
        "POST /index.php?route=tilld&x=a%20b HTTP/1.1"
    );
    assert_eq!(asked.header("content-type"), "application/json");
    let name = concat!("tilld/", env!("CARGO_PKG_VERSION"));
    assert_eq!(asked.header("user-agent"), name);
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    assert_eq!(asked.header("webhook-id"), event);
    let signature = asked.header("webhook-signature");
    assert!(
        signature.starts_with("v1,") && !signature.contains(' '),
        "{signature}"
    );
    // The very document, but for whom it is told.
    let [posted, read] = [asked.body.clone(), world.hook_log("script").concat()].map(|text| {
        let mut document: Value = serde_json::from_str(&text).expect("JSON");
        document
            .as_object_mut()
            .and_then(|document| document.insert("hook".to_owned(), json!("any")))
            .expect("a hook's name");
        document
    });
    assert_eq!(posted, read);
    assert_eq!(answered(&world, "shop"), "thanks \u{1b}[2J");
    let people = world
        .tilld(&["delivery", "show", &event, "--hook=shop"])
        .ends_with(0)
        .stdout;
    assert!(
        people.contains("  body:\n    thanks \\u001b[2J"),
        "{people}"
    );
    let story = world.tilld(&["explain", "A-1"]).ends_with(0).stdout;
    assert!(story.contains("  body: thanks \\u001b[2J"), "{story}");
    let log = world.serve_log();
    assert!(
        log.contains("hook shop for order A-1: http 202, done"),
        "{log}"
    );
}

#[test]
fn each_answer_means_what_the_contract_says() {
    let elsewhere = Endpoint::start(&[says(200)]);
    let redirect = says_with(307, &format!("Location: {}", elsewhere.url()));
    let away = "http 307, redirects are not followed";
    let cases: [(&str, &[Say], &[&str], &str); 9] = [
        ("ok", &[says(200)], &["http 200"], "done"),
        ("empty", &[says(204)], &["http 204"], "done"),
        ("gone", &[says(410)], &["http 410"], "abandoned"),
        ("none", &[says(404)], &["http 404", "http 404"], "abandoned"),
        (
            "bad",
            &[says(500), says_with(503, "Retry-After: soon")],
            &["http 500", "http 503"],
            "abandoned",
        ),
        (
            "busy",
            &[says(429), says(201)],
            &["http 429", "http 201"],
            "done",
        ),
        ("away", &[redirect], &[away, away], "abandoned"),
        (
            "lost",
            &[Say::Lost, says(200)],
            &[
                "no answer: connection closed before message completed",
                "http 200",
            ],
            "done",
        ),
        (
            "junk",
            &[says_with(200, "nonsense"), says(200)],
            &["no answer: invalid HTTP header parsed", "http 200"],
            "done",
        ),
    ];
    let mut setup = Setup::new().quiet().set("outbox.schedule_s", "[0, 1]");
    let endpoints = cases.map(|(name, says, _, _)| {
        let endpoint = Endpoint::start(says);
        (name, endpoint)
    });
    for (name, endpoint) in &endpoints {
        setup = setup.post_hook(name, &["paid"], &endpoint.url());
    }
    let world = setup.start();
    world.pay("A-1");
    world.settle();
    for ((name, _, wanted, end), (_, endpoint)) in cases.iter().zip(&endpoints) {
        assert_eq!(&results(&world, name), wanted, "{name}");
        assert_eq!(&state(&world, name), end, "{name}");
        let asked = endpoint.asked();
        assert_eq!(asked.len(), wanted.len(), "{name}");
        // One event, told by every attempt under the same id and with its own number.
        let told = |asked: &Asked| -> (String, Value) {
            let document: Value = serde_json::from_str(&asked.body).expect("JSON");
            let attempt = document.get("attempt").cloned();
            (
                asked.header("webhook-id").to_owned(),
                attempt.expect("a number"),
            )
        };
        let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
        let wanted: Vec<(String, Value)> = (1..=wanted.len())
            .map(|attempt| (event.clone(), json!(attempt)))
            .collect();
        assert_eq!(asked.iter().map(told).collect::<Vec<_>>(), wanted, "{name}");
    }
    assert_eq!(elsewhere.asked().len(), 0, "no redirect is followed");
}

#[test]
fn a_shop_that_asks_for_time_is_left_alone_for_it() {
    let soon = Endpoint::start(&[says_with(429, "Retry-After: 3"), says(200)]);
    let later = Endpoint::start(&[says_with(503, "Retry-After: 600")]);
    let date = "Date: Sun, 06 Nov 1994 08:49:37 GMT\r\nRetry-After: Sun, 06 Nov 1994 08:59:37 GMT";
    let by_date = Endpoint::start(&[says_with(503, date)]);
    let never = Endpoint::start(&[says_with(503, "Retry-After: 99999999")]);
    let world = Setup::new()
        .quiet()
        .post_hook("soon", &["paid"], &soon.url())
        .post_hook("later", &["paid"], &later.url())
        .post_hook("by-date", &["paid"], &by_date.url())
        .post_hook("never", &["paid"], &never.url())
        .start();
    world.pay("A-1");
    wait_until(PATIENCE, "the repeated one", || {
        results(&world, "soon") == ["http 429", "http 200"]
    });
    let apart = "SELECT max(started_ms) - min(ended_ms) >= 3000 FROM attempts WHERE hook = 'soon'";
    assert_eq!(world.value(apart), "1");
    // Up to a tenth is added; beyond an hour a wish is taken for an accident.
    for (hook, least_s) in [("later", 600), ("by-date", 600), ("never", 3_600)] {
        wait_until(PATIENCE, "the first attempt", || {
            results(&world, hook) == ["http 503"]
        });
        let wait = format!(
            "SELECT d.next_ms - a.ended_ms FROM deliveries d JOIN attempts a USING (event_id, hook) \
             WHERE hook = '{hook}' AND state = 'waiting'"
        );
        let wait_ms: u64 = world.value(&wait).parse().expect("a number");
        let (least, most) = (least_s * 1_000, least_s * 1_100);
        assert!((least..=most).contains(&wait_ms), "{hook}: {wait_ms}");
    }
}

#[test]
fn a_slow_or_endless_answer_holds_nobody() {
    let silent = Endpoint::start(&[Say::Held]);
    let endless = Endpoint::start(&[Say::Endless]);
    let stuck = Endpoint::start(&[Say::Stuck]);
    let long = vec![b'y'; 100_000];
    let long = Endpoint::start(&[Say::Answer(500, String::new(), long)]);
    let world = Setup::new()
        .quiet()
        .set("outbox.schedule_s", "[0]")
        .post_hook("silent", &["paid"], &silent.url())
        .within_s(1)
        .post_hook("endless", &["paid"], &endless.url())
        .post_hook("stuck", &["paid"], &stuck.url())
        .within_s(2)
        .post_hook("long", &["paid"], &long.url())
        .start();
    world.pay("A-1");
    world.settle();
    assert_eq!(results(&world, "silent"), ["timeout"]);
    // The status is the answer, whatever becomes of the rest.
    assert_eq!(results(&world, "endless"), ["http 200"]);
    assert_eq!(results(&world, "stuck"), ["http 200"]);
    assert_eq!(answered(&world, "stuck"), "so far");
    for hook in ["endless", "long"] {
        let kept = answered(&world, hook);
        assert!(kept.contains(" bytes dropped]\n"), "{hook}");
        assert!((65_536..65_600).contains(&kept.len()), "{}", kept.len());
        // No more than 1 MiB is taken, and nothing beyond it is counted.
        let (_, rest) = kept.split_once('[').expect("a mark");
        let dropped: Option<u64> = rest.split(' ').next().and_then(|count| count.parse().ok());
        assert!(
            dropped.is_some_and(|dropped| dropped <= 1_048_576 - 65_536),
            "{hook}: {dropped:?}"
        );
    }
    silent.go_on();
}

#[test]
fn a_shop_that_is_down_is_told_when_it_is_up_again() {
    // An address of this test alone: nobody else takes the port in between.
    let last = std::process::id().to_be_bytes();
    let [_, _, high, low] = last;
    let down = TcpListener::bind(format!("127.250.{high}.{low}:0")).expect("a port");
    let address = down.local_addr().expect("bound");
    drop(down);
    let world = Setup::new()
        .quiet()
        .set(
            "outbox.schedule_s",
            "[0, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]",
        )
        .post_hook("shop", &["paid"], &format!("http://{address}/"))
        .start();
    world.pay("A-1");
    let refused = "no answer: Connection refused (os error 111)";
    wait_until(PATIENCE, "the first attempt", || {
        results(&world, "shop")
            .first()
            .is_some_and(|one| one == refused)
    });
    let up = Endpoint::at(TcpListener::bind(address).expect("free"), &[says(200)]);
    world.settle();
    assert_eq!(results(&world, "shop").last(), Some(&"http 200".to_owned()));
    assert_eq!(up.asked().len(), 1);
}

#[test]
fn what_was_given_up_can_be_posted_under_an_id_of_its_own() {
    let endpoint = Endpoint::start(&[says(410), says(200)]);
    let mut world = Setup::new()
        .quiet()
        .not_served()
        .post_hook("shop", &["paid"], &endpoint.url())
        .start();
    let file = world.dir().join("config.toml");
    let config = fs::read_to_string(&file).expect("readable");
    let told = format!(
        "[on_abandoned]\npost = {:?}\nsecret_file = {:?}\n",
        endpoint.url(),
        world.secret_file("shop")
    );
    fs::write(&file, config + &told).expect("written");
    world.start_serve();
    world.pay("A-1");
    wait_until(PATIENCE, "the second post", || endpoint.asked().len() == 2);
    world.settle();
    assert_eq!(results(&world, "on_abandoned:shop"), ["http 200"]);
    let ids: Vec<String> = endpoint
        .asked()
        .iter()
        .map(|asked| asked.header("webhook-id").to_owned())
        .collect();
    let event = world.value("SELECT event_id FROM events WHERE kind = 'paid'");
    let [first, second] = ids.as_slice() else {
        panic!("{ids:?}");
    };
    assert_eq!(first, &event);
    assert!(second != first && !second.contains('.'), "{second}");
}

#[test]
fn no_proxy_of_the_environment_stands_between() {
    let endpoint = Endpoint::start(&[says(200)]);
    let proxy = Endpoint::start(&[says(200)]);
    let at = |name: &str| format!("{name}={}", proxy.url());
    let variables = ["http_proxy", "HTTP_PROXY", "ALL_PROXY"].map(at);
    let under: Vec<&str> = ["/usr/bin/env"]
        .into_iter()
        .chain(variables.iter().map(String::as_str))
        .collect();
    let world = Setup::new()
        .quiet()
        .under(&under)
        .post_hook("shop", &["paid"], &endpoint.url())
        .start();
    world.pay("A-1");
    world.settle();
    assert_eq!(endpoint.asked().len(), 1);
    assert_eq!(proxy.asked().len(), 0);
}

#[test]
fn a_test_run_shows_what_is_sent_and_what_the_shop_said() {
    let endpoint = Endpoint::start(&[says_that(200, "well \u{1b}[2J"), says_that(503, "no")]);
    let world = Setup::new()
        .not_served()
        .post_hook("shop", &["paid"], &endpoint.url())
        .start();
    let people = world.tilld(&["hook", "test", "shop"]).ends_with(0);
    assert!(
        people.stderr.contains("is posted to once with a SAMPLE"),
        "{people:?}"
    );
    let asked = endpoint.asked();
    let [asked] = asked.as_slice() else {
        panic!("{asked:?}");
    };
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        assert!(people.stdout.contains(asked.header(name)), "{people:?}");
    }
    assert!(people.stdout.contains(asked.body.trim_end()), "{people:?}");
    assert!(
        people.stdout.contains("http 200") && people.stdout.contains("    well \\u001b[2J"),
        "{people:?}"
    );
    let failed = world
        .tilld(&["hook", "test", "shop", "--json"])
        .ends_with(1);
    let report = failed.json();
    assert_eq!(report.get("result"), Some(&json!("http 503")));
    assert_eq!(report.get("next"), Some(&json!("retry")));
    assert_eq!(report.pointer("/stdout/data"), Some(&json!("no")));
    assert_eq!(
        report.pointer("/headers/webhook-id"),
        Some(&json!("sample-event"))
    );
    assert_eq!(endpoint.asked().len(), 2);
    let listed = world.tilld(&["hook", "list", "--json"]).ends_with(0).json();
    assert_eq!(listed.get("post"), Some(&json!(endpoint.url())));
    assert_eq!(listed.get("usable"), Some(&json!(true)));
    fs::remove_file(world.secret_file("shop")).expect("removed");
    let listed = world.tilld(&["hook", "list"]).ends_with(0).stdout;
    assert!(
        listed.contains(&endpoint.url()) && listed.contains("no, its secret: No such file"),
        "{listed}"
    );
    let file = world.secret_file("shop").display().to_string();
    assert!(
        listed.contains(&format!("  signs with  {file}")),
        "{listed}"
    );
}
