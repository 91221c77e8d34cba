use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::num::NonZero;
use std::ops::Range;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, LazyLock, Mutex, OnceLock};
use std::thread::{self, JoinHandle};

use super::extent::Extent;
use super::file::TableFile;
use super::memory::Memory;
use super::pool::{Pool, Waited};
use crate::error::Error;
use crate::lock::{lock, wait};

/// Memory for rows that are read before they are requested, and the threads that read them; for one table or several.
///
/// It never takes more than its budget. Announced rows that do not fit are read from the file when they are gathered, which is
/// slower but gives the same result; [`report`](Self::report) says how often. Clones share the memory and the threads, which end
/// with the last of them.
///
/// # Examples
/// ```
/// use brisk_table::ReadAhead;
///
/// let ahead = ReadAhead::new(256 << 20);
/// assert_eq!(ahead.budget_bytes(), 256 << 20);
/// ```
#[derive(Clone, Debug)]
pub struct ReadAhead {
    running: Arc<Running>,
}

/// How effective reading ahead was, since the beginning.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadAheadReport {
    /// Rows that were in memory when they were gathered; each part of a row counts.
    pub rows_from_memory: u64,
    /// Rows that had to be read from the file, because they were not announced or did not fit.
    pub rows_from_file: u64,
    /// Rows that did not fit when they were announced: a larger budget, or a smaller window of blocks, would help.
    pub rows_without_room: u64,
}

#[derive(Debug)]
struct Running {
    shared: Arc<Shared>,
    /// Started with the first announcement; of a table on a server, several.
    threads: Mutex<Vec<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Shared {
    pool: Arc<Pool>,
    state: Mutex<State>,
    /// There are more jobs, or there will be none. The threads that read wait for it.
    queued: Condvar,
    /// Rows were read or are no longer wanted. Those that gather them wait for it.
    settled: Condvar,
    rows_from_memory: AtomicU64,
    rows_from_file: AtomicU64,
    rows_without_room: AtomicU64,
}

#[derive(Debug, Default)]
struct State {
    /// The rows that are or will be in memory, by table and first row; they do not overlap.
    slots: BTreeMap<(u64, usize), Slot>,
    queue: VecDeque<Job>,
    queued_words: usize,
    /// Jobs of rows on this machine that are being read.
    n_near: usize,
    /// Of all slots.
    n_words: usize,
    /// Of those that are not for later.
    n_needed_words: usize,
    /// The slots that are in memory, oldest first.
    ready: VecDeque<(u64, usize)>,
    /// The slots of a table as of the last call of [`ReadAhead::pieces`], until one of them changes.
    pieces: BTreeMap<u64, Arc<[Piece]>>,
    n_tables: u64,
    is_closed: bool,
}

#[derive(Debug)]
struct Slot {
    start: usize,
    end: usize,
    n_words: usize,
    /// It is read early, if there is room, and gives way to the others.
    is_later: bool,
    /// `None` until it is read.
    extent: Option<Arc<Extent>>,
    /// Why it cannot be read. All that wait for its rows have it.
    failure: Arc<OnceLock<Error>>,
}

impl Slot {
    fn of(job: &Job, is_later: bool) -> Self {
        let Range { start, end } = job.rows;
        Self { start, end, n_words: job.n_words, is_later, extent: None, failure: Arc::default() }
    }

    fn needed_words(&self) -> usize {
        if self.is_later { 0 } else { self.n_words }
    }
}

#[derive(Debug)]
struct Job {
    table: u64,
    file: Arc<TableFile>,
    rows: Range<usize>,
    n_words: usize,
    /// Whether the rows are on this machine. No more than [`N_NEAR`] such jobs are read at a time.
    is_near: bool,
}

/// Rows of a table that are in memory, or will be soon.
#[derive(Debug)]
pub(super) struct Piece {
    pub(super) rows: Range<usize>,
    /// `None` while it is being read or waits to be read: see [`ReadAhead::wait_for`].
    pub(super) extent: Option<Arc<Extent>>,
}

impl ReadAhead {
    /// Uses at most `budget_bytes` of memory. A good size is two windows of the loader's blocks, the one in use and the
    /// next, and four for tables on servers, where several requests have to be in flight.
    pub fn new(budget_bytes: usize) -> Self {
        let shared = Shared {
            pool: Arc::new(Pool::new(budget_bytes / size_of::<u64>())),
            state: Mutex::default(),
            queued: Condvar::new(),
            settled: Condvar::new(),
            rows_from_memory: AtomicU64::new(0),
            rows_from_file: AtomicU64::new(0),
            rows_without_room: AtomicU64::new(0),
        };
        Self { running: Arc::new(Running { shared: Arc::new(shared), threads: Mutex::default() }) }
    }

    /// The largest amount of memory that is used.
    pub fn budget_bytes(&self) -> usize {
        self.shared().pool.budget_words * size_of::<u64>()
    }

    /// How effective reading ahead has been so far.
    pub fn report(&self) -> ReadAheadReport {
        let shared = self.shared();
        ReadAheadReport {
            rows_from_memory: shared.rows_from_memory.load(Ordering::Relaxed),
            rows_from_file: shared.rows_from_file.load(Ordering::Relaxed),
            rows_without_room: shared.rows_without_room.load(Ordering::Relaxed),
        }
    }

    /// A number that identifies a table.
    pub(super) fn register(&self) -> u64 {
        let mut state = lock(&self.shared().state);
        state.n_tables += 1;
        state.n_tables
    }

    /// Queues those of the announced rows that are neither in memory nor queued; those for later as far as there is room for them
    /// beside all others.
    pub(super) fn announce(&self, table: u64, file: &Arc<TableFile>, announced: Range<usize>, is_later: bool) {
        if announced.is_empty() || !self.running.start(file.n_readers()) {
            return;
        }
        let budget = self.shared().pool.budget_words;
        let mut state = lock(&self.shared().state);
        let mut start = announced.start;
        while start < announced.end {
            if let Some(slot) = state.slot_of(table, start) {
                start = slot.end;
                if slot.is_later && !is_later {
                    slot.is_later = false;
                    state.n_needed_words += slot.n_words;
                }
                continue;
            }
            let next =
                state.slots.range((table, start)..(table, announced.end)).next().map_or(announced.end, |(&(_, next), _)| next);
            let (rows, is_near) = file.first_piece(&(start..next));
            let n_words = file.words_of(rows.len());
            if is_later && state.n_words + n_words > budget {
                break;
            }
            if state.queued_words + n_words > budget {
                state.drop_queued_for_later();
            }
            if state.queued_words + n_words > budget {
                self.shared().rows_without_room.fetch_add((announced.end - start) as u64, Ordering::Relaxed);
                break;
            }
            let job = Job { table, file: file.clone(), rows, n_words, is_near };
            state.insert((table, start), Slot::of(&job, is_later));
            start = job.rows.end;
            state.queue.push_back(job);
            state.queued_words += n_words;
        }
        self.shared().queued.notify_one();
    }

    /// Drops the slots that lie within `rows`.
    pub(super) fn release(&self, table: u64, rows: Range<usize>) {
        let mut state = lock(&self.shared().state);
        let within = state.slots.range((table, rows.start)..(table, rows.end.max(rows.start)));
        let within: Vec<_> = within.filter(|(_, slot)| slot.end <= rows.end).map(|(&key, _)| key).collect();
        let released: Vec<_> = within.iter().map(|&key| state.remove(key)).collect();
        let State { slots, ready, .. } = &mut *state;
        ready.retain(|key| slots.contains_key(key));
        drop(state);
        self.shared().settled.notify_all();
        // Dropped after the lock is released, since this returns their memory to the pool.
        drop(released);
    }

    /// All slots of a table, in the order of its rows. Drop the result before waiting for a row, since the thread may need the
    /// memory.
    pub(super) fn pieces(&self, table: u64) -> Arc<[Piece]> {
        let mut state = lock(&self.shared().state);
        if let Some(pieces) = state.pieces.get(&table) {
            return pieces.clone();
        }
        let slots = state.slots.range((table, 0)..(table + 1, 0));
        let pieces: Arc<[Piece]> =
            slots.map(|(&(_, start), slot)| Piece { rows: start..slot.end, extent: slot.extent.clone() }).collect();
        state.pieces.insert(table, pieces.clone());
        pieces
    }

    /// Waits until a row has been read or given up.
    ///
    /// # Errors
    /// If it cannot be read, or the thread that read it has panicked; once for all that wait, so that it may be read again.
    pub(super) fn wait_for(&self, table: u64, row: usize) -> Result<(), Error> {
        let mut state = lock(&self.shared().state);
        while let Some(slot) = state.slot_of(table, row).filter(|slot| slot.extent.is_none()) {
            let (start, failure) = (slot.start, slot.failure.clone());
            if failure.get().is_none() {
                state = wait(&self.shared().settled, state);
            }
            if let Some(error) = failure.get() {
                // Unless another thread that waited has removed it.
                let is_there = state.slots.get(&(table, start)).is_some_and(|slot| Arc::ptr_eq(&slot.failure, &failure));
                let removed = is_there.then(|| state.remove((table, start)));
                drop(state);
                drop(removed);
                return Err(error.again());
            }
        }
        Ok(())
    }

    pub(super) fn count(&self, from_memory: usize, from_file: usize) {
        self.shared().rows_from_memory.fetch_add(from_memory as u64, Ordering::Relaxed);
        self.shared().rows_from_file.fetch_add(from_file as u64, Ordering::Relaxed);
    }

    fn shared(&self) -> &Shared {
        &self.running.shared
    }
}

impl Running {
    /// Starts threads until there are `n_threads`. Returns `false` if the system cannot start any; then nothing is read ahead.
    fn start(&self, n_threads: usize) -> bool {
        let mut threads = lock(&self.threads);
        while threads.len() < n_threads {
            let shared = self.shared.clone();
            let thread = thread::Builder::new().name("brisk-table read-ahead".to_owned()).spawn(move || shared.run());
            match thread {
                Ok(thread) => threads.push(thread),
                Err(_) => break,
            }
        }
        !threads.is_empty()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        lock(&self.shared.state).is_closed = true;
        self.shared.queued.notify_all();
        self.shared.pool.close();
        for thread in self.threads.get_mut().into_iter().flat_map(std::mem::take) {
            // Its result is not needed: panics are errors of those that wait for the rows.
            _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        while let Some(job) = self.next_job() {
            let _near = job.is_near.then(|| Near(self));
            match self.make_room(&job) {
                Room::Made(memory) => {
                    let read = || Extent::read(&job.file, job.rows.clone(), memory, self.pool.clone());
                    // A function that the program has given to its connections may panic, too.
                    match catch_unwind(AssertUnwindSafe(read)) {
                        Ok(Ok(extent)) => self.settle(&job, Arc::new(extent)),
                        Ok(Err(error)) => self.fail(&job, error),
                        Err(_) => {
                            let cause = io::Error::other("a thread that reads ahead has panicked");
                            self.fail(&job, Error::io(job.file.path(), "read")(cause));
                        }
                    }
                }
                Room::Lacking => {}
                Room::Closed => return,
            }
        }
    }

    fn next_job(&self) -> Option<Job> {
        let mut state = lock(&self.state);
        loop {
            if state.is_closed {
                return None;
            }
            while let Some(job) = state.pop() {
                if state.is_wanted(&job) {
                    state.n_near += usize::from(job.is_near);
                    // Another thread can take the next one.
                    self.queued.notify_one();
                    return Some(job);
                }
            }
            state = wait(&self.queued, state);
        }
    }

    /// Takes memory for a job. Rows for later are given up for it, the last of them first, and the oldest of the others only if
    /// those do not fit. If the rows are for later themselves, their slot is removed instead.
    fn make_room(&self, job: &Job) -> Room {
        loop {
            let n_wakes = self.pool.n_wakes();
            if let Some(memory) = self.pool.take(job.n_words) {
                return Room::Made(memory);
            }
            let mut state = lock(&self.state);
            if state.is_later(job) {
                // At once: otherwise the rows could be announced as those that come next in between, and would be taken for
                // queued.
                let removed = state.is_wanted(job).then(|| state.remove((job.table, job.rows.start)));
                drop(state);
                drop(removed);
                return Room::Lacking;
            }
            let given_up = state.give_up_one(self.pool.budget_words);
            drop(state);
            if given_up.is_some() {
                drop(given_up);
                continue;
            }
            // The memory is that of rows that are being copied from or read at the moment. It is returned, or can be given up
            // afterwards.
            match self.pool.wait_for(job.n_words, n_wakes) {
                Waited::Memory(memory) => return Room::Made(memory),
                Waited::Woken => {}
                Waited::Closed => return Room::Closed,
            }
        }
    }

    /// Stores the rows of a job, unless they are no longer wanted.
    fn settle(&self, job: &Job, extent: Arc<Extent>) {
        let key = (job.table, job.rows.start);
        let mut state = lock(&self.state);
        let mut unwanted = (None, None);
        if state.is_wanted(job) {
            let is_later = state.is_later(job);
            let slot = Slot { extent: Some(extent), ..Slot::of(job, is_later) };
            unwanted.1 = Some(state.insert(key, slot));
            state.ready.push_back(key);
        } else {
            unwanted.0 = Some(extent);
        }
        drop(state);
        self.settled.notify_all();
        drop(unwanted);
        self.pool.wake();
    }

    /// Lets those that wait for the rows of a job, or gather them next, return an error. Rows for later are read again instead:
    /// what is wrong now may have passed when they are needed.
    fn fail(&self, job: &Job, error: Error) {
        let (mut state, mut removed) = (lock(&self.state), None);
        match state.unread(job) {
            Some(slot) if slot.is_later => removed = Some(state.remove((job.table, job.rows.start))),
            // A job is read once, so that there is none yet.
            Some(slot) => _ = slot.failure.set(error),
            None => {}
        }
        drop(state);
        drop(removed);
        self.settled.notify_all();
        self.pool.wake();
    }
}

/// A job of rows on this machine that is being read.
struct Near<'a>(&'a Shared);

impl Drop for Near<'_> {
    fn drop(&mut self) {
        // Without unwrapping, since a panic may be under way. The thread looks for the next job itself.
        if let Ok(mut state) = self.0.state.lock() {
            state.n_near -= 1;
        }
    }
}

/// Whether there is memory for a job.
#[derive(Debug)]
enum Room {
    Made(Memory),
    /// The rows are for later, and there is none at the moment: they are no longer queued.
    Lacking,
    Closed,
}

/// A slot that was there, and the pieces of its table: to be dropped without the lock, since this returns memory to the pool.
type Removed = (Option<Slot>, Option<Arc<[Piece]>>);

impl State {
    /// Takes the first job that may be read now.
    fn pop(&mut self) -> Option<Job> {
        let is_full = self.n_near >= *N_NEAR;
        let first = self.queue.iter().position(|job| !(job.is_near && is_full))?;
        let job = self.queue.remove(first)?;
        self.queued_words -= job.n_words;
        Some(job)
    }

    /// The slot that contains a row.
    fn slot_of(&mut self, table: u64, row: usize) -> Option<&mut Slot> {
        let (_, slot) = self.slots.range_mut((table, 0)..=(table, row)).next_back()?;
        (row < slot.end).then_some(slot)
    }

    /// The slot of a job that is still to be read.
    fn unread(&self, job: &Job) -> Option<&Slot> {
        let slot = self.slots.get(&(job.table, job.rows.start));
        slot.filter(|slot| slot.end == job.rows.end && slot.extent.is_none())
    }

    fn is_wanted(&self, job: &Job) -> bool {
        self.unread(job).is_some()
    }

    fn is_later(&self, job: &Job) -> bool {
        self.unread(job).is_none_or(|slot| slot.is_later)
    }

    fn insert(&mut self, key: (u64, usize), slot: Slot) -> Removed {
        let removed = self.remove(key);
        self.n_words += slot.n_words;
        self.n_needed_words += slot.needed_words();
        self.slots.insert(key, slot);
        removed
    }

    fn remove(&mut self, key: (u64, usize)) -> Removed {
        let slot = self.slots.remove(&key);
        self.n_words -= slot.as_ref().map_or(0, |slot| slot.n_words);
        self.n_needed_words -= slot.as_ref().map_or(0, Slot::needed_words);
        (slot, self.pieces.remove(&key.0))
    }

    /// Removes a slot that is in memory: the last one for later, or the oldest if those that are not for later exceed the budget.
    fn give_up_one(&mut self, budget_words: usize) -> Option<Removed> {
        let last = self.ready.iter().rposition(|key| self.slots.get(key).is_some_and(|slot| slot.is_later));
        let oldest = (self.n_needed_words > budget_words).then_some(0);
        let key = self.ready.remove(last.or(oldest)?)?;
        Some(self.remove(key))
    }

    /// Removes what is queued for later.
    fn drop_queued_for_later(&mut self) {
        let (later, queue) = std::mem::take(&mut self.queue).into_iter().partition(|job| self.is_later(job));
        self.queue = queue;
        for job in later {
            self.queued_words -= job.n_words;
            if self.is_wanted(&job) {
                self.remove((job.table, job.rows.start));
            }
        }
    }
}

/// The number of threads that read rows on this machine: more would take the time of those that use the rows.
static N_NEAR: LazyLock<usize> = LazyLock::new(|| thread::available_parallelism().map_or(1, NonZero::get));
