use std::cell::Cell;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use super::failure::Failure;
use super::location::Location;
use super::options::RemoteOptions;
use crate::error::{Error, RemoteError};

const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// How long a request may still succeed after the program was asked to stop: the step that is under way needs its rows.
const GRACE: Duration = Duration::from_secs(3);
/// How often is looked whether it was.
pub(super) const POLL: Duration = Duration::from_millis(100);

/// Whether a program should stop.
pub(super) type Stop = dyn Fn() -> bool + Send + Sync;

/// The wait for a request, with its repetitions.
#[derive(Default)]
pub(super) struct Wait<'s> {
    stop: Option<&'s Stop>,
    /// Set once the answer is not needed.
    abandoned: Option<&'s AtomicBool>,
    since: Cell<Option<Instant>>,
}

impl<'s> Wait<'s> {
    /// One that ends soon after `stop` returns true.
    pub(super) fn until(stop: &'s Stop) -> Self {
        Self { stop: Some(stop), ..Self::default() }
    }

    /// The same one, which also ends once `abandoned` is set.
    pub(super) fn unless(self, abandoned: &'s AtomicBool) -> Self {
        Self { abandoned: Some(abandoned), ..self }
    }

    pub(super) fn is_abandoned(&self) -> bool {
        self.abandoned.is_some_and(|abandoned| abandoned.load(Ordering::Relaxed))
    }

    pub(super) fn is_over(&self) -> bool {
        if self.is_abandoned() {
            return true;
        }
        if !self.stop.is_some_and(|stop| stop()) {
            self.since.set(None);
            return false;
        }
        let since = self.since.get().unwrap_or_else(Instant::now);
        self.since.set(Some(since));
        since.elapsed() >= GRACE
    }

    /// Returns false if the wait is over before.
    fn sleep(&self, time: Duration) -> bool {
        let end = Instant::now() + time;
        while !self.is_over() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return true;
            }
            thread::sleep(left.min(POLL));
        }
        false
    }
}

/// How often something of an answer has arrived, to find out that nothing does.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<AtomicU64>);

impl Heard {
    #[cfg_attr(not(feature = "http"), expect(dead_code, reason = "only servers answer"))]
    pub(super) fn note(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// A function that returns true once, when nothing has arrived for `time`.
    pub(super) fn silence(&self, time: Duration) -> impl FnMut() -> bool {
        let (heard, mut n_before, mut since, mut is_told) = (self.clone(), self.0.load(Ordering::Relaxed), Instant::now(), false);
        move || {
            let n_now = heard.0.load(Ordering::Relaxed);
            if n_now != n_before {
                (n_before, since) = (n_now, Instant::now());
            }
            let is_new = !is_told && since.elapsed() >= time;
            is_told |= is_new;
            is_new
        }
    }
}

/// A request that has failed and will be sent again, or that has no answer yet: what
/// [`Remote::on_retry`](super::Remote::on_retry) is called with.
#[non_exhaustive]
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The URL of the object, without secrets.
    pub url: String,
    /// What went wrong: the answer of the server, or the problem of the connection.
    pub problem: String,
    /// How often the request has been sent.
    pub attempts: u32,
    /// The time since it was first sent.
    pub elapsed: Duration,
    /// The pause before it is sent again; zero if it is not known yet whether it will be.
    pub pause: Duration,
}

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

/// Sends a request until it succeeds, fails for good or the time is over: exponential back-off with jitter, or the pause that
/// the server asks for. `failed` is called before each pause, and `repeated` after it.
pub(super) fn retrying<T>(
    options: &RemoteOptions,
    location: &Location,
    wait: &Wait<'_>,
    mut send: impl FnMut() -> Result<T, Failure>,
    failed: impl Fn(&Retry),
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
        if start.elapsed() + pause > options.retry_for {
            let seconds = start.elapsed().as_secs_f64().round() as u64;
            return Err(Ended::Error(RemoteError::GaveUp { attempts, seconds, last, more: options.more_retries.clone() }));
        }
        failed(&Retry { url: location.shown(), problem: last, attempts, elapsed: start.elapsed(), pause });
        if !wait.sleep(pause) {
            return Err(Ended::Error(RemoteError::Stopped));
        }
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
    use std::cell::{Cell, RefCell};

    use super::*;

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
    fn the_time_ends_it() {
        let n_sent = Cell::new(0);
        let fails = |after| {
            n_sent.set(n_sent.get() + 1);
            Err::<(), _>(Failure::Transient { what: "503".to_owned(), after })
        };
        let location = Location::parse("file:///b/x").expect("it is a URL");
        let seen = RefCell::new(Vec::new());
        let failed = |retry: &Retry| seen.borrow_mut().push((retry.url.clone(), retry.problem.clone(), retry.attempts));
        let options = RemoteOptions {
            retry_for: Duration::from_millis(300),
            first_pause: Duration::from_micros(10),
            ..RemoteOptions::default()
        };
        let ended = retrying(&options, &location, &Wait::default(), || fails(None), failed, || ());
        let Err(Ended::Error(RemoteError::GaveUp { attempts, .. })) = ended else { panic!("{ended:?}") };
        // The pauses are at most 10 µs, 20 µs, ..., of which the first 14 take 164 ms.
        assert!(attempts > 8 && attempts == n_sent.get(), "{attempts}");
        let expected = (1..attempts).map(|attempts| ("file:///b/x".to_owned(), "503".to_owned(), attempts));
        assert!(seen.borrow().iter().cloned().eq(expected), "the last failure is the error");
        // The server asks for a longer pause than there is time for.
        let late = || fails(Some(Duration::from_secs(10)));
        let sent_again = |_: &Retry| unreachable!("it is not sent again");
        let ended = retrying(&options, &location, &Wait::default(), late, sent_again, || ());
        assert!(matches!(ended, Err(Ended::Error(RemoteError::GaveUp { attempts: 1, .. }))), "{ended:?}");
    }
}
