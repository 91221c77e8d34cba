//! Where the ranks of a group meet: a rendezvous that a failed rank breaks, instead of having the rest wait for ever.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::Error;

/// Ranks meet twice an operation: on the way in, where each says what it calls and may find that another has failed or does not come; and
/// on the way out, where everyone waits for all, for until then others read and write its memory.
#[derive(Debug)]
pub(super) struct Meeting<S> {
    n_ranks: usize,
    state: Mutex<State<S>>,
    changed: Condvar,
    /// How many meetings there have been; also read without the lock, by those who spin.
    round: AtomicU64,
    /// How often to look before sleeping.
    n_spins: u32,
}

#[derive(Debug)]
struct State<S> {
    said: Vec<Option<S>>,
    n_arrived: usize,
    dead: Option<Error>,
}

/// Some 20 µs: a collective over small buffers takes less, and waking a sleeping thread more.
const N_SPINS: u32 = 400;

impl<S: Clone> Meeting<S> {
    pub(super) fn new(n_ranks: usize) -> Self {
        // Who spins must not keep from running whom it waits for.
        let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
        let state = State { said: vec![None; n_ranks], n_arrived: 0, dead: None };
        Self {
            n_ranks,
            state: Mutex::new(state),
            changed: Condvar::new(),
            round: AtomicU64::new(0),
            n_spins: if n_ranks <= n_cores { N_SPINS } else { 0 },
        }
    }

    /// The way in: says `what`, and gives back what everyone has said, once all are there.
    pub(super) fn enter(&self, rank: usize, op: &'static str, what: S, limit: Duration) -> Result<Vec<S>, Error> {
        let mut state = self.lock();
        if let Some(dead) = &state.dead {
            return Err(dead.clone());
        }
        state.said[rank] = Some(what);
        if self.arrive(&mut state) {
            return Ok(state.said.iter().flatten().cloned().collect());
        }
        let round = self.round.load(Ordering::Relaxed);
        drop(state);
        self.spin_while(round);

        let since = Instant::now();
        let mut state = self.lock();
        while self.round.load(Ordering::Relaxed) == round {
            if let Some(dead) = &state.dead {
                return Err(dead.clone());
            }
            let Some(left) = limit.checked_sub(since.elapsed()) else {
                let missing = (0..self.n_ranks).filter(|&rank| state.said[rank].is_none()).collect();
                let timeout = Error::Timeout { op, missing, waited: limit };
                return Err(self.kill_locked(&mut state, timeout));
            };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(state.said.iter().flatten().cloned().collect())
    }

    /// The way out. It cannot hang: whoever came in is at work in memory only, and comes out in a panic too.
    pub(super) fn leave(&self) {
        let mut state = self.lock();
        let round = self.round.load(Ordering::Relaxed);
        if state.n_arrived + 1 == self.n_ranks {
            state.said.fill(None);
        }
        if self.arrive(&mut state) {
            return;
        }
        drop(state);
        self.spin_while(round);
        let mut state = self.lock();
        while self.round.load(Ordering::Relaxed) == round {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Ends the group with `error`, unless it has ended before; gives back what it has ended with.
    pub(super) fn kill(&self, error: Error) -> Error {
        self.kill_locked(&mut self.lock(), error)
    }

    /// What the group has ended with, if it has.
    pub(super) fn dead(&self) -> Option<Error> {
        self.lock().dead.clone()
    }

    fn kill_locked(&self, state: &mut State<S>, error: Error) -> Error {
        let dead = state.dead.get_or_insert(error).clone();
        self.changed.notify_all();
        dead
    }

    /// Counts one more; whether it was the last.
    fn arrive(&self, state: &mut State<S>) -> bool {
        state.n_arrived += 1;
        let is_last = state.n_arrived == self.n_ranks;
        if is_last {
            state.n_arrived = 0;
            self.round.fetch_add(1, Ordering::Release);
            self.changed.notify_all();
        }
        is_last
    }

    fn spin_while(&self, round: u64) {
        for _ in 0..self.n_spins {
            if self.round.load(Ordering::Acquire) != round {
                return;
            }
            std::hint::spin_loop();
        }
    }

    /// A panic while the lock was held leaves counts that are right: each is changed by one assignment.
    fn lock(&self) -> MutexGuard<'_, State<S>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
