//! Random bytes from the operating system, for tokens and refs. Never a seeded generator: what comes from here guards money.

/// Fills an array with bytes from the operating system's generator.
///
/// # Panics
/// When the operating system has no randomness to give: no token made without it could be trusted.
pub(crate) fn bytes<const N: usize>() -> [u8; N] {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}
