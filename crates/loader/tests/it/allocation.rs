#![expect(unsafe_code, reason = "an allocator can be watched in no other way")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use brisk_loader::{Ahead, Batching, Error, Loader, RowSource, Rows};

use crate::source::numbered;

/// Counts what watched threads allocate; other tests run beside this one.
struct Counting;

static N_ALLOCATIONS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IS_WATCHED: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if IS_WATCHED.try_with(Cell::get).unwrap_or(false) {
        N_ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller keeps `alloc`'s contract.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller keeps `dealloc`'s contract, and `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Watches every thread that gathers from it.
struct Watching(Rows);

impl RowSource for Watching {
    type Feature = f32;
    type Error = Error;
    fn n_rows(&self) -> usize {
        self.0.n_rows()
    }
    fn n_cols(&self) -> usize {
        self.0.n_cols()
    }
    fn gather(&self, rows: &[u32], features: &mut [f32], labels: &mut [f32]) -> Result<(), Error> {
        IS_WATCHED.set(true);
        self.0.gather(rows, features, labels)
    }
}

#[test]
fn nothing_is_allocated_after_the_first_epoch() {
    IS_WATCHED.set(true);
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(N_ALLOCATIONS.load(Ordering::Relaxed), 1, "what a watched thread allocates is counted");
    IS_WATCHED.set(false);

    let source = Watching(numbered(20_000, 5));
    // 600 rows are gathered by the pool, 100 by the caller; neither divides the rows.
    for size in [600, 100] {
        for batching in [Batching::of(size), Batching::of(size).shuffled(3)] {
            let mut loader = Loader::new(&source, batching.clone()).unwrap();
            let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
            pool.install(|| {
                IS_WATCHED.set(true);
                let mut before = 0;
                for epoch in 0..6 {
                    let mut batches = loader.epoch(epoch);
                    while let Some(batch) = batches.next_batch().unwrap() {
                        assert!(batch.rows > 0);
                    }
                    if epoch < 2 {
                        before = N_ALLOCATIONS.load(Ordering::Relaxed);
                    }
                }
                let after = N_ALLOCATIONS.load(Ordering::Relaxed);
                assert_eq!(after, before, "allocations in four epochs, gathered as they are asked for");
                IS_WATCHED.set(false);
            });

            thread::scope(|scope| {
                let mut ahead = loader.prefetch(scope, Ahead { depth: 3, workers: 2 });
                IS_WATCHED.set(true);
                let mut before = 0;
                for epoch in 0..6 {
                    let mut batches = ahead.epoch(epoch);
                    while let Some(batch) = batches.next_batch().unwrap() {
                        assert!(batch.rows > 0);
                    }
                    drop(batches);
                    if epoch < 2 {
                        before = N_ALLOCATIONS.load(Ordering::Relaxed);
                    }
                }
                let after = N_ALLOCATIONS.load(Ordering::Relaxed);
                assert_eq!(after, before, "allocations in four epochs, gathered ahead");
                IS_WATCHED.set(false);
            });
        }
    }
}
