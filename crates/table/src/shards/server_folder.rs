use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::folder::{Generation, IndexToBe};
use super::remote::index_location;
use crate::error::{Error, RemoteError};
use crate::format::{MAX_INDEX_BYTES, ShardIndex};
use crate::remote::{Location, Remote, delete, list_beside, put_bytes, put_file, read_whole};

/// How long a writer of another machine, of which it is not known whether it runs, may take for a shard.
const LONGEST_SILENCE: Duration = Duration::from_secs(7 * 24 * 3600);

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
        let staged = IndexToBe::create_staging(&remote.staging()?)?;
        let folder =
            Self { index: index_location(location), remote: remote.clone(), staged, sent: Vec::new(), is_published: false };
        // What cannot be listed, read or removed stays for the next writer.
        _ = folder.remove_leftovers();
        Ok(folder)
    }

    /// Removes the shards that killed writers have sent to this folder, which no index there names.
    ///
    /// The order makes this safe while other writers send or publish: the shards are listed first, then the writers that are gone
    /// are determined, and the indexes are read last.
    fn remove_leftovers(&self) -> Result<(), Error> {
        let mut generations: BTreeMap<Generation, (SystemTime, Vec<String>)> = BTreeMap::new();
        for (name, modified) in list_beside(&self.index, &self.remote)? {
            if let Some(generation) = Generation::of(&name) {
                let (last, names) = generations.entry(generation).or_insert((modified, Vec::new()));
                *last = modified.max(*last);
                names.push(name);
            }
        }
        let is_old = |last: SystemTime| last.elapsed().is_ok_and(|age| age > LONGEST_SILENCE);
        generations.retain(|&generation, (last, _)| match self.staged.is_running(generation) {
            Some(is_running) => !is_running,
            None => is_old(*last),
        });
        if generations.is_empty() {
            return Ok(());
        }
        let mut published = HashSet::new();
        for (name, _) in list_beside(&self.index, &self.remote)?.into_iter().filter(|(name, _)| name.ends_with(".json")) {
            match read_index(&self.index.sibling(&name), &self.remote)? {
                Some(index) => published.extend(index.shards.into_iter().map(|shard| shard.file_name)),
                // Damaged, or written by a later version.
                None => return Ok(()),
            }
        }
        let names = generations.into_values().flat_map(|(_, names)| names);
        names.filter(|name| !published.contains(name)).try_for_each(|name| delete(&self.index.sibling(&name), &self.remote))
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
        let old = match read_index(&self.index, &self.remote) {
            Err(Error::Remote { reason: RemoteError::NotFound, .. }) => None,
            read => read?,
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

/// `None` if it is not valid.
fn read_index(location: &Location, remote: &Remote) -> Result<Option<ShardIndex>, Error> {
    let json = read_whole(location, remote, MAX_INDEX_BYTES)?;
    Ok(json.ok().and_then(|json| ShardIndex::parse(&json).ok()))
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
