use std::io::{self, Read, Seek, SeekFrom, Write};

use brisk_atomic_file::AtomicFile;

use crate::checksum::{BLOCK_BYTES, checksum};

/// The data of a table, written in whole blocks, each with its checksum.
#[derive(Debug)]
pub(super) struct Blocks {
    pub(super) file: AtomicFile,
    /// The position of the next whole block in the file.
    offset: u64,
    /// Where the data starts, after the room for the header.
    pub(super) data_start: u64,
    /// The start of the current block, shorter than a block.
    pending: Vec<u8>,
    sums: Vec<u32>,
}

impl Blocks {
    pub(super) fn new(file: AtomicFile) -> Self {
        Self { file, offset: 0, data_start: 0, pending: Vec::with_capacity(BLOCK_BYTES), sums: Vec::new() }
    }

    /// Leaves room for the header, which is written last. Zeros are written there now, so that an old header can never be read
    /// from it.
    pub(super) fn skip_to(&mut self, data_start: u64) -> io::Result<()> {
        write_all_at(&mut self.file, 0, &vec![0; data_start as usize])?;
        self.data_start = data_start;
        self.offset = data_start;
        Ok(())
    }

    pub(super) fn write(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            if self.pending.is_empty() && bytes.len() >= BLOCK_BYTES {
                let (whole, rest) = bytes.split_at(bytes.len() - bytes.len() % BLOCK_BYTES);
                self.write_blocks(whole)?;
                bytes = rest;
            } else {
                let (taken, rest) = bytes.split_at(bytes.len().min(BLOCK_BYTES - self.pending.len()));
                self.pending.extend_from_slice(taken);
                bytes = rest;
                if self.pending.len() == BLOCK_BYTES {
                    self.flush()?;
                }
            }
        }
        Ok(())
    }

    /// Makes more room before the data, which is moved back starting with its last piece. The data does not change, so its
    /// checksums stay valid.
    pub(super) fn move_to(&mut self, data_start: u64) -> io::Result<()> {
        const PIECE_BYTES: u64 = 8 << 20;
        let by = data_start.checked_sub(self.data_start).expect("data move back, not forward");
        let mut piece = Vec::new();
        let mut end = self.offset;
        while end > self.data_start {
            let start = self.data_start.max(end.saturating_sub(PIECE_BYTES));
            piece.resize((end - start) as usize, 0);
            read_exact_at(&mut self.file, start, &mut piece)?;
            write_all_at(&mut self.file, start + by, &piece)?;
            end = start;
        }
        self.data_start += by;
        self.offset += by;
        Ok(())
    }

    /// Calls `change` with the first `n_bytes` of data, block by block, and the position at which each starts. If `change`
    /// returns that it has changed a block, the block is written again and its checksum updated.
    #[cfg(feature = "import")]
    #[cfg_attr(not(feature = "csv"), allow(dead_code, reason = "each importer uses its own part of it"))]
    pub(super) fn rewrite(&mut self, n_bytes: u64, mut change: impl FnMut(u64, &mut [u8]) -> bool) -> io::Result<()> {
        let mut block = vec![0; BLOCK_BYTES];
        for (i, sum) in self.sums.iter_mut().enumerate() {
            let start = i as u64 * BLOCK_BYTES as u64;
            if start >= n_bytes {
                return Ok(());
            }
            let within = BLOCK_BYTES.min((n_bytes - start) as usize);
            read_exact_at(&mut self.file, self.data_start + start, &mut block)?;
            if change(start, &mut block[..within]) {
                *sum = checksum(&block);
                write_all_at(&mut self.file, self.data_start + start, &block)?;
            }
        }
        let start = self.sums.len() as u64 * BLOCK_BYTES as u64;
        let within = self.pending.len().min(n_bytes.saturating_sub(start) as usize);
        change(start, &mut self.pending[..within]);
        Ok(())
    }

    /// Writes the last block, the checksums and the header.
    pub(super) fn finish(&mut self, header: &[u8]) -> io::Result<()> {
        assert_eq!(header.len() as u64, self.data_start, "the header fills the room that was left for it");
        self.flush()?;
        let sums: Vec<u32> = std::iter::once(checksum(header)).chain(self.sums.iter().copied()).collect();
        write_all_at(&mut self.file, self.offset, bytemuck::cast_slice(&sums))?;
        self.offset += size_of_val(sums.as_slice()) as u64;
        write_all_at(&mut self.file, 0, header)
    }

    /// The number of bytes of the file that have been written.
    pub(super) fn n_bytes(&self) -> u64 {
        self.offset
    }

    fn flush(&mut self) -> io::Result<()> {
        let mut block = std::mem::take(&mut self.pending);
        let written = self.write_blocks(&block);
        block.clear();
        self.pending = block;
        written
    }

    fn write_blocks(&mut self, blocks: &[u8]) -> io::Result<()> {
        self.sums.extend(blocks.chunks(BLOCK_BYTES).map(checksum));
        write_all_at(&mut self.file, self.offset, blocks)?;
        self.offset += blocks.len() as u64;
        Ok(())
    }
}

fn write_all_at(file: &mut AtomicFile, offset: u64, bytes: &[u8]) -> io::Result<()> {
    if file.stream_position()? != offset {
        file.seek(SeekFrom::Start(offset))?;
    }
    file.write_all(bytes)
}

fn read_exact_at(file: &mut AtomicFile, offset: u64, bytes: &mut [u8]) -> io::Result<()> {
    file.seek(SeekFrom::Start(offset))?;
    file.read_exact(bytes)
}
