//! The results of each operation on each rank.

use brisk_replicate::{Collective, CollectiveExt, Element, Error, ReduceOp, run_replicas};
use half::{bf16, f16};

use crate::late;

const WORLDS: [usize; 6] = [1, 2, 3, 4, 7, 8];
const LENGTHS: [usize; 7] = [0, 1, 3, 63, 65, 2048, 10_001];

/// A number that depends on rank and index, and is exact in every type.
fn value(rank: usize, i: usize) -> usize {
    (rank + 1) * (i % 5)
}

/// Checks the result of an all-reduce of `value`s on every rank.
#[track_caller]
fn check_all_reduce<T: Element + PartialEq + std::fmt::Debug>(
    reduce: ReduceOp,
    make: impl Fn(usize) -> T + Sync,
    expected: impl Fn(usize, usize) -> T,
) {
    for world in WORLDS {
        for len in LENGTHS {
            let results = run_replicas(world, |replica| {
                let mut values: Vec<T> = (0..len).map(|i| make(value(replica.rank(), i))).collect();
                replica.all_reduce(&mut values, reduce)?;
                Ok::<_, Error>(values)
            });
            let expected: Vec<T> = (0..len).map(|i| expected(world, i)).collect();
            for values in results.expect("no replica fails") {
                assert!(values == expected, "{reduce:?} of {len} on {world} ranks: {values:?}, not {expected:?}");
            }
        }
    }
}

/// 1 + 2 + … + world.
fn ranks(world: usize) -> usize {
    world * (world + 1) / 2
}

#[test]
fn sums_of_every_type() {
    check_all_reduce(ReduceOp::Sum, |v| v as f32, |world, i| (ranks(world) * (i % 5)) as f32);
    check_all_reduce(ReduceOp::Sum, |v| f16::from_f32(v as f32), |world, i| f16::from_f32((ranks(world) * (i % 5)) as f32));
    check_all_reduce(ReduceOp::Sum, |v| bf16::from_f32(v as f32), |world, i| bf16::from_f32((ranks(world) * (i % 5)) as f32));
    check_all_reduce(ReduceOp::Sum, |v| v as u8, |world, i| (ranks(world) * (i % 5)) as u8);
    check_all_reduce(ReduceOp::Sum, |v| v as u32, |world, i| (ranks(world) * (i % 5)) as u32);
}

#[test]
fn means_and_largest() {
    check_all_reduce(ReduceOp::Mean, |v| v as f32, |world, i| (ranks(world) * (i % 5)) as f32 * (1.0 / world as f32));
    check_all_reduce(ReduceOp::Max, |v| v as f32, |world, i| (world * (i % 5)) as f32);
    check_all_reduce(ReduceOp::Max, |v| v as u32, |world, i| (world * (i % 5)) as u32);
}

#[test]
fn the_largest_of_what_has_nan_is_nan() {
    let largest = run_replicas(3, |replica| {
        let mut values = [if replica.rank() == 1 { f32::NAN } else { 5.0 }, replica.rank() as f32];
        replica.all_reduce(&mut values, ReduceOp::Max)?;
        Ok::<_, Error>(values)
    });
    for [nan, two] in largest.expect("no replica fails") {
        assert!(nan.is_nan(), "{nan}");
        assert_eq!(two, 2.0);
    }
}

#[test]
fn halves_are_rounded_once() {
    // 2049 is not an f16: adding one by one to 2048 would stay there.
    let sums = run_replicas(5, |replica| {
        let mut values = [f16::from_f32(if replica.rank() == 0 { 2048.0 } else { 1.0 })];
        replica.all_reduce(&mut values, ReduceOp::Sum)?;
        Ok::<_, Error>(values[0].to_f32())
    });
    assert_eq!(sums, Ok(vec![2052.0; 5]));
}

/// The tree written out: spans of ranks that start at multiples of their length.
fn tree(values: &[f32]) -> f32 {
    match values {
        [one] => *one,
        _ => {
            let half = values.len().next_power_of_two() / 2;
            tree(&values[..half]) + tree(&values[half..])
        }
    }
}

#[test]
fn sums_are_taken_along_the_tree() {
    let awkward = |rank: usize, i: usize| ((rank * 7919 + i * 104_729) as f32).sin() * 10.0_f32.powi((rank as i32 % 5) - 2);
    for world in [2, 3, 5, 6, 8] {
        let sums = run_replicas(world, |replica| {
            let rank = replica.rank();
            let mut values: Vec<f32> = (0..5000).map(|i| awkward(rank, i)).collect();
            replica.all_reduce(&mut values, ReduceOp::Sum)?;
            Ok::<_, Error>(values)
        });
        let expected: Vec<f32> = (0..5000).map(|i| tree(&(0..world).map(|rank| awkward(rank, i)).collect::<Vec<_>>())).collect();
        for values in sums.expect("no replica fails") {
            assert!(values == expected, "not bit-identical to the tree on {world} ranks");
        }
    }
}

#[test]
fn shards_scattered_and_gathered() {
    for world in WORLDS {
        for len in [0, 1, 65, 2049] {
            let results = run_replicas(world, |replica| {
                let rank = replica.rank();
                let input: Vec<f32> = (0..world * len).map(|i| value(rank, i) as f32).collect();
                let mut shard = vec![0.0; len];
                replica.reduce_scatter(&input, &mut shard, ReduceOp::Sum)?;
                let mut whole = vec![0.0; world * len];
                replica.all_gather(&shard, &mut whole)?;
                Ok::<_, Error>(whole)
            });
            let expected: Vec<f32> = (0..world * len).map(|i| (ranks(world) * (i % 5)) as f32).collect();
            assert_eq!(results, Ok(vec![expected; world]), "{len} on {world} ranks");
        }
    }
}

#[test]
fn broadcast_from_every_root() {
    for world in WORLDS {
        for root in 0..world {
            let results = run_replicas(world, |replica| {
                let mut values = vec![replica.rank() as u32; 100];
                replica.broadcast(&mut values, root)?;
                replica.barrier()?;
                Ok::<_, Error>(values)
            });
            assert_eq!(results, Ok(vec![vec![root as u32; 100]; world]));
        }
    }
}

#[test]
fn many_operations_in_a_row() {
    let counts = run_replicas(3, |replica| {
        let mut count = [0_u32];
        for _ in 0..2000 {
            let mut one = [1_u32];
            replica.all_reduce(&mut one, ReduceOp::Sum)?;
            count[0] += one[0];
        }
        Ok::<_, Error>(count[0])
    });
    assert_eq!(counts, Ok(vec![6000; 3]));
}

#[test]
fn everything_repeats_bit_for_bit() {
    for world in [1, 3, 4] {
        let bits = || run_replicas(world, crate::sums::bits);
        assert_eq!(bits(), bits(), "{world} ranks");
    }
}

#[test]
fn a_late_rank_is_known_to_all() {
    for n in 2..=3 {
        run_replicas(n, late::check).expect("no replica fails");
    }
}
