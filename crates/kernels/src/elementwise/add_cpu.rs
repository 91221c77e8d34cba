use crate::core::blocks::each_block;

pub(crate) fn run(a: &[f32], b: &[f32], y: &mut [f32]) {
    each_block(
        y,
        #[inline(always)]
        |at, y| {
            let (a, b) = (&a[at..at + y.len()], &b[at..at + y.len()]);
            for ((y, a), b) in y.iter_mut().zip(a).zip(b) {
                *y = a + b;
            }
        },
    );
}
