use std::hint::black_box;

use anyhow::Result;
use brisk_replicate::{Collective as _, CollectiveExt, Element, ReduceOp, run_replicas};
use half::{bf16, f16};

use super::SUITE;
use super::together::{n_calls, rounds, size, together};
use crate::options::{Options, Scale};
use crate::row::{Better, Row};

/// All-reduce between threads, of values that each rank has just written.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let sizes: &[usize] = match options.scale {
        Scale::Smoke => &[1 << 12],
        Scale::Full => &[1 << 10, 16 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20, 64 << 20],
    };
    let mut rows = Vec::new();
    for &n_bytes in sizes {
        for n_ranks in [2, 4] {
            let case = format!("all-reduce of {}, f32, {n_ranks} threads", size(n_bytes));
            let target = (n_bytes == 64 << 20 && n_ranks == 2).then_some(0.9);
            rows.extend(measured(options, &case, (n_ranks, n_bytes), 1.0_f32, target)?);
        }
        if n_bytes >= 1 << 20 {
            let case = |name| format!("all-reduce of {}, {name}, 2 threads", size(n_bytes));
            rows.extend(measured(options, &case("bf16"), (2, n_bytes), bf16::ONE, None)?);
            rows.extend(measured(options, &case("f16"), (2, n_bytes), f16::ONE, None)?);
        }
    }
    Ok(rows)
}

/// Compared with two bounds: a ring, in which every rank sends and receives 2 (N - 1) / N of the bytes, at the rate at which each
/// rank copies while all do; and one pass of all ranks at once that reads and writes each rank's buffer in place, which no
/// in-place reduction can undercut. Both last until all ranks are done, as a reduction does. Small buffers are written by their
/// rank, and are thus in its cache; neither bound includes that half of them must come from another core.
fn measured<T: Element + PartialEq>(
    options: &Options,
    case: &str,
    (n_ranks, n_bytes): (usize, usize),
    one: T,
    target: Option<f64>,
) -> Result<Vec<Row>> {
    let len = n_bytes / size_of::<T>();
    let share = 2.0 * (n_ranks - 1) as f64 / n_ranks as f64;
    let turns = (options.n_rounds, if options.scale == Scale::Smoke { 1 } else { n_calls(n_bytes) });
    let figures = run_replicas(n_ranks, |replica| {
        let [mut source, mut copy, mut values] = [(); 3].map(|()| vec![one; len]);
        let mut own = vec![0_u32; n_bytes / 4];
        rounds(
            replica,
            turns,
            [
                &mut |replica| {
                    values.fill(one);
                    let seconds = together(replica, |replica| replica.all_reduce(&mut values, ReduceOp::Mean))?;
                    assert!(values.iter().all(|&value| value == one), "the mean of ones is one");
                    Ok(seconds)
                },
                &mut |replica| {
                    source.fill(one);
                    let seconds = together(replica, |replica| {
                        black_box(&mut copy).copy_from_slice(black_box(&source));
                        replica.barrier()
                    })?;
                    Ok(share * seconds)
                },
                &mut |replica| {
                    own.fill(0);
                    together(replica, |replica| {
                        black_box(&mut own).iter_mut().for_each(|word| *word ^= 1);
                        replica.barrier()
                    })
                },
            ],
        )
    })?;
    let [ours, copied, in_place] = figures.into_iter().next().unwrap_or_default();
    let row = |ours, reference: &str, figures, target| Row {
        suite: SUITE,
        case: case.to_owned(),
        ours,
        unit: "s",
        reference: Some((reference.to_owned(), figures)),
        target,
        better: Better::Less,
    };
    let mut rows = vec![row(ours.clone(), "2(N-1)/N of a copy, all ranks at once", copied, target)];
    if n_bytes >= 1 << 20 {
        rows.push(row(ours.clone(), "a pass over it in place, all at once", in_place, None));
    }
    if n_bytes == 1 << 10 && n_ranks == 2 {
        rows.push(Row::at_most(SUITE, case.to_owned(), ours, "s", 5e-6));
    }
    Ok(rows)
}
