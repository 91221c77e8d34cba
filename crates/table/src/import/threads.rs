use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// The number of threads for an option; 0 means one per core.
pub(crate) fn n_threads(asked: usize) -> usize {
    match asked {
        0 => available_parallelism().map_or(1, NonZeroUsize::get),
        n => n,
    }
}
