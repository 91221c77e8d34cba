//! Every operation once, on numbers that depend on the rank: for threads and for processes.

use brisk_replicate::{Collective, CollectiveExt, Element, Error, ReduceOp};
use half::{bf16, f16};

/// A hash of the results of all operations, which is the same on every rank.
pub(crate) fn bits(replica: &mut impl Collective) -> Result<u64, Error> {
    let (rank, n) = (replica.rank(), replica.world_size());
    let mut bits = 0xcbf2_9ce4_8422_2325_u64;
    let mut take = |number: u32| bits = (bits ^ u64::from(number)).wrapping_mul(0x0000_0100_0000_01b3);
    // More than a piece, and not a multiple of anything.
    for len in [0, 1, 1000, 300_007] {
        let mut floats: Vec<f32> = (0..len).map(|i| ((rank * 7919 + i) as f32).sin()).collect();
        replica.all_reduce(&mut floats, ReduceOp::Mean)?;
        floats.iter().for_each(|value| take(value.to_bits()));
    }
    let mut halves: Vec<f16> = (0..777).map(|i| f16::from_f32((rank + i) as f32 / 3.0)).collect();
    replica.all_reduce(&mut halves, ReduceOp::Sum)?;
    halves.iter().for_each(|value| take(u32::from(value.to_bits())));
    let mut largest: Vec<bf16> = (0..777).map(|i| bf16::from_f32(((rank * 31 + i) % 17) as f32)).collect();
    replica.all_reduce(&mut largest, ReduceOp::Max)?;
    largest.iter().for_each(|value| take(u32::from(value.to_bits())));
    let mut flags = [rank as u32, 7];
    replica.all_reduce(&mut flags, ReduceOp::Max)?;
    assert_eq!(flags, [n as u32 - 1, 7], "the largest rank");

    let input: Vec<f32> = (0..n * 513).map(|i| ((rank * 104_729 + i) as f32).cos()).collect();
    let (mut shard, mut whole) = (vec![0.0; 513], vec![0.0; n * 513]);
    replica.reduce_scatter(&input, &mut shard, ReduceOp::Sum)?;
    replica.all_gather(&shard, &mut whole)?;
    whole.iter().for_each(|value: &f32| take(value.to_bits()));
    let (nothing, mut shard, mut whole): (Vec<f32>, Vec<f32>, Vec<f32>) = Default::default();
    replica.reduce_scatter(&nothing, &mut shard, ReduceOp::Sum)?;
    replica.all_gather(&shard, &mut whole)?;
    replica.broadcast(&mut whole, 0)?;
    around_the_limit::<f32>(replica, |number| number as f32 / 3.0, &mut take)?;
    around_the_limit::<f16>(replica, |number| f16::from_f32(number as f32 / 3.0), &mut take)?;
    around_the_limit::<bf16>(replica, |number| bf16::from_f32(number as f32 / 3.0), &mut take)?;
    around_the_limit::<u8>(replica, |number| number as u8, &mut take)?;
    around_the_limit::<u32>(replica, |number| number.wrapping_mul(0x9e37_79b9), &mut take)?;
    let mut text = if rank == n - 1 { *b"from the last rank" } else { [0; 18] };
    replica.broadcast(&mut text, n - 1)?;
    assert_eq!(&text, b"from the last rank", "rank {rank}");
    Ok(bits)
}

/// The most bytes that the first message of an operation carries over MPI, with `n` ranks.
pub(crate) fn limit(n: usize) -> usize {
    (16 << 10).min((64 << 10) / n) / 4 * 4
}

/// Every operation on as many values as the first message carries, and on one fewer and one more.
fn around_the_limit<T: Element>(
    replica: &mut impl Collective,
    value: impl Fn(u32) -> T,
    take: &mut impl FnMut(u32),
) -> Result<(), Error> {
    let (rank, n) = (replica.rank(), replica.world_size());
    let most = limit(n) / size_of::<T>();
    let values = |len: usize| -> Vec<T> { (0..len).map(|i| value(((rank * 7919 + i * 31) % 251) as u32)).collect() };
    let mut take_all = |values: &[T]| bytemuck::cast_slice(values).iter().for_each(|&byte: &u8| take(byte.into()));
    for len in [0, 1, most - 1, most, most + 1] {
        for reduce in [ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max] {
            if reduce == ReduceOp::Mean && !T::TYPE.is_float() {
                continue;
            }
            let mut reduced = values(len);
            replica.all_reduce(&mut reduced, reduce)?;
            take_all(&reduced);
            let mut shard = vec![T::zeroed(); len / n];
            replica.reduce_scatter(&values(len / n * n), &mut shard, reduce)?;
            let mut whole = vec![T::zeroed(); shard.len() * n];
            replica.all_gather(&shard, &mut whole)?;
            take_all(&whole);
        }
        let mut gathered = vec![T::zeroed(); len * n];
        replica.all_gather(&values(len), &mut gathered)?;
        take_all(&gathered);
        let mut sent = values(len);
        replica.broadcast(&mut sent, n / 2)?;
        take_all(&sent);
    }
    Ok(())
}
