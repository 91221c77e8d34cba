//! Lists the images of a folder or archive, and their classes.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use tar::Archive;

use crate::import::Input;
use crate::{Error, SourceIdentity};

/// How deep folders may be nested.
const MAX_DEPTH: usize = 32;

/// The longest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The contents of a source, before its images are decoded.
#[derive(Debug)]
pub(super) struct Listing {
    /// The names of the classes, sorted; the index of a class is its label.
    pub(super) classes: Vec<String>,
    /// Every file of a folder, in order; empty for an archive, whose files have the order of the archive.
    pub(super) files: Vec<PathBuf>,
    pub(super) identity: SourceIdentity,
}

impl Listing {
    /// Lists a folder: its subfolders are the classes, and all files below one are its images. Everything is sorted by name.
    pub(super) fn of_folder(folder: &Path) -> Result<Self, Error> {
        let identity = SourceIdentity { n_bytes: 0, ..SourceIdentity::new(folder, &metadata(folder)?) };
        let mut listing = Self { classes: Vec::new(), files: Vec::new(), identity };
        for path in sorted_entries(folder)? {
            if path.is_dir() {
                listing.classes.push(last_name(&path));
            }
            listing.add(path, 0)?;
        }
        Ok(listing)
    }

    fn add(&mut self, path: PathBuf, depth: usize) -> Result<(), Error> {
        let metadata = metadata(&path)?;
        if metadata.is_dir() {
            if depth == MAX_DEPTH {
                let cause = io::Error::other(format!("folders are nested {MAX_DEPTH} deep; is one a link to itself?"));
                return Err(Error::Io { path, action: "list", cause });
            }
            return sorted_entries(&path)?.into_iter().try_for_each(|entry| self.add(entry, depth + 1));
        }
        let of_file = SourceIdentity::new(&path, &metadata);
        self.identity.n_bytes += of_file.n_bytes;
        self.identity.modified_ns = self.identity.modified_ns.max(of_file.modified_ns);
        self.files.push(path);
        Ok(())
    }

    /// Lists an archive, which is read to its end for the names: the folder of a file is its class.
    pub(super) fn of_archive(path: &Path) -> Result<Self, Error> {
        let mut classes = BTreeSet::new();
        let input = Input::open(path)?;
        let read = for_each_file(input.bytes, |name, _| {
            classes.extend(class_in_archive(&name).map(str::to_owned));
            Ok(true)
        });
        read.map_err(|cause| Error::Io { path: path.to_owned(), action: UNPACK, cause })?;
        Ok(Self { classes: classes.into_iter().collect(), files: Vec::new(), identity: input.source })
    }

    /// The label of the class of that name.
    pub(super) fn label(&self, class: &str) -> Option<u32> {
        self.classes.binary_search_by(|other| other.as_str().cmp(class)).ok().and_then(|place| u32::try_from(place).ok())
    }
}

pub(super) const UNPACK: &str = "unpack (it is tar, damaged or cut short)";

/// Calls `each` with the name and the bytes of every file of an archive, until it returns that it needs no more.
pub(super) fn for_each_file(
    archive: impl Read,
    mut each: impl FnMut(String, &mut dyn Read) -> io::Result<bool>,
) -> io::Result<()> {
    let mut archive = Archive::new(archive);
    for entry in archive.entries()? {
        let mut entry = entry?;
        if entry.header().entry_type().is_file() {
            let name = entry.path()?.to_string_lossy().into_owned();
            if !each(name, &mut entry)? {
                break;
            }
        }
    }
    Ok(())
}

/// The bytes of one file.
pub(super) fn read_file(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes, which no image takes")));
    }
    Ok(bytes)
}

/// The name of the folder that contains a file of an archive.
pub(super) fn class_in_archive(name: &str) -> Option<&str> {
    Path::new(name).parent()?.file_name()?.to_str()
}

/// The class of a file below `folder`: the first folder on its path.
pub(super) fn class_in_folder(folder: &Path, file: &Path) -> Option<String> {
    let mut way = file.strip_prefix(folder).ok()?.iter();
    let first = way.next()?;
    way.next().map(|_| first.to_string_lossy().into_owned())
}

fn sorted_entries(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let io = |cause| Error::Io { path: folder.to_owned(), action: "list", cause };
    let entries: io::Result<Vec<_>> = fs::read_dir(folder).map_err(io)?.map(|entry| Ok(entry?.path())).collect();
    let mut entries = entries.map_err(io)?;
    entries.sort_unstable();
    Ok(entries)
}

fn metadata(path: &Path) -> Result<fs::Metadata, Error> {
    fs::metadata(path).map_err(|cause| Error::Io { path: path.to_owned(), action: "open", cause })
}

fn last_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}
