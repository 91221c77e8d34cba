use crate::conv::window::Images;

/// How the sums of a gradient in the weights are divided into parts of the result's pixels. It depends only on the shape, so that
/// sums do not depend on the executor.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Parts {
    /// The number of parts.
    pub(crate) n: usize,
    /// Rows of result pixels of each part, counted over all images; the last may have fewer.
    pub(crate) n_rows: usize,
}

/// The maximum number of elements of the sums of all parts.
const PARTS_LEN: usize = 4 * 1024 * 1024;
/// The minimum number of result pixels of a part.
const PART_PIXELS: usize = 256;

impl Parts {
    /// At most `max_parts` parts of the pixels of `y`.
    pub(crate) fn of(y: &Images, n_weights: usize, max_parts: usize) -> Self {
        let all_rows = y.n_images.saturating_mul(y.height);
        let n_parts = (PARTS_LEN / n_weights.max(1)).min(y.n_pixels() / PART_PIXELS).clamp(1, max_parts);
        let n_rows = all_rows.div_ceil(n_parts).max(1);
        Self { n: all_rows.div_ceil(n_rows), n_rows }
    }
}
