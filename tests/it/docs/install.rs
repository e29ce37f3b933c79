//! The page about installing: the tunnel to a sandbox leads to its ports, and the scripts take what the page gives them.

use super::generated::help;
use super::page;

#[test]
fn the_tunnel_leads_to_the_ports_of_the_sandbox() {
    let text = page("docs/install.md");
    let mut lines = text.lines();
    let tunnel = lines
        .find(|line| line.starts_with("ssh -L "))
        .expect("a line that opens the tunnel");
    let help = help(&["sandbox"]);
    for flag in ["--listen", "--control", "--config-listen"] {
        let (_, about) = help.split_once(&format!(" {flag} <")).expect(flag);
        let (_, about) = about.split_once("[default: 127.0.0.1:").expect(flag);
        let port = about.split(']').next().unwrap_or_default();
        assert!(text.contains(&format!(" {port} ")), "{flag}: {port}");
        // Notifications go from the sandbox to the daemon beside it.
        let through = format!("-L {port}:127.0.0.1:{port} ");
        assert_eq!(
            tunnel.contains(&through),
            flag != "--config-listen",
            "{flag}"
        );
    }
}

#[test]
fn the_scripts_of_packaging_take_what_it_gives_them() {
    let text = page("docs/install.md");
    let release = page("packaging/release");
    for named in ["--twice", "target/release-files"] {
        assert!(text.contains(named) && release.contains(named), "{named}");
    }
    for tool in ["cargo-deb", "cargo-cyclonedx"] {
        let line = format!("cargo install {tool} --locked");
        assert!(release.contains(&line), "{tool}");
        assert!(text.contains(&format!(" {tool} ")), "{tool}");
    }
    assert!(page("packaging/deb").contains("cargo install cargo-deb --locked"));
}
