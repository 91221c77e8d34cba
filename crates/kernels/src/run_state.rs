//! The contents of the `order` and `state` buffers of batch kernels: the order of an epoch's rows, and the position of a run.

/// Elements of an `order` buffer (u32): `n_rows, bits, n_rounds, stride, offset, epoch, 0, 0, keys[8]`.
///
/// The batch with index `b` takes positions `b * stride + offset + i`, `i < n`, of the epoch's order. Position `p` is row `p` if
/// `n_rounds` is 0, and row `feistel(p)` if it is 8; [`BatchRows`](crate::BatchRows) treats other values as damage. Kernels that
/// draw random numbers for each row, such as [`AugmentImages`](crate::AugmentImages), draw different ones in each `epoch`.
pub const ORDER_LEN: usize = 16;

/// Elements of a `state` buffer (u32): `batch, step, skip, n_skipped`.
///
/// `batch` is the index of the batch within the epoch, `step` the number of optimizer steps since the start, including skipped
/// ones, and `n_skipped` the number of skipped steps. While `skip` is not 0, optimizers and averages do nothing: it is 1 if
/// [`Unscale`](crate::Unscale) found a gradient that is not finite, and 2 if no step is due: while
/// [`SkipIncomplete`](crate::SkipIncomplete) still sums gradients, and where [`SkipWeightless`](crate::SkipWeightless) found that
/// no row has a weight. [`Advance`](crate::Advance) updates all of them on the device.
pub const STATE_LEN: usize = 4;

/// The index of the epoch in an `order` buffer.
pub(crate) const EPOCH: usize = 5;

/// The same order in a different epoch; orders are made for epoch 0. The order of rows, which follows from the keys, stays.
pub fn order_in_epoch(mut order: [u32; ORDER_LEN], epoch: u32) -> [u32; ORDER_LEN] {
    order[EPOCH] = epoch;
    order
}

/// The order in which rows are stored.
pub fn sequential_order(n_rows: u32, stride: u32, offset: u32) -> [u32; ORDER_LEN] {
    let mut order = [0; ORDER_LEN];
    order[0] = n_rows;
    order[3] = stride;
    order[4] = offset;
    order
}

/// A shuffled order: a keyed bijection, which is a Feistel network over `bits` bits, applied until the result is below `n_rows`.
///
/// `bits` is `max(2, ceil(log2(n_rows)))`; `keys` follow from the seed and the epoch.
pub fn shuffled_order(n_rows: u32, bits: u32, keys: [u32; 8], stride: u32, offset: u32) -> [u32; ORDER_LEN] {
    let mut order = sequential_order(n_rows, stride, offset);
    order[1] = bits;
    order[2] = 8;
    order[8..].copy_from_slice(&keys);
    order
}
