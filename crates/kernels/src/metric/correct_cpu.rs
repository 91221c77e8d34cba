use crate::metric::correct::Correct;
use crate::reduce::rows_cpu::each_row_block;
use crate::vectorised::inlined;

pub(crate) fn run(kernel: &Correct, x: &[f32], target: &[u32], y: &mut [f32]) {
    let n_classes = kernel.n_classes;
    each_row_block(
        [n_classes, 1],
        y,
        inlined!(|first, y| {
            let rows = x[first * n_classes..].chunks_exact(n_classes).zip(&target[first..]);
            for (y, (x, &target)) in y.iter_mut().zip(rows) {
                *y = f32::from(u8::from(first_greatest(x) == Some(target as usize)));
            }
        }),
    );
}

#[inline(always)]
fn first_greatest(x: &[f32]) -> Option<usize> {
    let mut best: Option<(usize, f32)> = None;
    for (i, &x) in x.iter().enumerate() {
        if !x.is_nan() && best.is_none_or(|(_, greatest)| x > greatest) {
            best = Some((i, x));
        }
    }
    best.map(|(i, _)| i)
}
