use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Asks a run to end after the step it is in. Clones share the same flag, so any thread can set it.
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
    is_requested: Arc<AtomicBool>,
}

impl StopFlag {
    /// One that only [`StopFlag::request`] sets.
    pub fn new() -> Self {
        Self::default()
    }

    /// One that Ctrl-C sets. A second Ctrl-C ends the process at once, with status 130, as shells expect it.
    ///
    /// A process has one handler of that signal, so every call gives a clone of the same flag, as it stands.
    ///
    /// # Errors
    /// [`Error::CtrlC`](crate::Error::CtrlC) if the process has a handler from elsewhere.
    #[cfg(feature = "ctrl-c")]
    pub fn on_ctrl_c() -> Result<Self, crate::Error> {
        use std::sync::{Mutex, PoisonError};

        static OF_PROCESS: Mutex<Option<StopFlag>> = Mutex::new(None);
        /// What a shell says of a program that SIGINT ended: 128 + 2.
        const INTERRUPTED: i32 = 130;

        let mut of_process = OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(flag) = of_process.as_ref() {
            return Ok(flag.clone());
        }
        let flag = Self::new();
        let handled = flag.clone();
        ctrlc::try_set_handler(move || {
            if handled.is_requested.swap(true, Ordering::SeqCst) {
                std::process::exit(INTERRUPTED);
            }
        })
        .map_err(|error| crate::Error::CtrlC { reason: error.to_string() })?;
        Ok(of_process.insert(flag).clone())
    }

    /// Asks for the stop.
    pub fn request(&self) {
        self.is_requested.store(true, Ordering::SeqCst);
    }

    /// Whether it was asked for.
    pub fn is_requested(&self) -> bool {
        self.is_requested.load(Ordering::SeqCst)
    }

    /// Takes the request back, for a program that goes on with another run.
    pub fn clear(&self) {
        self.is_requested.store(false, Ordering::SeqCst);
    }
}
