//! Where the ledger and the secrets live. Pure: the environment comes in as an argument.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use super::error::Error;

/// The directory's name below a user's state directory.
const NAME: &str = "tilld";

/// What the environment says about state directories.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// `$STATE_DIRECTORY`, set by systemd: absolute paths separated by colons (systemd.exec(5)).
    pub state_directory: Option<OsString>,
    /// `$XDG_STATE_HOME`; not absolute means not set (XDG base directory specification).
    pub xdg_state_home: Option<OsString>,
    /// `$HOME`.
    pub home: Option<OsString>,
}

/// The state directory, unless the command line finds that the tilld of a system unit is meant: the flag, else `$STATE_DIRECTORY`, else the setting `state_dir`, else `$XDG_STATE_HOME/tilld`,
/// else `~/.local/state/tilld`. A flag is the latest word of the person at the keyboard, so nothing outranks it.
///
/// # Errors
/// Several paths or none in `$STATE_DIRECTORY`; nothing to derive a directory from.
pub fn resolve(
    flag: Option<&Path>,
    setting: Option<&Path>,
    surroundings: &Surroundings,
) -> Result<PathBuf, Error> {
    if let Some(flag) = flag {
        return Ok(flag.to_owned());
    }
    if let Some(list) = &surroundings.state_directory {
        let one = Path::new(list);
        let single = one.is_absolute() && !list.as_encoded_bytes().contains(&b':');
        return if single {
            Ok(one.to_owned())
        } else {
            Err(Error::StateDirectory)
        };
    }
    if let Some(setting) = setting {
        return Ok(setting.to_owned());
    }
    let absolute = |text: &Option<OsString>| {
        let path = text.as_deref().map(OsStr::new).map(Path::new)?;
        path.is_absolute().then(|| path.to_owned())
    };
    absolute(&surroundings.xdg_state_home)
        .or_else(|| absolute(&surroundings.home).map(|home| home.join(".local/state")))
        .map(|state| state.join(NAME))
        .ok_or(Error::NoStateDir)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn surroundings(state: Option<&str>, xdg: Option<&str>, home: Option<&str>) -> Surroundings {
        Surroundings {
            state_directory: state.map(OsString::from),
            xdg_state_home: xdg.map(OsString::from),
            home: home.map(OsString::from),
        }
    }

    #[test]
    fn the_first_that_is_set_wins() {
        let all = surroundings(Some("/var/lib/tilld"), Some("/x"), Some("/home/me"));
        let none = surroundings(None, None, None);
        let (flag, setting) = (Path::new("/flag"), Path::new("/setting"));
        let resolved = |flag, setting, surroundings: &Surroundings| {
            resolve(flag, setting, surroundings).map_err(|error| error.to_string())
        };
        let path = |text: &str| Ok(PathBuf::from(text));
        assert_eq!(resolved(Some(flag), Some(setting), &all), path("/flag"));
        assert_eq!(resolved(None, Some(setting), &all), path("/var/lib/tilld"));
        assert_eq!(resolved(None, Some(setting), &none), path("/setting"));
        let user = surroundings(None, Some("/x"), Some("/home/me"));
        assert_eq!(resolved(None, None, &user), path("/x/tilld"));
        let relative = surroundings(None, Some("x"), Some("/home/me"));
        assert_eq!(
            resolved(None, None, &relative),
            path("/home/me/.local/state/tilld")
        );
        assert!(matches!(resolve(None, None, &none), Err(Error::NoStateDir)));
    }

    #[test]
    fn several_directories_are_refused_rather_than_guessed_between() {
        for list in ["/a:/b", "", "relative", ":"] {
            let given = surroundings(Some(list), None, Some("/home/me"));
            assert!(
                matches!(resolve(None, None, &given), Err(Error::StateDirectory)),
                "{list}"
            );
        }
    }
}
