//! Buckets of values, assembled from the pieces of all replicas.

use std::sync::Arc;

use brisk_nn::tensor::program::{Error as ProgramError, Program, Slice};

use super::exchange::{Arrival, Exchange, Finish, Start};

/// A bucket that the kernels from `at` on need.
#[derive(Debug)]
pub(crate) struct Wanted {
    pub(crate) at: usize,
    pub(crate) gather: Exchange,
    /// This replica's own values, if it has any.
    pub(crate) own: Slice,
    pub(crate) to: Slice,
}

/// Records the gathering of buckets, in the order in which they are needed. Each is started when the previous one has arrived, so
/// that two are on the host at once. With `state`, nothing is sent in steps that are skipped.
pub(crate) fn record(program: &mut Program, wanted: Vec<Wanted>, state: Option<Slice>) -> Result<(), ProgramError> {
    let mut next: Option<(Arc<Exchange>, Slice)> = None;
    let mut first = 0;
    // From the last to the first, so that insertions do not move earlier positions.
    for Wanted { at, gather, own, to } in wanted.into_iter().rev() {
        let exchange = Arc::new(gather);
        if let Some((next, own)) = next.replace((exchange.clone(), own)) {
            Start::record(next, program, at, own, state)?;
        }
        let n = exchange.n_kept;
        let arrivals = vec![Arrival { exchange, within: 0..n, start: 0 }];
        program.insert_host(at, Arc::new(Finish { n, arrivals, uneven: None }), &[to])?;
        first = at;
    }
    next.map_or(Ok(()), |(next, own)| Start::record(next, program, first, own, state))
}
