//! Whole files, copied from a server or to it.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::Mutex;

use brisk_atomic_file::AtomicFile;

use super::location::{Location, Place};
use super::object::Object;
use super::session::Remote;
use super::upload::put_file;
use crate::error::{Error, RemoteError};
use crate::lock::{lock, unlocked};

impl Remote {
    /// Copies an object, which need not be a table, to a file, which appears once all of it was read. Several requests are sent
    /// at a time, but only one, into memory, if the server sends neither an ETag nor a time of modification, so that versions of
    /// the object could be mixed; then it may have up to 1 GiB. The cache is not used, and the bytes are not checked:
    /// [`Table::verify`](crate::Table::verify) checks a table.
    ///
    /// # Errors
    /// [`Error::Remote`] if the object cannot be read or is replaced meanwhile; [`Error::Write`] if the file cannot be written.
    pub fn download(&self, url: &str, path: impl AsRef<Path>) -> Result<(), Error> {
        let (location, path) = (server(url, "read")?, path.as_ref());
        let object = Object::open(&location, self)?;
        let failed = |written_bytes: u64, cause: io::Error| Error::Write { path: path.to_owned(), written_bytes, cause };
        let file = Mutex::new(AtomicFile::create(path).map_err(|cause| failed(0, cause))?);
        object.read_pieces(|start, piece| {
            let mut file = lock(&file);
            let written = file.seek(SeekFrom::Start(start)).and_then(|_| file.write_all(&piece));
            written.map_err(|cause| failed(start, cause))
        })?;
        let file = unlocked(file);
        file.publish().map_err(|error| Error::from_publishing(error, path.to_owned(), object.n_bytes()))
    }

    /// Copies a file to an object of a store, in parts. The object appears, or replaces an old one, once all of it was written.
    ///
    /// # Errors
    /// [`Error::Remote`] if the object cannot be written; [`Error::Io`] if the file cannot be read.
    pub fn upload(&self, path: impl AsRef<Path>, url: &str) -> Result<(), Error> {
        let location = server(url, "write")?;
        self.check_writable(&location)?;
        put_file(&location, self, path.as_ref())
    }

    /// Checks, as far as that is known without a request, that [`upload`](Self::upload) can write to a URL.
    ///
    /// # Errors
    /// [`Error::Remote`] if the store can only be read, or needs settings that are missing.
    pub fn check_upload(&self, url: &str) -> Result<(), Error> {
        self.check_writable(&server(url, "write")?)
    }
}

fn server(url: &str, action: &str) -> Result<Location, Error> {
    match Place::of(url)? {
        Place::Server(location) => Ok(location),
        Place::File(path) => {
            let problem = format!("is on this machine; {action} the file by its path");
            Err(Error::Remote { url: format!("file://{}", path.display()), reason: RemoteError::Url { problem } })
        }
    }
}
