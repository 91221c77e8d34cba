//! Predicted costs of communication, against values worked out by hand.

use std::time::Duration;

use brisk_replicate::{Algorithm, Link, ReadBound, StepCost, TableReading, ZeroStage};

const MS: fn(u64) -> Duration = Duration::from_millis;

/// One millisecond per message, one megabyte per millisecond.
const LINK: Link = Link { latency: Duration::from_millis(1), bytes_per_s: 1e9 };

#[track_caller]
fn check(step: &StepCost, n_ranks: usize, stage: ZeroStage, algorithm: Algorithm, expected_ms: f64) {
    let found = step.predicted(n_ranks, stage, LINK, algorithm).as_secs_f64() * 1e3;
    assert!((found - expected_ms).abs() < 1e-6, "{stage:?} on {n_ranks} by {algorithm:?}: {found} ms, not {expected_ms}");
}

#[test]
fn all_reduces() {
    let ms = |n_ranks, algorithm| LINK.all_reduce(n_ranks, 8_000_000, algorithm).as_secs_f64() * 1e3;
    assert_eq!(ms(1, Algorithm::Ring), 0.0);
    // 2 messages, 8 MB in all; 6 and 12 MB; 4 and 12 MB.
    for (n_ranks, algorithm, expected) in [(2, Algorithm::Ring, 10.0), (4, Algorithm::Ring, 18.0), (4, Algorithm::Tree, 16.0)] {
        assert!((ms(n_ranks, algorithm) - expected).abs() < 1e-6, "{n_ranks} by {algorithm:?}: {}", ms(n_ranks, algorithm));
    }
}

#[test]
fn steps() {
    let step = |bucket_bytes| StepCost { forward: MS(10), backward: MS(20), update: MS(4), bucket_bytes };
    // A single rank sends nothing.
    check(&step(vec![2_000_000; 2]), 1, ZeroStage::Replicated, Algorithm::Ring, 34.0);
    check(&step(vec![]), 8, ZeroStage::Replicated, Algorithm::Ring, 34.0);
    // The 2 MB of a bucket take 4 ms, which are hidden for the first and exposed for the last.
    check(&step(vec![2_000_000; 2]), 2, ZeroStage::Replicated, Algorithm::Ring, 38.0);
    // Half of that after backward, half of the update, then 4 MB are gathered: a message and 2 MB.
    check(&step(vec![2_000_000; 2]), 2, ZeroStage::Gradients, Algorithm::Ring, 30.0 + 2.0 + 2.0 + 3.0);
    // 20 MB take 22 ms each: the second waits for the first.
    check(&step(vec![20_000_000; 2]), 2, ZeroStage::Replicated, Algorithm::Ring, 20.0 + 22.0 + 22.0 + 4.0);
    // Parameters are gathered before each pass, 2 ms per bucket: only the first is waited for, and the backward pass already has
    // its first.
    check(&step(vec![2_000_000; 2]), 2, ZeroStage::Parameters, Algorithm::Ring, 2.0 + 10.0 + 20.0 + 2.0 + 2.0);
    // Sharding only the optimizer's state causes the same traffic as sharding the gradients too.
    check(&step(vec![2_000_000; 2]), 2, ZeroStage::Optimizer, Algorithm::Ring, 30.0 + 2.0 + 2.0 + 3.0);
}

#[test]
fn buckets_take_of_the_passes_what_they_have_of_the_bytes() {
    let step = StepCost { forward: MS(10), backward: MS(20), update: MS(4), bucket_bytes: vec![1_000_000, 3_000_000] };
    // Ready after 5 ms and 20 ms; the first takes 3 ms and is hidden, the 5 ms of the second are not.
    check(&step, 2, ZeroStage::Replicated, Algorithm::Ring, 10.0 + 20.0 + 5.0 + 4.0);
    // The other way round: ready after 15 ms and 20 ms, and 3 ms follow.
    let step = StepCost { bucket_bytes: vec![3_000_000, 1_000_000], ..step };
    check(&step, 2, ZeroStage::Replicated, Algorithm::Ring, 10.0 + 20.0 + 3.0 + 4.0);
}

#[test]
fn a_link_that_is_slower_than_the_passes() {
    let step = StepCost { forward: MS(2), backward: MS(2), update: MS(0), bucket_bytes: vec![2_000_000; 2] };
    // 4 ms per bucket, the first from 3 ms on.
    check(&step, 2, ZeroStage::Replicated, Algorithm::Ring, 3.0 + 4.0 + 4.0);
    // Forward: the first bucket is gathered until 2 ms and computed until 3, the next is gathered from 2 until 4 and computed
    // until 5. Backward: computed from 5 to 6 with those parameters; those of the first layers are gathered again from 5 until 7,
    // gradients reduced until 9; computed from 7 until 8, reduced until 11.
    check(&step, 2, ZeroStage::Parameters, Algorithm::Ring, 11.0);
}

#[test]
fn a_link_is_found_from_two_all_reduces() {
    for (n_ranks, algorithm) in [(2, Algorithm::Ring), (4, Algorithm::Ring), (4, Algorithm::Tree)] {
        let timed = |n_bytes| (n_bytes, LINK.all_reduce(n_ranks, n_bytes, algorithm));
        let found =
            Link::of_all_reduces(n_ranks, algorithm, [timed(1_000_000), timed(8_000_000)]).expect("a longer one takes longer");
        assert_eq!(found.latency.as_micros(), 1000, "{n_ranks} by {algorithm:?}");
        assert!((found.bytes_per_s / LINK.bytes_per_s - 1.0).abs() < 1e-6, "{found:?}");
    }
    assert_eq!(Link::of_all_reduces(2, Algorithm::Ring, [(1000, MS(3)), (2000, MS(3))]), None);
    assert_eq!(Link::of_all_reduces(1, Algorithm::Ring, [(1000, MS(3)), (2000, MS(4))]), None);
}

#[test]
fn efficiency_falls_with_ranks_and_never_rises_above_what_is_computed() {
    let step = StepCost { forward: MS(10), backward: MS(20), update: MS(4), bucket_bytes: vec![1 << 20; 8] };
    let stages = [ZeroStage::Replicated, ZeroStage::Optimizer, ZeroStage::Gradients, ZeroStage::Parameters];
    for stage in stages {
        let of = |n_ranks| step.efficiency(n_ranks, stage, LINK, Algorithm::Ring);
        let efficiencies: Vec<_> = [8, 16, 64, 256, 1024, 4096].map(of).to_vec();
        assert!(efficiencies.windows(2).all(|pair| pair[0] > pair[1]), "{stage:?}: {efficiencies:?}");
        assert!(efficiencies[0] < 34.0 / 30.0, "{stage:?}: {efficiencies:?}");
    }
}

/// 1 GB in blocks of 1 MB and 100 lanes; a server of 1 GB/s, hosts of 100 MB/s with two ranks each.
const TABLE: TableReading = TableReading {
    table_bytes: 1e9,
    n_shards: 10,
    n_lanes: 100,
    window_bytes: 100e3,
    block_bytes: 1e6,
    requests_at_a_time: 8,
    latency: Duration::from_millis(20),
    server_bytes_per_s: 1e9,
    host_bytes_per_s: 100e6,
    ranks_per_host: 2,
    cached: 0.0,
    cache_bytes_per_s: 400e6,
    rank_cache_bytes_per_s: 250e6,
};

#[track_caller]
fn check_reading(table: &TableReading, n_ranks: usize, bound: ReadBound, expected_s: f64) {
    assert_eq!(table.bound(n_ranks), bound, "{n_ranks} ranks");
    let found = table.read(n_ranks).as_secs_f64();
    assert!((found - expected_s).abs() < 1e-6, "{n_ranks} ranks: {found} s, not {expected_s}");
}

#[test]
fn reading() {
    // A request takes 20 ms and 10 ms: eight at a time are faster than the host.
    check_reading(&TABLE, 1, ReadBound::Host, 0.02 + 10.0);
    // Two share a host; each also reads the rest of two blocks.
    check_reading(&TABLE, 2, ReadBound::Host, 0.02 + (500e6 + 1e6) / 50e6);
    check_reading(&TABLE, 4, ReadBound::Host, 0.02 + (250e6 + 1e6) / 50e6);
    check_reading(&TABLE, 100, ReadBound::Server, 0.02 + (10e6 + 1e6) / 10e6);
    // One request at a time.
    check_reading(&TableReading { requests_at_a_time: 1, ..TABLE }, 1, ReadBound::Requests, 0.02 + 1000.0 * 0.03);
    // All of it is in the cache; half of it is, which is read meanwhile.
    check_reading(&TableReading { cached: 1.0, ..TABLE }, 1, ReadBound::Cache, 1e9 / 250e6);
    check_reading(&TableReading { cached: 1.0, ..TABLE }, 2, ReadBound::Cache, 501e6 / 200e6);
    check_reading(&TableReading { cached: 0.5, ..TABLE }, 2, ReadBound::Host, 0.02 + 250.5e6 / 50e6);
}

#[test]
fn ranks_that_do_not_divide_the_lanes_share_some() {
    let lanes = |n_lanes, n_ranks| TableReading { n_lanes, ..TABLE }.rank_lanes(n_ranks);
    assert_eq!([1, 2, 4, 64, 128].map(|n_ranks| lanes(64, n_ranks)), [64, 32, 16, 1, 1]);
    // The first of three has a third of the 22nd lane, and the second the rest of it; the second of six has parts of two.
    assert_eq!([3, 6, 48, 63].map(|n_ranks| lanes(64, n_ranks)), [22, 12, 2, 2]);
    let bytes = TableReading { n_lanes: 64, ..TABLE }.rank_bytes(3);
    assert!((bytes - (1e9 * 22.0 / 64.0 + 1e6)).abs() < 1.0, "{bytes}");
    // More ranks than lanes read no faster.
    check_reading(&TABLE, 200, ReadBound::Server, 0.02 + (10e6 + 1e6) / 5e6);
}

#[test]
fn the_shorter_of_reading_and_computing_is_hidden_but_for_a_window() {
    let epoch = |table: &TableReading, compute| table.epoch(1, Duration::from_secs(compute)).as_secs_f64();
    // A window of all lanes is a hundredth of the 10.02 s of reading.
    for (compute, expected) in [(0, 10.02), (5, 10.02 + 0.05), (20, 20.0 + 0.1002)] {
        let found = epoch(&TABLE, compute);
        assert!((found - expected).abs() < 1e-6, "{compute} s: {found}");
    }
    let found = epoch(&TableReading { window_bytes: f64::INFINITY, ..TABLE }, 5);
    assert!((found - 15.02).abs() < 1e-6, "in turns: {found}");
}

#[test]
fn opening() {
    // The index, then eight beginnings and two, and their bytes.
    assert!((TABLE.open(1).as_secs_f64() - (0.06 + 10e6 / 100e6)).abs() < 1e-6, "{:?}", TABLE.open(1));
}
