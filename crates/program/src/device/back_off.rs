#[cfg(test)]
mod tests;

use std::time::Duration;

/// The number of attempts at something that may fail temporarily.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attempts(pub(crate) u32);

impl Default for Attempts {
    fn default() -> Self {
        Self(5)
    }
}

const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Tries until an attempt succeeds or none is left, with pauses that double. Returns the last result, and the errors before it.
pub(crate) fn with_back_off<T, E: std::fmt::Display>(
    attempts: Attempts,
    mut pause: impl FnMut(Duration),
    mut attempt: impl FnMut() -> Result<T, E>,
) -> (Result<T, E>, Vec<String>) {
    let mut failed = Vec::new();
    let mut wait = FIRST_PAUSE;
    for _ in 1..attempts.0 {
        match attempt() {
            Ok(done) => return (Ok(done), failed),
            Err(error) => failed.push(error.to_string()),
        }
        pause(wait);
        wait = LONGEST_PAUSE.min(2 * wait);
    }
    (attempt(), failed)
}
