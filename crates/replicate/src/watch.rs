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
    step: Option<u64>,
    is_over: bool,
}

/// How long the process lives on once it has said that it waited too long: the others are about to say so too, and who does not is the one that hangs.
const FAREWELL: Duration = Duration::from_secs(1);

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

    pub(crate) fn at_step(&self, step: u64) {
        self.shared.lock().step = Some(step);
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
                let step = state.step.map_or(String::new(), |step| format!(", step {step}"));
                say(&format!(
                    "rank {rank} waited {limit:?} in {op}{step}: another rank hangs, is far behind, or ended without a word; the run ends, start again from the last checkpoint"
                ));
                std::thread::sleep(FAREWELL.min(limit));
                exit(crate::Mpi::PEER_FAILED);
            }
            state = self.changed.wait_timeout(state, between).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last words of a process, in one piece, so that those of several ranks do not mix. Where even standard error is gone there is nobody to tell.
pub(crate) fn say(words: &str) {
    drop(std::io::stderr().write_all(format!("{words}\n").as_bytes()));
}
