//! How the process handles a signal, read without changing it.

#![expect(unsafe_code, reason = "`sigaction` is a C function, and the crates that wrap it only set dispositions")]

use std::{io, ptr};

use super::StopSignal;

/// What happens when a signal arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Disposition {
    /// The system's default: for the signals here, the process ends.
    Default,
    /// Nothing.
    Ignored,
    /// A function of the process is called.
    Handled,
}

pub(super) fn disposition(signal: StopSignal) -> io::Result<Disposition> {
    // SAFETY: all zeros is a valid `sigaction`: a C struct of integers, a set of bits and optional function pointers.
    let mut current: libc::sigaction = unsafe { std::mem::zeroed() };
    // SAFETY: without a new action the call only writes the present one, to a place that is valid for writes.
    if unsafe { libc::sigaction(signal.number().into(), ptr::null(), &mut current) } != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(match current.sa_sigaction {
        libc::SIG_DFL => Disposition::Default,
        libc::SIG_IGN => Disposition::Ignored,
        _ => Disposition::Handled,
    })
}
