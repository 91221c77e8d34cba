//! Worker threads process jobs, and the caller takes the results in order.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Where a worker puts its results. It blocks while enough results wait to be taken.
pub(crate) struct Outlet<T>(SyncSender<T>);

/// The results are no longer needed, so the worker may stop.
#[derive(Debug)]
pub(crate) struct NobodyWaits;

impl<T> Outlet<T> {
    pub(crate) fn put(&self, made: T) -> Result<(), NobodyWaits> {
        self.0.send(made).map_err(|_| NobodyWaits)
    }
}

/// Runs `work` for every job that `feed` hands out, on `n_threads` threads; a job may produce any number of results. `take` is
/// called on this thread with the results of the first job, then the second, and so on; its first error ends everything.
///
/// At most `3 * n_threads + 2` jobs are in progress, and at most `n_waiting + 1` results of each wait, which bounds the memory
/// and holds back `feed`.
pub(crate) fn in_order<J: Send, T: Send, E>(
    feed: impl FnOnce(&mut dyn FnMut(J) -> Result<(), NobodyWaits>) + Send,
    n_threads: usize,
    n_waiting: usize,
    work: impl Fn(J, &Outlet<T>) + Sync,
    take: impl FnMut(T) -> Result<(), E>,
) -> Result<(), E> {
    let (to_workers, queue) = sync_channel::<(J, Outlet<T>)>(n_threads);
    let (to_taker, streams) = sync_channel::<Receiver<T>>(n_threads);
    thread::scope(|scope| {
        // Owned by this closure: an early return drops them, which all threads notice, and a feed that waits for what `take`
        // owns.
        let (streams, mut take) = (streams, take);
        scope.spawn(move || {
            feed(&mut |job| {
                let (put, stream) = sync_channel(n_waiting);
                to_workers.send((job, Outlet(put))).map_err(|_| NobodyWaits)?;
                to_taker.send(stream).map_err(|_| NobodyWaits)
            });
        });
        let (queue, work) = (Arc::new(Mutex::new(queue)), &work);
        for _ in 0..n_threads {
            let queue = Arc::clone(&queue);
            scope.spawn(move || {
                while let Some((job, outlet)) = next(&queue) {
                    work(job, &outlet);
                }
            });
        }
        // Only workers hold the queue: if all of them panic, it is dropped with the outlets in it, so no thread waits forever.
        drop(queue);
        // A worker that panics ends its stream early; the scope propagates the panic before the caller uses the results.
        streams.iter().try_for_each(|stream| stream.iter().try_for_each(&mut take))
    })
}

/// Waits for work with the lock held, so that one worker waits for work and the others wait for the lock.
fn next<T>(queue: &Mutex<Receiver<T>>) -> Option<T> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).recv().ok()
}
