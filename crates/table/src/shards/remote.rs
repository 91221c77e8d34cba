//! Folders of shards on a server.

use std::collections::HashMap;
use std::thread;

use super::folder::INDEX;
use super::table::ShardedTable;
use crate::error::{Error, IndexError, RemoteError, ShardMismatch};
use crate::format::{MAX_INDEX_BYTES, ShardEntry, ShardIndex};
use crate::remote::{Location, Object, Place, Remote, read_whole};
use crate::row_store::RowStore;
use crate::streamed::{ReadAhead, StreamedTable};
use crate::table::Table;

impl ShardedTable {
    /// Opens the table in a folder at a URL, or the table of an index at a URL that ends with `.json`, and copies its shards into
    /// memory.
    ///
    /// # Errors
    /// As for [`Table::open_url`] and [`ShardedTable::open`].
    pub fn open_url(url: &str, remote: &Remote) -> Result<Self, Error> {
        match Place::of(url)? {
            Place::File(path) => Self::open(path),
            Place::Server(location) => Self::open_at(&location, remote, |object| Table::of_object(&object)),
        }
    }
}

impl ShardedTable<StreamedTable> {
    /// Opens the table in a folder at a URL, or the table of an index at a URL that ends with `.json`, to be read ahead into the
    /// memory of `ahead`, which all shards share.
    ///
    /// # Errors
    /// As for [`Table::open_url`] and [`ShardedTable::open`].
    /// # Cost
    /// Reads the index and the headers of all shards, several at a time.
    pub fn open_streamed_url(url: &str, ahead: &ReadAhead, remote: &Remote) -> Result<Self, Error> {
        match Place::of(url)? {
            Place::File(path) => Self::open_streamed(path, ahead),
            Place::Server(location) => Self::open_at(&location, remote, |object| StreamedTable::of_object(object, ahead)),
        }
    }
}

impl<S: RowStore> ShardedTable<S> {
    fn open_at(location: &Location, remote: &Remote, open: impl Fn(Object) -> Result<S, Error>) -> Result<Self, Error> {
        let index = index_location(location);
        let path = index.path();
        let too_long = |found| Error::Index { path: path.clone(), reason: IndexError::TooLong { found, limit: MAX_INDEX_BYTES } };
        let is_folder = !location.has_extension("json");
        let read_index = || match read_whole(&index, remote, MAX_INDEX_BYTES) {
            Err(Error::Remote { url, reason: RemoteError::NotFound }) if is_folder => {
                Err(Error::Remote { url, reason: RemoteError::NoIndex })
            }
            read => read?.map_err(too_long),
        };
        Self::open_from(&path, read_index, |shards| {
            let mut objects = open_objects(&index, remote, shards);
            let (open, path, index) = (&open, &path, &index);
            move |entry| {
                let object = objects.remove(&entry.file_name).expect("all shards of the index were opened");
                let mismatch =
                    |reason| Error::Shard { path: index.sibling(&entry.file_name).path(), index: path.clone(), reason };
                match object {
                    Ok(object) if object.n_bytes() != entry.n_bytes => {
                        Err(mismatch(ShardMismatch::Bytes { expected: entry.n_bytes, found: object.n_bytes() }))
                    }
                    Ok(object) => open(object),
                    Err(Error::Remote { reason: RemoteError::NotFound, .. }) => Err(mismatch(ShardMismatch::Missing)),
                    Err(error) => Err(error),
                }
            }
        })
    }
}

/// The index that a URL refers to: that of the URL itself, or the index in that folder.
pub(super) fn index_location(location: &Location) -> Location {
    if location.has_extension("json") { location.clone() } else { location.child(INDEX) }
}

/// Opens all shards, several at a time, since each takes as long as a request.
fn open_objects(index: &Location, remote: &Remote, shards: &ShardIndex) -> HashMap<String, Result<Object, Error>> {
    let n_each = shards.shards.len().div_ceil(remote.n_parallel()).max(1);
    let open = |entry: &ShardEntry| (entry.file_name.clone(), Object::open(&index.sibling(&entry.file_name), remote));
    thread::scope(|scope| {
        let some: Vec<_> =
            shards.shards.chunks(n_each).map(|some| scope.spawn(move || some.iter().map(open).collect::<Vec<_>>())).collect();
        some.into_iter().flat_map(|some| some.join().expect("opening does not panic")).collect()
    })
}
