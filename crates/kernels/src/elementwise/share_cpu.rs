use crate::core::blocks::each_block;

pub(crate) fn run(x: &[f32], total: f32, y: &mut [f32]) {
    each_block(
        y,
        #[inline(always)]
        |at, y| {
            for (y, x) in y.iter_mut().zip(&x[at..]) {
                *y = if total == 0.0 { 0.0 } else { x / total };
            }
        },
    );
}
