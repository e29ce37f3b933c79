//! What commands share: the flags given with every command, the settings (read when first asked for, so that a command
//! that needs none works beside a broken file), the state directory, and the output.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use super::Global;
use super::failure::{Exit, Failure};
use super::output::Output;
use crate::config::{self, ConfigFile, Flags, Loaded, Settings, Sources, state_dir};

/// The surroundings of one command.
#[derive(Debug)]
pub(super) struct Context {
    /// How to answer.
    pub(super) output: Output,
    config: Option<PathBuf>,
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

    /// The settings.
    pub(super) fn settings(&self) -> Result<&Settings, Failure> {
        Ok(&self.loaded()?.settings)
    }

    /// The file the settings came from, if any.
    pub(super) fn config_file(&self) -> Result<Option<&Path>, Failure> {
        Ok(self.loaded()?.file.as_deref())
    }

    /// The state directory. It need not exist.
    pub(super) fn state_dir(&self) -> Result<PathBuf, Failure> {
        let variable = |name| std::env::var_os(name);
        let surroundings = state_dir::Surroundings {
            state_directory: variable("STATE_DIRECTORY"),
            xdg_state_home: variable("XDG_STATE_HOME"),
            home: variable("HOME"),
        };
        let flag = self.flags.state_dir.as_deref();
        let setting = self.settings()?.state_dir.as_deref();
        Ok(state_dir::resolve(flag, setting, &surroundings)?)
    }

    fn loaded(&self) -> Result<&Loaded, Failure> {
        if let Some(loaded) = self.loaded.get() {
            return Ok(loaded);
        }
        let file = match &self.config {
            Some(path) => ConfigFile::Named(path.clone()),
            None => ConfigFile::IfThere(PathBuf::from(config::STANDARD_FILE)),
        };
        let loaded = config::load(&Sources {
            file,
            variables: std::env::vars_os().collect(),
            flags: self.flags.clone(),
        })?;
        Ok(self.loaded.get_or_init(|| loaded))
    }
}
