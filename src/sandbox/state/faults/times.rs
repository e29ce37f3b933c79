//! How often a fault shows.

/// How many more times a fault shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Times {
    /// Not at all.
    #[default]
    Never,
    /// So many times more.
    Next(u64),
    /// Until it is changed.
    Always,
}

impl Times {
    /// True when the fault shows this time; counts it.
    pub(crate) fn take(&mut self) -> bool {
        match self {
            Self::Never => false,
            Self::Always => true,
            Self::Next(left) => {
                *self = Self::next(left.saturating_sub(1));
                true
            }
        }
    }

    /// So many times more; 0 is never.
    pub(crate) fn next(times: u64) -> Self {
        if times == 0 {
            Self::Never
        } else {
            Self::Next(times)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_used_up_and_always_is_not() {
        let mut twice = Times::next(2);
        assert_eq!(
            [twice.take(), twice.take(), twice.take()],
            [true, true, false]
        );
        let mut always = Times::Always;
        assert!(always.take() && always.take());
        assert_eq!(Times::next(0), Times::Never);
    }
}
