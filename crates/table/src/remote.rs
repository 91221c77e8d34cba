//! Tables elsewhere: read by ranges through a cache, and written in parts.
//!
//! A block of a table goes from the server through [`object`], which checks it, into the cache on disk ([`cache`]) and the memory
//! of recent blocks ([`recent`]); from there it is copied to the rows that were announced.

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
