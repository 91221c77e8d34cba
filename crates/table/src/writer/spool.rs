use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom, Write};

use brisk_atomic_file::{AtomicFile, scratch_file};

use super::blocks::Blocks;

/// The number of bytes kept in memory before a file is created.
const MEMORY_BYTES: usize = 8 << 20;

/// A column that is written after the features: kept in memory while it is short, then in a temporary file.
#[derive(Debug, Default)]
pub(super) struct Spool {
    memory: Vec<u8>,
    file: Option<File>,
}

impl Spool {
    /// Appends bytes; if a file is needed, it is on the disk of `beside`.
    pub(super) fn write(&mut self, beside: &AtomicFile, bytes: &[u8]) -> io::Result<()> {
        self.memory.extend_from_slice(bytes);
        if self.memory.len() < MEMORY_BYTES {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            none => none.insert(scratch_file(beside.path())?),
        };
        file.write_all(&self.memory)?;
        self.memory.clear();
        Ok(())
    }

    /// Writes all bytes to `out`.
    pub(super) fn pour_into(&mut self, out: &mut Blocks) -> io::Result<()> {
        self.pour(out, |_| ())
    }

    /// Like [`pour_into`](Self::pour_into), with every `u32` replaced by the number at that index.
    pub(super) fn pour_renumbered(&mut self, out: &mut Blocks, numbers: &[u32]) -> io::Result<()> {
        self.pour(out, |bytes| {
            for bytes in bytes.chunks_exact_mut(size_of::<u32>()) {
                let old: u32 = bytemuck::pod_read_unaligned(bytes);
                bytes.copy_from_slice(&numbers[old as usize].to_le_bytes());
            }
        })
    }

    /// Writes all bytes to `out` in pieces of whole values, after `change` has modified them.
    fn pour(&mut self, out: &mut Blocks, change: impl Fn(&mut [u8])) -> io::Result<()> {
        if let Some(file) = &mut self.file {
            file.seek(SeekFrom::Start(0))?;
            let mut piece = vec![0; 1 << 20];
            let mut left = file.metadata()?.len();
            while left > 0 {
                let piece = &mut piece[..left.min(1 << 20) as usize];
                file.read_exact(piece)?;
                change(piece);
                out.write(piece)?;
                left -= piece.len() as u64;
            }
        }
        change(&mut self.memory);
        out.write(&self.memory)
    }
}
