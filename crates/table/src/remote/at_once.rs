use std::sync::Mutex;
use std::thread;

use crate::error::Error;
use crate::lock::{lock, unlocked};

/// Does some work on several threads, of which this is one. The first error ends it.
pub(super) fn at_once<T: Send>(
    items: impl Iterator<Item = T> + Send,
    n_threads: usize,
    work: impl Fn(T) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    let (items, failed) = (Mutex::new(Some(items)), Mutex::new(None));
    let next = || lock(&items).as_mut().and_then(Iterator::next);
    let work = || {
        while let Some(item) = next() {
            if let Err(error) = work(item) {
                lock(&failed).get_or_insert(error);
                // The others end, too.
                *lock(&items) = None;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(work);
        }
        work();
    });
    unlocked(failed).map_or(Ok(()), Err)
}
