use std::fs;
use std::path::{Path, PathBuf};

use super::folder::IndexToBe;
use super::remote::index_location;
use crate::error::{Error, RemoteError};
use crate::format::{MAX_INDEX_BYTES, ShardIndex};
use crate::remote::{Location, Remote, delete, put_bytes, put_file, read_whole};

/// A folder of a store that gets the shards and the index of a table. If it is dropped unpublished, the shards are removed.
#[derive(Debug)]
pub(super) struct ServerFolder {
    index: Location,
    remote: Remote,
    /// Files of shards until they have been sent.
    staged: IndexToBe,
    sent: Vec<Location>,
    is_published: bool,
}

impl ServerFolder {
    pub(super) fn create(location: &Location, remote: &Remote) -> Result<Self, Error> {
        remote.check_writable(location)?;
        let staging = remote.staging();
        let failed = Error::write(&staging);
        fs::create_dir_all(&staging).map_err(failed)?;
        let staged = IndexToBe::create(&staging).map_err(failed)?;
        Ok(Self { index: index_location(location), remote: remote.clone(), staged, sent: Vec::new(), is_published: false })
    }

    pub(super) fn next_shard(&mut self) -> PathBuf {
        self.staged.next_shard()
    }

    /// Sends a finished shard and removes its file.
    pub(super) fn send(&mut self, shard: &Path) -> Result<(), Error> {
        let name = shard.file_name().expect("shards are named by their folder").to_string_lossy();
        let location = self.index.sibling(&name);
        self.sent.push(location.clone());
        put_file(&location, &self.remote, shard)?;
        fs::remove_file(shard).map_err(Error::io(shard, "remove"))
    }

    /// Sends the index, and removes the shards of the table that it replaces.
    pub(super) fn publish(mut self, shards: &ShardIndex) -> Result<(), Error> {
        let old = match read_whole(&self.index, &self.remote, MAX_INDEX_BYTES) {
            Ok(json) => json.ok().and_then(|json| ShardIndex::parse(&json).ok()),
            Err(Error::Remote { reason: RemoteError::NotFound, .. }) => None,
            Err(error) => return Err(error),
        };
        let json = shards.encode().into_bytes();
        if let Err(error) = put_bytes(&self.index, &self.remote, json.clone()) {
            // It may have been written although the answer was lost. Unless it is certain that it was not, its shards stay.
            let now = read_whole(&self.index, &self.remote, MAX_INDEX_BYTES);
            let is_written = matches!(&now, Ok(Ok(now)) if *now == json);
            self.is_published = is_written || !matches!(now, Ok(_) | Err(Error::Remote { reason: RemoteError::NotFound, .. }));
            if !is_written {
                return Err(error);
            }
        }
        self.is_published = true;
        for entry in old.into_iter().flat_map(|old| old.shards) {
            if shards.shards.iter().all(|new| new.file_name != entry.file_name) {
                // The new table is complete, whether they can be removed or not.
                _ = delete(&self.index.sibling(&entry.file_name), &self.remote);
            }
        }
        Ok(())
    }
}

impl Drop for ServerFolder {
    fn drop(&mut self) {
        if !self.is_published {
            for shard in &self.sent {
                _ = delete(shard, &self.remote);
            }
        }
    }
}
