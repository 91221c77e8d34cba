use std::sync::Mutex;
use std::thread;

use crate::error::Error;

/// Does some work on several threads, of which this is one. The first error ends it.
pub(super) fn at_once<T: Send>(
    items: impl Iterator<Item = T> + Send,
    n_threads: usize,
    work: impl Fn(T) -> Result<(), Error> + Sync,
) -> Result<(), Error> {
    const HOLDERS_DO_NOT_PANIC: &str = "no thread panics while it holds the lock";
    let (items, failed) = (Mutex::new(Some(items)), Mutex::new(None));
    let next = || items.lock().expect(HOLDERS_DO_NOT_PANIC).as_mut().and_then(Iterator::next);
    let work = || {
        while let Some(item) = next() {
            if let Err(error) = work(item) {
                failed.lock().expect(HOLDERS_DO_NOT_PANIC).get_or_insert(error);
                // The others end, too.
                *items.lock().expect(HOLDERS_DO_NOT_PANIC) = None;
            }
        }
    };
    thread::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(work);
        }
        work();
    });
    failed.into_inner().expect(HOLDERS_DO_NOT_PANIC).map_or(Ok(()), Err)
}
