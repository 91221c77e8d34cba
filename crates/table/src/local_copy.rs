use std::fs;
use std::path::{Path, PathBuf};

use crate::error::Error;
use crate::remote::{Place, Remote};
use crate::shards::IndexToBe;

/// The copy of an object, for a program that reads files. It is removed with this value, and if the process is killed, by the
/// next one that uses the [staging folder](crate::RemoteOptions::staging), where it is.
///
/// # Examples
/// ```no_run
/// use brisk_table::{LocalCopy, Remote, RemoteOptions};
///
/// let remote = Remote::new(RemoteOptions::default())?;
/// let rows = LocalCopy::of("https://example.com/rows.csv.gz", &remote)?;
/// assert!(rows.path().ends_with("rows.csv.gz"));
/// # Ok::<(), brisk_table::Error>(())
/// ```
#[derive(Debug)]
pub struct LocalCopy {
    path: PathBuf,
    /// Owns the folder of the copy.
    _staging: IndexToBe,
}

impl LocalCopy {
    /// Copies an object to a file of its name, as [`Remote::download`] does.
    ///
    /// # Errors
    /// Those of [`Remote::download`]; [`Error::Write`] if the staging folder cannot be used.
    pub fn of(url: &str, remote: &Remote) -> Result<Self, Error> {
        let mut staging = IndexToBe::create_staging(&remote.staging()?)?;
        // The name of a file says what is in it, so the file has a folder of its own.
        let folder = staging.next_shard();
        fs::create_dir(&folder).map_err(Error::write(&folder))?;
        let name = match Place::of(url)? {
            Place::Server(location) => location.name().to_owned(),
            Place::File(_) => String::new(),
        };
        let path = folder.join(if name.is_empty() { "table" } else { &name });
        remote.download(url, &path)?;
        Ok(Self { path, _staging: staging })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}
