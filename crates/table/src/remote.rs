//! Tables elsewhere: read by ranges through a cache, and written in parts.
//!
//! The loader announces the rows of the next window, and of four more for later, by `RowSource::hint`. The threads of
//! `streamed::read_ahead` take them in order, those for later where there is room, and each asks its
//! [`object`] for their bytes. An object reads blocks of 1 MiB:
//! - from the memory of recent blocks ([`recent`]), where one thread fetches what several need;
//! - from the [`cache`] on disk, where one process does; a block is checked once in a program and then read in place;
//! - from the server, by `object_store` over `ureq` on a [`runtime`] of one thread. [`retry`] repeats requests that fail until
//!   the program is to stop. A block must be of the version that was opened and have the table's checksums before it is cached.
//!
//! The rows are copied to the memory that was set aside for them, and gathered into batches from there.

mod at_once;
mod cache;
mod copy;
mod failure;
mod folder;
mod identity;
mod location;
mod object;
mod options;
mod permits;
mod recent;
mod retry;
mod runtime;
mod session;
mod staging;
mod store;
#[cfg(feature = "http")]
mod transport;
mod upload;

pub use folder::RemoteFolder;
pub(crate) use location::{Location, Place};
pub(crate) use object::{FETCH_BYTES, Object, read_whole};
pub use options::{CacheFolder, RemoteOptions};
pub use retry::Retry;
pub use session::{Remote, RemoteReport};
pub(crate) use upload::{delete, list_beside, put_bytes, put_file};
