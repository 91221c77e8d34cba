use rayon::prelude::*;

use crate::cpu::team::OnTeam;
use crate::reduce::arg_max::ArgMax;
use crate::sizes::in_u32;
use crate::storage::element::Element;

pub(crate) fn run<T: Element>(kernel: &ArgMax, x: &[T], y: &mut [u32]) {
    let ArgMax { n, n_inner, .. } = *kernel;
    let search = |(x, y): (&[T], &mut [u32])| {
        let mut maxima = vec![f32::NEG_INFINITY; n_inner];
        y.fill(0);
        for (k, row) in x.chunks_exact(n_inner).enumerate() {
            for ((x, maximum), y) in row.iter().zip(&mut maxima).zip(&mut *y) {
                let x = x.widen();
                if x > *maximum || (x.is_nan() && !maximum.is_nan()) {
                    (*maximum, *y) = (x, in_u32(k));
                }
            }
        }
    };
    if x.len() < 64 * 1024 {
        x.chunks_exact(n * n_inner).zip(y.chunks_exact_mut(n_inner)).for_each(search);
    } else {
        x.par_chunks_exact(n * n_inner).zip(y.par_chunks_exact_mut(n_inner)).for_each_on_team(search);
    }
}
