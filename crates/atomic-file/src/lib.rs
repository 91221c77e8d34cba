#![doc = include_str!("../README.md")]
#![forbid(unsafe_code)]

mod atomic_file;
mod claim;
mod nearest;
mod permissions;
mod printable;
mod rename;
mod same_file;
mod scratch;
mod target;
mod temp_name;
mod write;

pub use atomic_file::{AtomicFile, sync_folder};
pub use claim::{Leftover, create_claimed};
pub use nearest::nearest;
pub use printable::{Printable, listed, printable};
pub use rename::{PublishError, replace};
pub use same_file::{FileId, is_same_file};
pub use scratch::scratch_file;
pub use target::{open_regular_file, read_regular_file, special_file};
pub use temp_name::remove_leftovers;
pub use write::{WriteError, check_output, write_atomically};
