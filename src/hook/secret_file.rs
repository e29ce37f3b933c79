//! The file that holds a hook's secrets. Read afresh for each attempt, so that a rotation needs no restart, and looked at
//! before the daemon starts. Promises that nothing of its content stands in an error.

use std::io;
use std::path::Path;

use crate::regular_file::{self, Rule, Unfit};

use super::signature::{Keys, KeysError};

/// Largest file read, in bytes. As many secrets as may be have less than half of it.
const LARGEST: u64 = 1024;

/// Mode bits that let everybody read the secret, or put another in its place. The group is the operator's choice: the
/// shop's own program often reads the same file.
const OTHERS: u32 = 0o006;

/// Why there are no keys.
#[derive(Debug, thiserror::Error)]
pub enum SecretFileError {
    /// The operating system said no.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A directory, a pipe, a device.
    #[error("it is {0}, not a file")]
    NotAFile(&'static str),
    /// Whoever has an account may sign what the shop will believe.
    #[error("it has mode {0:04o}: everybody may read or change it")]
    OpenToAll(u32),
    /// Larger than any secrets are.
    #[error("it is larger than {LARGEST} bytes")]
    TooLarge,
    /// It holds something else.
    #[error(transparent)]
    Keys(#[from] KeysError),
}

/// Reads the secrets. Whose the file is, is the operator's choice too: the shop's user, say.
pub fn read(file: &Path) -> Result<Keys, SecretFileError> {
    let rule = Rule {
        owner: None,
        closed: OTHERS,
        largest: LARGEST,
    };
    let bytes = regular_file::read(file, rule).map_err(|unfit| match unfit {
        Unfit::Io(cause) => SecretFileError::Io(cause),
        Unfit::Kind(kind) => SecretFileError::NotAFile(kind),
        Unfit::Mode(mode) => SecretFileError::OpenToAll(mode),
        unfit @ Unfit::Owner { .. } => SecretFileError::Io(unfit.into_io()),
        Unfit::TooLarge(_) => SecretFileError::TooLarge,
    })?;
    // What is no text begins with no prefix.
    let text = str::from_utf8(&bytes).map_err(|_not_text| KeysError::Prefix(1))?;
    Ok(Keys::parse(text)?)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n";

    #[test]
    fn only_a_small_file_that_not_everybody_may_touch_is_read() {
        let dir = tempfile::tempdir().expect("a directory");
        let file = dir.path().join("secret");
        let with = |text: &str, mode: u32| {
            fs::write(&file, text).expect("written");
            fs::set_permissions(&file, Permissions::from_mode(mode)).expect("own file");
            read(&file).map(drop).map_err(|error| error.to_string())
        };
        for mode in [0o400, 0o600, 0o640, 0o660] {
            assert_eq!(with(SECRET, mode), Ok(()), "{mode:o}");
        }
        for mode in [0o604, 0o644, 0o602] {
            let why = with(SECRET, mode).expect_err("refused");
            assert!(why.contains(&format!("{mode:04o}")), "{why}");
        }
        let why = with(&SECRET.repeat(100), 0o600).expect_err("refused");
        assert_eq!(why, "it is larger than 1024 bytes");
        let why = with("hunter2-hunter2", 0o600).expect_err("refused");
        assert!(!why.contains("hunter2"), "{why}");
        assert!(matches!(
            read(dir.path()),
            Err(SecretFileError::NotAFile(_))
        ));
        let gone = read(&dir.path().join("gone")).expect_err("refused");
        assert!(gone.to_string().starts_with("No such file"), "{gone}");
    }
}
