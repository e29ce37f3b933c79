//! What commands share: the flags given with every command, the settings (read when first asked for, so that a command
//! that needs none works beside a broken file), the state directory, and the output.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::Global;
use super::failure::{Exit, Failure};
use super::output::Output;
use super::{owner, units};
use crate::config::{self, ConfigFile, Flags, Loaded, Origin, Settings, Sources, state_dir};

/// What is known of where a daemon listens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Whereabouts {
    /// `control.socket`.
    pub(super) socket: Option<PathBuf>,
    /// The state directory, unless it stands in a file that this user may not read.
    pub(super) state_dir: Option<PathBuf>,
    /// A flag or a variable says which tilld is meant.
    pub(super) is_told: bool,
}

/// Whether a state directory is the one that somebody said.
#[derive(Clone, Copy, Debug)]
enum Meant {
    /// By a flag, a variable or a setting; or it is the user's own.
    Said,
    /// It is the unit's, on the unit's machine.
    Unsaid,
}

/// The surroundings of one command.
#[derive(Debug)]
pub(super) struct Context {
    /// How to answer.
    pub(super) output: Output,
    config: Option<PathBuf>,
    socket: Option<PathBuf>,
    flags: Flags,
    loaded: OnceCell<Loaded>,
}

impl Context {
    /// Takes the flags. A relative `--state-dir` is meant from here, wherever the process goes later.
    pub(super) fn new(global: Global) -> Result<Self, Failure> {
        let state_dir = global.state_dir.as_deref().map(std::path::absolute);
        let state_dir = state_dir.transpose().map_err(|error| {
            Failure::new(Exit::Usage, error).context("could not make `--state-dir` absolute")
        })?;
        Ok(Self {
            output: Output::new(global.json),
            config: global.config,
            socket: global.socket,
            flags: Flags {
                state_dir,
                ..Flags::default()
            },
            loaded: OnceCell::new(),
        })
    }

    /// Takes `--listen`, which outranks the settings. Before the settings are first asked for.
    pub(super) fn set_listen(&mut self, listen: Option<String>) {
        self.flags.listen = listen;
    }

    /// The same surroundings, the settings to be read again.
    pub(super) fn anew(&self) -> Self {
        Self {
            output: self.output,
            config: self.config.clone(),
            socket: self.socket.clone(),
            flags: self.flags.clone(),
            loaded: OnceCell::new(),
        }
    }

    /// Takes `--i-know`, which outranks the settings. Before the settings are first asked for.
    pub(super) fn set_network_known(&mut self, is_known: bool) {
        self.flags.network = is_known.then(|| "true".to_owned());
    }

    /// What `--socket` names.
    pub(super) fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Refuses `--socket`, which would look as if it did something.
    pub(super) fn refuse_socket(&self, command: &str) -> Result<(), Failure> {
        if self.socket.is_none() {
            return Ok(());
        }
        Err(super::takes_no_socket(command))
    }

    /// The settings.
    pub(super) fn settings(&self) -> Result<&Settings, Failure> {
        Ok(&self.loaded()?.settings)
    }

    /// The file the settings came from, if any.
    pub(super) fn config_file(&self) -> Result<Option<&Path>, Failure> {
        Ok(self.loaded()?.file.as_deref())
    }

    /// Where `listener.listen` was set.
    pub(super) fn listen_origin(&self) -> Result<Origin, Failure> {
        Ok(self.loaded()?.listen.clone())
    }

    /// The state directory: the one that a flag, a variable or a setting names, else that of the unit's tilld where the machine
    /// runs one ([`units`]), else this user's own. It need not exist.
    pub(super) fn state_dir(&self) -> Result<PathBuf, Failure> {
        Ok(self.resolve(self.settings()?)?.0)
    }

    /// Refuses to go on when the unit's tilld is meant without a word of it, and belongs to somebody else. For what anybody who
    /// says which tilld is meant may do, and who becomes its owner need not say it.
    pub(super) fn check_unsaid(&self) -> Result<(), Failure> {
        match self.resolve(self.settings()?) {
            Ok((state_dir, Meant::Unsaid)) => Ok(owner::check(&state_dir)?),
            // Without a state directory there is none of somebody else.
            Ok((_, Meant::Said)) | Err(_) => Ok(()),
        }
    }

    /// What is known of where a daemon listens. A file that this user may not read keeps nobody from asking a daemon.
    pub(super) fn whereabouts(&self) -> Result<Whereabouts, Failure> {
        let without;
        let (settings, is_whole) = match self.load() {
            Ok(loaded) => (&loaded.settings, true),
            Err(error) if error.is_permission() => {
                tracing::debug!(reason = %error, "{error}: going on without it");
                without = self.load_from(ConfigFile::Nowhere)?;
                (&without.settings, false)
            }
            Err(error) => return Err(error.into()),
        };
        // A flag is among the settings.
        let names_state_dir = settings.state_dir.is_some();
        let is_known = is_whole || names_state_dir;
        Ok(Whereabouts {
            socket: settings.control.socket.clone(),
            state_dir: self
                .resolve(settings)
                .ok()
                .filter(|_| is_known)
                .map(|(state_dir, _)| state_dir),
            is_told: self.is_told(),
        })
    }

    /// Whether a flag or a variable says which tilld is meant.
    fn is_told(&self) -> bool {
        self.config.is_some()
            || self.flags.state_dir.is_some()
            || names_another(std::env::vars_os().map(|(name, _value)| name))
    }

    fn resolve(&self, settings: &Settings) -> Result<(PathBuf, Meant), config::Error> {
        let variable = |name| std::env::var_os(name);
        let surroundings = state_dir::Surroundings {
            state_directory: variable("STATE_DIRECTORY"),
            xdg_state_home: variable("XDG_STATE_HOME"),
            home: variable("HOME"),
        };
        let flag = self.flags.state_dir.as_deref();
        let own = state_dir::resolve(flag, settings.state_dir.as_deref(), &surroundings);
        // A flag is among the settings.
        let is_named = settings.state_dir.is_some() || surroundings.state_directory.is_some();
        if !is_named
            && !self.is_told()
            && let Some(units) = units::state_dir(own.as_deref().ok())
        {
            return Ok((units, Meant::Unsaid));
        }
        Ok((own?, Meant::Said))
    }

    fn loaded(&self) -> Result<&Loaded, Failure> {
        self.load().map_err(|error| {
            if error.is_permission() {
                self.not_readable(error)
            } else {
                error.into()
            }
        })
    }

    /// Whoever may not read the file is told whom to become, as far as that can be seen without it.
    fn not_readable(&self, error: config::Error) -> Failure {
        let known = self.whereabouts().ok();
        let is_told = known.as_ref().is_some_and(|known| known.is_told);
        let units = || (!is_told).then(|| PathBuf::from(units::STATE_DIR));
        let state_dir = known.and_then(|known| known.state_dir).or_else(units);
        match state_dir.map(|state_dir| owner::check(&state_dir)) {
            Some(Err(other)) => other.into(),
            Some(Ok(())) | None => {
                Failure::from(error).hint("run the command as the user tilld runs as")
            }
        }
    }

    fn load(&self) -> Result<&Loaded, config::Error> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let file = match &self.config {
            Some(path) => ConfigFile::Named(path.clone()),
            None => ConfigFile::IfThere(PathBuf::from(config::STANDARD_FILE)),
        };
        let loaded = self.load_from(file)?;
        Ok(self.loaded.get_or_init(|| loaded))
    }

    fn load_from(&self, file: ConfigFile) -> Result<Loaded, config::Error> {
        config::load(&Sources {
            file,
            variables: std::env::vars_os().collect(),
            flags: self.flags.clone(),
        })
    }
}

/// Whether a variable says which tilld is meant, or which service: the daemon of the unit may be another.
fn names_another(mut names: impl Iterator<Item = std::ffi::OsString>) -> bool {
    let whole = config::variable_of("state_dir");
    let tables = ["service.", "listener."].map(config::variable_of);
    names.any(|name| {
        name.to_str().is_some_and(|name| {
            name == whole || tables.iter().any(|table| name.starts_with(table.as_str()))
        })
    })
}
