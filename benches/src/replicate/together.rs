use std::time::Instant;

use brisk_replicate::{Collective, CollectiveExt, Error, ReduceOp};

/// The time of `work` on the slowest rank. All ranks begin at the same time: a rank that slept before the first barrier is awake
/// at the second.
pub(crate) fn together<C: Collective>(replica: &mut C, work: impl FnOnce(&mut C) -> Result<(), Error>) -> Result<f64, Error> {
    replica.barrier()?;
    replica.barrier()?;
    let since = Instant::now();
    work(replica)?;
    let mut seconds = [since.elapsed().as_secs_f32()];
    replica.all_reduce(&mut seconds, ReduceOp::Max)?;
    Ok(f64::from(seconds[0]))
}

/// One side of a comparison, which returns the time it took.
pub(crate) type Side<'a, C> = &'a mut dyn FnMut(&mut C) -> Result<f64, Error>;

/// Rounds in which the sides alternate; the figure of a round is the minimum of `n_calls`, since other processes use the machine
/// too. A preceding round warms up.
pub(crate) fn rounds<C: Collective, const N: usize>(
    replica: &mut C,
    (n_rounds, n_calls): (usize, usize),
    mut sides: [Side<'_, C>; N],
) -> Result<[Vec<f64>; N], Error> {
    let mut figures = [(); N].map(|()| Vec::with_capacity(n_rounds));
    for round in 0..=n_rounds {
        let mut least = [f64::MAX; N];
        for _ in 0..n_calls {
            for (side, least) in sides.iter_mut().zip(&mut least) {
                *least = least.min(side(replica)?);
            }
        }
        if round > 0 {
            figures.iter_mut().zip(least).for_each(|(figures, least)| figures.push(least));
        }
    }
    Ok(figures)
}

/// The number of calls of a round: as many as take about 50 ms, if a byte takes a tenth of a nanosecond, and enough for a minimum
/// of them.
pub(crate) fn n_calls(n_bytes: usize) -> usize {
    ((512 << 20) / n_bytes).clamp(5, 20)
}

/// `4 MiB`, `16 KiB`.
pub(crate) fn size(n_bytes: usize) -> String {
    if n_bytes >= 1 << 20 { format!("{} MiB", n_bytes >> 20) } else { format!("{} KiB", n_bytes >> 10) }
}
