use std::any::Any;
use std::fmt::Display;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Instant;

use brisk_replicate::{Error as ReplicaError, Threads, ThreadsConfig};

use super::{DataParallel, DataParallelConfig};
use crate::error::Error;

/// Runs `replica` on threads of this process, on as many as given or as [`ThreadsConfig`] says, and returns their results, by
/// rank. Each opens its own device: another adapter, the same one again, or the CPU executor with a share of the threads.
///
/// A replica that returns an error or panics ends the others; the result is then the error of the one that failed first.
///
/// # Errors
/// The error that the first failed replica returned; its panic as [`Error::Replica`].
/// # Panics
/// If the number of replicas is 0.
#[track_caller]
pub fn run_threads<T, E>(
    threads: impl Into<ThreadsConfig>,
    config: &DataParallelConfig,
    replica: impl Fn(&DataParallel) -> Result<T, E> + Sync,
) -> Result<Vec<T>, E>
where
    T: Send,
    E: From<Error> + Display + Send,
{
    let handles = Threads::group(threads.into());
    let ends: Vec<Result<T, (Instant, E)>> = std::thread::scope(|scope| {
        let run = |handle: Threads| {
            let replica = &replica;
            let replicas = DataParallel::new(Box::new(handle), *config);
            scope.spawn(move || run_one(DataParallel { is_within_threads: true, ..replicas }, replica))
        };
        let threads: Vec<_> = handles.into_iter().map(run).collect();
        threads.into_iter().map(|thread| thread.join().expect("a replica's panic is caught inside")).collect()
    });
    let mut first: Option<(Instant, E)> = None;
    let mut returned = Vec::with_capacity(ends.len());
    for end in ends {
        match end {
            Ok(value) => returned.push(value),
            // Replicas that fail later have failed because of the first.
            Err((at, error)) if first.as_ref().is_none_or(|(earliest, _)| at < *earliest) => first = Some((at, error)),
            Err(_) => {}
        }
    }
    first.map_or(Ok(returned), |(_, error)| Err(error))
}

fn run_one<T, E: From<Error> + Display>(
    parallel: DataParallel,
    replica: impl Fn(&DataParallel) -> Result<T, E>,
) -> Result<T, (Instant, E)> {
    let rank = parallel.rank();
    let error = match catch_unwind(AssertUnwindSafe(|| replica(&parallel))) {
        Ok(Ok(value)) => return parallel.end().map(|()| value).map_err(|error| (Instant::now(), E::from(error))),
        Ok(Err(error)) => error,
        Err(panic) => E::from(Error::Replica(ReplicaError::PeerFailed { rank, why: message_of(panic.as_ref()) })),
    };
    let failed_at = Instant::now();
    parallel.fail(&error.to_string());
    Err((failed_at, error))
}

/// The message of a panic, if it is text.
fn message_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    text.unwrap_or("a panic without a message").to_owned()
}
