#[cfg(all(feature = "signals", unix))]
mod disposition;
#[cfg(feature = "signals")]
mod signals;
#[expect(clippy::module_inception, reason = "the type that the folder is about")]
mod stop_flag;

pub use stop_flag::{StopFlag, StopSignal};

#[cfg(feature = "signals")]
impl StopFlag {
    /// A flag that SIGINT (Ctrl-C), SIGTERM and SIGHUP set.
    ///
    /// A signal that the process was started with as ignored stays ignored: shells start background jobs of scripts with SIGINT
    /// ignored, and `nohup` ignores SIGHUP.
    ///
    /// A second SIGINT or SIGTERM ends the process at once, with status 128 plus the signal's number (130 or 143), as shells
    /// report it. Signals within 0.2 s of the first count as the same request, because `timeout` and closing terminals send
    /// theirs twice; for that reason, repeated SIGHUPs never end the process.
    ///
    /// On Windows, Ctrl-C, Ctrl-Break and the closing of the console set the flag. After a closing, Windows ends the process
    /// without waiting for the run; the last checkpoint on disk is what remains. On systems with neither kind of signal, only
    /// [`StopFlag::request`] sets the flag.
    ///
    /// The handlers belong to the process: every call returns a clone of the same flag, in its current state.
    ///
    /// # Errors
    /// [`Error::Setting`](crate::Error::Setting) if other code of the process already handles one of these signals.
    pub fn on_signals() -> Result<Self, crate::error::Error> {
        signals::flag_of_process()
    }

    /// The flag of [`on_signals`](Self::on_signals), if that was called: for code that must not install handlers itself.
    pub fn of_signals() -> Option<Self> {
        signals::installed()
    }
}
