use std::fs;
use std::path::{Path, PathBuf};

use super::folder::IndexToBe;
#[cfg(feature = "remote")]
use super::server_folder::ServerFolder;
use crate::error::Error;
use crate::format::ShardIndex;
#[cfg(feature = "remote")]
use crate::remote::{Location, Remote};

/// Where shards and their index go.
#[derive(Debug)]
pub(super) enum Target {
    /// To a folder, which is removed last if it is new and the table is not finished.
    Folder { index: IndexToBe, new_folder: Option<NewFolder> },
    #[cfg(feature = "remote")]
    Server(ServerFolder),
}

impl Target {
    /// A folder of this machine.
    pub(super) fn folder(folder: &Path) -> Result<Self, Error> {
        let failed = Error::write(folder);
        let new_folder = NewFolder::create(folder).map_err(failed)?;
        let index = IndexToBe::create(folder).map_err(failed)?;
        Ok(Self::Folder { index, new_folder })
    }

    /// A folder of a store.
    #[cfg(feature = "remote")]
    pub(super) fn at(location: &Location, remote: &Remote) -> Result<Self, Error> {
        Ok(Self::Server(ServerFolder::create(location, remote)?))
    }

    /// The path to which the next shard is written.
    pub(super) fn next_shard(&mut self) -> PathBuf {
        match self {
            Self::Folder { index, .. } => index.next_shard(),
            #[cfg(feature = "remote")]
            Self::Server(folder) => folder.next_shard(),
        }
    }

    /// Puts a finished shard where it belongs.
    pub(super) fn keep(&mut self, _shard: &Path) -> Result<(), Error> {
        match self {
            Self::Folder { .. } => Ok(()),
            #[cfg(feature = "remote")]
            Self::Server(folder) => folder.send(_shard),
        }
    }

    pub(super) fn publish(self, entries: &ShardIndex) -> Result<(), Error> {
        match self {
            Self::Folder { index, new_folder } => {
                let path = index.path();
                index.publish(entries).map_err(|cause| Error::Write { path, written_bytes: 0, cause })?;
                if let Some(folder) = new_folder {
                    folder.keep();
                }
                Ok(())
            }
            #[cfg(feature = "remote")]
            Self::Server(folder) => folder.publish(entries),
        }
    }
}

/// A folder that was created for the table, and is removed if the table is not finished.
#[derive(Debug)]
pub(super) struct NewFolder {
    path: PathBuf,
    is_kept: bool,
}

impl NewFolder {
    fn create(path: &Path) -> std::io::Result<Option<Self>> {
        match fs::create_dir(path) {
            Ok(()) => Ok(Some(Self { path: path.to_owned(), is_kept: false })),
            Err(_) if path.is_dir() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn keep(mut self) {
        self.is_kept = true;
    }
}

impl Drop for NewFolder {
    fn drop(&mut self) {
        if !self.is_kept {
            // The folder is kept if another program has put something there.
            _ = fs::remove_dir(&self.path);
        }
    }
}
