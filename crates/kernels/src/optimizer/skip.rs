//! What steps of an optimizer see of the run's `batch, step, skip, n_skipped`.

/// How many steps there have been with this one, those that were skipped left out; `None` if this one is to be skipped.
pub(crate) fn n_steps(state: &[u32]) -> Option<u32> {
    (state[2] == 0).then(|| state[1].wrapping_sub(state[3]).wrapping_add(1))
}
