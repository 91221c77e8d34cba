//! The sources of batches: a file, a folder of files, or an archive of files.

use std::io::{self, Cursor, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::options::Facts;
use super::{CifarLabels, CifarOptions};
use crate::error::{Error, SourceError};
use crate::import::{ArchiveEnd, Input, Member, for_each_member, refuse_python_archive, refuse_python_folder};
use crate::parts::open_file;
use crate::remedy::{Expected, Remedy};
use crate::source_identity::SourceIdentity;

pub(super) struct Batches {
    path: PathBuf,
    place: Place,
    pub(super) identity: SourceIdentity,
    /// The number of bytes read from the batches before the current one.
    before: u64,
    current: Arc<AtomicU64>,
}

enum Place {
    File,
    Folder(Vec<PathBuf>),
    /// The names of the requested members. They may be in any order, so the search for each begins at the start of the archive.
    Archive(&'static [&'static str]),
}

impl Batches {
    pub(super) fn find(path: &Path, options: CifarOptions) -> Result<Self, Error> {
        let metadata = std::fs::metadata(path).map_err(Error::io(path, "open"))?;
        let mut identity = SourceIdentity::new(path, &metadata);
        let names = options.labels.files(options.set);
        let place = if metadata.is_dir() {
            refuse_python_folder(path)?;
            let files: Vec<PathBuf> = names.iter().map(|name| batch_in(path, name)).collect::<Result<_, _>>()?;
            identity = SourceIdentity { n_bytes: 0, ..identity };
            for file in &files {
                identity.add(&SourceIdentity::of(file)?);
            }
            Place::Folder(files)
        } else if is_tar(path)? {
            identity.n_bytes *= names.len() as u64;
            Place::Archive(names)
        } else {
            Place::File
        };
        Ok(Self { path: path.to_owned(), place, identity, before: 0, current: Arc::default() })
    }

    pub(super) fn files(&self) -> Vec<&Path> {
        match &self.place {
            Place::File | Place::Archive(_) => vec![&self.path],
            Place::Folder(files) => files.iter().map(PathBuf::as_path).collect(),
        }
    }

    pub(super) fn len(&self) -> usize {
        match &self.place {
            Place::File => 1,
            Place::Folder(files) => files.len(),
            Place::Archive(names) => names.len(),
        }
    }

    /// The names of the classes; empty unless the file has exactly one name per class.
    pub(super) fn class_names(&self, labels: CifarLabels) -> Result<Vec<String>, Error> {
        let Facts { names_file: file, n_classes, .. } = labels.facts();
        let text = match &self.place {
            Place::File => None,
            Place::Folder(_) => open_file(&self.path.join(file)).ok().and_then(|file| std::io::read_to_string(file).ok()),
            Place::Archive(_) => {
                let input = Input::open(&self.path)?;
                let mut text = None;
                with_member(input.bytes, file, |member| {
                    let mut read = String::new();
                    member.take(1 << 16).read_to_string(&mut read)?;
                    text = Some(read);
                    Ok(())
                })
                .map_err(Error::io(&self.path, "unpack"))?;
                text
            }
        };
        let lines = text.as_deref().unwrap_or_default().lines().map(str::trim).filter(|line| !line.is_empty());
        let names: Vec<String> = lines.map(str::to_owned).collect();
        Ok(if names.len() == usize::from(n_classes) { names } else { Vec::new() })
    }

    pub(super) fn n_read(&self) -> u64 {
        self.before + self.current.load(Ordering::Relaxed)
    }

    /// Calls `read` with the name of a batch and its bytes.
    pub(super) fn with<T>(
        &mut self,
        index: usize,
        read: impl FnOnce(&mut Self, &str, &mut dyn Read) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.before = self.n_read();
        let path = match &self.place {
            Place::Folder(files) => files[index].clone(),
            _ => self.path.clone(),
        };
        let mut input = Input::open(&path)?;
        self.current = Arc::clone(&input.n_read);
        let Place::Archive(names) = self.place else {
            return read(self, &path.to_string_lossy(), &mut input.bytes);
        };
        let wanted = names[index];
        if let Some(done) =
            with_member(input.bytes, wanted, |member| Ok(read(self, wanted, member))).map_err(Error::io(&path, "unpack"))?
        {
            return done;
        }
        let reason =
            SourceError::unexpected("the archive", format!("no member `{wanted}`"), EXPECTED.what.to_owned(), EXPECTED.remedies);
        Err(reason.at(&path))
    }
}

const EXPECTED: Expected =
    Expected { what: "the binary version of CIFAR", remedies: &[Remedy::ReadAsCifar10, Remedy::ReadAsCifar100] };

/// Whether the source is a single file of records, neither a folder nor an archive.
pub(crate) fn is_single_file(path: &Path) -> Result<bool, Error> {
    Ok(!path.is_dir() && !is_tar(path)?)
}

/// Calls `read` with the member of that name, in any folder of the archive, if it exists.
fn with_member<T>(archive: impl Read, wanted: &str, read: impl FnOnce(&mut dyn Read) -> io::Result<T>) -> io::Result<Option<T>> {
    let (mut read, mut result) = (Some(read), None);
    for_each_member(archive, ArchiveEnd::Required, |name, member| {
        if let Member::File(bytes) = member
            && Path::new(&name).file_name().is_some_and(|name| name == wanted)
            && let Some(read) = read.take()
        {
            result = Some(read(bytes)?);
        }
        Ok(result.is_none())
    })?;
    Ok(result)
}

/// The file of a batch in a folder, plain or compressed.
fn batch_in(folder: &Path, name: &str) -> Result<PathBuf, Error> {
    let packed = ["", ".xz", ".gz", ".zst"].map(|ending| folder.join(format!("{name}{ending}")));
    packed.into_iter().find(|path| path.is_file()).ok_or_else(|| {
        let reason = SourceError::unexpected(
            "the folder",
            format!("no file `{name}`, plain or compressed"),
            EXPECTED.what.to_owned(),
            EXPECTED.remedies,
        );
        reason.at(folder)
    })
}

/// Whether a file, decompressed if necessary, is a tar archive.
fn is_tar(path: &Path) -> Result<bool, Error> {
    let mut start = Cursor::new([0; 263]);
    let input = Input::open(path)?;
    let io = Error::io(path, input.action);
    let n = std::io::copy(&mut input.bytes.take(263), &mut start).map_err(io)?;
    refuse_python_archive(path, start.get_ref())?;
    Ok(n >= 262 && start.get_ref()[257..262] == *b"ustar")
}
