use anyhow::Result;
use brisk_program::{Device, Selection};
use brisk_replicate::{Threads, ThreadsConfig};
use brisk_train::{BucketSizes, DataParallel, DataParallelConfig};

use super::SUITE;
use super::network::{UpTo, WIDE};
use crate::options::{Options, Scale};
use crate::row::{Better, Row, median};

const N_RANKS: usize = 2;

/// How much of the time of reducing all gradients is hidden behind the backward pass: two replicas, each with one compute thread.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let group = || Threads::group(ThreadsConfig::new(N_RANKS));
    let ends: Vec<Result<Vec<f64>>> = std::thread::scope(|scope| {
        let ranks = group().into_iter().zip(group());
        let threads: Vec<_> = ranks.map(|(one, other)| scope.spawn(move || hidden(options, one, other))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank does not panic")).collect()
    });
    let mut shares = ends.into_iter().collect::<Result<Vec<_>>>()?;
    let ours = shares.swap_remove(0);
    let asked = vec![0.7; ours.len()];
    Ok(vec![Row {
        suite: SUITE,
        case: format!("{}: all-reduce hidden behind backward, 2 threads", WIDE.name),
        ours,
        unit: "of its time",
        reference: Some(("asked for".to_owned(), asked)),
        target: Some(1.0),
        better: Better::More,
    }])
}

/// The hidden fraction of each round, the same on both ranks. It compares the time for which a step waits if its buckets are
/// reduced while the backward pass runs with the wait if all gradients are one bucket, which is reduced after the backward pass;
/// medians of several steps each. The wait is that of the rank that comes last, since the other also waits for its computation.
/// Neither includes that computation is slower while it shares cores and memory with the reduction, nor the copying of gradients.
fn hidden(options: &Options, overlapped: Threads, behind: Threads) -> Result<Vec<f64>> {
    let is_smoke = options.scale == Scale::Smoke;
    let (network, n_calls) = if is_smoke { (WIDE.tiny(), 1) } else { (WIDE, 15) };
    let config = DataParallelConfig::default();
    let whole = DataParallelConfig { buckets: BucketSizes { first_bytes: usize::MAX, bytes: usize::MAX }, ..config };
    let overlapped = DataParallel::new(Box::new(overlapped), config);
    let behind = DataParallel::new(Box::new(behind), whole);
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
    let record = |of| network.record(&device, &UpTo::Update(of));
    let steps = [(&overlapped, record(&overlapped)?), (&behind, record(&behind)?)];
    let mut shares = Vec::new();
    for _ in 0..options.n_rounds {
        let mut waits = [Vec::new(), Vec::new()];
        for _ in 0..n_calls {
            for ((of, step), waits) in steps.iter().zip(&mut waits) {
                behind.all_gather(vec![0.0])?;
                let before = of.overlap().waiting();
                step.seconds()?;
                let waited = (of.overlap().waiting() - before).as_secs_f32();
                waits.push(f64::from(behind.all_gather(vec![waited])?.into_iter().fold(f32::MAX, f32::min)));
            }
        }
        let [waited, alone] = waits.map(|waits| median(&waits));
        shares.push(1.0 - waited / alone);
    }
    drop(steps);
    [overlapped, behind].iter().try_for_each(DataParallel::finish)?;
    Ok(shares)
}
