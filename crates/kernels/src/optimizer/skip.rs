//! How optimizer steps read the run's `batch, step, skip, n_skipped`.

/// The number of steps so far including this one, without skipped ones; `None` if this one must be skipped.
pub(crate) fn n_steps(state: &[u32]) -> Option<u32> {
    (state[2] == 0).then(|| state[1].wrapping_sub(state[3]).wrapping_add(1))
}
