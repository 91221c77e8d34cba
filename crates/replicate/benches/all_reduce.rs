//! All-reduce between threads against copies of the same bytes: `cargo bench -p brisk-replicate`.
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

use std::hint::black_box;
use std::time::Instant;

use brisk_replicate::{Collective, CollectiveExt, Element, Error, ReduceOp, run_replicas};
use half::{bf16, f16};

fn main() -> Result<(), Error> {
    let smoke = std::env::args().any(|arg| arg == "--smoke" || arg == "--test");
    let sizes: &[usize] = if smoke { &[4096] } else { &[1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20] };
    println!("bound: 2 (N - 1) / N of the bytes, at what each rank copies while all the others copy as well");
    for &n_bytes in sizes {
        for n_ranks in [2, 4] {
            measure(n_ranks, n_bytes, smoke, 1.0_f32)?;
        }
        measure(2, n_bytes, smoke, bf16::ONE)?;
        measure(2, n_bytes, smoke, f16::ONE)?;
    }
    Ok(())
}

/// Rounds of a copy and an all-reduce, each of values that the rank has just written; what the slowest rank took.
fn measure<T: Element + PartialEq>(n_ranks: usize, n_bytes: usize, smoke: bool, one: T) -> Result<(), Error> {
    let len = n_bytes / size_of::<T>();
    let n_rounds = if smoke { 1 } else { ((2 << 30) / n_bytes).clamp(11, 400) };
    let times = run_replicas(n_ranks, |replica| {
        let (mut source, mut copy, mut values) = (vec![one; len], vec![one; len], vec![one; len]);
        let mut times = Vec::new();
        for _ in 0..=n_rounds {
            source.fill(one);
            let copied = together(replica, |_| {
                black_box(&mut copy).copy_from_slice(black_box(&source));
                Ok(())
            })?;
            values.fill(one);
            let reduced = together(replica, |replica| replica.all_reduce(&mut values, ReduceOp::Mean))?;
            assert!(values.iter().all(|&value| value == one), "the mean of ones is one");
            times.push([copied, reduced]);
        }
        Ok::<_, Error>(times)
    })?;
    // The first round warms up.
    let slowest = |side: usize, round: usize| times.iter().map(|times| times[round][side]).fold(0.0, f64::max);
    let share = 2.0 * (n_ranks - 1) as f64 / n_ranks as f64;
    let bounds: Vec<_> = (1..=n_rounds).map(|round| share * slowest(0, round)).collect();
    let reduced: Vec<_> = (1..=n_rounds).map(|round| slowest(1, round)).collect();
    let ratios = bounds.iter().zip(&reduced).map(|(bound, reduced)| bound / reduced).collect();
    println!(
        "{:>4} over {n_ranks} ranks, {:>6} KiB: {:>9.1} us, {:.2} of the bound's {:>9.1} us",
        format!("{:?}", T::TYPE),
        n_bytes >> 10,
        median(reduced) * 1e6,
        median(ratios),
        median(bounds) * 1e6,
    );
    Ok(())
}

/// The time of `work`, begun by all ranks at once: whoever slept before the first barrier is awake at the second.
fn together<C: Collective>(replica: &mut C, work: impl FnOnce(&mut C) -> Result<(), Error>) -> Result<f64, Error> {
    replica.barrier()?;
    replica.barrier()?;
    let since = Instant::now();
    work(replica)?;
    Ok(since.elapsed().as_secs_f64())
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
