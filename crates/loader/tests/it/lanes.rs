use std::ops::Range;
use std::sync::Mutex;

use brisk_loader::{Ahead, Batching, LaneShuffle, Lanes, LastBatch, Loader, Order, Shard};

use crate::batches::{Owned, all, from};
use crate::blocks::{Event, Recording};
use crate::prefetch::prefetched;
use crate::source::numbered;

fn lanes(seed: Option<u64>, batch_rows: u32, n_lanes: u32, block_rows: u32, window_blocks: u32) -> Lanes {
    Lanes { seed, batch_rows, n_lanes, block_rows, window_blocks }
}

fn order(n_rows: u32, lanes: Lanes, epoch: u32) -> Vec<u32> {
    let mut rows: Vec<u32> = (0..n_rows).collect();
    LaneShuffle::new(n_rows, lanes, epoch).permute(&mut rows);
    rows
}

/// Computed by an implementation of the specification in another language.
#[test]
fn pinned_vectors() {
    #[track_caller]
    fn check(n_rows: u32, epoch: u32, lanes: Lanes, expected: &[u32]) {
        assert_eq!(order(n_rows, lanes, epoch), expected, "{n_rows} rows, {lanes}");
    }
    check(11, 0, lanes(None, 4, 2, 2, 1), &[0, 1, 6, 7, 2, 3, 8, 9, 4, 5, 10]);
    let of_epochs: [&[u32]; 2] = [
        &[5, 6, 10, 9, 22, 21, 7, 4, 11, 8, 20, 18, 0, 1, 14, 15, 19, 16, 3, 2, 13, 12, 17],
        &[3, 1, 13, 15, 16, 17, 0, 2, 12, 14, 19, 18, 4, 5, 11, 10, 21, 22, 6, 7, 8, 9, 20],
    ];
    check(23, 0, lanes(Some(42), 6, 3, 4, 1), of_epochs[0]);
    check(23, 1, lanes(Some(42), 6, 3, 4, 1), of_epochs[1]);
    let two_blocks_a_window =
        [12, 8, 7, 13, 20, 17, 18, 19, 6, 14, 5, 3, 16, 29, 27, 23, 4, 15, 10, 1, 22, 21, 28, 26, 2, 11, 0, 9, 25, 24];
    check(30, 5, lanes(Some(7), 8, 2, 3, 2), &two_blocks_a_window);
    check(10, 0, lanes(Some(1), 4, 4, 100, 3), &[2, 3, 6, 8, 0, 4, 7, 9, 1, 5]);
    check(5, 3, lanes(Some(9), 8, 2, 2, 1), &[1, 0, 2, 3, 4]);
    let shuffle = LaneShuffle::new(100_003, lanes(Some(0x0123_4567_89AB_CDEF), 1024, 16, 1000, 2), 5);
    for (position, row) in [(0, 5662), (63, 1479), (64, 9766), (8000, 87_121), (50_001, 81_511), (100_002, 64_612)] {
        assert_eq!(shuffle.row(position), row, "position {position}");
    }
}

/// Checks that every row occurs once, and that each batch takes its rows of each lane, in the order of the lanes.
#[track_caller]
fn check_order(n_rows: u32, epoch: u32, lanes: Lanes) {
    let shuffle = LaneShuffle::new(n_rows, lanes, epoch);
    let rows = order(n_rows, lanes, epoch);
    let mut sorted = rows.clone();
    sorted.sort_unstable();
    assert!(sorted.into_iter().eq(0..n_rows), "every row of {n_rows} once, {lanes}");
    let in_lane = lanes.batch_rows / lanes.n_lanes;
    for (batch, of_batch) in rows.chunks(lanes.batch_rows as usize).enumerate() {
        for (lane, rows) in (0..).zip(of_batch.chunks(in_lane as usize)) {
            let region = shuffle.lane(lane);
            assert!(rows.iter().all(|row| region.contains(row)), "batch {batch} of {n_rows}, {lanes}: {rows:?} of {region:?}");
        }
    }
    let regions: Vec<Range<u32>> = (0..lanes.n_lanes).map(|lane| shuffle.lane(lane)).collect();
    assert_eq!((regions[0].start, regions[regions.len() - 1].end), (0, n_rows), "{lanes}");
    assert!(regions.windows(2).all(|pair| pair[0].end == pair[1].start), "{regions:?} touch");
    assert!(shuffle.lane(lanes.n_lanes).is_empty() && shuffle.lane(u32::MAX).is_empty(), "no lane after the last");
    // One row at a time, in another order, gives the same rows.
    assert!((0..n_rows).rev().all(|position| shuffle.row(position) == rows[position as usize]), "{n_rows} rows, {lanes}");
}

#[test]
fn every_row_comes_once_in_its_lane() {
    for n_rows in (0..40).chain([100, 257, 1000]) {
        for (batch_rows, n_lanes) in [(1, 1), (4, 4), (6, 3), (6, 1), (48, 8), (300, 20)] {
            for (block_rows, window_blocks) in [(1, 1), (1, 7), (3, 1), (4, 2), (16, 3), (1000, 1), (u32::MAX, u32::MAX)] {
                check_order(n_rows, n_rows % 3, lanes(Some(42), batch_rows, n_lanes, block_rows, window_blocks));
            }
            check_order(n_rows, 0, lanes(None, batch_rows, n_lanes, 4, 2));
        }
    }
}

#[test]
#[should_panic(expected = "index 10 is out of range for a shuffle of 10 rows")]
fn a_position_beyond_the_end_is_named() {
    LaneShuffle::new(10, lanes(Some(0), 4, 2, 3, 2), 0).permute(&mut [4, 10]);
}

const N_ROWS: usize = 1003;
const BATCH: usize = 48;

fn in_lanes() -> Batching {
    Batching { order: Order::Lanes(lanes(Some(7), BATCH as u32, 8, 10, 2)), ..Batching::of(BATCH) }
}

fn ids(batch: &Owned) -> &[u32] {
    &batch.ids[..batch.rows]
}

/// The rows of each batch of all ranks, given those of each rank.
fn global(ranks: &[Vec<Owned>]) -> Vec<Vec<u32>> {
    let n_batches = ranks[0].len();
    assert!(ranks.iter().all(|batches| batches.len() == n_batches), "every rank has as many batches");
    (0..n_batches).map(|nth| ranks.iter().flat_map(|batches| ids(&batches[nth]).to_vec()).collect()).collect()
}

#[test]
fn the_batches_are_the_same_on_any_number_of_ranks() {
    let source = numbered(N_ROWS, 2);
    let single = all(&source, &in_lanes(), 3);
    let expected: Vec<Vec<u32>> = single.iter().map(|batch| ids(batch).to_vec()).collect();
    assert_eq!(expected.concat(), order(N_ROWS as u32, lanes(Some(7), BATCH as u32, 8, 10, 2), 3));
    for world in [1, 2, 3, 5, 7, 8, 48, 50] {
        let ranks = |position| -> Vec<Vec<Owned>> {
            (0..world).map(|rank| from(&source, &in_lanes().shard(Shard::parts(rank, world)), 3, position)).collect()
        };
        assert_eq!(global(&ranks(0)), expected, "{world} ranks");
        assert_eq!(global(&ranks(5 * BATCH)), expected[5..], "{world} ranks, resumed");
        for ahead in [Ahead { depth: 1, workers: 1 }, Ahead { depth: 7, workers: 3 }] {
            let made = |rank| prefetched(&source, &in_lanes().shard(Shard::parts(rank, world)), 3, 0, ahead);
            assert_eq!((0..world).map(made).collect::<Vec<_>>(), ranks(0), "{world} ranks, {ahead:?}");
        }
        // Padding is this rank's own, so that all batches have room for its part.
        for (rank, batches) in ranks(0).iter().enumerate() {
            let part = Shard::parts(rank, world).part(BATCH).len();
            assert!(batches.iter().all(|batch| batch.ids.len() == part), "rank {rank} of {world}");
        }
    }
}

#[test]
fn parts_of_several_batches_come_one_after_the_other() {
    let source = numbered(N_ROWS, 2);
    for world in [1, 3, 8, 50] {
        for (rank, n_batches) in (0..world).flat_map(|rank| [1, 4, 100].map(|n_batches| (rank, n_batches))) {
            let shard = Shard::parts(rank, world);
            let of_each = all(&source, &in_lanes().shard(shard).last(LastBatch::Short), 1);
            let expected: Vec<u32> = of_each.iter().flat_map(|batch| ids(batch).to_vec()).collect();
            for last in [LastBatch::Pad, LastBatch::Short] {
                let several = Batching { size: n_batches * BATCH, ..in_lanes() }.shard(shard.of_n_batches(n_batches)).last(last);
                let found = all(&source, &several, 1);
                assert_eq!(found.len(), N_ROWS.div_ceil(n_batches * BATCH), "{n_batches} at a time");
                let found: Vec<u32> = found.iter().flat_map(|batch| ids(batch).to_vec()).collect();
                assert_eq!(found, expected, "rank {rank} of {world}, {n_batches} batches at a time");
            }
        }
    }
}

#[test]
fn parts_are_of_any_order() {
    let source = numbered(101, 1);
    for batching in [Batching::of(20), Batching::of(20).shuffled(3), Batching::of(20).shuffled_blocks(3, 7, 2)] {
        let expected: Vec<Vec<u32>> = all(&source, &batching, 0).iter().map(|batch| ids(batch).to_vec()).collect();
        for n_batches in [1, 3] {
            let several = Batching { size: 20 * n_batches, ..batching.clone() };
            let rank = |rank| all(&source, &several.clone().shard(Shard::parts(rank, 3).of_n_batches(n_batches)), 0);
            let mut found: Vec<u32> = global(&[0, 1, 2].map(rank)).concat();
            let mut rows = expected.concat();
            if n_batches > 1 {
                // Of several batches, a rank has its parts one after the other.
                found.sort_unstable();
                rows.sort_unstable();
            }
            assert_eq!(found, rows, "{}", batching.order);
        }
    }
}

#[test]
fn an_epoch_continues_on_another_number_of_ranks() {
    let source = numbered(N_ROWS, 1);
    let whole: Vec<Vec<u32>> = all(&source, &in_lanes(), 2).iter().map(|batch| ids(batch).to_vec()).collect();
    let mut state = Loader::new(&source, in_lanes()).unwrap().epoch(2).state();
    let mut found = Vec::new();
    for (world, n_batches) in [(8, 4), (3, 7), (5, usize::MAX)] {
        let ranks = (0..world).map(|rank| {
            let mut loader = Loader::new(&source, in_lanes().shard(Shard::parts(rank, world))).unwrap();
            let mut batches = loader.resume(&state).unwrap();
            let mut taken: Vec<Owned> = Vec::new();
            while taken.len() < n_batches {
                let Some(batch) = batches.next_batch().unwrap() else { break };
                taken.push(batch.into());
            }
            (taken, batches.state())
        });
        let (ranks, states): (Vec<_>, Vec<_>) = ranks.unzip();
        assert!(states.iter().all(|state| *state == states[0]), "the state is the same on all ranks");
        found.extend(global(&ranks));
        state = states[0].clone();
    }
    assert_eq!(found, whole);
    assert_eq!(state.to_string(), "brisk-loader 1 epoch=2 position=1003 n_rows=1003 fingerprint=none order=lanes:7:48:8:10:2");
}

/// Checks that rows are gathered only while they are announced and not released, each once, and returns how often each row is
/// announced.
fn announced(events: &[Event], most: usize) -> Vec<usize> {
    let (mut held, mut counts) = (vec![0_usize; N_ROWS], vec![0_usize; N_ROWS]);
    for event in events {
        match event {
            Event::Row(row) => assert_eq!(held[*row as usize], 1, "row {row} is gathered, but not held"),
            Event::Announced(rows) => rows.clone().for_each(|row| (held[row], counts[row]) = (held[row] + 1, counts[row] + 1)),
            Event::ForLater(_) => {}
            Event::Released(rows) => rows.clone().for_each(|row| held[row] -= 1),
        }
        let n_held: usize = held.iter().sum();
        assert!(n_held <= most, "{n_held} rows are held");
    }
    assert!(held.iter().all(|&n| n == 0), "all is released in the end");
    counts
}

#[test]
fn a_rank_announces_only_its_lanes() {
    let shuffle = LaneShuffle::new(N_ROWS as u32, lanes(Some(7), BATCH as u32, 8, 10, 2), 0);
    for seed in [Some(7), None] {
        let batching = Batching { order: Order::Lanes(lanes(seed, BATCH as u32, 8, 10, 2)), ..Batching::of(BATCH) };
        // With ranks that do not divide the lanes, those that a boundary of parts falls into are announced by both sides: rows 16
        // and 32 of 48, in lanes of 6. With 16 ranks, two read each lane.
        let sixteen = [0, 1, 2, 3, 4, 5, 6, 7];
        for (world, shared) in [(1, &[][..]), (2, &[]), (4, &[]), (8, &[]), (3, &[2, 5]), (5, &[1, 3, 4, 6]), (16, &sixteen)] {
            let mut times = vec![0; N_ROWS];
            for rank in 0..world {
                let source = Recording(numbered(N_ROWS, 1), Mutex::default());
                let _batches = all(&source, &batching.clone().shard(Shard::parts(rank, world)), 0);
                let n_lanes = 8_usize.div_ceil(world) + usize::from(!shared.is_empty());
                // The windows that are in use, the next ones, and those that begin earlier in a lane whose first block is short.
                let counts = announced(&source.1.lock().unwrap(), n_lanes * 4 * 20);
                times.iter_mut().zip(counts).for_each(|(times, count)| *times += count);
            }
            for lane in 0..8 {
                let expected = if shared.contains(&lane) { 2 } else { 1 };
                let rows = shuffle.lane(lane);
                let found = &times[rows.start as usize..rows.end as usize];
                assert!(found.iter().all(|&n| n == expected), "lane {lane} on {world} ranks, {found:?}");
            }
        }
    }
}

#[test]
fn batches_of_another_size_need_all_lanes() {
    let source = Recording(numbered(N_ROWS, 1), Mutex::default());
    let batching = Batching { size: 32, ..in_lanes() }.shard(Shard::parts(0, 2));
    let counts = {
        let _batches = all(&source, &batching, 0);
        announced(&source.1.lock().unwrap(), N_ROWS)
    };
    assert_eq!(counts, [1; N_ROWS], "every row, once");
}

#[test]
fn lanes_that_do_not_divide_a_batch_are_refused() {
    let rows = numbered(10, 1);
    let error = |order, shard, size| {
        let batching = Batching { order, shard, ..Batching::of(size) };
        Loader::new(&rows, batching).unwrap_err().to_string()
    };
    let found = error(Order::Lanes(lanes(None, 10, 3, 4, 1)), Shard::WHOLE, 10);
    assert!(found.contains("10 rows") && found.contains("3 lanes"), "{found}");
    for (batch_rows, n_lanes) in [(10, 0), (0, 1)] {
        error(Order::Lanes(lanes(None, batch_rows, n_lanes, 4, 1)), Shard::WHOLE, 10);
    }
    let found = error(Order::Lanes(lanes(None, 10, 5, 0, 1)), Shard::WHOLE, 10);
    assert!(found.contains("1 blocks of 0 rows"), "{found}");
    let found = error(Order::Sequential, Shard::parts(0, 2).of_n_batches(3), 10);
    assert!(found.contains("10 rows") && found.contains("3 batches"), "{found}");
    let found = error(Order::Sequential, Shard::parts(2, 2), 10);
    assert!(found.contains("rank 2"), "{found}");
}
