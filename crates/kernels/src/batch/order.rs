//! What stands in the `order` and `state` buffers that batch kernels read: the order of rows, and where a run is.

/// Elements of an `order` buffer (u32): `n_rows, bits, n_rounds, stride, offset, 0, 0, 0, keys[8]`.
///
/// The batch with index `b` takes positions `b * stride + offset + i`, `i < n` of the epoch's order; position `p` is row
/// `p` with `n_rounds = 0`, and row `feistel(p)` with 8.
pub const ORDER_LEN: usize = 16;

/// Elements of a `state` buffer (u32): `batch, step, skip, n_skipped`.
///
/// `batch` is the index of the batch within the epoch, `step` how many steps of the optimizer there have been since the start, those that were
/// skipped among them, and `n_skipped` how many those are. While `skip` is not 0, optimizers and averages leave everything as it is: it is 1
/// where [`Unscale`](crate::Unscale) found a gradient that is not finite, 2 where no step is due since [`AccumulateBatches`](crate::AccumulateBatches) still sums gradients.
/// All are advanced on the device, by [`Advance`](crate::Advance).
pub const STATE_LEN: usize = 4;

/// Rows in their own order.
pub fn sequential_order(n_rows: u32, stride: u32, offset: u32) -> [u32; ORDER_LEN] {
    let mut order = [0; ORDER_LEN];
    order[0] = n_rows;
    order[3] = stride;
    order[4] = offset;
    order
}

/// Rows in the order of a keyed bijection: a Feistel network over `bits` bits, walked until it lands below `n_rows`.
///
/// `bits` is `max(2, ceil(log2(n_rows)))`, `keys` come from the seed and the epoch.
pub fn shuffled_order(n_rows: u32, bits: u32, keys: [u32; 8], stride: u32, offset: u32) -> [u32; ORDER_LEN] {
    let mut order = sequential_order(n_rows, stride, offset);
    order[1] = bits;
    order[2] = 8;
    order[8..].copy_from_slice(&keys);
    order
}
