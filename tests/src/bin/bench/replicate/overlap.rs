use anyhow::Result;
use brisk_program::{Device, Selection};
use brisk_replicate::{Collective as _, CollectiveExt as _, ReduceOp, Threads, ThreadsConfig};
use brisk_train::{DataParallel, DataParallelConfig};

use super::SUITE;
use super::network::{UpTo, WIDE};
use super::together::together;
use crate::options::{Options, Scale};
use crate::row::{Better, Row};

const N_RANKS: usize = 2;

/// How much of the time that reducing all gradients takes alone is hidden behind the backward pass: two replicas, a thread each to compute with.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let handles = Threads::group(ThreadsConfig::new(N_RANKS));
    let ends: Vec<Result<Vec<f64>>> = std::thread::scope(|scope| {
        let threads: Vec<_> = handles.into_iter().map(|handle| scope.spawn(move || hidden(options, handle))).collect();
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

/// The hidden share of each round, the same on both ranks: the least of what is waited for behind the backward pass, by the least that reducing takes
/// alone. What is waited for counts on the rank that waits longer, less what a replica alone takes to copy its gradients back.
fn hidden(options: &Options, mut collective: Threads) -> Result<Vec<f64>> {
    let is_smoke = options.scale == Scale::Smoke;
    let (network, n_calls) = if is_smoke { (WIDE.tiny(), 1) } else { (WIDE, 10) };
    let mut gradients: Vec<Vec<f32>> = network.bucket_bytes().iter().map(|n_bytes| vec![1.0; n_bytes / 4]).collect();
    let mut alone = Vec::new();
    for _ in 0..options.n_rounds {
        let mut least = f64::MAX;
        for _ in 0..n_calls {
            let seconds = together(&mut collective, |collective| {
                gradients.iter_mut().try_for_each(|bucket| collective.all_reduce(bucket, ReduceOp::Mean))
            })?;
            least = least.min(seconds);
        }
        alone.push(least);
    }
    collective.barrier()?;

    let replica = DataParallel::new(Box::new(collective), DataParallelConfig::default());
    let solo = Threads::group(ThreadsConfig::new(1)).remove(0);
    let solo = DataParallel::new(Box::new(solo), DataParallelConfig::default());
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
    let steps = [&solo, &replica].map(|of| Ok::<_, anyhow::Error>((of, network.record(&device, &UpTo::Update(Some(of)))?)));
    let [copying, waiting] = steps;
    let (copying, waiting) = (copying?, waiting?);
    let mut shares = Vec::new();
    for alone in alone {
        let mut least = [f64::MAX; 2];
        for _ in 0..n_calls {
            for ((of, step), least) in [&copying, &waiting].into_iter().zip(&mut least) {
                replica.all_gather(vec![0.0])?;
                let before = of.overlap().waiting();
                step.seconds()?;
                let waited = (of.overlap().waiting() - before).as_secs_f32();
                *least = least.min(f64::from(replica.all_gather(vec![waited])?.into_iter().fold(0.0, f32::max)));
            }
        }
        let [copied, waited] = least;
        shares.push(1.0 - (waited - copied).max(0.0) / alone);
    }
    solo.finish()?;
    replica.finish()?;
    Ok(shares)
}
