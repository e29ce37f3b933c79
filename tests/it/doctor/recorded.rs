//! The refusal that the doctor's own notification leaves is found however many others there are, and where it cannot be, the
//! proxy is not blamed for it. What is at stake: a merchant who takes his proxy apart while the disk is full.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::{doctor, found};
use crate::harness::{Heard, PATIENCE, Service, Setup, World, request, sql, wait_until};

/// Hands a request on to tilld, at another path, and gives its answer.
fn pass_on(listen: SocketAddr, heard: &Heard, path: &str) -> (u16, String) {
    let lines = heard.headers.lines();
    let headers: Vec<(&str, &str)> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name, value.trim()))
        .filter(|(name, _)| {
            !["host", "content-length"].contains(&name.to_ascii_lowercase().as_str())
        })
        .collect();
    let answer = request(listen, "POST", path, &headers, &heard.body);
    (answer.status, answer.body)
}

fn count(ledger: &Path, which: &str) -> usize {
    let rows = sql(ledger, &format!("SELECT count(*) FROM refusal {which}"));
    let counted = rows.first().and_then(|row| row.first());
    let counted = counted.and_then(|count| count.parse().ok());
    counted.expect("a number")
}

/// What the doctor says of a public address that this answers at, and the code it ends with.
fn public(world: &World, code: i32, proxy: &Service) -> String {
    let url = format!("{}/n", proxy.url());
    let told = doctor(world, code, &[("TILLD_LISTENER__PUBLIC_URL", &url)]);
    found(&told, "public_address")
}

/// A proxy that, before it answers, lets so many strangers go to the same place, until `enough`.
fn crowded(
    world: &World,
    strangers: usize,
    enough: impl Fn(&Path) -> bool + Send + 'static,
) -> Service {
    let (listen, ledger): (SocketAddr, PathBuf) = (world.listen(), world.ledger());
    Service::start(move |heard| {
        let answer = pass_on(listen, heard, heard.path());
        wait_until(PATIENCE, "the first to be recorded", || {
            count(&ledger, "") == 1
        });
        for _ in 0..strangers {
            let json = [("content-type", "application/json")];
            let body = r#"{"id":"stranger","status":"new"}"#;
            let target = World::target("0000000000000000000000");
            assert_eq!(request(listen, "POST", &target, &json, body).status, 401);
        }
        wait_until(PATIENCE, "the others to be recorded", || enough(&ledger));
        answer
    })
}

#[test]
fn a_refusal_is_found_behind_many_others() {
    let world = Setup::new().quiet().start();
    // More than any list shows, fewer than the ledger keeps.
    let proxy = crowded(&world, 600, |ledger| count(ledger, "") == 601);
    let told = public(&world, 0, &proxy);
    assert!(
        told.starts_with("ok: ") && told.contains("leads to this daemon"),
        "{told}"
    );
}

#[test]
fn a_refusal_that_others_displaced_is_nobodys_fault() {
    let world = Setup::new().quiet().set("ledger.refusal_rows", 100).start();
    let proxy = crowded(&world, 110, |ledger| count(ledger, "WHERE id = 111") == 1);
    let told = public(&world, 0, &proxy);
    assert!(
        told.starts_with("warn: ") && told.contains("more requests were refused meanwhile"),
        "{told}"
    );
}

/// A24, A26: the 401 needs no storing, its refusal does.
#[test]
fn a_ledger_that_stores_nothing_is_named_instead_of_the_proxy() {
    let world = Setup::new()
        .quiet()
        .set("ledger.busy_budget_ms", 200)
        .set("ledger.log_attention_bytes", 16 * 1024 * 1024)
        .set("ledger.log_bound_bytes", 32 * 1024 * 1024)
        .start();
    let neighbour = world.neighbour();
    neighbour.hold();
    let told = found(&doctor(&world, 16, &[]), "public_address");
    assert!(
        told.starts_with("fail: ") && told.contains("this daemon stores nothing"),
        "{told}"
    );
    assert!(
        told.contains("write lock") && !told.contains("another tilld"),
        "{told}"
    );
    neighbour.let_go();

    let reader = world.neighbour();
    reader.keep_reading();
    neighbour.lengthen_log(9_000);
    // Whoever stores next finds it so.
    world.notify("0000000000000000000000", &[], "{}");
    wait_until(PATIENCE, "the log to be found at its bound", || {
        world
            .serve_log()
            .contains("has reached `ledger.log_bound_bytes`")
    });
    let told = found(&doctor(&world, 16, &[]), "public_address");
    assert!(
        told.contains("this daemon stores nothing") && told.contains("the log takes"),
        "{told}"
    );
    reader.let_go();
    wait_until(PATIENCE, "all to be well", || {
        world.tilld(&["status"]).code == 0
    });
    let told = found(&doctor(&world, 0, &[]), "public_address");
    assert!(told.starts_with("ok: "), "{told}");
}

/// The body arrives, and the address is another.
#[test]
fn a_path_that_is_changed_on_the_way_is_told() {
    let world = Setup::new().quiet().start();
    let listen = world.listen();
    let proxy = Service::start(move |heard| pass_on(listen, heard, "/n"));
    let told = public(&world, 16, &proxy);
    assert!(
        told.contains("the last part of the path is lost on the way"),
        "{told}"
    );
    let proxy = Service::start(move |heard| {
        let path = heard.path().to_ascii_lowercase();
        pass_on(listen, heard, &path)
    });
    let told = public(&world, 16, &proxy);
    assert!(told.contains("is another when it arrives"), "{told}");
}
