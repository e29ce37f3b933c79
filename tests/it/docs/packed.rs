//! The documents that the Debian package brings, read from the list of its files in Cargo.toml: what they link to comes with
//! them, and lies where the link leads. It knows of cargo-deb only how a line of that list names its files.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Component, Path, PathBuf};

use super::{page, pages, root};

const DOCUMENTS: &str = "usr/share/doc/tilld";

/// Where each file of the package is installed, and the file of the sources that it is.
fn packed() -> BTreeMap<PathBuf, PathBuf> {
    let manifest = page("Cargo.toml");
    let (_, package) = manifest
        .split_once("[package.metadata.deb]")
        .expect("the package");
    let (_, list) = package.split_once("\nassets = [\n").expect("its files");
    let (list, _) = list.split_once("\n]").expect("an end of its files");
    let lines = list.lines().map(str::trim);
    let lines = lines.filter(|line| !line.starts_with('#'));
    let mut packed = BTreeMap::new();
    for line in lines {
        let [from, to, _mode]: [String; 3] =
            serde_json::from_str(line.trim_end_matches(',')).expect(line);
        for source in matching(Path::new(&from)) {
            let there = installed(&to, &source);
            let other = packed.insert(there.clone(), source);
            assert_eq!(other, None, "two files at {}", there.display());
        }
    }
    packed
}

/// The files that a line of the list names: one, or those of one folder that fit a `*`. What a build makes is not there yet.
fn matching(from: &Path) -> Vec<PathBuf> {
    let (Some(folder), Some(name)) = (from.parent(), from.file_name()) else {
        panic!("{}: no file", from.display());
    };
    let name = name.to_str().expect("a plain name");
    let Some((start, end)) = name.split_once('*') else {
        return vec![from.to_owned()];
    };
    let entries = fs::read_dir(root().join(folder)).into_iter().flatten();
    let names = entries.map(|entry| entry.expect("an entry").file_name());
    let names = names.map(|name| name.into_string().expect("a plain name"));
    let fitting = names.filter(|name| name.starts_with(start) && name.ends_with(end));
    fitting.map(|name| folder.join(name)).collect()
}

/// A target with a slash at its end is a folder. cargo-deb compresses a changelog.
fn installed(to: &str, source: &Path) -> PathBuf {
    match to {
        folder if folder.ends_with('/') => {
            Path::new(folder).join(source.file_name().unwrap_or_default())
        }
        changelog if changelog.ends_with("/changelog") => format!("{changelog}.gz").into(),
        file => file.into(),
    }
}

/// A relative link of a document, as a path from where the document's own path begins.
fn linked(document: &Path, target: &str) -> PathBuf {
    let mut path = document.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => assert!(path.pop(), "{}: {target}", document.display()),
            part => path.push(part),
        }
    }
    path
}

#[test]
fn what_a_packed_document_links_to_is_packed_where_the_link_leads() {
    let packed = packed();
    let mut missing = Vec::new();
    let mut seen = 0;
    for (there, source) in &packed {
        if source.extension().is_none_or(|end| end != "md") {
            continue;
        }
        let text = page(source.to_str().expect("a plain path"));
        let targets = text.split("](").skip(1);
        let targets = targets.filter_map(|rest| rest.split([')', '#']).next());
        let relative = targets.filter(|file| !file.is_empty() && !file.contains("://"));
        for target in relative {
            seen += 1;
            if packed.get(&linked(there, target)) != Some(&linked(source, target)) {
                missing.push(format!("{}: {target}", there.display()));
            }
        }
    }
    assert_eq!(missing, Vec::<String>::new());
    assert!(seen > 100, "links were found");
}

#[test]
fn every_page_is_packed_at_its_own_path() {
    let packed = packed();
    for page in pages() {
        let there = Path::new(DOCUMENTS).join(&page.path);
        assert_eq!(packed.get(&there), Some(&page.path), "{}", there.display());
    }
}
