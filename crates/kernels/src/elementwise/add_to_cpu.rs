use crate::core::blocks::each_block;

pub(crate) fn run(x: &[f32], sum: &mut [f32]) {
    each_block(
        sum,
        #[inline(always)]
        |at, sum| {
            for (sum, x) in sum.iter_mut().zip(&x[at..]) {
                *sum += x;
            }
        },
    );
}
