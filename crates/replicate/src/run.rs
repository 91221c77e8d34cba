use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::collective::Collective;
use crate::error::{Error, RETURN};
use crate::threads::{Threads, ThreadsConfig};

/// Runs `replica` on `n` threads, each with a handle of the same group, and returns their results by rank.
///
/// When a replica returns `Ok`, `finish` is called for it. One that returns an error or panics ends the others: the operations
/// they wait in return [`Error::PeerFailed`], and `run_replicas` returns the error of the replica that failed first.
///
/// # Errors
/// The error of the replica that failed first; a panic becomes [`Error::PeerFailed`].
/// # Panics
/// If `n` is 0.
/// # Examples
/// ```
/// use brisk_replicate::{Collective, CollectiveExt, Error, ReduceOp, run_replicas};
///
/// let failed = run_replicas(3, |replica| {
///     if replica.rank() == 1 {
///         panic!("out of batteries");
///     }
///     replica.all_reduce(&mut [1.0_f32], ReduceOp::Sum)
/// });
/// assert_eq!(failed, Err(Error::PeerFailed { rank: 1, why: "out of batteries".to_owned() }));
/// ```
#[track_caller]
pub fn run_replicas<T, E>(n: usize, replica: impl Fn(&mut Threads) -> Result<T, E> + Sync) -> Result<Vec<T>, E>
where
    T: Send,
    E: From<Error> + Display + Send,
{
    let handles = Threads::group(ThreadsConfig::new(n));
    let ends: Vec<Ended<T, E>> = std::thread::scope(|scope| {
        let threads: Vec<_> = handles.into_iter().map(|handle| scope.spawn(|| run_one(handle, &replica))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a replica's panic is caught inside")).collect()
    });
    first_failure_or_all(ends)
}

struct Ended<T, E> {
    result: Result<T, E>,
    /// Whether it was this replica's failure that ended the group.
    was_first: bool,
}

fn run_one<T, E: From<Error> + Display>(mut handle: Threads, replica: impl Fn(&mut Threads) -> Result<T, E>) -> Ended<T, E> {
    let rank = handle.rank();
    let result = match catch_unwind(AssertUnwindSafe(|| replica(&mut handle))) {
        Ok(Ok(value)) => handle.finish_in_place(RETURN).map(|()| value).map_err(E::from),
        Ok(Err(error)) => {
            handle.fail(&error.to_string());
            Err(error)
        }
        Err(panic) => {
            let why = message_of(panic.as_ref());
            handle.fail(&why);
            Err(E::from(Error::PeerFailed { rank, why }))
        }
    };
    let was_first = matches!(handle.ended_with(), Some(Error::PeerFailed { rank: first, .. }) if first == rank);
    Ended { result, was_first }
}

fn first_failure_or_all<T, E>(mut ends: Vec<Ended<T, E>>) -> Result<Vec<T>, E> {
    // The error of the replica that failed first is returned; if none did, as in a time-out, that of the lowest rank.
    if let Some(first) = ends.iter().position(|end| end.was_first && end.result.is_err()) {
        ends.swap(0, first);
    }
    ends.into_iter().map(|end| end.result).collect()
}

/// The message of a panic, if it is text.
pub(crate) fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
