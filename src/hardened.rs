//! What the program takes from itself as it starts, since its memory holds the access token and notify tokens: it leaves no core
//! file, and no other program of the same user may trace it or read its memory.
//!
//! Relies on Linux; promises nothing where the kernel refuses, and changes nothing for programs that it starts but that they
//! begin with a soft limit of zero for core files, which they may raise again.

use rustix::process::{
    DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit,
};

/// For the whole process. A kernel that refuses keeps nobody from their work.
pub(crate) fn begin() {
    let Rlimit { maximum, .. } = getrlimit(Resource::Core);
    let none = Rlimit {
        current: Some(0),
        maximum,
    };
    setrlimit(Resource::Core, none).unwrap_or_default();
    set_dumpable_behavior(DumpableBehavior::NotDumpable).unwrap_or_default();
}
