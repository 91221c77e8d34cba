use std::collections::HashMap;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use object_store::path::Path as ObjectPath;
use object_store::{GetOptions, GetRange};

use super::at_once::at_once;
use super::cache::{Claim, Key};
use super::failure::Failure;
use super::identity::Identity;
use super::location::Location;
use super::retry::{Ended, Wait};
use super::session::{Remote, Session};
use super::store::Store;
use crate::checksum::{BLOCK_BYTES, checksum};
use crate::error::{Error, RemoteError};
use crate::lock::lock;

/// The length of the first request, which most headers fit into.
const HEAD_BYTES: u64 = 64 << 10;

/// The length of a block: it is requested and cached as a whole. It is what one checksum of a table covers, the least that can be
/// checked, so that of the rows around those that a replica needs few are read.
pub(crate) const FETCH_BYTES: usize = BLOCK_BYTES;

/// The length of a request for an object that is copied as a whole.
const COPY_BYTES: usize = 4 << 20;

/// The longest object that is read by one request, into memory, because its versions could be mixed.
const WHOLE_BYTES: u64 = 1 << 30;

/// How long a block in the cache is not marked as used again, since marking it costs a tenth of reading it.
const MARKED_FOR: Duration = Duration::from_secs(10);

/// How often a block with the wrong checksum is requested.
const N_FETCHES: usize = 3;

/// The file of a table on a server, read by ranges. It is an error if another file takes its place.
pub(crate) struct Object {
    session: Arc<Session>,
    location: Location,
    path: PathBuf,
    store: Store,
    object: ObjectPath,
    identity: Identity,
    /// What its blocks are called in the cache; `None` if another object could not be told apart.
    key: Option<Key>,
    number: u64,
    head: Vec<u8>,
    data: OnceLock<Data>,
    sums: Mutex<Option<Arc<Vec<u8>>>>,
    /// Blocks that were in the cache as they should be, and when they were last marked as used.
    checked: Mutex<HashMap<usize, Instant>>,
    is_abandoned: AtomicBool,
}

/// Without its bytes.
impl std::fmt::Debug for Object {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Object").field("location", &self.location).field("identity", &self.identity).finish_non_exhaustive()
    }
}

/// Where the rows of a table start, and its checksums.
#[derive(Debug)]
struct Data {
    start: usize,
    /// The checksum of everything before that.
    header_crc32: u32,
    sums: Option<Range<usize>>,
}

impl Object {
    /// Reads the first bytes of an object, and remembers which one it is.
    pub(crate) fn open(location: &Location, remote: &Remote) -> Result<Self, Error> {
        let (mut object, head) = Self::open_at(location, remote, 0..HEAD_BYTES)?;
        object.head = head;
        Ok(object)
    }

    /// The same with some bytes of it, as far as it has them.
    fn open_at(location: &Location, remote: &Remote, bytes: Range<u64>) -> Result<(Self, Vec<u8>), Error> {
        let session = &remote.session;
        let (store, object) = session.store_of(location)?;
        let wait = session.wait();
        let request = || get(&store, &object, location, bytes.clone(), None);
        let (found, identity) = match session.send_unless_stopped(&wait, location, request) {
            // There is no such range in an object that is shorter, or empty.
            Err(Ended::BeyondEnd) => {
                let request = || head(&store, &object, location);
                session.send_unless_stopped(&wait, location, request).map(|identity| (Vec::new(), identity))
            }
            got => got,
        }
        .map_err(|ended| match ended {
            Ended::BeyondEnd => location.error(RemoteError::Failed { problem: "the file is empty".to_owned() }),
            ended => ended.error(location),
        })?;
        session.counts.bytes_from_server.fetch_add(found.len() as u64, Ordering::Relaxed);
        let key = identity.is_certain().then(|| {
            // A query may contain a signature, which changes. It only counts if the server names no version of the object.
            let query = location.query().filter(|_| !identity.is_named()).map_or(0, |query| checksum(query.as_bytes()));
            let url = location.shown();
            Key::new(format!("{}\n{}\n{query:08x}\n{identity}", url.trim_end_matches("?…"), store.endpoint))
        });
        let object = Self {
            number: session.counts.n_objects.fetch_add(1, Ordering::Relaxed),
            session: session.clone(),
            location: location.clone(),
            path: location.path(),
            store,
            object,
            identity,
            key,
            head: Vec::new(),
            data: OnceLock::new(),
            sums: Mutex::new(None),
            checked: Mutex::default(),
            is_abandoned: AtomicBool::new(false),
        };
        Ok((object, found))
    }

    /// The URL without secrets.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn n_bytes(&self) -> u64 {
        self.identity.n_bytes
    }

    pub(crate) fn n_parallel(&self) -> usize {
        self.session.options.parallel
    }

    /// Says where the rows start and where the checksums are, so that rows can be read by blocks which are checked.
    pub(crate) fn set_data(&self, start: usize, header_crc32: u32, sums: Option<Range<usize>>) {
        self.data.get_or_init(|| Data { start, header_crc32, sums });
    }

    /// Reads some bytes directly, which are neither checked nor cached.
    pub(crate) fn read_plain(&self, bytes: Range<usize>) -> Result<Vec<u8>, Error> {
        if let Some(head) = self.head.get(bytes.clone()) {
            return Ok(head.to_vec());
        }
        self.request(bytes)
    }

    /// Ends what still waits for the server, whose answers are no longer needed.
    pub(crate) fn abandon(&self) {
        self.is_abandoned.store(true, Ordering::Relaxed);
    }

    fn wait(&self) -> Wait<'_> {
        self.session.wait().unless(&self.is_abandoned)
    }

    fn request(&self, bytes: Range<usize>) -> Result<Vec<u8>, Error> {
        if bytes.is_empty() {
            return Ok(Vec::new());
        }
        let tag = self.identity.strong_tag();
        let range = bytes.start as u64..bytes.end as u64;
        let request = || get(&self.store, &self.object, &self.location, range.clone(), tag.clone());
        let sent = self.session.send_unless_stopped(&self.wait(), &self.location, request);
        let (got, identity) = sent.map_err(|ended| ended.error(&self.location))?;
        self.session.counts.bytes_from_server.fetch_add(got.len() as u64, Ordering::Relaxed);
        if let Some(problem) = self.identity.difference(&identity) {
            return Err(self.location.error(RemoteError::Changed { problem }));
        }
        Ok(got)
    }

    /// Whether some bytes of rows are in the cache on this machine.
    pub(crate) fn is_cached(&self, bytes: Range<usize>) -> bool {
        let (Some(data), Some(cache), Some(key)) = (self.data.get(), &self.session.cache, &self.key) else { return false };
        let number = |at: usize| at.saturating_sub(data.start) / FETCH_BYTES;
        let checked = lock(&self.checked);
        bytes.is_empty()
            || (number(bytes.start)..=number(bytes.end - 1))
                .all(|number| checked.contains_key(&number) || cache.has(key, number as u64))
    }

    /// Reads some bytes, those of rows from blocks unless the options say otherwise.
    pub(crate) fn read(&self, bytes: Range<usize>, out: &mut [u8]) -> Result<(), Error> {
        let in_blocks = |data: &&Data| data.start <= bytes.start && self.session.options.whole_blocks;
        let Some(data) = self.data.get().filter(in_blocks) else {
            out.copy_from_slice(&self.read_plain(bytes)?);
            return Ok(());
        };
        if let Some(sums) = data.sums.as_ref().filter(|sums| sums.start <= bytes.start && bytes.end <= sums.end) {
            let stored = self.sums(data, sums)?;
            out.copy_from_slice(&stored[bytes.start - sums.start..bytes.end - sums.start]);
            return Ok(());
        }
        let mut start = bytes.start;
        while start < bytes.end {
            let number = (start - data.start) / FETCH_BYTES;
            let of_block = self.block_range(data, number);
            let end = bytes.end.min(of_block.end);
            let (out, part) = (&mut out[start - bytes.start..end - bytes.start], start - of_block.start..end - of_block.start);
            start = end;
            let recent = &self.session.recent;
            let block = match recent.find((self.number, number as u64)) {
                Some(block) => block,
                None if self.read_cached(data, number, part.clone(), out) => continue,
                None => recent.get((self.number, number as u64), || self.block(data, number))?,
            };
            out.copy_from_slice(&block[part]);
        }
        Ok(())
    }

    /// Reads all bytes, several blocks at a time.
    pub(crate) fn read_all(&self, out: &mut [u8]) -> Result<(), Error> {
        let start = self.data.get().map_or(0, |data| data.start);
        let (header, rows) = out.split_at_mut(start);
        self.read(0..start, header)?;
        let pieces = rows.chunks_mut(FETCH_BYTES).zip((start..).step_by(FETCH_BYTES));
        at_once(pieces, self.n_at_once(), |(piece, start)| self.read(start..start + piece.len(), piece))
    }

    /// Reads all bytes directly and passes them to `take` in pieces, with the position of each; in any order.
    pub(super) fn read_pieces(&self, take: impl Fn(u64, Vec<u8>) -> Result<(), Error> + Sync) -> Result<(), Error> {
        let n_bytes = self.n_bytes() as usize;
        let n_copied = self.n_copied(n_bytes)?;
        at_once((0..n_bytes).step_by(n_copied), self.n_at_once(), |start| {
            take(start as u64, self.read_plain(start..n_bytes.min(start.saturating_add(n_copied)))?)
        })
    }

    /// The length of a request for so many bytes without checksums: all of them if those of two versions could be mixed.
    fn n_copied(&self, n_bytes: usize) -> Result<usize, Error> {
        match n_bytes as u64 {
            _ if self.identity.is_certain() => Ok(COPY_BYTES),
            n_bytes if n_bytes > WHOLE_BYTES => Err(self.location.error(RemoteError::Unnamed { n_bytes })),
            _ => Ok(n_bytes.max(1)),
        }
    }

    /// How many requests for its blocks are sent at a time.
    fn n_at_once(&self) -> usize {
        self.n_parallel().min(self.n_bytes().div_ceil(FETCH_BYTES as u64) as usize)
    }

    /// Reads rows from a block in the cache; all of the block only if it has not been checked before.
    fn read_cached(&self, data: &Data, number: usize, part: Range<usize>, out: &mut [u8]) -> bool {
        let (Some(cache), Some(key)) = (&self.session.cache, &self.key) else { return false };
        let marked = lock(&self.checked).get(&number).copied();
        let is_marked = marked.is_some_and(|marked| marked.elapsed() < MARKED_FOR);
        let (is_read, n_bytes) = if marked.is_some() {
            (cache.read_part(key, number as u64, part.clone(), out, !is_marked), part.len())
        } else {
            let n_bytes = self.block_range(data, number).len();
            (cache.read_checked(key, number as u64, n_bytes, part, out), n_bytes)
        };
        if is_read {
            self.session.counts.bytes_from_cache.fetch_add(n_bytes as u64, Ordering::Relaxed);
            if !is_marked {
                self.set_checked(number);
            }
        }
        is_read
    }

    /// Remembers that a block is in the cache as it should be, and was marked as used.
    fn set_checked(&self, number: usize) {
        lock(&self.checked).insert(number, Instant::now());
    }

    fn block_range(&self, data: &Data, number: usize) -> Range<usize> {
        let start = data.start + number * FETCH_BYTES;
        start..(start + FETCH_BYTES).min(self.n_bytes() as usize)
    }

    /// A block from the cache, or from the server into the cache.
    fn block(&self, data: &Data, number: usize) -> Result<Vec<u8>, Error> {
        let range = self.block_range(data, number);
        let (Some(cache), Some(key)) = (&self.session.cache, &self.key) else { return self.fetch(data, range) };
        let patience = self.session.options.timeout;
        match cache.claim(key, number as u64, range.len(), patience, &self.wait()) {
            Claim::Found(block) => {
                self.session.counts.bytes_from_cache.fetch_add(block.len() as u64, Ordering::Relaxed);
                self.set_checked(number);
                Ok(block)
            }
            Claim::Stopped => {
                if !self.wait().is_abandoned() {
                    self.session.counts.n_stopped.fetch_add(1, Ordering::Relaxed);
                }
                Err(self.location.error(RemoteError::Stopped))
            }
            Claim::Fetch(slot) => {
                let block = self.fetch(data, range)?;
                if let Some(slot) = slot {
                    cache.fill(slot, key, &block);
                    self.set_checked(number);
                }
                Ok(block)
            }
        }
    }

    /// A block from the server, checked against the checksums of the table if it has some.
    fn fetch(&self, data: &Data, range: Range<usize>) -> Result<Vec<u8>, Error> {
        // One thread reads the checksums while others read their blocks.
        if let Some(sums) = data.sums.as_ref().filter(|_| self.sums.try_lock().is_ok_and(|sums| sums.is_none())) {
            self.sums(data, sums)?;
        }
        let mut block = self.read_plain(range.clone())?;
        for n_reads in 1..N_FETCHES {
            match self.check(data, &range, &block, n_reads) {
                Err(Error::Checksum { .. }) => self.session.note_damage(&self.location, n_reads),
                checked => return checked.map(|()| block),
            }
            // Either may be wrong.
            self.lock_sums().take();
            block = self.request(range.clone())?;
        }
        self.check(data, &range, &block, N_FETCHES).map(|()| block)
    }

    /// Compares a block, which was read so often, with its checksums.
    fn check(&self, data: &Data, range: &Range<usize>, block: &[u8], n_reads: usize) -> Result<(), Error> {
        let Some(sums) = &data.sums else { return Ok(()) };
        let stored = self.sums(data, sums)?;
        let mut start = range.start;
        // The checksums themselves, which come last, are covered by none.
        while start < range.end.min(sums.start) {
            let end = sums.start.min(start + BLOCK_BYTES);
            // The first is that of the header.
            let expected = sum_at(&stored, 1 + (start - data.start) / BLOCK_BYTES);
            let found = checksum(&block[start - range.start..end - range.start]);
            if found != expected {
                let path = self.path.clone();
                return Err(Error::Checksum { path, start: start as u64, end: end as u64, expected, found, n_reads });
            }
            start = end;
        }
        Ok(())
    }

    /// The checksums, which are read when they are first needed. The first is that of the header, which has been read before.
    fn sums(&self, data: &Data, range: &Range<usize>) -> Result<Arc<Vec<u8>>, Error> {
        let mut sums = self.lock_sums();
        if let Some(sums) = &*sums {
            return Ok(sums.clone());
        }
        let mut stored = self.read_plain(range.clone())?;
        let found = data.header_crc32;
        for n_reads in 1..N_FETCHES {
            if sum_at(&stored, 0) == found {
                break;
            }
            self.session.note_damage(&self.location, n_reads);
            stored = self.request(range.clone())?;
        }
        let expected = sum_at(&stored, 0);
        if expected != found {
            let (path, end) = (self.path.clone(), data.start as u64);
            return Err(Error::Checksum { path, start: 0, end, expected, found, n_reads: N_FETCHES });
        }
        Ok(sums.insert(Arc::new(stored)).clone())
    }

    /// A function of the program that panics while they are read leaves none.
    fn lock_sums(&self) -> MutexGuard<'_, Option<Arc<Vec<u8>>>> {
        self.sums.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn sum_at(sums: &[u8], number: usize) -> u32 {
    let at = number * size_of::<u32>();
    u32::from_le_bytes([sums[at], sums[at + 1], sums[at + 2], sums[at + 3]])
}

/// Reads an object of at most `limit` bytes. `Err` with its length if it is longer.
pub(crate) fn read_whole(location: &Location, remote: &Remote, limit: u64) -> Result<Result<Vec<u8>, u64>, Error> {
    let object = Object::open(location, remote)?;
    match object.n_bytes() {
        found if found > limit => Ok(Err(found)),
        found => object.read_plain(0..found as usize).map(Ok),
    }
}

/// Reads some bytes of an object, as far as it has them, directly; and its length. Several requests are sent at a time.
pub(super) fn read_part(location: &Location, remote: &Remote, bytes: Range<u64>) -> Result<(Vec<u8>, u64), Error> {
    let first = bytes.start..bytes.end.min(bytes.start.saturating_add(COPY_BYTES as u64));
    if first.is_empty() {
        let object = Object::open(location, remote)?;
        return Ok((Vec::new(), object.n_bytes()));
    }
    let (object, mut found) = Object::open_at(location, remote, first)?;
    let start = bytes.start as usize;
    let n_bytes = (object.n_bytes().min(bytes.end) as usize).saturating_sub(start);
    let n_copied = object.n_copied(n_bytes)?;
    // All of it again if the rest could be of another version.
    let n_found = if object.identity.is_certain() || found.len() >= n_bytes { found.len() } else { 0 };
    found.resize(n_bytes.max(n_found), 0);
    let pieces = found[n_found..].chunks_mut(n_copied).zip((start + n_found..).step_by(n_copied));
    at_once(pieces, object.n_at_once(), |(piece, start)| {
        piece.copy_from_slice(&object.read_plain(start..start + piece.len())?);
        Ok(())
    })?;
    Ok((found, object.n_bytes()))
}

type Got = Result<(Vec<u8>, Identity), Failure>;

/// A request for some bytes of an object, of the version with this tag if there is one.
fn get(
    store: &Store,
    object: &ObjectPath,
    location: &Location,
    range: Range<u64>,
    tag: Option<String>,
) -> impl Future<Output = Got> + Send + 'static {
    let (store, object, location) = (store.clone(), object.clone(), location.clone());
    async move {
        let options = GetOptions { range: Some(GetRange::Bounded(range.clone())), if_match: tag, ..GetOptions::default() };
        let failure = |error: object_store::Error| Failure::of(&error, &location);
        let result = store.objects.get_opts(&object, options).await.map_err(failure)?;
        let identity = Identity::of(&result.meta);
        let bytes = result.bytes().await.map_err(failure)?;
        let expected = range.end.min(identity.n_bytes).saturating_sub(range.start);
        if bytes.len() as u64 != expected {
            return Err(Failure::transient(format!("the server sent {} of {expected} bytes", bytes.len())));
        }
        Ok((bytes.into(), identity))
    }
}

fn head(
    store: &Store,
    object: &ObjectPath,
    location: &Location,
) -> impl Future<Output = Result<Identity, Failure>> + Send + 'static {
    let (store, object, location) = (store.clone(), object.clone(), location.clone());
    async move {
        let options = GetOptions { head: true, ..GetOptions::default() };
        let result = store.objects.get_opts(&object, options).await;
        result.map(|result| Identity::of(&result.meta)).map_err(|error| Failure::of(&error, &location))
    }
}
