//! Faults that a test has the real program meet: a panic at a named point, or a thread that stands still there.
//!
//! Only in builds with debug assertions, which no release has: there the points are nothing at all, and the variable is not
//! read. [`VARIABLE`] names a directory; a file `panic-POINT` in it is a panic at that point, once, and as long as there is a
//! file `hold-POINT` the thread that comes there goes no further.

/// The variable that names the directory.
#[cfg(debug_assertions)]
const VARIABLE: &str = "TILLD_FAULTS";

/// Passes a point.
#[cfg(debug_assertions)]
#[track_caller]
pub(crate) fn point(name: &str) {
    played::point(name);
}

/// Passes a point: nothing, in a release.
#[cfg(not(debug_assertions))]
pub(crate) const fn point(_name: &str) {}

/// Says that faults are played, so that nobody takes this daemon for one that serves a shop.
#[cfg(debug_assertions)]
pub(crate) fn tell() {
    played::tell();
}

/// Says nothing: a release plays none.
#[cfg(not(debug_assertions))]
pub(crate) const fn tell() {}

#[cfg(debug_assertions)]
mod played {
    use std::env;
    use std::fs;
    use std::path::PathBuf;
    use std::sync::OnceLock;
    use std::thread;
    use std::time::Duration;

    /// Between two looks whether a thread may go on.
    const LOOK_EVERY: Duration = Duration::from_millis(10);

    static DIRECTORY: OnceLock<Option<PathBuf>> = OnceLock::new();

    fn directory() -> Option<&'static PathBuf> {
        let read = || env::var_os(super::VARIABLE).map(PathBuf::from);
        DIRECTORY.get_or_init(read).as_ref()
    }

    pub(super) fn tell() {
        if let Some(directory) = directory() {
            tracing::warn!("faults are played from {}", directory.display());
        }
    }

    #[track_caller]
    pub(super) fn point(name: &str) {
        let Some(directory) = directory() else {
            return;
        };
        let hold = directory.join(format!("hold-{name}"));
        while hold.exists() {
            thread::sleep(LOOK_EVERY);
        }
        // Whoever removes it is who panics.
        let panics = fs::remove_file(directory.join(format!("panic-{name}"))).is_ok();
        assert!(!panics, "the fault of the point {name} is played");
    }
}
