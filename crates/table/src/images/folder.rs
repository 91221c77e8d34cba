//! Lists the images of a folder or archive, and their classes.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use brisk_atomic_file::{FileId, listed};

use super::tree::{Classes, Tree, visible};
use crate::error::{Error, SourceError};
use crate::import::{ArchiveEnd, Input, Like, Member, for_each_member};
use crate::source_identity::SourceIdentity;

/// How deep folders may be nested.
const MAX_DEPTH: usize = 32;

/// The longest file that is read.
const MAX_FILE_BYTES: u64 = 1 << 30;

/// The contents of a source, before its images are decoded.
#[derive(Debug)]
pub(super) struct Listing {
    /// The names of the classes, in the order of their labels.
    pub(super) classes: Vec<String>,
    labels: HashMap<String, u32>,
    pub(super) empty_classes: Vec<String>,
    /// How many folders lead to those of the classes.
    depth: usize,
    /// Every file of a folder, in order; empty for an archive, whose files have the order of the archive.
    pub(super) files: Vec<PathBuf>,
    pub(super) identity: SourceIdentity,
}

impl Listing {
    /// Lists a folder, sorted by name.
    pub(super) fn of_folder(folder: &Path, like: Option<&Like>) -> Result<Self, Error> {
        let mut identity = SourceIdentity { n_bytes: 0, ..SourceIdentity::new(folder, &metadata(folder)?) };
        let (mut files, mut tree) = (Vec::new(), Tree::default());
        walk(folder, Path::new(""), &mut Vec::new(), &mut |path, metadata| {
            let Some(names) = visible(path) else { return false };
            if metadata.is_dir() {
                tree.add_folder(names);
                return true;
            }
            identity.add(&SourceIdentity::new(path, metadata));
            tree.add_file(names);
            files.push(folder.join(path));
            false
        })?;
        Self::new(folder, &tree, files, identity, like)
    }

    /// Lists an archive, which is read to its end for the names.
    pub(super) fn of_archive(path: &Path, end: ArchiveEnd, like: Option<&Like>) -> Result<Self, Error> {
        let mut tree = Tree::default();
        let input = Input::open(path)?;
        let read = for_each_member(input.bytes, end, |name, member| {
            match (visible(Path::new(&name)), member) {
                (Some(names), Member::File(_)) => tree.add_file(names),
                (Some(names), Member::Folder) => tree.add_folder(names),
                (None, _) => {}
            }
            Ok(true)
        });
        read.map_err(Error::io(path, UNPACK))?;
        Self::new(path, &tree, Vec::new(), input.source, like)
    }

    fn new(path: &Path, tree: &Tree, files: Vec<PathBuf>, identity: SourceIdentity, like: Option<&Like>) -> Result<Self, Error> {
        let Classes { depth, names, empty } = tree.classes().map_err(|reason| reason.at(path))?;
        let classes = match like {
            None => names,
            Some(like) => {
                if let Some(other) = names.iter().find(|name| !like.metadata.classes.contains(name)) {
                    let reason = SourceError::unexpected(
                        "the source",
                        format!("a folder `{other}`"),
                        format!("only the classes of the table to match: {}", listed(&like.metadata.classes)),
                        &[],
                    );
                    return Err(reason.at(path));
                }
                like.metadata.classes.clone()
            }
        };
        let labels = classes.iter().cloned().zip(0..).collect();
        Ok(Self { classes, labels, empty_classes: empty, depth, files, identity })
    }

    /// The class of a file, and its label: `None` in place of the label if no folder of a class contains it, and altogether if
    /// the file is hidden.
    pub(super) fn label(&self, path: &Path) -> Option<Option<u32>> {
        let names = visible(path)?;
        let class = (names.len() > self.depth + 1).then(|| &names[self.depth]);
        Some(class.and_then(|class| self.labels.get(class)).copied())
    }
}

/// Calls `each` with everything in the folder at `root` and `path`, by its path below `root`, sorted; `each` returns whether to
/// look into a folder. `above` are the folders that contain it.
fn walk(
    root: &Path,
    path: &Path,
    above: &mut Vec<FileId>,
    each: &mut dyn FnMut(&Path, &fs::Metadata) -> bool,
) -> Result<(), Error> {
    let folder = root.join(path);
    let list = Error::io(&folder, "list");
    let id = FileId::of(&folder).map_err(list)?;
    if above.contains(&id) {
        return Err(list(io::Error::other("it is a link to a folder that contains it")));
    }
    if above.len() > MAX_DEPTH {
        return Err(list(io::Error::other(format!("folders are nested {MAX_DEPTH} deep"))));
    }
    above.push(id);
    for name in sorted_entries(&folder)? {
        let below = path.join(name);
        // What is hidden may be anything, such as a link to nowhere.
        if visible(&below).is_none() {
            continue;
        }
        if each(&below, &metadata_in_folder(&root.join(&below))?) {
            walk(root, &below, above, each)?;
        }
    }
    above.pop();
    Ok(())
}

pub(super) const UNPACK: &str = "unpack (it is tar, damaged or cut short)";

pub(super) fn read_file(from: impl Read) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err(io::Error::other(format!("it has more than {MAX_FILE_BYTES} bytes, which no image takes")));
    }
    Ok(bytes)
}

fn sorted_entries(folder: &Path) -> Result<Vec<OsString>, Error> {
    let io = Error::io(folder, "list");
    let entries: io::Result<Vec<_>> = fs::read_dir(folder).map_err(io)?.map(|entry| Ok(entry?.file_name())).collect();
    let mut entries = entries.map_err(io)?;
    entries.sort_unstable();
    Ok(entries)
}

/// The same; for a link to nowhere that of the link, which is a file that cannot be read.
fn metadata_in_folder(path: &Path) -> Result<fs::Metadata, Error> {
    metadata(path).or_else(|error| fs::symlink_metadata(path).ok().filter(fs::Metadata::is_symlink).ok_or(error))
}

fn metadata(path: &Path) -> Result<fs::Metadata, Error> {
    fs::metadata(path).map_err(Error::io(path, "open"))
}
