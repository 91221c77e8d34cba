//! The rendezvous of the ranks of a group. A rank that fails breaks it, so that the others do not wait forever.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::error::Error;

/// Ranks meet twice per operation: on entry, where each says what it calls and may find that another has failed or does not
/// arrive; and on exit, where each waits for all, because until then the others read and write its memory.
#[derive(Debug)]
pub(super) struct Meeting<S> {
    n_ranks: usize,
    state: Mutex<State<S>>,
    changed: Condvar,
    /// The number of completed meetings; spinning threads read it without the lock.
    round: Line<AtomicU64>,
    /// How long to spin before sleeping.
    spin_for: Duration,
    /// Whether spinning has paid off lately, on entry and on exit.
    looks_in: Looks,
    looks_out: Looks,
}

/// How often in a row spinning did not see the meeting end. On a busy machine two ranks may share a core, and then spinning keeps
/// the awaited rank from running.
#[derive(Debug, Default)]
struct Looks {
    n_in_vain: AtomicU32,
}

impl Looks {
    /// After this many failures in a row, spinning is tried only once in this many meetings.
    const PATIENCE: u32 = 8;

    fn is_worthwhile(&self) -> bool {
        let n_in_vain = self.n_in_vain.fetch_add(1, Ordering::Relaxed);
        n_in_vain < Self::PATIENCE || n_in_vain.is_multiple_of(Self::PATIENCE)
    }

    fn was_not_in_vain(&self) {
        self.n_in_vain.store(0, Ordering::Relaxed);
    }
}

#[derive(Debug)]
struct State<S> {
    said: Vec<Option<S>>,
    n_arrived: usize,
    /// The number of sleeping threads. Waking them takes a system call, which is skipped if all are spinning.
    n_asleep: usize,
    dead: Option<Error>,
}

/// Occupies a pair of cache lines by itself, since lines are fetched in pairs: threads that poll it do not slow down the thread
/// that holds the lock.
#[derive(Debug)]
#[repr(align(128))]
struct Line<T>(T);

/// A collective over small buffers takes less than this, and waking a sleeping thread takes more.
const SPIN_FOR: Duration = Duration::from_micros(20);

impl<S: Clone> Meeting<S> {
    pub(super) fn new(n_ranks: usize) -> Self {
        // A spinning thread must not keep the thread that it waits for from running.
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        let state = State { said: vec![None; n_ranks], n_arrived: 0, n_asleep: 0, dead: None };
        Self {
            n_ranks,
            state: Mutex::new(state),
            changed: Condvar::new(),
            round: Line(AtomicU64::new(0)),
            spin_for: if n_ranks <= n_cores { SPIN_FOR } else { Duration::ZERO },
            looks_in: Looks::default(),
            looks_out: Looks::default(),
        }
    }

    /// Entry: publishes `what`, and returns what all ranks have published once all have arrived.
    pub(super) fn enter(&self, rank: usize, op: &'static str, what: S, limit: Duration) -> Result<Vec<S>, Error> {
        let mut state = self.lock();
        if let Some(dead) = &state.dead {
            return Err(dead.clone());
        }
        state.said[rank] = Some(what);
        let round = self.round();
        if state.n_arrived + 1 < self.n_ranks {
            state.n_arrived += 1;
            drop(state);
            self.spin_while(round, &self.looks_in);
            state = self.lock();
        } else {
            self.begin_round(&mut state);
        }

        let since = Instant::now();
        while self.round() == round {
            if let Some(dead) = &state.dead {
                return Err(dead.clone());
            }
            let Some(left) = limit.checked_sub(since.elapsed()) else {
                let missing = (0..self.n_ranks).filter(|&rank| state.said[rank].is_none()).collect();
                let timeout = Error::Timeout { op, missing, waited: limit };
                return Err(self.kill_locked(&mut state, timeout));
            };
            state = self.sleep(state, left);
        }
        Ok(state.said.iter().flatten().cloned().collect())
    }

    /// Exit. It cannot hang: between entry and exit a rank only works in memory, and it exits in a panic too.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        let round = self.round();
        if state.n_arrived + 1 == self.n_ranks {
            state.said.fill(None);
            return self.begin_round(&mut state);
        }
        state.n_arrived += 1;
        drop(state);
        if self.spin_while(round, &self.looks_out) {
            return;
        }
        let mut state = self.lock();
        while self.round() == round {
            state = self.sleep(state, Duration::MAX);
        }
    }

    /// Ends the group with `error`, unless it has already ended; returns the error that ended it.
    pub(super) fn kill(&self, error: Error) -> Error {
        self.kill_locked(&mut self.lock(), error)
    }

    /// The error that ended the group, if one did.
    pub(super) fn dead(&self) -> Option<Error> {
        self.lock().dead.clone()
    }

    fn kill_locked(&self, state: &mut State<S>, error: Error) -> Error {
        let dead = state.dead.get_or_insert(error).clone();
        self.changed.notify_all();
        dead
    }

    /// All ranks have arrived: lets them continue.
    fn begin_round(&self, state: &mut State<S>) {
        state.n_arrived = 0;
        self.round.0.fetch_add(1, Ordering::Release);
        if state.n_asleep > 0 {
            self.changed.notify_all();
        }
    }

    /// The current round. A thread that sees a new round also sees what the other threads wrote before it began.
    fn round(&self) -> u64 {
        self.round.0.load(Ordering::Acquire)
    }

    /// Spins for a while until `round` has ended; returns whether it has.
    fn spin_while(&self, round: u64, looks: &Looks) -> bool {
        if self.spin_for.is_zero() || !looks.is_worthwhile() {
            return false;
        }
        let since = Instant::now();
        while since.elapsed() < self.spin_for {
            for _ in 0..16 {
                if self.round() != round {
                    looks.was_not_in_vain();
                    return true;
                }
                std::hint::spin_loop();
            }
        }
        false
    }

    fn sleep<'a>(&self, mut state: MutexGuard<'a, State<S>>, at_most: Duration) -> MutexGuard<'a, State<S>> {
        state.n_asleep += 1;
        let mut state = self.changed.wait_timeout(state, at_most).unwrap_or_else(PoisonError::into_inner).0;
        state.n_asleep -= 1;
        state
    }

    /// A panic while the lock was held leaves valid counts, since each is changed by a single assignment.
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
