//! The accounts of this machine by their numbers, as hints name them. Read from the text of `/etc/passwd`: an account from
//! elsewhere goes by its number.

use std::fmt;
use std::fs;

/// A user, or a group.
#[derive(Debug)]
pub(crate) struct Account {
    id: u32,
    name: Option<String>,
}

impl Account {
    /// The user with this number.
    pub(crate) fn user(id: u32) -> Self {
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        Self::find(id, &accounts)
    }

    /// Who runs this process.
    pub(crate) fn runner() -> Self {
        Self::user(rustix::process::geteuid().as_raw())
    }

    /// Looks the name up in the text of `/etc/passwd`, or a group's in that of `/etc/group`.
    pub(crate) fn find(id: u32, accounts: &str) -> Self {
        let wanted = id.to_string();
        let name = accounts.lines().find_map(|line| {
            let mut fields = line.split(':');
            let name = fields.next()?;
            (fields.nth(1)? == wanted).then(|| name.to_owned())
        });
        Self { id, name }
    }

    /// Its name, if it is one of this machine.
    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// As a word of a command line.
    pub(crate) fn for_sudo(&self) -> String {
        // sudo takes `#1000` for a number; quoted, since a shell takes it for a comment.
        let number = || format!("'#{}'", self.id);
        self.name.clone().unwrap_or_else(number)
    }
}

impl fmt::Display for Account {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.name {
            Some(name) => write!(f, "`{name}`"),
            None => write!(f, "user {}", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_found_by_its_number() {
        let accounts =
            "root:x:0:0:root:/root:/bin/sh\ntilld:x:990:990::/var/lib/tilld:/bin/false\n";
        assert_eq!(Account::find(990, accounts).for_sudo(), "tilld");
        assert_eq!(Account::find(99, accounts).for_sudo(), "'#99'");
    }
}
