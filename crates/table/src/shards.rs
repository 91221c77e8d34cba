//! Tables of several files: a folder with an index and shards, each of which is also a table.

mod folder;
#[cfg(feature = "remote")]
mod remote;
#[cfg(feature = "remote")]
mod server_folder;
mod table;
mod target;
mod writer;

#[cfg(feature = "import")]
pub(crate) use folder::INDEX;
#[cfg(feature = "remote")]
pub(crate) use folder::IndexToBe;
pub use table::ShardedTable;
pub use writer::{ShardSize, ShardedWriter};
