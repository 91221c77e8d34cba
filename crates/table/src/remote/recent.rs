use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex, OnceLock};

use crate::error::{Error, RemoteError};
use crate::lock::{lock, wait};

/// An object by its number, and a block of it.
pub(super) type BlockKey = (u64, u64);

/// The blocks that were used last. A block that several threads need is fetched by one of them; the others wait for it.
pub(super) struct Recent {
    n_bytes: usize,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    /// The least recently used first.
    blocks: VecDeque<(BlockKey, Arc<Vec<u8>>)>,
    used_bytes: usize,
    under_way: HashMap<BlockKey, Arc<Flight>>,
}

/// How fetching a block ended, once it has.
type Flight = OnceLock<Result<Arc<Vec<u8>>, Error>>;

impl Recent {
    pub(super) fn new(n_bytes: usize) -> Self {
        Self { n_bytes, state: Mutex::default(), changed: Condvar::new() }
    }

    /// The block, if it is in memory.
    pub(super) fn find(&self, key: BlockKey) -> Option<Arc<Vec<u8>>> {
        lock(&self.state).recent(key)
    }

    /// The block from memory, or as `fetch` returns it.
    pub(super) fn get(&self, key: BlockKey, fetch: impl FnOnce() -> Result<Vec<u8>, Error>) -> Result<Arc<Vec<u8>>, Error> {
        let mut state = lock(&self.state);
        if let Some(block) = state.recent(key) {
            return Ok(block);
        }
        if let Some(flight) = state.under_way.get(&key).cloned() {
            loop {
                if let Some(result) = flight.get() {
                    return again(result);
                }
                state = wait(&self.changed, state);
            }
        }
        let fetching = Fetching { recent: self, key, flight: Arc::default() };
        state.under_way.insert(key, fetching.flight.clone());
        drop(state);
        let result = fetch().map(Arc::new);
        _ = fetching.flight.set(again(&result));
        result
    }
}

impl State {
    fn recent(&mut self, key: BlockKey) -> Option<Arc<Vec<u8>>> {
        let at = self.blocks.iter().rposition(|(found, _)| *found == key)?;
        let entry = self.blocks.remove(at)?;
        let block = entry.1.clone();
        self.blocks.push_back(entry);
        Some(block)
    }

    fn keep(&mut self, key: BlockKey, block: &Arc<Vec<u8>>, limit: usize) {
        if block.len() > limit {
            return;
        }
        self.used_bytes += block.len();
        self.blocks.push_back((key, block.clone()));
        while self.used_bytes > limit {
            let Some((_, oldest)) = self.blocks.pop_front() else { return };
            self.used_bytes -= oldest.len();
        }
    }
}

/// A block that is being fetched. Those that wait for it get an error if fetching panics.
struct Fetching<'a> {
    recent: &'a Recent,
    key: BlockKey,
    flight: Arc<Flight>,
}

impl Drop for Fetching<'_> {
    fn drop(&mut self) {
        // Without unwrapping, since a panic may be under way.
        let Ok(mut state) = self.recent.state.lock() else { return };
        if let Ok(block) = self.flight.get_or_init(|| Err(interrupted())) {
            state.keep(self.key, block, self.recent.n_bytes);
        }
        state.under_way.remove(&self.key);
        drop(state);
        self.recent.changed.notify_all();
    }
}

/// A result for another thread.
fn again(result: &Result<Arc<Vec<u8>>, Error>) -> Result<Arc<Vec<u8>>, Error> {
    match result {
        Ok(block) => Ok(block.clone()),
        Err(error) => Err(error.again()),
    }
}

fn interrupted() -> Error {
    let reason = RemoteError::Failed { problem: "another thread failed to read the same block".to_owned() };
    Error::Remote { url: "a table".to_owned(), reason }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn a_block_is_fetched_once_and_the_oldest_is_dropped() {
        let recent = Recent::new(20);
        let n_fetched = AtomicUsize::new(0);
        let get = |block| {
            let fetched = recent.get((0, block), || {
                n_fetched.fetch_add(1, Ordering::Relaxed);
                Ok(vec![block as u8; 10])
            });
            assert_eq!(*fetched.unwrap(), [block as u8; 10], "of block {block}");
            n_fetched.load(Ordering::Relaxed)
        };
        assert_eq!([get(0), get(1), get(0), get(2), get(0), get(1)], [1, 2, 2, 3, 3, 4], "1 was used before 0");
    }

    #[test]
    fn threads_that_wait_get_the_result_or_the_error() {
        let recent = Recent::new(0);
        let n_fetched = AtomicUsize::new(0);
        // The map and the thread that fetches have it, too.
        let all_wait = || while Arc::strong_count(&lock(&recent.state).under_way[&(0, 0)]) < 9 {};
        for fails in [false, true] {
            let results: Vec<_> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..8)
                    .map(|_| {
                        scope.spawn(|| {
                            recent.get((0, 0), || {
                                n_fetched.fetch_add(1, Ordering::Relaxed);
                                all_wait();
                                let error = || Error::Remote { url: "u".to_owned(), reason: RemoteError::NotFound };
                                if fails { Err(error()) } else { Ok(vec![1]) }
                            })
                        })
                    })
                    .collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            let right = |result: &Result<Arc<Vec<u8>>, Error>| match result {
                Ok(block) => !fails && **block == [1],
                Err(error) => fails && error.to_string().contains("no such object"),
            };
            assert!(results.iter().all(right), "{results:?}");
        }
        assert_eq!(n_fetched.load(Ordering::Relaxed), 2, "once for each round");
        assert!(lock(&recent.state).under_way.is_empty(), "nothing is under way any more");
    }
}
