//! The signal handlers of the process, which set one flag.

use std::sync::{Mutex, PoisonError};

use super::StopFlag;
use crate::error::Error;

static OF_PROCESS: Mutex<Option<StopFlag>> = Mutex::new(None);

/// The process's flag, if its handlers are installed.
pub(super) fn installed() -> Option<StopFlag> {
    OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner).clone()
}

/// The process's flag, whose handlers are installed by the first call.
pub(super) fn flag_of_process() -> Result<StopFlag, Error> {
    let mut of_process = OF_PROCESS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(flag) = of_process.as_ref() {
        return Ok(flag.clone());
    }
    let flag = StopFlag::new();
    install(&flag)?;
    Ok(of_process.insert(flag).clone())
}

#[cfg(any(unix, windows))]
fn refused(signal: &str, reason: &str) -> Error {
    let expected = "to handle it; have the existing handler call `StopFlag::request` instead";
    Error::setting("signal", format!("{signal}: {reason}"), expected)
}

#[cfg(unix)]
fn install(flag: &StopFlag) -> Result<(), Error> {
    use super::StopSignal;
    use super::disposition::{Disposition, disposition};

    let failed = |signal: StopSignal, reason: String| refused(&signal.to_string(), &reason);
    let mut handled = Vec::new();
    for signal in StopSignal::ALL {
        match disposition(signal).map_err(|error| failed(signal, error.to_string()))? {
            Disposition::Default => handled.push(signal),
            Disposition::Ignored => {}
            Disposition::Handled => return Err(failed(signal, "other code of this process handles it".to_owned())),
        }
    }
    let Some(&first) = handled.first() else { return Ok(()) };
    let numbers = handled.iter().map(|signal| i32::from(signal.number()));
    let mut signals = signal_hook::iterator::Signals::new(numbers).map_err(|error| failed(first, error.to_string()))?;
    let mut requests = Requests::new(flag.clone());
    let heard = move || {
        for number in signals.forever() {
            let signal = StopSignal::ALL.into_iter().find(|signal| i32::from(signal.number()) == number);
            requests.hear(signal.expect("only these three are registered"));
        }
    };
    let thread = std::thread::Builder::new().name("signals".to_owned()).spawn(heard);
    thread.map(drop).map_err(|error| failed(first, error.to_string()))
}

/// Ctrl-C, Ctrl-Break and the closing of the console, which the handler does not tell apart.
#[cfg(windows)]
fn install(flag: &StopFlag) -> Result<(), Error> {
    use super::StopSignal;

    let mut requests = Requests::new(flag.clone());
    ctrlc::try_set_handler(move || requests.hear(StopSignal::Interrupt)).map_err(|error| refused("Ctrl-C", &error.to_string()))
}

#[cfg(not(any(unix, windows)))]
fn install(_: &StopFlag) -> Result<(), Error> {
    Ok(())
}

/// Distinguishes the first signal, which requests the stop, from a later one, which ends the process.
#[cfg(any(unix, windows))]
struct Requests {
    flag: StopFlag,
    requested_at: std::time::Instant,
}

#[cfg(any(unix, windows))]
impl Requests {
    fn new(flag: StopFlag) -> Self {
        Self { flag, requested_at: std::time::Instant::now() }
    }

    fn hear(&mut self, signal: super::StopSignal) {
        /// Signals within this time of the first are the same request.
        const TOGETHER: std::time::Duration = std::time::Duration::from_millis(200);

        if self.flag.signal().is_none() {
            self.requested_at = std::time::Instant::now();
            self.flag.request_by(signal);
        } else if signal != super::StopSignal::Hangup && self.requested_at.elapsed() > TOGETHER {
            end(signal.exit_status().into());
        }
    }
}

/// Ends the process without running its exit handlers, which may wait for the run.
#[cfg(unix)]
fn end(status: i32) -> ! {
    signal_hook::low_level::exit(status)
}

#[cfg(windows)]
fn end(status: i32) -> ! {
    std::process::exit(status)
}
