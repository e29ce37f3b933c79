//! How many times faster than usual the sandbox's times pass. Whatever waits or lives for a time in it asks here, so that
//! none passes at a pace of its own.

/// So many times faster, at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Speed(u32);

impl Speed {
    /// So many times faster; 0 is as usual.
    pub(crate) fn new(times: u32) -> Self {
        Self(times.max(1))
    }

    /// A usual time as it is at this speed, in milliseconds. None becomes nothing.
    pub(crate) fn ms(self, usual: u64) -> u64 {
        (usual / u64::from(self.0)).max(usual.min(1))
    }

    /// As [`Speed::ms`], in whole seconds, in which the service tells some of its times.
    pub(crate) fn seconds(self, usual: u64) -> u64 {
        self.ms(usual)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_pass_faster_and_none_becomes_nothing() {
        let (usual, fast) = (Speed::new(0), Speed::new(60));
        assert_eq!((usual.ms(60_000), usual.seconds(5)), (60_000, 5));
        assert_eq!((fast.ms(60_000), fast.seconds(5)), (1_000, 1));
        assert_eq!((fast.ms(0), fast.seconds(1_800)), (0, 30));
        assert_eq!(fast.ms(10_000), 166);
    }
}
