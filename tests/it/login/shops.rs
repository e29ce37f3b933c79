//! A login for another shop than the one before. What is at stake: invoices that the service knows no more, and payments that go to
//! another account.

use serde_json::json;

use super::stub::granted;
use super::{Scene, TOKEN, told, write_private};

/// Logged in for a shop of another name than the service gives now.
fn of_another_shop() -> Scene {
    let scene = Scene::new(&[granted()]);
    let text = json!({
        "token": "shop-0:the-old-token-nobody-sees", "shop_name": "Old", "service": scene.service.url(),
        "stored_at": "2026-01-01T00:00:00Z",
    });
    std::fs::create_dir_all(scene.secret()).expect("made");
    write_private(&scene.file(), &text.to_string());
    scene
}

#[test]
fn a_login_for_another_shop_is_not_stored_unless_it_is_wished() {
    let scene = of_another_shop();
    let (code, _, talk) = scene.run(&["login"]);
    assert_eq!(code, 14, "{talk}");
    for part in ["`Old`", "revoke the new token", "renamed", "--another-shop"] {
        assert!(talk.contains(part), "{part}: {talk}");
    }
    assert!(scene.stored().contains("the-old-token"));
    let scene = of_another_shop();
    let (code, _, talk) = scene.run(&["login", "--another-shop"]);
    assert_eq!((code, scene.stored().as_str()), (0, TOKEN), "{talk}");
}

#[test]
fn the_second_step_refuses_another_shop_as_well() {
    for (flags, code) in [(vec![], 14), (vec!["--another-shop"], 0)] {
        let scene = of_another_shop();
        let (begun, _, talk) = scene.run(&["login", "--start"]);
        assert_eq!(begun, 0, "{talk}");
        let line = [vec!["login", "--finish", "--wait", "20"], flags].concat();
        let (ended, _, talk) = scene.run(&line);
        assert_eq!(ended, code, "{talk}");
        assert_eq!(scene.stored() == TOKEN, code == 0);
        assert!(!scene.request().exists(), "the code is spent");
    }
}

/// The ledger's invoices are still the earlier shop's.
#[test]
fn a_logout_makes_no_shop_another() {
    let scene = of_another_shop();
    let (code, _, talk) = scene.run(&["logout"]);
    assert_eq!(code, 0, "{talk}");
    let (code, _, talk) = scene.run(&["login"]);
    assert_eq!(code, 14, "{talk}");
    assert!(talk.contains("`Old`"), "{talk}");
    assert!(!scene.file().exists());
}

#[test]
fn the_settings_name_the_shop_that_a_login_must_be_for() {
    let login = |flags: &[&str], shop: &str| {
        let scene = Scene::new(&[granted()]);
        let line = [&["login"], flags].concat();
        let mut command = scene.command(&line);
        let output = command.env("TILLD_SERVICE__SHOP", shop).output();
        let (code, _, talk) = told(&output.expect("tilld runs"));
        assert_eq!(scene.file().exists(), code == 0, "{talk}");
        (code, talk)
    };
    for flags in [&[][..], &["--another-shop"]] {
        let (code, talk) = login(flags, "Other");
        assert_eq!(code, 14, "{talk}");
        assert!(
            talk.contains("`Other`") && talk.contains("service.shop"),
            "{talk}"
        );
    }
    let (code, talk) = login(&[], super::stub::SHOP);
    assert_eq!(code, 0, "{talk}");
}
