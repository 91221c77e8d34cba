use std::io::{self, Read};

use memchr::{memchr_iter, memrchr};

use super::decimal::LOOK_AHEAD;
use super::quotes::last_row_end;

/// Text that one thread parses at a time. Fixed, so that the statistics, which are merged chunk by chunk, are the same on any
/// machine.
const CHUNK_BYTES: usize = 1 << 20;

pub(crate) const MAX_ROW_BYTES: usize = 64 << 20;

/// Whole rows, followed by enough line feeds that a reader may look ahead.
#[derive(Debug, Default)]
pub(crate) struct Chunk {
    /// The bytes after the rows and the look-ahead are left over from an earlier chunk.
    text: Vec<u8>,
    /// The length of the rows in `text`; the last row ends in a line feed.
    len: usize,
}

impl Chunk {
    /// The rows and the bytes after them that a parser may look at.
    pub(super) fn with_look_ahead(&self) -> &[u8] {
        &self.text[..self.len + LOOK_AHEAD]
    }

    pub(crate) fn rows(&self) -> &[u8] {
        &self.text[..self.len]
    }

    fn make_room(&mut self, n_bytes: usize) {
        // One for the line feed that the last line may lack.
        let wanted = n_bytes + 1 + LOOK_AHEAD;
        if self.text.len() < wanted {
            self.text.resize(wanted, 0);
        }
    }
}

#[derive(Debug)]
pub(crate) enum ChunkError {
    Read(io::Error),
    /// The chunk's first row does not end: the problem.
    RowTooLong(String),
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum ChunkEnds {
    /// After rows of cells; a line feed within quotes does not end a row.
    Rows { delimiter: u8 },
    /// After lines, with at most that many in a chunk.
    Lines { at_most: usize },
}

impl ChunkEnds {
    /// The last possible end in `text`, if there is one.
    fn last_in(self, text: &[u8]) -> Option<usize> {
        let line_feed = match self {
            Self::Rows { delimiter } => return last_row_end(text, delimiter),
            Self::Lines { at_most } => memchr_iter(b'\n', text).nth(at_most.saturating_sub(1)).or_else(|| memrchr(b'\n', text)),
        };
        line_feed.map(|at| at + 1)
    }
}

/// Cuts text into chunks of whole rows.
pub(crate) struct Chunks<R> {
    input: R,
    /// Bytes that have been read but not handed out.
    rest: Vec<u8>,
    at_end: bool,
    ends: ChunkEnds,
}

impl<R: Read> Chunks<R> {
    pub(crate) fn new(input: R) -> Self {
        Self { input, rest: Vec::new(), at_end: false, ends: ChunkEnds::Rows { delimiter: b',' } }
    }

    /// The start of the text, to detect its format: one chunk, or the whole input with a final line feed.
    pub(crate) fn peek(&mut self) -> io::Result<&[u8]> {
        let mut first = Chunk::default();
        first.make_room(CHUNK_BYTES);
        let len = self.fill(&mut first.text, 0, CHUNK_BYTES)?;
        self.rest.extend_from_slice(&first.text[..len]);
        Ok(&self.rest)
    }

    /// Drops the peeked text before `start`; from there on, chunks end as `ends` says.
    pub(crate) fn start_at(&mut self, start: usize, ends: ChunkEnds) {
        self.rest.drain(..start);
        self.ends = ends;
    }

    /// Replaces the content of `chunk` by the next rows; `false` if there are none.
    pub(super) fn next_into(&mut self, chunk: &mut Chunk) -> Result<bool, ChunkError> {
        let (mut len, mut wanted) = (self.rest.len(), CHUNK_BYTES.max(self.rest.len()));
        chunk.make_room(wanted);
        chunk.text[..len].copy_from_slice(&self.rest);
        chunk.len = loop {
            len = self.fill(&mut chunk.text, len, wanted).map_err(ChunkError::Read)?;
            match (self.ends, self.at_end) {
                // The last row may have a quote that is never closed.
                (ChunkEnds::Rows { .. }, true) => break len,
                (ends, at_end) => match ends.last_in(&chunk.text[..len]) {
                    Some(end) => break end,
                    None if at_end => break len,
                    None => {}
                },
            }
            if wanted >= MAX_ROW_BYTES {
                return Err(ChunkError::RowTooLong(match self.ends {
                    ChunkEnds::Rows { .. } => too_long(MAX_ROW_BYTES),
                    ChunkEnds::Lines { .. } => format!("the row has no end within {MAX_ROW_BYTES} bytes; is it of this format?"),
                }));
            }
            wanted *= 2;
            chunk.make_room(wanted);
        };
        self.rest.clear();
        self.rest.extend_from_slice(&chunk.text[chunk.len..len]);
        chunk.text[chunk.len..][..LOOK_AHEAD].fill(b'\n');
        Ok(chunk.len > 0)
    }

    /// Reads until `len`, the number of bytes in use, is `wanted` or the input ends. A last line without a line feed gets one.
    fn fill(&mut self, text: &mut [u8], mut len: usize, wanted: usize) -> io::Result<usize> {
        while len < wanted && !self.at_end {
            match self.input.read(&mut text[len..wanted]) {
                Ok(0) => self.at_end = true,
                Ok(n) => len += n,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.at_end && len > 0 && text[len - 1] != b'\n' {
            text[len] = b'\n';
            len += 1;
        }
        Ok(len)
    }
}

/// The problem with a row of cells that is longer than this.
pub(super) fn too_long(limit_bytes: usize) -> String {
    format!("the row that starts here has no end within {limit_bytes} bytes; is a quote left open?")
}
