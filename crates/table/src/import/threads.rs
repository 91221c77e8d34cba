use std::num::NonZeroUsize;
use std::thread::available_parallelism;

/// How many threads an option asks for: 0 is one a core.
pub(crate) fn n_threads(asked: usize) -> usize {
    match asked {
        0 => available_parallelism().map_or(1, NonZeroUsize::get),
        n => n,
    }
}
