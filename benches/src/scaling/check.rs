//! Predictions compared with what can be measured on this machine.

use std::time::Duration;

use anyhow::{Context, Result};
use brisk_program::{Device, Selection};
use brisk_replicate::{Algorithm, Collective, CollectiveExt, Link, ReduceOp, Threads, ThreadsConfig, ZeroStage};
use brisk_train::{DataParallel, DataParallelConfig};

use super::SUITE;
use super::simulate::step;
use crate::options::{Options, Scale};
use crate::replicate::network::{HIGGS, UpTo, WIDE};
use crate::replicate::{size, started, together};
use crate::row::{Better, Row};

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;
/// Sizes from which the link is determined.
const FIT: [usize; 2] = [64 * KIB, 4 * MIB];
/// Sizes with which the link is checked.
const OTHERS: [usize; 3] = [256 * KIB, MIB, 16 * MIB];
/// Memory that all-reduces use in turn, as steps do with gradients: more than caches hold.
const POOL_BYTES: usize = 64 * MIB;

/// A predicted time, and the measured one.
struct Figure {
    case: String,
    predicted: f64,
    measured: f64,
}

/// On 1, 2 and 4 threads and, with MPI, processes; and the link between two threads.
pub(super) fn run(options: &Options) -> Result<(Vec<Row>, Option<Link>)> {
    let n_calls = if options.scale == Scale::Smoke { 1 } else { 4 * options.n_rounds };
    let (mut rows, mut shared_memory) = (Vec::new(), None);
    for n_ranks in [1, 2, 4] {
        let (figures, link) = on_threads(n_ranks, n_calls, options.scale)?;
        rows.extend(figures.into_iter().map(|figure| row(figure, n_ranks, "threads")));
        if n_ranks == 2 {
            shared_memory = link;
        }
    }
    if options.with_mpi {
        for n_ranks in [1, 2, 4] {
            let scale = if options.scale == Scale::Smoke { "smoke" } else { "full" };
            for line in started(n_ranks, &["step", "engine", scale, &n_calls.to_string()])?.lines() {
                let figure = read(line).with_context(|| format!("a rank printed `{line}`"))?;
                rows.push(row(figure, n_ranks, "processes"));
            }
        }
    }
    Ok((rows, shared_memory))
}

fn row(figure: Figure, n_ranks: usize, what: &str) -> Row {
    Row {
        suite: SUITE,
        case: format!("{}, {n_ranks} {what}", figure.case),
        ours: vec![figure.measured],
        unit: "s",
        reference: Some(("predicted".to_owned(), vec![figure.predicted])),
        target: None,
        better: Better::Less,
    }
}

fn on_threads(n_ranks: usize, n_calls: usize, scale: Scale) -> Result<(Vec<Figure>, Option<Link>)> {
    let handles = Threads::group(ThreadsConfig::new(n_ranks));
    let ends: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = handles.into_iter().map(|handle| scope.spawn(move || on_rank(handle, n_calls, scale))).collect();
        threads.into_iter().map(|thread| thread.join().expect("a rank does not panic")).collect()
    });
    let mut figures = ends.into_iter().collect::<Result<Vec<_>>>()?;
    Ok(figures.swap_remove(0))
}

/// The measurements of one rank; all ranks return the same.
fn on_rank<C: Collective + 'static>(mut collective: C, n_calls: usize, scale: Scale) -> Result<(Vec<Figure>, Option<Link>)> {
    let n_ranks = collective.world_size();
    let mut figures = Vec::new();
    let mut link = None;
    if n_ranks > 1 {
        let mut reductions = Reductions { pool: vec![1.0; POOL_BYTES / 4], at: 0, n_calls };
        let mut fit = [(0, Duration::ZERO); 2];
        for (fit, n_bytes) in fit.iter_mut().zip(FIT) {
            *fit = (n_bytes, Duration::from_secs_f64(reductions.least_seconds(&mut collective, n_bytes)?));
        }
        link = Link::of_all_reduces(n_ranks, Algorithm::Ring, fit);
        for n_bytes in OTHERS {
            let measured = reductions.least_seconds(&mut collective, n_bytes)?;
            let Some(link) = link else { continue };
            let predicted = link.all_reduce(n_ranks, n_bytes, Algorithm::Ring).as_secs_f64();
            figures.push(Figure { case: format!("all-reduce of {}", size(n_bytes)), predicted, measured });
        }
    }

    let replica = DataParallel::new(Box::new(collective), DataParallelConfig::default());
    // Copying the gradients to the host and back is part of the step; with a single rank, it is all that the reduction does.
    let solo = Threads::group(ThreadsConfig::new(1)).remove(0);
    let solo = DataParallel::new(Box::new(solo), DataParallelConfig::default());
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
    for network in [HIGGS, WIDE] {
        let network = if scale == Scale::Smoke { network.tiny() } else { network };
        let ups_to = [UpTo::Forward, UpTo::Backward, UpTo::Update(&solo), UpTo::Update(&replica)];
        let recorded = ups_to.iter().map(|up_to| network.record(&device, up_to)).collect::<Result<Vec<_>>>()?;
        let mut least = [f64::MAX; 4];
        // The first one warms up.
        for call in 0..=n_calls {
            for (recorded, least) in recorded.iter().zip(&mut least) {
                // All begin at the same time, and the slowest counts.
                replica.all_gather(vec![0.0])?;
                let seconds = replica.all_gather(vec![recorded.seconds()? as f32])?.into_iter().fold(0.0, f32::max);
                if call > 0 {
                    *least = least.min(f64::from(seconds));
                }
            }
        }
        let [forward, backward, update, measured] = least;
        let alone = step([forward, backward, update], network.bucket_bytes());
        let predicted = match link {
            Some(link) => alone.predicted(n_ranks, ZeroStage::Replicated, link, Algorithm::Ring),
            None => alone.alone(),
        };
        let case = format!("step of {}, batch {} a rank", network.name, network.batch);
        figures.push(Figure { case, predicted: predicted.as_secs_f64(), measured });
    }
    solo.finish()?;
    replica.finish()?;
    Ok((figures, link))
}

/// All-reduces of memory that has not been used recently.
struct Reductions {
    pool: Vec<f32>,
    at: usize,
    n_calls: usize,
}

impl Reductions {
    fn least_seconds<C: Collective>(&mut self, collective: &mut C, n_bytes: usize) -> Result<f64> {
        let len = n_bytes / 4;
        let mut least = f64::MAX;
        for _ in 0..=self.n_calls {
            if self.at + len > self.pool.len() {
                self.at = 0;
            }
            let values = &mut self.pool[self.at..self.at + len];
            self.at += len;
            least = least.min(together(collective, |collective| collective.all_reduce(values, ReduceOp::Mean))?);
            assert!(values[0] == 1.0, "the mean of ones is one");
        }
        Ok(least)
    }
}

/// As a process: prints what [`read`] parses.
#[cfg(feature = "mpi")]
#[expect(clippy::print_stdout, reason = "the process that started the ranks reads it")]
pub(crate) fn rank<C: Collective + 'static>(collective: C, scale: &str, n_calls: usize) -> Result<()> {
    let is_first = collective.rank() == 0;
    let scale = if scale == "smoke" { Scale::Smoke } else { Scale::Full };
    let (figures, _) = on_rank(collective, n_calls, scale)?;
    for Figure { case, predicted, measured } in figures.iter().filter(|_| is_first) {
        println!("{case}|{predicted}|{measured}");
    }
    Ok(())
}

fn read(line: &str) -> Option<Figure> {
    let mut parts = line.split('|');
    let case = parts.next()?.to_owned();
    let mut number = || parts.next()?.parse().ok();
    Some(Figure { case, predicted: number()?, measured: number()? })
}
