//! TOML that is no config: what a person writes for the sandbox. Read in one piece; unknown keys are the reader's to refuse.

use figment::Figment;
use figment::providers::{Format as _, Toml};
use serde::de::DeserializeOwned;

/// What is wrong with a text.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub(crate) struct TomlError {
    what: String,
}

/// Reads a text. The error names the key where there is one, and the line and column of what is no TOML.
pub(crate) fn read<T: DeserializeOwned>(text: &str) -> Result<T, TomlError> {
    let read = Figment::from(Toml::string(text)).extract::<T>();
    read.map_err(|error| {
        let path = error.path.join(".");
        let kind = error.kind.to_string();
        let kind = in_one_line(&kind);
        let what = if path.is_empty() {
            kind
        } else {
            format!("`{path}`: {kind}")
        };
        TomlError { what }
    })
}

/// What the TOML reader says of a line: where, then the line drawn over several ones, then what is wrong with it.
fn in_one_line(kind: &str) -> String {
    let is_said = |line: &&str| {
        let rest = line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit());
        !rest.starts_with('|') && !rest.is_empty()
    };
    let lines: Vec<&str> = kind.lines().filter(is_said).map(str::trim).collect();
    lines.join(": ")
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Read {
        names: Vec<String>,
        steps: Option<Vec<Step>>,
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Step {
        wait: Option<u64>,
    }

    #[test]
    fn a_text_is_read_or_its_fault_is_named() {
        let good: Read = read("names = [\"a\", \"б\"]\n[[steps]]\nwait = 1\n").expect("good");
        assert_eq!(good.names, ["a", "б"]);
        let steps = good.steps.unwrap_or_default();
        assert_eq!(steps.first().and_then(|step| step.wait), Some(1));
        for (text, part) in [
            ("names = 1", "names"),
            ("names = [\"a\"]\nother = 1", "other"),
            ("names = [\"a\"]\n[[steps]]\nwiat = 1", "wiat"),
            ("names = [", "line 1"),
            ("names = nothing", "column 9: "),
            ("", "names"),
        ] {
            let error = read::<Read>(text).expect_err(text).to_string();
            assert!(error.contains(part) && !error.contains('\n'), "{error}");
        }
    }
}
