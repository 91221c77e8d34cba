//! Folders of objects that are no tables.

use std::fs;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use brisk_atomic_file::{AtomicFile, open_regular_file, read_regular_file};

use super::location::{Location, Place};
use super::object::read_part;
use super::session::Remote;
use super::upload::{delete, put_file};
use crate::error::{Error, RemoteError};

/// A folder of objects at a URL, which are written, read and removed as a whole; the checkpoints of a run, for example.
///
/// `s3:`, `gs:` and `az:` URLs are of stores, each with its feature, and `file:` URLs of this machine. Web servers (`http:`) are
/// written to by `PUT`, and removed from by `DELETE`, if they allow it. The cache is not used.
///
/// # Examples
/// ```
/// use brisk_table::{CacheFolder, Remote, RemoteFolder, RemoteOptions};
///
/// # let folder = tempfile::tempdir()?;
/// # let notes = folder.path().join("notes.txt");
/// # let url = format!("file://{}/runs/7", folder.path().display());
/// # if cfg!(unix) {
/// let remote = Remote::new(RemoteOptions { cache: CacheFolder::Off, ..RemoteOptions::default() })?;
/// let run = RemoteFolder::at(&url, &remote)?; // or s3://BUCKET/runs/7
/// std::fs::write(&notes, "stopped early")?;
/// run.put(&notes, "notes.txt")?;
/// assert_eq!(run.read("notes.txt")?.as_deref(), Some(&b"stopped early"[..]));
/// run.delete("notes.txt")?;
/// assert_eq!(run.read("notes.txt")?, None);
/// # }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct RemoteFolder {
    place: Place,
    remote: Remote,
}

impl RemoteFolder {
    /// The folder at a URL, which need not exist. No request is sent.
    ///
    /// # Errors
    /// [`Error::Remote`] if the URL is not valid, or its store needs settings that are missing; [`Error::FeatureOff`] for a store
    /// whose feature is not enabled.
    pub fn at(url: &str, remote: &Remote) -> Result<Self, Error> {
        let place = Place::of(url)?;
        if let Place::Server(location) = &place {
            remote.session.store_of(location)?;
        }
        Ok(Self { place, remote: remote.clone() })
    }

    /// The URL of an object, without secrets.
    pub fn url_of(&self, name: &str) -> String {
        match &self.place {
            Place::File(folder) => format!("file://{}", folder.join(name).display()),
            Place::Server(location) => location.child(name).shown(),
        }
    }

    /// Copies a file to the object `name`, which appears, or replaces an old one, once all of it was written. It is sent in
    /// parts, or to a web server at once, from memory.
    ///
    /// # Errors
    /// [`Error::Remote`], [`Error::Write`] if the object cannot be written; [`Error::Io`] if the file cannot be read.
    pub fn put(&self, file: &Path, name: &str) -> Result<(), Error> {
        match &self.place {
            Place::File(folder) => copy_here(file, folder, &self.object(folder, name)?),
            Place::Server(location) => put_file(&self.child(location, name)?, &self.remote, file),
        }
    }

    /// Reads an object; `None` if there is none. Several requests are sent at a time.
    ///
    /// # Errors
    /// [`Error::Remote`], [`Error::Io`] if it cannot be read or is replaced meanwhile.
    pub fn read(&self, name: &str) -> Result<Option<Vec<u8>>, Error> {
        match &self.place {
            Place::File(folder) => {
                let path = self.object(folder, name)?;
                found_here(read_regular_file(&path)).map_err(|cause| Error::Io { path, action: "read", cause })
            }
            Place::Server(location) => {
                let part = found(read_part(&self.child(location, name)?, &self.remote, 0..u64::MAX))?;
                Ok(part.map(|(bytes, _)| bytes))
            }
        }
    }

    /// Reads some bytes of an object, as far as it has them, and its length in bytes; `None` if there is no such object. Only
    /// these bytes are requested.
    ///
    /// # Errors
    /// [`Error::Remote`], [`Error::Io`] if it cannot be read or is replaced meanwhile.
    pub fn read_part(&self, name: &str, bytes: Range<u64>) -> Result<Option<(Vec<u8>, u64)>, Error> {
        match &self.place {
            Place::File(folder) => {
                let path = self.object(folder, name)?;
                let read = || {
                    let mut file = open_regular_file(&path)?;
                    let (n_bytes, mut part) = (file.metadata()?.len(), Vec::new());
                    file.seek(SeekFrom::Start(bytes.start))?;
                    file.take(bytes.end.saturating_sub(bytes.start)).read_to_end(&mut part)?;
                    Ok((part, n_bytes))
                };
                found_here(read()).map_err(|cause| Error::Io { path: path.clone(), action: "read", cause })
            }
            Place::Server(location) => found(read_part(&self.child(location, name)?, &self.remote, bytes)),
        }
    }

    /// Removes an object. It is no error if there is none.
    ///
    /// # Errors
    /// [`Error::Remote`], [`Error::Io`] if it cannot be removed.
    pub fn delete(&self, name: &str) -> Result<(), Error> {
        match &self.place {
            Place::File(folder) => {
                let path = self.object(folder, name)?;
                match fs::remove_file(&path) {
                    Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
                    removed => removed.map_err(|cause| Error::Io { path, action: "remove", cause }),
                }
            }
            Place::Server(location) => delete(&self.child(location, name)?, &self.remote),
        }
    }

    fn object(&self, folder: &Path, name: &str) -> Result<PathBuf, Error> {
        self.check(name).map(|()| folder.join(name))
    }

    fn child(&self, location: &Location, name: &str) -> Result<Location, Error> {
        self.check(name).map(|()| location.child(name))
    }

    /// Names may come from an index that someone else wrote.
    fn check(&self, name: &str) -> Result<(), Error> {
        if Path::new(name).file_name().is_some_and(|found| found == name) {
            return Ok(());
        }
        let problem = format!("`{name}` names no object in the folder; expected a name without `/`");
        Err(Error::Remote { url: self.url_of(""), reason: RemoteError::Url { problem } })
    }
}

/// What was read from a server, if the object is there.
fn found<T>(read: Result<T, Error>) -> Result<Option<T>, Error> {
    match read {
        Err(Error::Remote { reason: RemoteError::NotFound, .. }) => Ok(None),
        read => read.map(Some),
    }
}

/// The same from this machine.
fn found_here<T>(read: io::Result<T>) -> io::Result<Option<T>> {
    match read {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        read => read.map(Some),
    }
}

fn copy_here(file: &Path, folder: &Path, path: &Path) -> Result<(), Error> {
    let failed = |cause: io::Error| Error::Write { path: path.to_owned(), written_bytes: 0, cause };
    let mut from = open_regular_file(file).map_err(|cause| Error::Io { path: file.to_owned(), action: "read", cause })?;
    fs::create_dir_all(folder).map_err(failed)?;
    let mut to = AtomicFile::create(path).map_err(failed)?;
    let n_bytes = io::copy(&mut from, &mut to).and_then(|n_bytes| to.flush().map(|()| n_bytes)).map_err(failed)?;
    to.publish().map_err(|error| Error::from_publishing(error, path.to_owned(), n_bytes))
}
