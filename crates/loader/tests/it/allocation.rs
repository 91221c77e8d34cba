#![expect(unsafe_code, reason = "there is no other way to watch an allocator")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use brisk_loader::{Ahead, Batching, Key, Lanes, Loader, Make, Order, Row, RowSource, StageTimer, WeightedDraws, split};

use crate::source::{Before, numbered};

/// Counts the allocations of watched threads; other tests run at the same time.
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

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller upholds the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: the caller upholds the contract of `dealloc`, and `pointer` came from `System`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of watched threads over four epochs, after two epochs of warm-up.
fn counted(mut epoch: impl FnMut(u32)) -> usize {
    IS_WATCHED.set(true);
    let mut before = 0;
    for number in 0..6 {
        epoch(number);
        if number < 2 {
            before = N_ALLOCATIONS.load(Ordering::Relaxed);
        }
    }
    IS_WATCHED.set(false);
    N_ALLOCATIONS.load(Ordering::Relaxed) - before
}

/// Checks a loader in place, on the pool of `run`, and with workers.
#[track_caller]
fn check<S: RowSource + Sync, M: Make<S> + Send>(mut loader: Loader<S, M>, case: &str)
where
    Loader<S, M>: Send + Sync,
{
    let in_place = |loader: &mut Loader<S, M>| {
        counted(|epoch| {
            let mut batches = loader.epoch(epoch);
            while let Some(batch) = batches.next_batch().unwrap() {
                assert!(batch.rows > 0, "{case}");
            }
        })
    };
    assert_eq!(loader.run(2, in_place).unwrap(), 0, "{case}, in place");
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { depth: 3, workers: 2 });
        let n = counted(|epoch| {
            let mut batches = ahead.epoch(epoch);
            while let Some(batch) = batches.next_batch().unwrap() {
                assert!(batch.rows > 0, "{case}");
            }
        });
        assert_eq!(n, 0, "{case}, ahead");
    });
}

/// The only test of this binary that reads the count.
#[test]
fn nothing_is_allocated_after_the_first_epochs() {
    IS_WATCHED.set(true);
    drop(std::hint::black_box(Box::new(1)));
    assert_eq!(N_ALLOCATIONS.load(Ordering::Relaxed), 1, "what a watched thread allocates is counted");
    IS_WATCHED.set(false);

    // Every thread that gathers is watched.
    let source = Before(numbered(20_000, 5), || IS_WATCHED.set(true));
    let draws = Arc::new(WeightedDraws::new(&vec![1.0; 20_000], 20_000).unwrap());
    // 600 rows are gathered by the pool, 100 by the caller; neither divides the number of rows.
    for size in [600, 100] {
        let batching = || Batching::of(size);
        let lanes = Lanes { seed: Some(3), batch_rows: size as u32, n_lanes: 10, block_rows: 100, window_blocks: 4 };
        let orders = [
            batching(),
            batching().shuffled(3),
            batching().shuffled_blocks(3, 1000, 4),
            Batching { order: Order::Lanes(lanes), ..batching() },
            batching().weighted(3, Arc::clone(&draws)),
        ];
        for batching in orders {
            let case = format!("{size} rows, {}", batching.order);
            check(Loader::new(&source, batching.clone()).unwrap(), &case);
            let doubled = |row: Row<'_>, _: Key, out: &mut [f64]| {
                out[0] = f64::from(row.features[0]);
                Ok::<(), Infallible>(())
            };
            let timer = Arc::new(StageTimer::default());
            check(Loader::new(&source, batching.clone()).unwrap().timed(timer).map_rows(1, doubled).unwrap(), &case);
            let [part, _] = split(&source, 1, [0.9, 0.1]).unwrap();
            if !matches!(batching.order, Order::Weighted { .. }) {
                check(Loader::new(part, batching).unwrap(), &case);
            }
        }
    }
}
