//! How twins use the processor: a team of threads, blocks of work, vector instructions and caches.

pub(crate) mod blocks;
pub(crate) mod room;
pub(crate) mod streaming;
pub(crate) mod team;
pub(crate) mod transpose;
