use std::sync::{Condvar, Mutex};

use super::memory::Memory;
use crate::lock::{lock, wait};

/// Memory for rows that is reused and never exceeds a budget.
#[derive(Debug)]
pub(super) struct Pool {
    pub(super) budget_words: usize,
    state: Mutex<State>,
    /// Signalled when memory is given back.
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// The number of allocated words, in use or free.
    n_words: usize,
    free: Vec<Memory>,
    /// How often [`Pool::wake`] was called.
    n_wakes: u64,
    is_closed: bool,
}

/// How waiting for memory ended.
#[derive(Debug)]
pub(super) enum Waited {
    Memory(Memory),
    /// The pool was woken: other memory may be free to be given back.
    Woken,
    Closed,
}

impl Pool {
    pub(super) fn new(budget_words: usize) -> Self {
        Self { budget_words, state: Mutex::default(), freed: Condvar::new() }
    }

    /// Takes `n_words` of memory with unspecified content, if the budget allows it now.
    pub(super) fn take(&self, n_words: usize) -> Option<Memory> {
        self.take_from(&mut lock(&self.state), n_words)
    }

    /// Like [`take`](Self::take), but waits until enough memory is given back, or the pool is woken more than `n_wakes` times or
    /// closed.
    pub(super) fn wait_for(&self, n_words: usize, n_wakes: u64) -> Waited {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return Waited::Closed;
            }
            if let Some(memory) = self.take_from(&mut state, n_words) {
                return Waited::Memory(memory);
            }
            if state.n_wakes > n_wakes {
                return Waited::Woken;
            }
            state = wait(&self.freed, state);
        }
    }

    /// Wakes those that wait for memory.
    pub(super) fn wake(&self) {
        lock(&self.state).n_wakes += 1;
        self.freed.notify_all();
    }

    pub(super) fn n_wakes(&self) -> u64 {
        lock(&self.state).n_wakes
    }

    pub(super) fn give_back(&self, memory: Memory) {
        lock(&self.state).free.push(memory);
        self.freed.notify_all();
    }

    pub(super) fn close(&self) {
        lock(&self.state).is_closed = true;
        self.freed.notify_all();
    }

    fn take_from(&self, state: &mut State, n_words: usize) -> Option<Memory> {
        if let Some(fitting) = state.free.iter().position(|memory| memory.n_words() == n_words) {
            return Some(state.free.swap_remove(fitting));
        }
        // Frees memory of other sizes, in no particular order, since most have the same size.
        while state.n_words + n_words > self.budget_words {
            state.n_words -= state.free.pop()?.n_words();
        }
        state.n_words += n_words;
        Some(Memory::new(n_words))
    }
}
