use std::ops::Range;
use std::sync::Mutex;
use std::thread;

use brisk_loader::{
    Ahead, Batching, BlockShuffle, Error, Hint, Layout, Loader, RowBuffers, RowSelection, RowSource, Rows, Shard, Shuffle,
};

use crate::batches::{all, from};
use crate::source::numbered;

fn order(shuffle: &BlockShuffle) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..shuffle.n_rows()).collect();
    shuffle.permute(&mut rows);
    rows
}

/// Checks that every row occurs once, and that windows cover all positions and contain exactly the rows of their blocks.
#[track_caller]
fn check_order(n_rows: u32, epoch: u32, block_rows: u32, window_blocks: u32) {
    let case = format!("{n_rows} rows in blocks of {block_rows}, {window_blocks} a window");
    let shuffle = BlockShuffle::new(n_rows, 42, epoch, block_rows, window_blocks);
    let rows = order(&shuffle);
    let mut seen = vec![false; n_rows as usize];
    let mut next = 0;
    for window in 0..shuffle.n_windows() {
        let positions = shuffle.positions(window);
        assert_eq!(positions.start, next, "window {window} of {case}");
        next = positions.end;
        let mut expected: Vec<usize> = shuffle.blocks(window).flatten().collect();
        expected.sort_unstable();
        let mut found = Vec::new();
        for position in positions {
            assert_eq!(shuffle.window(position), window, "position {position} of {case}");
            let row = rows[position as usize];
            assert!(!std::mem::replace(&mut seen[row as usize], true), "row {row} of {case} comes twice");
            found.push(row as usize);
        }
        found.sort_unstable();
        assert_eq!(found, expected, "rows of window {window} of {case}");
    }
    assert_eq!(next, n_rows, "positions of {case}");
    assert_eq!(shuffle.blocks(shuffle.n_windows()).count(), 0, "no window after the last of {case}");
}

#[test]
fn every_row_comes_once_in_its_window() {
    for n_rows in (0..70).chain([100, 255, 256, 257, 1000]) {
        for (block_rows, window_blocks) in [(1, 1), (1, 7), (2, 3), (3, 1), (4, 2), (16, 3), (64, 100), (1000, 1)] {
            for epoch in 0..3 {
                check_order(n_rows, epoch, block_rows, window_blocks);
            }
        }
    }
    check_order(100_003, 5, 1000, 8);
    check_order(100, 0, u32::MAX, u32::MAX);
}

/// Computed by an implementation of the specification in another language; the first by hand from the order of its blocks, 1 2 0.
#[test]
fn pinned_vectors() {
    #[track_caller]
    fn check(n_rows: u32, seed: u64, epoch: u32, block_rows: u32, window_blocks: u32, expected: &[u32]) {
        assert_eq!(order(&BlockShuffle::new(n_rows, seed, epoch, block_rows, window_blocks)), expected, "{n_rows} rows");
    }
    check(10, 42, 0, 4, 2, &[4, 7, 8, 5, 6, 9, 2, 0, 3, 1]);
    check(10, 42, 1, 4, 2, &[6, 5, 9, 8, 7, 4, 0, 1, 3, 2]);
    check(11, 7, 3, 3, 2, &[0, 3, 4, 2, 1, 5, 9, 6, 10, 7, 8]);
    check(6, 0, 0, 100, 3, &[1, 3, 5, 2, 0, 4]);
    check(7, 1, 0, 2, 1, &[0, 1, 6, 2, 3, 5, 4]);
    let shuffle = BlockShuffle::new(100_003, 0x0123_4567_89AB_CDEF, 5, 1000, 8);
    for (position, row) in [(0, 64_929), (7_999, 64_893), (8_000, 57_848), (50_001, 27_565), (100_002, 84_257)] {
        assert_eq!(shuffle.row(position), row, "position {position}");
    }
}

#[test]
#[should_panic(expected = "index 10 is out of range for a shuffle of 10 rows")]
fn a_position_beyond_the_end_is_named() {
    BlockShuffle::new(10, 0, 0, 3, 2).permute(&mut [4, 10]);
}

/// Mean distance of a row from its original position, relative to the number of rows: 1/3 for a full shuffle.
fn mean_displacement(rows: &[u32]) -> f64 {
    let total: f64 = rows.iter().zip(0..).map(|(&row, position)| f64::from(row.abs_diff(position))).sum();
    total / rows.len() as f64 / rows.len() as f64
}

/// The number of pairs of rows in one batch from the same block, relative to the mean of a full shuffle.
fn collisions(rows: &[u32], batch: usize, block_rows: u32) -> f64 {
    let n_blocks = (rows.len() as u32).div_ceil(block_rows) as usize;
    let mut n_pairs = 0_usize;
    for rows in rows.chunks_exact(batch) {
        let mut counts = vec![0_usize; n_blocks];
        rows.iter().for_each(|&row| counts[(row / block_rows) as usize] += 1);
        n_pairs += counts.iter().map(|n| n * n.saturating_sub(1) / 2).sum::<usize>();
    }
    let n_batches = rows.len() / batch;
    let expected = (batch * (batch - 1) / 2) as f64 * f64::from(block_rows - 1) / (rows.len() - 1) as f64;
    n_pairs as f64 / n_batches as f64 / expected
}

/// The randomness that a window costs, and no more. With windows of 32 of 256 blocks, rows move as far as in a full shuffle, and
/// a batch has 256/32 = 8 times as many pairs from the same block, as expected.
#[test]
fn a_window_is_as_random_as_its_size_allows() {
    const N_ROWS: u32 = 256 * 256;
    let full = {
        let mut rows: Vec<u32> = (0..N_ROWS).collect();
        Shuffle::new(N_ROWS, 1, 0).permute(&mut rows);
        rows
    };
    assert!((mean_displacement(&full) - 1.0 / 3.0).abs() < 0.005, "a full shuffle: {}", mean_displacement(&full));
    assert!((collisions(&full, 256, 256) - 1.0).abs() < 0.03, "a full shuffle: {}", collisions(&full, 256, 256));
    for (window_blocks, expected) in [(256, 1.0), (32, 8.0), (8, 32.0)] {
        let of_epochs = (0..4).map(|epoch| order(&BlockShuffle::new(N_ROWS, 1, epoch, 256, window_blocks)));
        let (moved, pairs): (Vec<f64>, Vec<f64>) =
            of_epochs.map(|rows| (mean_displacement(&rows), collisions(&rows, 256, 256))).unzip();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        // The order of only 256 blocks makes the distance vary by a hundredth.
        assert!((mean(&moved) - 1.0 / 3.0).abs() < 0.03, "{window_blocks} blocks a window move rows by {moved:?}");
        assert!((mean(&pairs) / expected - 1.0).abs() < 0.03, "{window_blocks} blocks a window have {pairs:?} times the pairs");
    }
}

#[test]
fn batches_by_blocks_resume_shard_and_come_ahead() {
    let source = numbered(1003, 2);
    let batching = Batching::of(32).shuffled_blocks(7, 50, 3);
    let expected = order(&BlockShuffle::new(1003, 7, 2, 50, 3));
    let ids = |batches: &[crate::batches::Owned]| -> Vec<u32> {
        batches.iter().flat_map(|batch| batch.ids[..batch.rows].to_vec()).collect()
    };
    let whole = all(&source, &batching, 2);
    assert_eq!(ids(&whole), expected);
    for taken in [0, 1, 15, 31] {
        assert_eq!(from(&source, &batching, 2, taken * 32), whole[taken..], "resumed after {taken} batches");
    }
    for ahead in [Ahead { depth: 1, workers: 1 }, Ahead { depth: 7, workers: 3 }] {
        assert_eq!(crate::prefetch::prefetched(&source, &batching, 2, 0, ahead), whole, "{ahead:?}");
    }
    let ranks: Vec<_> =
        (0..4).map(|rank| all(&source, &Batching { size: 8, ..batching.clone() }.shard(Shard::blocks(rank, 4)), 2)).collect();
    for (index, batch) in whole.iter().enumerate() {
        let global: Vec<u32> = ranks.iter().flat_map(|rank| rank[index].ids.clone()).collect();
        assert_eq!(global, batch.ids, "batch {index} over four ranks");
    }
}

/// A row was gathered, a range announced, or a range released.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Event {
    Row(u32),
    Announced(Range<usize>),
    ForLater(Range<usize>),
    Released(Range<usize>),
}

pub(crate) struct Recording(pub(crate) Rows, pub(crate) Mutex<Vec<Event>>);

impl RowSource for Recording {
    type Feature = f32;
    type Error = Error;
    fn layout(&self) -> Layout {
        self.0.layout()
    }
    fn gather(&self, rows: RowSelection<'_>, into: RowBuffers<'_, f32>) -> Result<(), Error> {
        rows.for_each_block(|_, rows| {
            self.1.lock().unwrap().extend(rows.iter().map(|&row| Event::Row(row)));
            Ok(())
        })?;
        self.0.gather(rows, into)
    }
    fn hint(&self, rows: RowSelection<'_>, hint: Hint) {
        if let RowSelection::Range(rows) = rows {
            let event = match hint {
                Hint::WillNeed => Event::Announced(rows),
                Hint::WillNeedLater => Event::ForLater(rows),
                Hint::DontNeed => Event::Released(rows),
            };
            self.1.lock().unwrap().push(event);
        }
    }
}

/// Checks that a row is gathered only while its block is announced and not released, that each block is announced once and
/// released once, and that at most `most` blocks are held.
#[track_caller]
fn check_events(events: &[Event], n_rows: usize, block_rows: usize, most: usize) {
    let mut is_held = vec![false; n_rows.div_ceil(block_rows)];
    let (mut n_announced, mut n_later) = (0, 0);
    for event in events {
        match event {
            Event::Row(row) => assert!(is_held[*row as usize / block_rows], "row {row} is gathered, but its block is not held"),
            Event::Announced(rows) => {
                assert_eq!((rows.start % block_rows, rows.end), (0, (rows.start + block_rows).min(n_rows)), "a block");
                assert!(!std::mem::replace(&mut is_held[rows.start / block_rows], true), "{rows:?} is announced twice");
                n_announced += 1;
                let n_held = is_held.iter().filter(|&&is_held| is_held).count();
                assert!(n_held <= most, "{n_held} blocks are held");
            }
            Event::ForLater(rows) => {
                assert!(!is_held[rows.start / block_rows], "{rows:?} is announced for later and held");
                n_later += 1;
            }
            Event::Released(rows) => {
                assert!(std::mem::take(&mut is_held[rows.start / block_rows]), "{rows:?} is released but not held");
            }
        }
    }
    assert!(is_held.iter().all(|is_held| !is_held), "all is released in the end");
    assert_eq!(n_announced, n_rows.div_ceil(block_rows), "blocks announced");
    assert!(n_later > 0, "some blocks are announced for later");
}

#[test]
fn the_source_is_told_of_blocks_in_time() {
    for size in [16, 100, 500] {
        let source = Recording(numbered(1010, 1), Mutex::default());
        let batching = Batching::of(size).shuffled_blocks(3, 50, 4);
        let events = || std::mem::take(&mut *source.1.lock().unwrap());
        let n_windows = size.div_ceil(200);
        let mut loader = Loader::new(&source, batching).unwrap();
        for epoch in 0..3 {
            let mut batches = loader.epoch(epoch);
            while batches.next_batch().unwrap().is_some() {}
            drop(batches);
            // The windows of a batch, which may begin and end within a window, and the one after.
            check_events(&events(), 1010, 50, (n_windows + 2) * 4);
        }
        thread::scope(|scope| {
            let mut ahead = loader.prefetch(scope, Ahead { depth: 2, workers: 1 });
            for epoch in 0..3 {
                let mut batches = ahead.epoch(epoch);
                while batches.next_batch().unwrap().is_some() {}
            }
        });
        let events = events();
        let epoch_ends: Vec<usize> = (0..events.len()).filter(|&i| is_whole(&events[..=i], 1010)).collect();
        assert_eq!(epoch_ends.len(), 3, "three epochs, each announced and released whole");
        let mut start = 0;
        for end in epoch_ends {
            check_events(&events[start..=end], 1010, 50, ((3 * size).div_ceil(200) + 2) * 4);
            start = end + 1;
        }
    }
}

/// Whether the last event releases the last block of an epoch, so that the number of released rows is that of whole epochs.
fn is_whole(events: &[Event], n_rows: usize) -> bool {
    let released = events.iter().map(|event| if let Event::Released(rows) = event { rows.len() } else { 0 });
    let is_release = matches!(events.last(), Some(Event::Released(_)));
    is_release && released.sum::<usize>() % n_rows == 0
}

#[test]
fn what_an_early_break_held_is_released() {
    let source = Recording(numbered(1000, 1), Mutex::default());
    let mut loader = Loader::new(&source, Batching::of(100).shuffled_blocks(3, 50, 2)).unwrap();
    loader.epoch_from(0, 300).unwrap().next_batch().unwrap();
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { depth: 2, workers: 2 });
        for epoch in 0..50 {
            ahead.epoch(epoch).next_batch().unwrap();
        }
    });
    // A worker may announce rows of an epoch that another one has just released: what counts is how often.
    let (mut n_held, mut are_for_later, mut are_released) = (vec![0_i32; 20], vec![false; 20], vec![false; 20]);
    for event in source.1.lock().unwrap().iter() {
        match event {
            Event::Row(_) => {}
            Event::Announced(rows) => n_held[rows.start / 50] += 1,
            Event::ForLater(rows) => are_for_later[rows.start / 50] = true,
            Event::Released(rows) => {
                n_held[rows.start / 50] -= 1;
                are_released[rows.start / 50] = true;
            }
        }
    }
    assert!(n_held.iter().all(|&n| n <= 0), "what was announced is released as often: {n_held:?}");
    assert!(are_for_later.iter().zip(&are_released).all(|(later, released)| *released || !later), "also what was for later");
}

#[test]
fn blocks_of_nothing_are_refused() {
    let rows = numbered(10, 1);
    let error = Loader::new(&rows, Batching::of(1).shuffled_blocks(0, 0, 4)).unwrap_err();
    assert_eq!(error.to_string(), "cannot shuffle 4 blocks of 0 rows; take at least 1 of each");
}
