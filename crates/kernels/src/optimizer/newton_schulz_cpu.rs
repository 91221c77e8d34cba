use crate::cpu::blocks::each_row;
use crate::optimizer::newton_schulz::NewtonSchulzFactor;
use crate::vectorised::inlined;

pub(crate) fn factor(kernel: &NewtonSchulzFactor, gram: &[f32], square: &[f32], y: &mut [f32]) {
    let NewtonSchulzFactor { n, coefficients: [a, b, c], .. } = *kernel;
    each_row(
        n,
        y,
        inlined!(|row, y| {
            let of_row = row * n..(row + 1) * n;
            for ((y, gram), square) in y.iter_mut().zip(&gram[of_row.clone()]).zip(&square[of_row]) {
                *y = b * gram + c * square;
            }
            y[row % n] += a;
        }),
    );
}
