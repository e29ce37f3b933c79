//! Where a secret is found: the search the tests for leaks make, and the secret that a login leaves behind.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Every file below `dir` whose path holds none of `but` and which holds `needle`.
pub(crate) fn holding(dir: &Path, needle: &str, but: &[&str]) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let entries = fs::read_dir(dir).expect("a directory");
    for path in entries.map(|entry| entry.expect("an entry").path()) {
        let shown = path.to_string_lossy();
        if but.iter().any(|part| shown.contains(part)) {
            continue;
        }
        if path.is_dir() {
            found.extend(holding(&path, needle, but));
        } else {
            // A file that vanished meanwhile holds nothing.
            let bytes = fs::read(&path).unwrap_or_default();
            let is_here = |window: &[u8]| window == needle.as_bytes();
            if bytes.windows(needle.len()).any(is_here) {
                found.push(path);
            }
        }
    }
    found
}

/// The access token in the text of a credentials file.
pub(crate) fn access_token(credentials: &str) -> String {
    let stored: Value = serde_json::from_str(credentials).expect("JSON");
    let token = stored.get("token").and_then(Value::as_str);
    token.expect("a token").to_owned()
}
