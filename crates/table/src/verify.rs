//! Checks all bytes against their checksums, on all cores.

use std::ops::Range;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use crate::checksum::checksum;
use crate::error::Error;
use crate::lock::{lock, unlocked};
use crate::parts::Parts;
use crate::row_store::{RowStore, Verified};

/// Access to the bytes of a file, independent of their meaning.
pub(crate) trait ReadBytes: Sync {
    /// Returns the bytes in memory, or reads them into `scratch`.
    fn read_bytes<'a>(&'a self, bytes: Range<usize>, scratch: &'a mut Vec<u8>) -> Result<&'a [u8], Error>;
}

/// Checks the blocks of one file in order, several at once. `progress` is called with the bytes checked so far, on the caller's
/// thread.
pub(crate) fn verify<S: RowStore + ReadBytes>(store: &S, progress: &mut dyn FnMut(Verified)) -> Result<(), Error> {
    let parts = store.parts();
    let Some(sums) = &parts.checksums else {
        return Err(Error::NoChecksums { path: store.path().to_owned() });
    };
    let mut scratch = Vec::new();
    let stored = store.read_bytes(sums.range.clone(), &mut scratch)?;
    let stored: Vec<u32> = stored.chunks_exact(4).map(|sum| u32::from_le_bytes([sum[0], sum[1], sum[2], sum[3]])).collect();

    let run = Run { store, parts, sums: &stored, n_taken: AtomicUsize::new(0), worst: Mutex::new(None) };
    let n_threads = thread::available_parallelism().map_or(1, usize::from).min(stored.len());
    let of_bytes = sums.range.start as u64;
    thread::scope(|scope| {
        for _ in 1..n_threads {
            scope.spawn(|| run.check_blocks(|_| {}));
        }
        run.check_blocks(|block| progress(Verified { n_bytes: block.start as u64, of_bytes }));
    });
    if let Some((_, error)) = unlocked(run.worst) {
        return Err(error);
    }
    progress(Verified { n_bytes: of_bytes, of_bytes });
    Ok(())
}

struct Run<'a, S> {
    store: &'a S,
    parts: &'a Parts,
    sums: &'a [u32],
    n_taken: AtomicUsize,
    /// The first block that failed.
    worst: Mutex<Option<(usize, Error)>>,
}

impl<S: RowStore + ReadBytes> Run<'_, S> {
    /// Takes blocks in order until there are none left or one has failed. All blocks before that one were taken too, so the first
    /// failure is found.
    fn check_blocks(&self, mut taken: impl FnMut(&Range<usize>)) {
        let sums = self.parts.checksums.as_ref().expect("the table has checksums, as `verify` saw");
        let mut scratch = Vec::new();
        loop {
            let number = self.n_taken.fetch_add(1, Ordering::Relaxed);
            let Some(&expected) = self.sums.get(number) else { return };
            let block = self.parts.summed_block(number, sums);
            taken(&block);
            if let Err(error) = self.check_block(block, expected, &mut scratch) {
                self.n_taken.store(self.sums.len(), Ordering::Relaxed);
                let mut worst = lock(&self.worst);
                if worst.as_ref().is_none_or(|(before, _)| number < *before) {
                    *worst = Some((number, error));
                }
                return;
            }
        }
    }

    fn check_block(&self, block: Range<usize>, expected: u32, scratch: &mut Vec<u8>) -> Result<(), Error> {
        let found = checksum(self.store.read_bytes(block.clone(), scratch)?);
        if found != expected {
            let path = self.store.path().to_owned();
            return Err(Error::Checksum { path, start: block.start as u64, end: block.end as u64, expected, found, n_reads: 1 });
        }
        Ok(())
    }
}
