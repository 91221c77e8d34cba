//! Where the files of a checkpoint are read from.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Seek, SeekFrom};
use std::ops::Range;
use std::path::Path;
use std::thread;

use brisk_atomic_file::{open_regular_file, read_regular_file};

use super::head::Head;
use super::kind::{LENGTH_BYTES, MAX_HEADER_BYTES};
use crate::checkpoint_store::{CheckpointStore, StoreError, object_of};
use crate::error::Error;

/// A folder, or a store, in which a file is the object of its name.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Source<'s> {
    Folder,
    Store(&'s dyn CheckpointStore),
}

/// The first bytes that are requested of an object: most heads fit in.
const HEAD_BYTES: u64 = 16 << 10;
/// Ranges with so few bytes in between are one request, which takes longer than these bytes.
const GAP_BYTES: usize = 8 << 10;
/// How many requests are sent at a time.
const N_AT_ONCE: usize = 8;

impl Source<'_> {
    /// All bytes of a file.
    pub(crate) fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        match self {
            Self::Folder => read_regular_file(path),
            Self::Store(store) => there(store.read(&object_of(path))),
        }
    }

    /// The length of a file, and its first bytes, with all of its head if it has one.
    pub(crate) fn read_head(&self, path: &Path) -> io::Result<(u64, Vec<u8>)> {
        let Self::Store(store) = self else {
            let mut file = open_regular_file(path)?;
            return Ok((file.metadata()?.len(), Head::read(&mut file)?));
        };
        let object = object_of(path);
        let (mut bytes, n_bytes) = there(store.read_part(&object, 0..HEAD_BYTES))?;
        if let Some(len) = bytes.first_chunk::<LENGTH_BYTES>() {
            let len = u64::from_le_bytes(*len).min(MAX_HEADER_BYTES) + LENGTH_BYTES as u64;
            if len > HEAD_BYTES {
                bytes.extend(there(store.read_part(&object, HEAD_BYTES..len))?.0);
            }
            bytes.truncate(len as usize);
        }
        Ok((n_bytes, bytes))
    }

    /// The bytes of ranges of a file, counted from `start`, end to end.
    pub(crate) fn read_ranges(&self, path: &Path, start: usize, ranges: &[Range<usize>]) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; ranges.iter().map(Range::len).sum()];
        let mut rest = &mut bytes[..];
        let mut wanted = Vec::new();
        for range in ranges.iter().filter(|range| !range.is_empty()) {
            let (these, others) = rest.split_at_mut(range.len());
            rest = others;
            wanted.push((start + range.start, these));
        }
        match self {
            Self::Folder => read_from_file(path, wanted)?,
            Self::Store(store) => read_from_store(*store, &object_of(path), wanted)?,
        }
        Ok(bytes)
    }

    /// An error with the name that a file has here.
    pub(crate) fn named(&self, mut error: Error) -> Error {
        let Self::Store(store) = self else { return error };
        match &mut error {
            Error::Damaged { path, .. } | Error::WrongFile { path, .. } => *path = store.name_of(&object_of(path)).into(),
            Error::Io { path, cause, .. } => {
                return Error::Store { object: store.name_of(&object_of(path)), cause: cause.to_string().into() };
            }
            _ => {}
        }
        error
    }
}

/// Places in a file, and where their bytes belong.
type Wanted<'b> = Vec<(usize, &'b mut [u8])>;

fn read_from_file(path: &Path, wanted: Wanted<'_>) -> io::Result<()> {
    let mut file: Option<File> = None;
    for (at, bytes) in wanted {
        let file = match &mut file {
            Some(file) => file,
            none => none.insert(open_regular_file(path)?),
        };
        file.seek(SeekFrom::Start(at as u64))?;
        file.read_exact(bytes)?;
    }
    Ok(())
}

fn read_from_store(store: &dyn CheckpointStore, object: &str, mut wanted: Wanted<'_>) -> io::Result<()> {
    wanted.sort_unstable_by_key(|(at, _)| *at);
    let mut requests: Vec<(Range<usize>, Wanted<'_>)> = Vec::new();
    for (at, bytes) in wanted {
        let end = at + bytes.len();
        match requests.last_mut() {
            Some((range, parts)) if at <= range.end + GAP_BYTES => {
                range.end = end;
                parts.push((at, bytes));
            }
            _ => requests.push((at..end, vec![(at, bytes)])),
        }
    }
    let send = |(range, parts): (Range<usize>, Wanted<'_>)| {
        let (found, n_bytes) = there(store.read_part(object, range.start as u64..range.end as u64))?;
        for (at, bytes) in parts {
            let found = found.get(at - range.start..at - range.start + bytes.len());
            let short = || io::Error::new(ErrorKind::UnexpectedEof, format!("it has only {n_bytes} bytes"));
            bytes.copy_from_slice(found.ok_or_else(short)?);
        }
        Ok(())
    };
    let mut requests = requests.into_iter();
    loop {
        let some: Vec<_> = requests.by_ref().take(N_AT_ONCE).collect();
        if some.is_empty() {
            return Ok(());
        }
        thread::scope(|scope| {
            let sent: Vec<_> = some.into_iter().map(|request| scope.spawn(|| send(request))).collect();
            let ended = sent.into_iter().map(|sent| sent.join().expect("a store returns errors"));
            ended.collect::<io::Result<()>>()
        })?;
    }
}

fn there<T>(read: Result<Option<T>, StoreError>) -> io::Result<T> {
    read.map_err(io::Error::other)?.ok_or_else(|| io::Error::new(ErrorKind::NotFound, "there is no such object"))
}
