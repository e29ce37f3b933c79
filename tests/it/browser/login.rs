//! The login through the cabinet, from the address `tilld login` tells to the token on disk, and until it is revoked.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use super::{ENGLISH, driver, start_login, visitor};
use crate::harness::{PATIENCE, Setup, World, skip, wait_until};

#[test]
fn a_login_is_confirmed_refused_and_revoked_in_the_cabinet() {
    if let Some(lack) = driver::lack() {
        skip!("{lack}");
    }
    let mut world = Setup::new().logged_out().not_served().start();
    let person = visitor(ENGLISH);

    // By the address, for another shop than the first.
    let (mut login, address, code) = start_login(&world);
    person.open(&address);
    assert_eq!(person.read(".code"), code);
    assert!(person.read("h1").contains("asks for access"));
    person.click("input[value='Лавка у моста']");
    person.click("button[value=confirm]");
    person.sees("h1", "Login confirmed");
    assert_eq!(login.wait(PATIENCE), 0, "{}", login.stderr());
    // By itself, to whoever waits there.
    person.sees("main p", "has its token for the shop Лавка у моста");
    let token = stored(&world);
    assert!(!format!("{}{}", login.stdout(), login.stderr()).contains(&token));
    let who = world.tilld(&["whoami", "--json"]).ends_with(0);
    assert_eq!(who.text("shop_name"), "Лавка у моста");

    // By the code, typed as people type; and refused.
    let (mut login, _, code) = start_login(&world);
    person.open(&world.page("/activate"));
    person.fill("#code", "ZZZZ-0000");
    person.click("main form button");
    person.sees("[role=alert]", "unknown or has expired");
    person.open(&world.page("/activate"));
    person.fill("#code", &code.to_lowercase().replace('-', " "));
    person.click("main form button");
    person.sees(".code", &code);
    person.click("button[value=refuse]");
    person.sees("h1", "Login refused");
    assert_eq!(login.wait(PATIENCE), 12, "{}", login.stderr());
    assert_eq!(stored(&world), token, "the login before it stays");

    // What was given is taken back, while a daemon works with it.
    world.start_serve();
    world.create("A-1");
    person.open(&world.page("/cabinet"));
    let row = person.read("tbody tr");
    assert!(
        row.contains("tilld") && row.contains("Лавка у моста"),
        "{row}"
    );
    assert!(!person.read("main").contains(&token));
    person.click("button[aria-label^='Revoke tilld']");
    person.sees("tbody tr", "revoked");
    world.tilld(&["whoami", "--check"]).ends_with(4);
    world.try_create("A-2").ends_with(4);
    wait_until(PATIENCE, "the daemon to hear of it", || {
        let status = world.tilld(&["status", "--json"]).json();
        status.pointer("/polling/login") == Some(&"refused".into())
    });
    person.leaves();
}

/// The token on disk, which nobody else may read.
#[track_caller]
fn stored(world: &World) -> String {
    let file = world.state_dir().join("secret/credentials");
    let mode = fs::metadata(&file)
        .expect("it is there")
        .permissions()
        .mode();
    assert_eq!(mode & 0o777, 0o600);
    crate::harness::access_token(&fs::read_to_string(file).expect("readable"))
}
