//! The page about installing: the tunnel to a sandbox leads to its ports, and the scripts take what the page gives them.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use super::generated::help;
use super::{page, pages, root};

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

/// The files of the repository that the package has, each with its place.
fn packed() -> Vec<(PathBuf, PathBuf)> {
    let manifest = page("Cargo.toml");
    let (_, assets) = manifest.split_once("\nassets = [\n").expect("assets");
    let assets = assets.lines().take_while(|line| *line != "]");
    let mut files = Vec::new();
    for asset in assets {
        let asset = asset.trim().trim_end_matches(',');
        let [from, to, _mode]: [String; 3] = serde_json::from_str(asset).expect("three texts");
        let (folder, pattern) = from.rsplit_once('/').unwrap_or((".", &from));
        let found = match pattern.strip_prefix("*.") {
            Some(end) if root().join(folder).is_dir() => std::fs::read_dir(root().join(folder))
                .expect("a folder")
                .map(|entry| entry.expect("an entry").path())
                .filter(|path| path.extension().is_some_and(|found| found == end))
                .collect(),
            _ => vec![root().join(&from)],
        };
        for path in found {
            let name = path.file_name().expect("a name");
            let place = if to.ends_with('/') {
                Path::new(&to).join(name)
            } else {
                PathBuf::from(&to)
            };
            let path = path.strip_prefix(root()).expect("inside").to_owned();
            let plain = path.components().filter(|part| *part != Component::CurDir);
            files.push((plain.collect(), place));
        }
    }
    files
}

/// A path without `..`, as a browser resolves it.
fn resolved(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => drop(plain.pop()),
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn every_link_of_a_packed_page_leads_to_a_packed_file() {
    let packed = packed();
    let places: BTreeSet<&PathBuf> = packed.iter().map(|(_, place)| place).collect();
    let mut links = 0;
    for page in pages() {
        for (_, place) in packed.iter().filter(|(path, _)| *path == page.path) {
            let targets = page.text.split("](").skip(1);
            let targets = targets.filter_map(|rest| rest.split([')', '#']).next());
            for target in targets.filter(|target| !target.is_empty() && !target.contains("://")) {
                let folder = place.parent().expect("a folder");
                let there = resolved(&folder.join(target));
                assert!(places.contains(&there), "{}: {target}", place.display());
                links += 1;
            }
        }
    }
    assert!(links > 50, "links were found");
}
