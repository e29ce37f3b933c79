//! Nothing: this package only names a crate in which an old SQLite lies, for `.ci/run`.
