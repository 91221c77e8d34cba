use rayon::prelude::*;

use crate::cpu::team::OnTeam;
use crate::float::rounded;
use crate::reduce::cumulative_sum::{CumulativeSum, SumOrder};
use crate::storage::element::Element;
use crate::vectorised::{inlined, vectorised};

pub(crate) fn run<T: Element>(kernel: &CumulativeSum, x: &[T], y: &mut [f32]) {
    let CumulativeSum { n, n_inner, order, .. } = *kernel;
    let sum_outer = |(x, y): (&[T], &mut [f32])| {
        let mut sums = vec![0.0; n_inner];
        let mut add_row = |k: usize| {
            let row = k * n_inner..(k + 1) * n_inner;
            vectorised(inlined!(|| add(&x[row.clone()], &mut sums, &mut y[row.clone()])));
        };
        match order {
            SumOrder::Forward => (0..n).for_each(&mut add_row),
            SumOrder::Reverse => (0..n).rev().for_each(&mut add_row),
        }
    };
    if x.len() < 64 * 1024 {
        x.chunks_exact(n * n_inner).zip(y.chunks_exact_mut(n * n_inner)).for_each(sum_outer);
    } else {
        x.par_chunks_exact(n * n_inner).zip(y.par_chunks_exact_mut(n * n_inner)).for_each_on_team(sum_outer);
    }
}

/// Adds a row to the sums, in f64, and writes them.
#[inline(always)]
fn add<T: Element>(x: &[T], sums: &mut [f64], y: &mut [f32]) {
    for ((x, sum), y) in x.iter().zip(sums).zip(y) {
        *sum += f64::from(x.widen());
        *y = rounded(*sum);
    }
}
