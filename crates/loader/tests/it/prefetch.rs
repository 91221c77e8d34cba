use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use brisk_loader::{Ahead, Batching, Error, Layout, Loader, RowBuffers, RowSelection, RowSource, Rows, Shard};

use crate::batches::{Owned, all, from};
use crate::source::numbered;

/// Rows, one of which cannot be read.
pub(crate) struct Faulty {
    rows: Rows,
    bad_row: u32,
    panics: bool,
    n_gathered: AtomicUsize,
}

#[derive(Debug, PartialEq, thiserror::Error)]
#[error("row {row} cannot be read")]
pub(crate) struct Fault {
    pub(crate) row: u32,
}

impl Faulty {
    pub(crate) fn new(rows: Rows, bad_row: u32) -> Self {
        Self { rows, bad_row, panics: false, n_gathered: AtomicUsize::new(0) }
    }

    pub(crate) fn n_gathered(&self) -> usize {
        self.n_gathered.load(Ordering::Relaxed)
    }
}

impl RowSource for Faulty {
    type Feature = f32;
    type Error = Fault;
    fn layout(&self) -> Layout {
        self.rows.layout()
    }
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Fault> {
        self.n_gathered.fetch_add(rows.len(), Ordering::Relaxed);
        rows.for_each_block(|_, rows| {
            if !rows.contains(&self.bad_row) {
                return Ok(());
            }
            assert!(!self.panics, "row {} makes me panic", self.bad_row);
            Err(Fault { row: self.bad_row })
        })?;
        self.rows.gather(rows, into).map_err(|_| Fault { row: u32::MAX })
    }
}

pub(crate) fn prefetched<S: RowSource<Feature = f32>>(
    source: S,
    batching: &Batching,
    epoch: u32,
    position: usize,
    ahead: Ahead,
) -> Vec<Owned> {
    let loader = Loader::new(source, batching.clone()).unwrap();
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, ahead);
        let mut batches = ahead.epoch_from(epoch, position).unwrap();
        let mut all = Vec::new();
        while let Some(batch) = batches.next_batch().unwrap() {
            all.push(batch.into());
        }
        assert!(batches.is_empty() && batches.next_batch().unwrap().is_none(), "an epoch that is over stays over");
        all
    })
}

#[test]
fn batches_do_not_depend_on_workers_or_depth() {
    let source = numbered(1003, 3);
    for batching in [Batching::of(32), Batching::of(32).shuffled(4), Batching::of(32).shuffled(4).shard(Shard::blocks(1, 3))] {
        let expected = all(&source, &batching, 2);
        for workers in [1, 2, 5] {
            for depth in [1, 2, 3, 8, 100] {
                let ahead = Ahead { depth, workers };
                assert_eq!(prefetched(&source, &batching, 2, 0, ahead), expected, "{ahead:?}");
            }
        }
        let ahead = Ahead::default();
        for position in [0, 32 * 3, 320, 1003] {
            assert_eq!(
                prefetched(&source, &batching, 2, position, ahead),
                from(&source, &batching, 2, position),
                "from {position}"
            );
        }
    }
}

#[test]
fn workers_live_across_epochs() {
    let source = numbered(300, 2);
    let batching = Batching::of(16).shuffled(9);
    let loader = Loader::new(&source, batching.clone()).unwrap();
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { depth: 2, workers: 3 });
        for epoch in 0..20 {
            let expected = all(&source, &batching, epoch);
            let mut batches = ahead.epoch(epoch);
            let n = if epoch % 3 == 0 { expected.len() } else { epoch as usize % 7 };
            for expected in &expected[..n] {
                assert_eq!(&Owned::from(batches.next_batch().unwrap().unwrap()), expected, "epoch {epoch}");
            }
            assert_eq!(batches.position(), (n * 16).min(300), "what is ready but not taken does not count");
        }
    });
}

#[test]
fn workers_wait_for_the_consumer() {
    let source = Faulty::new(numbered(10_000, 1), u32::MAX);
    let loader = Loader::new(&source, Batching::of(10).shuffled(0)).unwrap();
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { depth: 3, workers: 2 });
        let mut batches = ahead.epoch(0);
        for taken in 1..=5 {
            batches.next_batch().unwrap().unwrap();
            let expected = (taken + 3) * 10;
            while source.n_gathered.load(Ordering::Relaxed) < expected {
                thread::yield_now();
            }
            thread::sleep(Duration::from_millis(5));
            assert_eq!(source.n_gathered.load(Ordering::Relaxed), expected, "after {taken} batches");
        }
    });
}

#[cfg(target_os = "linux")]
fn n_threads() -> usize {
    std::fs::read_dir("/proc/self/task").unwrap().count()
}

/// Other tests of this binary start and end threads too, so this looks for the thousands that a leak would leave.
#[cfg(target_os = "linux")]
#[test]
fn early_breaks_leave_no_thread_behind() {
    let source = numbered(4000, 16);
    let loader = Loader::new(&source, Batching::of(400).shuffled(1)).unwrap();
    let before = n_threads();
    let mut resident = 0;
    for round in 0..10_000 {
        // By then, the memory that the allocator caches has been allocated.
        if round == 2000 {
            resident = resident_bytes();
        }
        thread::scope(|scope| {
            let mut ahead = loader.prefetch(scope, Ahead { depth: 1 + round % 4, workers: 2 });
            for _ in 0..2 {
                let mut batches = ahead.epoch(0);
                for _ in 0..round % 5 {
                    batches.next_batch().unwrap().unwrap();
                }
            }
            drop(ahead);
            // The scope is still open, so the threads were ended by the drop.
            assert!(n_threads() < before + 100, "{} threads, {before} before", n_threads());
        });
    }
    // Leaking one batch of 400 rows of 16 columns eight thousand times would take 200 MB.
    let grown = resident_bytes().saturating_sub(resident);
    assert!(grown < GROWTH_BYTES, "memory grew by {grown} bytes");
}

/// A thousand epochs with workers and in place take no more memory than the first of them.
#[cfg(target_os = "linux")]
#[test]
fn memory_is_flat_over_a_thousand_epochs() {
    // Leaking one batch of it nineteen hundred times would take 150 MB.
    let source = numbered(6400, 16);
    let mut loader = Loader::new(&source, Batching::of(1280).shuffled(1)).unwrap();
    let mut resident = 0;
    for epoch in 0..1000 {
        if epoch == 100 {
            resident = resident_bytes();
        }
        let mut batches = loader.epoch(epoch);
        while batches.next_batch().unwrap().is_some() {}
    }
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead::default());
        for epoch in 0..1000 {
            let mut batches = ahead.epoch(epoch);
            while batches.next_batch().unwrap().is_some() {}
        }
    });
    let grown = resident_bytes().saturating_sub(resident);
    assert!(grown < GROWTH_BYTES, "memory grew by {grown} bytes");
}

/// Memory that other tests of this binary may take meanwhile; they use a few MB at a time, and free it again.
#[cfg(target_os = "linux")]
const GROWTH_BYTES: usize = 96 << 20;

#[cfg(target_os = "linux")]
fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

#[test]
fn ten_thousand_early_breaks_of_one_prefetch() {
    let source = numbered(1000, 2);
    let loader = Loader::new(&source, Batching::of(10).shuffled(1)).unwrap();
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { depth: 3, workers: 2 });
        for round in 0..10_000 {
            let mut batches = ahead.epoch(round);
            if round % 2 == 0 {
                assert_eq!(batches.next_batch().unwrap().unwrap().index, 0);
            }
        }
    });
}

#[track_caller]
fn check_fault(panics: bool, workers: usize, check: impl Fn(&Error)) {
    let mut source = Faulty::new(numbered(1000, 2), 505);
    source.panics = panics;
    let loader = Loader::new(&source, Batching::of(10)).unwrap();
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { depth: 8, workers });
        for _ in 0..2 {
            let mut batches = ahead.epoch(0);
            for index in 0..50 {
                assert_eq!(batches.next_batch().unwrap().unwrap().index, index, "batches before the fault come");
            }
            for _ in 0..2 {
                check(&batches.next_batch().unwrap_err());
                assert_eq!((batches.len(), batches.position()), (50, 500), "the batch is not taken");
            }
        }
        let mut batches = ahead.epoch_from(0, 600).unwrap();
        assert_eq!(batches.next_batch().unwrap().unwrap().labels[0], 600.0, "the workers are alive");
    });
}

#[test]
fn an_error_comes_in_its_turn() {
    for workers in [1, 4] {
        check_fault(false, workers, |error| {
            assert!(matches!(error, Error::Source { batch: 50, .. }), "found: {error}");
        });
    }
}

#[test]
fn a_panic_is_an_error_in_its_turn() {
    for workers in [1, 4] {
        check_fault(true, workers, |error| {
            let message = "panicked while making batch 50: row 505 makes me panic";
            assert_eq!(error.to_string(), message);
        });
    }
}

/// Rows that cannot be read the first time that one of them is row 505.
struct Unreliable(Rows, AtomicBool);

impl RowSource for Unreliable {
    type Feature = f32;
    type Error = Fault;
    fn layout(&self) -> Layout {
        self.0.layout()
    }
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Fault> {
        let fails = |rows: &[u32]| rows.contains(&505) && !self.1.swap(true, Ordering::Relaxed);
        rows.for_each_block(|_, rows| if fails(rows) { Err(Fault { row: 505 }) } else { Ok(()) })?;
        self.0.gather(rows, into).map_err(|_| Fault { row: u32::MAX })
    }
}

#[test]
fn no_batch_is_lost_by_an_error_that_passes() {
    for batching in [Batching::of(10), Batching::of(10).shuffled_blocks(3, 20, 4)] {
        for position in [0, 200] {
            let expected = from(numbered(1000, 2), &batching, 1, position);
            let loader = Loader::new(Unreliable(numbered(1000, 2), AtomicBool::new(false)), batching.clone()).unwrap();
            thread::scope(|scope| {
                let mut ahead = loader.prefetch(scope, Ahead { depth: 4, workers: 2 });
                let mut batches = ahead.epoch_from(1, position).unwrap();
                let (mut found, mut n_errors) = (Vec::<Owned>::new(), 0);
                loop {
                    match batches.next_batch() {
                        Ok(Some(batch)) => found.push(batch.into()),
                        Ok(None) => break,
                        Err(_) => n_errors += 1,
                    }
                }
                assert_eq!((n_errors, found), (1, expected), "{batching:?} from {position}");
            });
        }
    }
}

#[test]
fn a_panicking_consumer_ends_its_workers() {
    let source = numbered(1000, 2);
    let loader = Loader::new(&source, Batching::of(10)).unwrap();
    let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        thread::scope(|scope| {
            let mut ahead = loader.prefetch(scope, Ahead::default());
            let mut batches = ahead.epoch(0);
            batches.next_batch().unwrap();
            panic!("the training loop failed");
        })
    }));
    assert!(caught.is_err(), "the panic arrives, and nothing hangs");
}
