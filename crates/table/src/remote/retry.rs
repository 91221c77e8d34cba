use std::hash::{BuildHasher, RandomState};
use std::thread;
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::location::Location;
use super::options::RemoteOptions;
use crate::error::{Error, RemoteError};

const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// Why repeating a request ended without success.
#[derive(Debug)]
pub(super) enum Ended {
    BeyondEnd,
    Error(RemoteError),
}

impl Ended {
    pub(super) fn error(self, location: &Location) -> Error {
        location.error(match self {
            Self::Error(reason) => reason,
            Self::BeyondEnd => RemoteError::Changed { problem: "it is shorter now".to_owned() },
        })
    }
}

/// Sends a request until it succeeds, fails for good or the budget is spent: exponential back-off with jitter, or the pause that the server
/// asks for. `repeated` is called before each repetition.
pub(super) fn retrying<T>(
    options: &RemoteOptions,
    mut send: impl FnMut() -> Result<T, Failure>,
    repeated: impl Fn(),
) -> Result<T, Ended> {
    let start = Instant::now();
    let mut attempts = 0;
    loop {
        attempts += 1;
        let (last, after) = match send() {
            Ok(result) => return Ok(result),
            Err(Failure::BeyondEnd) => return Err(Ended::BeyondEnd),
            Err(Failure::Final(reason)) => return Err(Ended::Error(reason)),
            Err(Failure::Transient { what, after }) => (what, after),
        };
        let pause = pause(options.first_pause, attempts).max(after.unwrap_or_default());
        if attempts >= options.attempts || start.elapsed() + pause > options.retry_for {
            let seconds = start.elapsed().as_secs_f64().round() as u64;
            return Err(Ended::Error(RemoteError::GaveUp { attempts, seconds, last }));
        }
        thread::sleep(pause);
        repeated();
    }
}

/// The pause after the `attempts`-th attempt: between a half of the full pause and all of it.
fn pause(first: Duration, attempts: u32) -> Duration {
    let full = first.saturating_mul(1 << (attempts - 1).min(20)).min(LONGEST_PAUSE);
    let random = RandomState::new().hash_one(attempts) as u32;
    full.mul_f64(0.5 + 0.5 * f64::from(random) / f64::from(u32::MAX))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn options(attempts: u32, retry_for: Duration) -> RemoteOptions {
        RemoteOptions { attempts, retry_for, first_pause: Duration::from_micros(10), ..RemoteOptions::default() }
    }

    #[test]
    fn pauses_double_up_to_the_longest() {
        for (attempts, longest_ms) in [(1, 100), (2, 200), (5, 1600), (40, 10_000)] {
            for _ in 0..50 {
                let ms = pause(Duration::from_millis(100), attempts).as_millis();
                assert!((longest_ms / 2..=longest_ms).contains(&ms), "{attempts}: {ms}");
            }
        }
    }

    #[test]
    fn the_budget_ends_it() {
        let n_sent = Cell::new(0);
        let fails = |after| {
            n_sent.set(n_sent.get() + 1);
            Err::<(), _>(Failure::Transient { what: "503".to_owned(), after })
        };
        let ended = retrying(&options(4, Duration::from_secs(9)), || fails(None), || ());
        assert!(matches!(ended, Err(Ended::Error(RemoteError::GaveUp { attempts: 4, .. }))), "{ended:?}");
        assert_eq!(n_sent.get(), 4);
        // The server asks for a longer pause than there is time for.
        let ended = retrying(&options(4, Duration::from_secs(9)), || fails(Some(Duration::from_secs(10))), || ());
        assert!(matches!(ended, Err(Ended::Error(RemoteError::GaveUp { attempts: 1, .. }))), "{ended:?}");
    }
}
