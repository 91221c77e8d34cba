//! Blocks of tables in a folder, shared by all processes of this machine.
//!
//! Each block is a file with a checksum and the name of what it is a block of. A process that fetches a block holds the temporary
//! file that becomes it, as [`create_claimed`] describes, so that others wait for it instead of fetching it too. The file `size`
//! has the size of all blocks, and is locked while it changes. The system releases the locks of a killed process.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant, SystemTime};

use brisk_atomic_file::{Leftover, create_claimed, printable};
use zlib_rs::adler32::adler32;

use super::options::CacheFolder;
use super::retry::Wait;
use crate::checksum::checksum;
use crate::error::Error;
use crate::lock::lock;

const VERSION: &str = CacheFolder::VERSION;
/// The file that marks a folder as a cache; it contains the version.
const MARKER: &str = "brisk-table-cache";
const SIZE: &str = "size";
const BLOCK: &str = "block";
const MAGIC: u64 = u64::from_le_bytes(*b"BRSKBLK1");
/// The Adler-32 of no bytes.
const NO_BYTES: u32 = 1;
const POLL: Duration = Duration::from_millis(5);

/// What a block belongs to.
#[derive(Clone, Debug)]
pub(super) struct Key {
    text: String,
    hash: u128,
}

impl Key {
    /// `text` identifies the object and its version.
    pub(super) fn new(text: String) -> Self {
        // FNV-1a: names of files only have to be different, since the text is compared, too.
        let hash = text.bytes().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d_u128, |hash, byte| {
            (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        });
        Self { text, hash }
    }

    fn file_name(&self, block: u64) -> String {
        format!("{:032x}-{block:08x}.{BLOCK}", self.hash)
    }
}

#[derive(Debug)]
pub(super) struct Cache {
    folder: PathBuf,
    limit_bytes: u64,
    /// Memory for the rest of a block, of each thread that checks one.
    spare: Mutex<Vec<Vec<u8>>>,
    /// Why blocks are no longer written, if so.
    problem: Mutex<Option<String>>,
}

/// What to do about a block.
#[derive(Debug)]
pub(super) enum Claim {
    Found(Vec<u8>),
    Fetch(Option<Slot>),
    /// The program is to stop, and another process has not fetched it yet.
    Stopped,
}

/// The file of a block that this process fetches. It is removed if it is dropped before it is filled.
#[derive(Debug)]
pub(super) struct Slot {
    file: File,
    temp: PathBuf,
    path: PathBuf,
    is_filled: bool,
}

impl Cache {
    /// Opens or creates a cache. If it cannot be written or created, that is its [`problem`](Self::problem).
    pub(super) fn open(folder: &Path, limit_bytes: u64) -> Result<Self, Error> {
        let cache = Self { folder: folder.to_owned(), limit_bytes, spare: Mutex::default(), problem: Mutex::new(None) };
        let is_marked = create_private(folder).map_err(|cause| unusable(folder, cause)).and_then(|()| check_marker(folder));
        let prepared = match is_marked {
            Ok(()) => cache.prepare(),
            Err(Error::Io { cause, .. }) if !is_something_else(&cause) => Err(cause),
            Err(error) => return Err(error),
        };
        if let Err(error) = prepared {
            cache.give_up(&error);
        }
        Ok(cache)
    }

    /// Corrects what killed processes have left, and keeps to the size.
    fn prepare(&self) -> io::Result<()> {
        let mut size = self.lock_size()?;
        self.sweep();
        self.make_room(&mut size, 0, Recount::Yes)
    }

    /// Why blocks are not written: the folder is read-only, or the disk is full, also without the least recently used blocks.
    pub(super) fn problem(&self) -> Option<String> {
        lock(&self.problem).clone()
    }

    /// Whether there is a file of a block.
    pub(super) fn has(&self, key: &Key, block: u64) -> bool {
        self.folder.join(key.file_name(block)).exists()
    }

    /// Finds a block of `n_bytes`, or claims it to be fetched. Waits for `patience` for another process that is fetching it, or
    /// until `wait` is over.
    pub(super) fn claim(&self, key: &Key, block: u64, n_bytes: usize, patience: Duration, wait: &Wait<'_>) -> Claim {
        let path = self.folder.join(key.file_name(block));
        let temp = path.with_extension("tmp");
        let start = Instant::now();
        loop {
            if let Some(bytes) = self.read(&path, key, n_bytes) {
                return Claim::Found(bytes);
            }
            if self.problem().is_some() || n_bytes as u64 > self.limit_bytes {
                return Claim::Fetch(None);
            }
            match create_claimed(&temp) {
                Ok(Some(file)) => {
                    let slot = Slot { file, temp, path, is_filled: false };
                    // Another process may have written the block after this one had looked for it.
                    let block = self.read(&slot.path, key, n_bytes);
                    return block.map_or_else(|| Claim::Fetch(Some(slot)), Claim::Found);
                }
                // Its process is gone: the file is removed here.
                Ok(None) if Leftover::seize(&temp).is_some() => {}
                Ok(None) if start.elapsed() > patience => return Claim::Fetch(None),
                Ok(None) if wait.is_over() => return Claim::Stopped,
                Ok(None) => thread::sleep(POLL),
                Err(error) => {
                    self.give_up(&error);
                    return Claim::Fetch(None);
                }
            }
        }
    }

    /// Reads a part of a block of `n_bytes` and checks all of it. `false` if the block is not there.
    pub(super) fn read_checked(&self, key: &Key, block: u64, n_bytes: usize, part: Range<usize>, out: &mut [u8]) -> bool {
        let spare = || lock(&self.spare);
        let mut rest = spare().pop().unwrap_or_default();
        rest.resize(n_bytes - part.len(), 0);
        let (before, after) = rest.split_at_mut(part.start);
        let is_read = self.read_into([before, out, after], &self.folder.join(key.file_name(block)), key);
        spare().push(rest);
        is_read
    }

    /// Reads a part of a block that this process has checked or written as a whole before, and marks the block as used if it
    /// should. `false` if the block is no longer there.
    pub(super) fn read_part(&self, key: &Key, block: u64, part: Range<usize>, out: &mut [u8], marks: bool) -> bool {
        let read = |mut file: File| {
            file.seek(SeekFrom::Start(part.start as u64))?;
            file.read_exact(out)?;
            if marks {
                mark_used(&file);
            }
            Ok(())
        };
        File::open(self.folder.join(key.file_name(block))).and_then(read).is_ok()
    }

    /// Writes a block; if the disk is full, in place of those that were least recently used. If that fails, no more blocks are
    /// written.
    pub(super) fn fill(&self, mut slot: Slot, key: &Key, bytes: &[u8]) {
        let filled = self.try_fill(&mut slot, key, bytes).or_else(|error| {
            let is_full = matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded);
            let can_retry = is_full && self.make_room_on_disk(bytes.len() as u64).and_then(|()| slot.empty()).is_ok();
            if can_retry { self.try_fill(&mut slot, key, bytes) } else { Err(error) }
        });
        if let Err(error) = filled {
            self.give_up(&error);
        }
    }

    fn try_fill(&self, slot: &mut Slot, key: &Key, bytes: &[u8]) -> io::Result<()> {
        let trailer = trailer(key, adler32(NO_BYTES, bytes));
        slot.file.write_all(bytes)?;
        slot.file.write_all(&trailer)?;
        let mut size = self.lock_size()?;
        self.make_room(&mut size, (bytes.len() + trailer.len()) as u64, Recount::IfFull)?;
        fs::rename(&slot.temp, &slot.path)?;
        slot.is_filled = true;
        Ok(())
    }

    /// The bytes of a block, if it is there.
    fn read(&self, path: &Path, key: &Key, n_bytes: usize) -> Option<Vec<u8>> {
        let mut bytes = vec![0; n_bytes];
        self.read_into([&mut bytes], path, key).then_some(bytes)
    }

    /// Fills the pieces, one after the other, with a block of their length. `false` if it is not there; a damaged one is removed.
    fn read_into<const N: usize>(&self, pieces: [&mut [u8]; N], path: &Path, key: &Key) -> bool {
        /// What is read is in the processor's cache when its checksum is computed.
        const CHUNK_BYTES: usize = 256 << 10;
        let Ok(mut file) = File::open(path) else { return false };
        let read = || {
            let mut sum = NO_BYTES;
            for chunk in pieces.into_iter().flat_map(|piece| piece.chunks_mut(CHUNK_BYTES)) {
                file.read_exact(chunk)?;
                sum = adler32(sum, chunk);
            }
            let expected = trailer(key, sum);
            let mut found = Vec::with_capacity(expected.len() + 1);
            Read::by_ref(&mut file).take(expected.len() as u64 + 1).read_to_end(&mut found)?;
            io::Result::Ok(found == expected)
        };
        let is_right = read().unwrap_or(false);
        if is_right {
            mark_used(&file);
        } else {
            // Its size stays counted until the next recount.
            _ = fs::remove_file(path);
        }
        is_right
    }

    fn give_up(&self, error: &io::Error) {
        let problem = format!("{}: the cache is only read, blocks are not written: {error}", printable(&self.folder));
        lock(&self.problem).get_or_insert(problem);
    }

    /// Opens the file with the size of all blocks, which no other process changes until it is dropped.
    fn lock_size(&self) -> io::Result<File> {
        let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(self.folder.join(SIZE))?;
        file.lock()?;
        Ok(file)
    }

    /// Counts `n_bytes` more, after removing the least recently used blocks if they would not fit.
    fn make_room(&self, size: &mut File, n_bytes: u64, recount: Recount) -> io::Result<()> {
        let mut counted = [0; 8];
        let known = size.read_exact(&mut counted).map(|()| u64::from_le_bytes(counted));
        let mut total = match known {
            Ok(known) if recount == Recount::IfFull && known.saturating_add(n_bytes) <= self.limit_bytes => known,
            _ => self.remove_oldest(n_bytes, self.limit_bytes)?,
        };
        total += n_bytes;
        write_size(size, total)
    }

    /// Removes the least recently used blocks so that `n_bytes` can take their place on a full disk.
    fn make_room_on_disk(&self, n_bytes: u64) -> io::Result<()> {
        let mut size = self.lock_size()?;
        // What the blocks take now is all that they can take.
        let total = self.remove_oldest(0, u64::MAX)?;
        let total = self.remove_oldest(n_bytes, total.min(self.limit_bytes))?;
        write_size(&mut size, total)
    }

    /// Removes blocks until there is room for `n_bytes` within a limit. Returns the size of the others.
    fn remove_oldest(&self, n_bytes: u64, limit_bytes: u64) -> io::Result<u64> {
        let (mut blocks, now) = (Vec::new(), SystemTime::now());
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == BLOCK)
                // Another process may have removed it.
                && let Ok(metadata) = fs::metadata(&path)
            {
                let mut used = metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH);
                // By a clock that was ahead. It would stay the last that is used, and the cache would keep it for good.
                if used > now {
                    _ = File::open(&path).and_then(|file| file.set_modified(now));
                    used = now;
                }
                blocks.push((used, metadata.len(), path));
            }
        }
        blocks.sort();
        let mut total: u64 = blocks.iter().map(|(_, n_bytes, _)| n_bytes).sum();
        if total + n_bytes <= limit_bytes {
            return Ok(total);
        }
        // Listing a large cache takes long: what is removed makes room for several blocks.
        let several = (limit_bytes / 16).checked_div(n_bytes).unwrap_or(0) * n_bytes;
        for (_, block_bytes, path) in blocks {
            if total + n_bytes + several <= limit_bytes {
                break;
            }
            if fs::remove_file(path).is_ok() {
                total -= block_bytes;
            }
        }
        Ok(total)
    }

    /// Removes the temporary files of processes that are gone.
    fn sweep(&self) {
        for entry in fs::read_dir(&self.folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "tmp") {
                drop(Leftover::seize(&path));
            }
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Recount {
    Yes,
    IfFull,
}

impl Slot {
    /// Removes what was written to it.
    fn empty(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.file.rewind()
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.is_filled {
            _ = fs::remove_file(&self.temp);
        }
    }
}

fn write_size(size: &mut File, total: u64) -> io::Result<()> {
    size.rewind()?;
    size.write_all(&total.to_le_bytes())
}

/// The least recently used blocks are removed first. A read-only cache cannot be marked.
fn mark_used(file: &File) {
    _ = file.set_modified(SystemTime::now());
}

/// What follows the bytes of a block in its file, of which `sum` is the Adler-32: the key, its length, a checksum of both, and a
/// magic number. A program checks each block that it uses; CRC-32 would cost four times as much.
fn trailer(key: &Key, sum: u32) -> Vec<u8> {
    let mut trailer = key.text.clone().into_bytes();
    let sum = sum ^ checksum(&trailer);
    trailer.extend((trailer.len() as u32).to_le_bytes());
    trailer.extend(sum.to_le_bytes());
    trailer.extend(MAGIC.to_le_bytes());
    trailer
}

/// Creates a folder that other users cannot read.
pub(super) fn create_private(folder: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

fn unusable(folder: &Path, cause: io::Error) -> Error {
    Error::Io { path: folder.to_owned(), action: "use as a cache", cause }
}

/// Whether there is something that is no cache, rather than one that cannot be used at the time.
fn is_something_else(error: &io::Error) -> bool {
    use io::ErrorKind::{AlreadyExists, InvalidData, InvalidInput, IsADirectory, NotADirectory};
    matches!(error.kind(), AlreadyExists | InvalidData | InvalidInput | IsADirectory | NotADirectory)
}

/// Checks that the folder is a cache of this version, or marks an empty one.
fn check_marker(folder: &Path) -> Result<(), Error> {
    let marker = folder.join(MARKER);
    let failed = |cause| unusable(folder, cause);
    let refused = |problem: String| Error::Cache { path: folder.to_owned(), problem };
    match fs::read_to_string(&marker) {
        Ok(found) if found.trim() == VERSION => return Ok(()),
        // Another process is creating it, or was killed while it did.
        Ok(found) if found.is_empty() => {}
        Ok(found) => {
            return Err(refused(format!("it is the cache of another version, {found:?}, and this one is {VERSION:?}")));
        }
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        Err(_) => {
            let is_empty = fs::read_dir(folder).map_err(failed)?.next().is_none();
            if !is_empty && !marker.exists() {
                return Err(refused("it has other files and is not a cache".to_owned()));
            }
        }
    }
    // Without truncating it: what other processes of this version write is the same.
    let file = OpenOptions::new().write(true).create(true).truncate(false).open(&marker);
    file.and_then(|mut file| file.write_all(VERSION.as_bytes())).map_err(failed)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn put(cache: &Cache, key: &Key, block: u64, bytes: &[u8]) {
        match cache.claim(key, block, bytes.len(), Duration::ZERO, &Wait::default()) {
            Claim::Fetch(Some(slot)) => cache.fill(slot, key, bytes),
            claim => panic!("block {block}: {claim:?}"),
        }
    }

    fn has(cache: &Cache, key: &Key, block: u64, n_bytes: usize) -> bool {
        matches!(cache.claim(key, block, n_bytes, Duration::ZERO, &Wait::default()), Claim::Found(_))
    }

    #[test]
    fn the_least_recently_used_blocks_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::new("k".to_owned());
        let block_bytes = (1000 + trailer(&key, NO_BYTES).len()) as u64;
        let cache = Cache::open(folder.path(), 3 * block_bytes).unwrap();
        let later = || thread::sleep(Duration::from_millis(15));
        for block in 0..3 {
            put(&cache, &key, block, &[block as u8; 1000]);
            later();
        }
        assert!(has(&cache, &key, 0, 1000), "it is used");
        later();
        put(&cache, &key, 3, &[3; 1000]);
        assert_eq!([0, 1, 2, 3].map(|block| has(&cache, &key, block, 1000)), [true, false, true, true]);
        // What is larger than the cache is not kept, and removes nothing.
        assert!(matches!(cache.claim(&key, 9, 10_000, Duration::ZERO, &Wait::default()), Claim::Fetch(None)), "it is too large");
        // A smaller limit holds at once.
        drop(cache);
        let cache = Cache::open(folder.path(), block_bytes).unwrap();
        assert_eq!([0, 2, 3].map(|block| has(&cache, &key, block, 1000)), [false, false, true]);
        assert_eq!(cache.problem(), None);
    }

    /// `/dev/full` stays full, but the blocks that were removed for it show what was tried.
    #[cfg(target_os = "linux")]
    #[test]
    fn on_a_full_disk_old_blocks_make_room() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::new("k".to_owned());
        let cache = Cache::open(folder.path(), 100_000).unwrap();
        for block in 0..3 {
            put(&cache, &key, block, &[block as u8; 1000]);
            thread::sleep(Duration::from_millis(15));
        }
        let Claim::Fetch(Some(mut slot)) = cache.claim(&key, 3, 1000, Duration::ZERO, &Wait::default()) else {
            panic!("it is not there")
        };
        slot.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        cache.fill(slot, &key, &[3; 1000]);
        assert_eq!([0, 1, 2, 3].map(|block| has(&cache, &key, block, 1000)), [false, true, true, false]);
        assert!(cache.problem().is_some_and(|problem| problem.contains("No space left")), "{:?}", cache.problem());
    }

    #[test]
    fn a_block_from_the_future_makes_room_like_others() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::new("k".to_owned());
        let block_bytes = (1000 + trailer(&key, NO_BYTES).len()) as u64;
        let cache = Cache::open(folder.path(), 2 * block_bytes).unwrap();
        put(&cache, &key, 0, &[0; 1000]);
        let in_a_day = SystemTime::now() + Duration::from_secs(86_400);
        File::open(folder.path().join(key.file_name(0))).and_then(|file| file.set_modified(in_a_day)).unwrap();
        // The third block finds the cache full, and corrects the time of the first.
        for block in 1..6 {
            thread::sleep(Duration::from_millis(15));
            put(&cache, &key, block, &[block as u8; 1000]);
        }
        assert_eq!([0, 4, 5].map(|block| has(&cache, &key, block, 1000)), [false, true, true]);
    }

    #[test]
    fn the_wait_for_the_block_of_another_process_ends_when_the_program_is_to_stop() {
        let folder = tempfile::tempdir().unwrap();
        let key = Key::new("k".to_owned());
        let [here, other] = [(); 2].map(|()| Cache::open(folder.path(), 10_000).unwrap());
        let slot = other.claim(&key, 0, 10, Duration::ZERO, &Wait::default());
        let stopped = here.claim(&key, 0, 10, Duration::from_secs(600), &Wait::until(&|| true));
        assert!(matches!((&slot, &stopped), (Claim::Fetch(Some(_)), Claim::Stopped)), "{slot:?}, {stopped:?}");
        // One that is not to stop fetches the block itself, once its patience is over.
        let fetched = here.claim(&key, 0, 10, Duration::from_millis(20), &Wait::until(&|| false));
        assert!(matches!(fetched, Claim::Fetch(None)), "{fetched:?}");
    }

    #[test]
    fn keys_of_one_name_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let (a, mut b) = (Key::new("a".to_owned()), Key::new("b".to_owned()));
        assert_ne!(a.hash, b.hash);
        b.hash = a.hash;
        let cache = Cache::open(folder.path(), 10_000).unwrap();
        put(&cache, &a, 0, &[1; 10]);
        assert!(!has(&cache, &b, 0, 10), "it is a block of another object");
        assert!(!has(&cache, &a, 0, 10), "it was damaged, as far as the cache knows");
    }
}
