use std::io::Write as _;
use std::process::exit;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// A thread that ends the process when an operation takes too long: nobody else would notice a rank that hangs, since all others wait for it too.
#[derive(Debug)]
pub(crate) struct Watch {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct State {
    inside: Option<(&'static str, Instant)>,
    is_over: bool,
}

impl Watch {
    pub(crate) fn start(rank: usize, limit: Duration) -> Self {
        let shared = Arc::new(Shared { state: Mutex::default(), changed: Condvar::new() });
        let watched = shared.clone();
        std::thread::spawn(move || watched.watch(rank, limit));
        Self { shared }
    }

    pub(crate) fn enter(&self, op: &'static str) {
        self.shared.lock().inside = Some((op, Instant::now()));
    }

    pub(crate) fn leave(&self) {
        self.shared.lock().inside = None;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.shared.lock().is_over = true;
        self.shared.changed.notify_all();
    }
}

impl Shared {
    fn watch(&self, rank: usize, limit: Duration) {
        // Operations are many and short: it looks now and then, and is told of none.
        let between = (limit / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        let mut state = self.lock();
        while !state.is_over {
            if let Some((op, since)) = state.inside
                && since.elapsed() > limit
            {
                say(&format!(
                    "rank {rank} waited {limit:?} in {op}: another rank hangs, is far behind, or ended without a word; the run ends, start again from the last checkpoint"
                ));
                exit(crate::Mpi::PEER_FAILED);
            }
            state = self.changed.wait_timeout(state, between).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last words of a process. Where even standard error is gone there is nobody to tell.
pub(crate) fn say(words: &str) {
    drop(writeln!(std::io::stderr(), "{words}"));
}
