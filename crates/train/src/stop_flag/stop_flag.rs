use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Asks a run to end after its current step. Clones share one flag, so any thread can set it.
///
/// # Examples
/// ```
/// let stop = brisk_train::StopFlag::new();
/// let elsewhere = stop.clone();
/// elsewhere.request();
/// assert!(stop.is_requested());
/// ```
#[derive(Clone, Debug, Default)]
pub struct StopFlag {
    shared: Arc<Shared>,
}

#[derive(Debug, Default)]
struct Shared {
    is_requested: AtomicBool,
    /// The number of the first signal that requested the stop; 0 if none has.
    signal: AtomicU8,
}

/// A signal that asks a process to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum StopSignal {
    /// SIGINT, sent by Ctrl-C; on Windows, Ctrl-C, Ctrl-Break, and the closing of the console.
    Interrupt,
    /// SIGTERM, sent by `kill`, batch systems and container runtimes.
    Terminate,
    /// SIGHUP, sent when a terminal or connection closes.
    Hangup,
}

impl StopFlag {
    /// A flag that only [`StopFlag::request`] sets.
    pub fn new() -> Self {
        Self::default()
    }

    /// Requests the stop.
    pub fn request(&self) {
        self.shared.is_requested.store(true, Ordering::SeqCst);
    }

    /// Whether the stop was requested.
    pub fn is_requested(&self) -> bool {
        self.shared.is_requested.load(Ordering::SeqCst)
    }

    /// The first signal that requested the stop; `None` if the program did, or nothing has yet.
    pub fn signal(&self) -> Option<StopSignal> {
        StopSignal::ALL.into_iter().find(|signal| signal.number() == self.shared.signal.load(Ordering::SeqCst))
    }

    /// Withdraws the request, for a program that continues with another run.
    pub fn clear(&self) {
        self.shared.signal.store(0, Ordering::SeqCst);
        self.shared.is_requested.store(false, Ordering::SeqCst);
    }

    /// Requests the stop on behalf of a signal: one that the program handles itself, or that another replica has received.
    pub fn request_by(&self, signal: StopSignal) {
        // The first signal is the one that is reported.
        let _ = self.shared.signal.compare_exchange(0, signal.number(), Ordering::SeqCst, Ordering::SeqCst);
        self.request();
    }
}

impl StopSignal {
    pub(super) const ALL: [Self; 3] = [Self::Interrupt, Self::Terminate, Self::Hangup];

    /// The signal's number, the same on all Unix systems.
    pub fn number(self) -> u8 {
        match self {
            Self::Interrupt => 2,
            Self::Terminate => 15,
            Self::Hangup => 1,
        }
    }

    /// The exit status of a program that was stopped by this signal: 128 plus its number.
    pub fn exit_status(self) -> u8 {
        128 + self.number()
    }
}

impl fmt::Display for StopSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Interrupt => "SIGINT",
            Self::Terminate => "SIGTERM",
            Self::Hangup => "SIGHUP",
        })
    }
}
