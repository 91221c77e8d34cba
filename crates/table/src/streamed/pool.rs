use std::sync::{Condvar, Mutex, MutexGuard};

/// Memory for rows, never more than a budget, used again and again.
#[derive(Debug)]
pub(super) struct Pool {
    budget_words: usize,
    state: Mutex<State>,
    /// Something was given back.
    freed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    /// Words that are lent or free: all that were allocated.
    n_words: usize,
    free: Vec<Vec<u64>>,
    is_closed: bool,
}

impl Pool {
    pub(super) fn new(budget_words: usize) -> Self {
        Self { budget_words, state: Mutex::default(), freed: Condvar::new() }
    }

    pub(super) fn budget_words(&self) -> usize {
        self.budget_words
    }

    /// `n_words` of memory that hold anything, if there is room for them now.
    pub(super) fn take(&self, n_words: usize) -> Option<Vec<u64>> {
        self.take_from(&mut self.lock(), n_words)
    }

    /// The same, waiting until somebody has given back enough; `None` once the pool is closed.
    pub(super) fn wait_for(&self, n_words: usize) -> Option<Vec<u64>> {
        let mut state = self.lock();
        while !state.is_closed {
            if let Some(words) = self.take_from(&mut state, n_words) {
                return Some(words);
            }
            state = self.freed.wait(state).expect(HOLDERS_DO_NOT_PANIC);
        }
        None
    }

    pub(super) fn give_back(&self, words: Vec<u64>) {
        self.lock().free.push(words);
        self.freed.notify_all();
    }

    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.freed.notify_all();
    }

    fn take_from(&self, state: &mut State, n_words: usize) -> Option<Vec<u64>> {
        if let Some(fitting) = state.free.iter().position(|words| words.capacity() == n_words) {
            let mut words = state.free.swap_remove(fitting);
            words.resize(n_words, 0);
            return Some(words);
        }
        // Memory of other sizes makes room, largest first only by chance: sizes are mostly one.
        while state.n_words + n_words > self.budget_words {
            state.n_words -= state.free.pop()?.capacity();
        }
        let mut words = Vec::new();
        words.reserve_exact(n_words);
        words.resize(n_words, 0);
        state.n_words += words.capacity();
        Some(words)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect(HOLDERS_DO_NOT_PANIC)
    }
}

const HOLDERS_DO_NOT_PANIC: &str = "no thread panics while it holds the lock";
