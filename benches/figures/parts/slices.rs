//! How patient the parts are that wait for a quiet machine.

use std::time::Duration;

use crate::machine::gate::Gate;
use crate::options::{Effort, Options};

/// How patient a part may be.
pub(super) const fn gate(options: &Options) -> Gate {
    match options.effort {
        Effort::Smoke => Gate::OPEN,
        Effort::Quick => Gate {
            wait: Duration::from_millis(500),
            tries: 1,
        },
        Effort::Full => Gate {
            wait: Duration::from_secs(10),
            tries: 4,
        },
    }
}
