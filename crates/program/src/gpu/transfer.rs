//! Copies host values to and from the buffers of a GPU.

use std::cell::Cell;
use std::sync::mpsc;
use std::time::Duration;

use brisk_kernels::wgpu;

use crate::error::Error;
use crate::gpu::device::{Block, GpuDevice, STAGING, words};
use crate::memory::lock;

/// Values are copied in pieces of this size, so that staging memory stays bounded.
const PIECE_BYTES: usize = 16 << 20;
const WORD_BYTES: usize = wgpu::COPY_BUFFER_ALIGNMENT as usize;

impl GpuDevice {
    /// Writes at any byte offset. If the write `reaches_end` of the block's contents, it may fill up the last word.
    pub(crate) fn write_at(&self, block: &Block, start: usize, bytes: &[u8], reaches_end: bool) -> Result<(), Error> {
        // Copies are of whole words: bytes that share a word with others are patched in.
        let n_head = (start.next_multiple_of(WORD_BYTES) - start).min(bytes.len());
        let (head, rest) = bytes.split_at(n_head);
        let n_body = if reaches_end { rest.len() } else { rest.len() - rest.len() % WORD_BYTES };
        let (body, tail) = rest.split_at(n_body);
        self.patch(block, start, head)?;
        self.write_body(block, start + n_head, body)?;
        self.patch(block, start + n_head + n_body, tail)
    }

    /// Writes from a word boundary on; a partial last word is at the end of the buffer, and is filled up with zeros.
    fn write_body(&self, block: &Block, start: usize, bytes: &[u8]) -> Result<(), Error> {
        let is_long = bytes.len() > PIECE_BYTES;
        for (i, piece) in bytes.chunks(PIECE_BYTES).enumerate() {
            let at = (start + i * PIECE_BYTES) as u64;
            let (whole, rest) = piece.split_at(piece.len() - piece.len() % WORD_BYTES);
            if !whole.is_empty() {
                self.write_words(block, at, whole)?;
            }
            if !rest.is_empty() {
                let mut word = [0; WORD_BYTES];
                word[..rest.len()].copy_from_slice(rest);
                self.write_words(block, at + whole.len() as u64, &word)?;
            }
            if is_long {
                // Submits the piece, so that its staging memory is free before the second piece after it is filled.
                let index = self.queue.submit([]);
                self.wait_for(Some(index))?;
            }
        }
        self.check()
    }

    /// Changes some bytes of one word.
    fn patch(&self, block: &Block, start: usize, bytes: &[u8]) -> Result<(), Error> {
        if bytes.is_empty() {
            return Ok(());
        }
        let _patching = lock(&self.patching);
        let within = start % WORD_BYTES;
        let mut word = [0; WORD_BYTES];
        self.read_piece(&block.buffer, start - within, &mut word)?;
        word[within..within + bytes.len()].copy_from_slice(bytes);
        self.write_words(block, (start - within) as u64, &word)?;
        self.check()
    }

    /// wgpu allocates staging memory for each write.
    fn write_words(&self, block: &Block, at: u64, words: &[u8]) -> Result<(), Error> {
        let written = self.with_room(|| self.queue.write_buffer(&block.buffer, at, words));
        written.ok_or_else(|| self.no_room(STAGING, words.len() as u64))
    }

    /// Reads at any byte offset.
    pub(crate) fn read_at(&self, block: &Block, start: usize, out: &mut [u8]) -> Result<(), Error> {
        // Copies are of whole words: the bytes before `start` in its word are read too.
        let n_head = (start.next_multiple_of(WORD_BYTES) - start).min(out.len());
        let (head, rest) = out.split_at_mut(n_head);
        if !head.is_empty() {
            let mut word = [0; WORD_BYTES];
            let within = start % WORD_BYTES;
            self.read_piece(&block.buffer, start - within, &mut word)?;
            head.copy_from_slice(&word[within..within + head.len()]);
        }
        let mut pieces = rest.chunks_mut(PIECE_BYTES).enumerate();
        pieces.try_for_each(|(i, piece)| self.read_piece(&block.buffer, start + n_head + i * PIECE_BYTES, piece))
    }

    pub(crate) fn read_piece(&self, buffer: &wgpu::Buffer, start: usize, out: &mut [u8]) -> Result<(), Error> {
        let staging = self.readable(out.len())?;
        let mut encoder = self.encoder();
        let read = staging.copy(&mut encoder, buffer, start);
        let index = self.queue.submit([encoder.finish()]);
        self.wait_for(Some(index))?;
        read.lend(self, |bytes| out.copy_from_slice(&bytes[..out.len()]))
    }

    /// Host memory that a device can copy `len_bytes` into.
    pub(crate) fn readable(&self, len_bytes: usize) -> Result<Readable, Error> {
        let (label, size) = (Some("brisk.read"), words(len_bytes));
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false };
        Ok(Readable(self.create_staging(&descriptor)?))
    }
}

/// Host memory that a device can copy into.
#[derive(Debug)]
pub(crate) struct Readable(wgpu::Buffer);

/// An encoded copy into a [`Readable`].
#[derive(Debug)]
pub(crate) struct Read<'a> {
    staging: &'a wgpu::Buffer,
    mapped: mpsc::Receiver<Result<(), wgpu::BufferAsyncError>>,
    /// Whether the message of `mapped` has been received.
    is_mapped: Cell<bool>,
}

impl Readable {
    /// Encodes a copy from `start` on; the bytes are available once the encoder's commands have been submitted and waited for.
    pub(crate) fn copy(&self, encoder: &mut wgpu::CommandEncoder, buffer: &wgpu::Buffer, start: usize) -> Read<'_> {
        let Self(staging) = self;
        encoder.copy_buffer_to_buffer(buffer, start as u64, staging, 0, staging.size());
        let (sender, mapped) = mpsc::channel();
        encoder.map_buffer_on_submit(staging, wgpu::MapMode::Read, .., move |result| {
            // The receiver is gone only if the wait for it failed.
            let _ = sender.send(result);
        });
        Read { staging, mapped, is_mapped: Cell::new(false) }
    }
}

impl Read<'_> {
    /// Calls `f` with the bytes, in whole words; the copy must have been submitted and waited for.
    pub(crate) fn lend<T>(&self, device: &GpuDevice, f: impl FnOnce(&[u8]) -> T) -> Result<T, Error> {
        if !self.is_mapped.get() {
            // Another thread's poll may have taken the callback and not yet called it.
            self.is_mapped.set(self.mapped.recv_timeout(Duration::from_secs(60)).is_ok_and(|result| result.is_ok()));
        }
        let view = if self.is_mapped.get() { self.staging.slice(..).get_mapped_range().ok() } else { None };
        view.map(|view| f(&view)).ok_or_else(|| device.failed("a buffer could not be read back".to_owned()))
    }
}

impl Drop for Read<'_> {
    /// Unmaps the memory for the next copy, also if this one was never read.
    fn drop(&mut self) {
        self.staging.unmap();
    }
}
