//! Text that one thread reads and cuts into chunks, and several parse.

use std::io::Read;
use std::ops::Add;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;

use super::chunks::{Chunk, ChunkEnds, ChunkError, Chunks};
use crate::destination::Progress;
use crate::error::{Error, SourceError};
use crate::import::{ImportReport, Input, NobodyWaits, Outlet, Rejected, RowChunk, Sink, in_order, n_threads};
use crate::remedy::Remedy;

/// A position in decompressed text, or within a chunk of it, and the length of a chunk.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Position {
    /// Counted from 1 in a text, from 0 in a chunk.
    pub(crate) line: u64,
    /// Counted from 0.
    pub(crate) byte: u64,
}

impl Add for Position {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { line: self.line + other.line, byte: self.byte + other.byte }
    }
}

impl Position {
    pub(crate) fn line_error(self, problem: String, remedies: &'static [Remedy]) -> SourceError {
        SourceError::Line { line: self.line, byte: self.byte, problem, remedies }
    }
}

#[derive(Debug)]
pub(crate) struct Parsed<T, R> {
    /// Left over from an earlier chunk when the next one is parsed.
    pub(crate) rows: T,
    /// Why rows are bad, and where within the chunk.
    pub(crate) rejected: Rejected<(Position, R)>,
    len: Position,
}

/// The text of a file, decompressed.
pub(crate) struct Text<'a> {
    path: &'a Path,
    chunks: Chunks<Box<dyn Read + Send>>,
    at: Position,
    action: &'static str,
    n_read: Arc<AtomicU64>,
    total_bytes: u64,
}

/// A chunk and the result of parsing it. A fixed number of these are reused in turn, which bounds the memory and holds back the
/// reader.
struct Slot<P> {
    chunk: Chunk,
    parsed: P,
}

impl<'a> Text<'a> {
    pub(crate) fn open(path: &'a Path) -> Result<Self, Error> {
        let Input { bytes, source, n_read, action } = Input::open(path)?;
        let (chunks, at) = (Chunks::new(bytes), Position::default());
        Ok(Self { path, chunks, at, action, n_read, total_bytes: source.n_bytes })
    }

    /// The start of the text, as [`Chunks::peek`] returns it.
    pub(crate) fn peek(&mut self) -> Result<&[u8], Error> {
        self.chunks.peek().map_err(Error::io(self.path, self.action))
    }

    /// Drops the peeked text before `at`; from there on, chunks end as `ends` says.
    pub(crate) fn start_at(&mut self, at: Position, ends: ChunkEnds) {
        self.at = at;
        self.chunks.start_at(at.byte as usize, ends);
    }

    /// Calls `parse` for every chunk on `n_threads` threads, to store the result in a value that `new` made and that may have
    /// been used before. `take` is called on this thread for one chunk after the other, in order, with the position of the chunk
    /// and the number of bytes of the file read so far; its first error ends everything.
    pub(crate) fn parse<T: Send, R: Send>(
        self,
        threads: usize,
        new: impl Fn() -> T,
        parse: impl Fn(&Chunk, &mut Parsed<T, R>) + Sync,
        mut take: impl FnMut(&mut Parsed<T, R>, Position, u64) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let Self { path, mut chunks, mut at, action, n_read, .. } = self;
        let n_threads = n_threads(threads);
        let (give_back, free_slots) = channel();
        for _ in 0..2 * n_threads + 2 {
            let parsed = Parsed { rows: new(), rejected: Rejected::default(), len: Position::default() };
            give_back.send(Box::new(Slot { chunk: Chunk::default(), parsed })).expect("the other end is below");
        }
        type Job<P> = Result<Box<Slot<P>>, ChunkError>;
        let feed = move |put: &mut dyn FnMut(Job<Parsed<T, R>>) -> Result<(), NobodyWaits>| {
            // This loop ends once the caller has stopped taking chunks.
            while let Ok(mut slot) = free_slots.recv() {
                let job = match chunks.next_into(&mut slot.chunk) {
                    Ok(true) => Ok(slot),
                    Ok(false) => break,
                    Err(error) => Err(error),
                };
                let is_last = job.is_err();
                if put(job).is_err() || is_last {
                    break;
                }
            }
        };
        let work = |mut job: Job<Parsed<T, R>>, outlet: &Outlet<Job<Parsed<T, R>>>| {
            if let Ok(slot) = &mut job {
                let text = slot.chunk.rows();
                slot.parsed.len = Position { line: n_lines(text), byte: text.len() as u64 };
                slot.parsed.rejected.clear();
                parse(&slot.chunk, &mut slot.parsed);
            }
            // An error means that the caller has stopped taking chunks.
            _ = outlet.put(job);
        };
        in_order(feed, n_threads, 1, work, move |job: Job<Parsed<T, R>>| {
            let mut slot = job.map_err(|error| match error {
                ChunkError::Read(cause) => Error::io(path, action)(cause),
                ChunkError::RowTooLong(problem) => at.line_error(problem, &[]).at(path),
            })?;
            take(&mut slot.parsed, at, n_read.load(Ordering::Relaxed))?;
            at = at + slot.parsed.len;
            // An error means that the reader has ended.
            _ = give_back.send(slot);
            Ok(())
        })
    }

    /// Writes the rows that `parse` finds into a table; `error_of` is the error for a bad row.
    pub(crate) fn write<R: Send>(
        self,
        mut sink: Sink<'_>,
        threads: usize,
        parse: impl Fn(&Chunk, &mut Parsed<RowChunk, R>) + Sync,
        error_of: impl Fn(Position, &R) -> Error,
        found_if_empty: &'static str,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<ImportReport, Error> {
        let (path, total_bytes, roles) = (self.path, self.total_bytes, sink.roles());
        let take = |parsed: &mut Parsed<RowChunk, R>, start: Position, bytes_read| {
            sink.skip(&parsed.rejected, |(at, reason)| error_of(start + *at, reason))?;
            sink.take(&mut parsed.rows)?;
            progress(Progress { bytes_read, total_bytes, n_rows: sink.n_rows() });
            Ok(())
        };
        self.parse(threads, || RowChunk::new(roles), parse, take)?;
        sink.finish(path, found_if_empty)
    }
}

/// The number of lines that end in `text`.
pub(super) fn n_lines(text: &[u8]) -> u64 {
    memchr::memchr_iter(b'\n', text).count() as u64
}
