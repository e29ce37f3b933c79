//! Settings without default, asked for by the commands that need them, and what hooks need, looked at before a start.

use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD};
use url::Url;

use super::error::Error;
use super::hooks::Hook;
use super::settings::Settings;
use crate::hook::{launch, secret_file};

impl Settings {
    /// The service base address.
    ///
    /// # Errors
    /// [`Error::Missing`] when it is not set.
    pub fn require_service(&self) -> Result<Url, Error> {
        required(
            self.service.url.as_deref(),
            "service.url",
            "the service base address",
        )
    }

    /// The public address of the listener. Its path is the public path.
    ///
    /// # Errors
    /// [`Error::Missing`] when it is not set.
    pub fn require_public(&self) -> Result<Url, Error> {
        required(
            self.listener.public_url.as_deref(),
            "listener.public_url",
            "the address at which the service reaches this listener",
        )
    }
}

fn required(address: Option<&str>, key: &'static str, what: &'static str) -> Result<Url, Error> {
    // Settings that were loaded hold only addresses that parse; one put together otherwise counts as missing.
    address
        .and_then(|address| Url::parse(address).ok())
        .ok_or(Error::Missing { key, what })
}

impl Hook {
    /// Looks whether the program is there and will start for this user; of a hook with `post`, whether there is a secret
    /// to sign with.
    ///
    /// # Errors
    /// [`Error::Program`] with the operating system's reason, [`Error::SecretFile`] with the file's.
    pub fn check(&self) -> Result<(), Error> {
        if self.post.is_some() {
            let file = self.secret_file.clone().unwrap_or_default();
            return secret_file::read(&file)
                .map(drop)
                .map_err(|source| Error::SecretFile {
                    name: self.name.clone(),
                    file,
                    source,
                });
        }
        let program = Path::new(self.run.first().map_or("", String::as_str));
        runnable(program).map_err(|source| Error::Program {
            name: self.name.clone(),
            program: program.to_owned(),
            source,
        })
    }
}

fn runnable(program: &Path) -> std::io::Result<()> {
    if !std::fs::metadata(program)?.is_file() {
        return Err(std::io::Error::other("it is not a file"));
    }
    // By the effective user, who is the one to start it.
    rustix::fs::accessat(CWD, program, Access::EXEC_OK, AtFlags::EACCESS)?;
    launch::foresee(program).map_err(std::io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hook(program: &str) -> Hook {
        Hook {
            name: "fulfil".to_owned(),
            on: vec!["paid".to_owned()],
            run: vec![program.to_owned()],
            timeout_s: 30,
            ..Hook::default()
        }
    }

    #[test]
    fn a_program_that_cannot_run_is_found_before_the_first_payment() {
        assert!(hook("/bin/sh").check().is_ok());
        for program in ["/no/such/program", "/etc/passwd", "/tmp"] {
            assert!(hook(program).check().is_err(), "{program}");
        }
    }

    #[test]
    fn a_missing_address_is_named_with_the_way_out() {
        let error = Settings::default()
            .require_service()
            .expect_err("no default");
        assert_eq!(error.to_string(), "`service.url` is not set");
        let hint = error.hint().expect("a hint");
        assert!(hint.contains("TILLD_SERVICE__URL"), "{hint}");
    }
}
