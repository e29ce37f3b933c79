//! The settings: defaults < file < `TILLD_` variables (`__` between levels) < flags.
//!
//! [`load()`] either gives settings that are complete in themselves and within their ranges, or names the key, the place
//! where it was set and the nearest known key, and never a value. Settings that have no default are asked for with
//! [`Settings::require_service`] and [`Settings::require_public`] by the commands that need them. Secrets are no settings:
//! they live in files of their own.

mod admin;
mod changed;
mod control;
mod error;
mod hooks;
mod keys;
mod load;
mod networks;
mod presentations;
mod require;
mod reserved;
mod settings;
pub mod state_dir;
pub(crate) mod toml;
mod validate;
mod variables;

pub use admin::{Admin, AdminPlace, Attention};
pub(crate) use changed::changed;
pub use control::Control;
pub(crate) use control::LONGEST_PATH;
pub use error::{Error, Origin};
pub use hooks::{Hook, ON_ABANDONED, OnAbandoned, Outbox};
pub use keys::{Key, keys, variable_of};
pub use load::{ConfigFile, Flags, Loaded, STANDARD_FILE, Sources, load};
pub use networks::Network;
pub use presentations::Presentations;
pub use reserved::{is_reserved, reserved};
pub use settings::{
    Checkpoint, Ledger, Listener, Moves, PROXY_OF_ENVIRONMENT, Poller, Service, Settings, Statuses,
    Step,
};

#[cfg(test)]
mod tests;
