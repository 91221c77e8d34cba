//! Host values into and out of the buffers of a GPU.

use std::sync::mpsc;
use std::time::Duration;

use brisk_kernels::wgpu;

use crate::gpu::{Block, GpuDevice, STAGING, words};
use crate::memory::lock;
use crate::{Error, Persistent};

/// Values are copied in pieces of this, so that staging memory stays bounded.
const PIECE_BYTES: usize = 16 << 20;
const WORD_BYTES: usize = wgpu::COPY_BUFFER_ALIGNMENT as usize;

impl GpuDevice {
    pub(crate) fn write(&self, persistent: &Persistent, start: usize, bytes: &[u8]) -> Result<(), Error> {
        self.check()?;
        let block = self.block_of(persistent)?;
        // Copies are of whole words: what shares a word with its neighbours is patched in.
        let n_head = (start.next_multiple_of(WORD_BYTES) - start).min(bytes.len());
        let (head, rest) = bytes.split_at(n_head);
        let reaches_end = start + bytes.len() == persistent.len_bytes();
        let n_body = if reaches_end { rest.len() } else { rest.len() - rest.len() % WORD_BYTES };
        let (body, tail) = rest.split_at(n_body);
        self.patch(&block, start, head)?;
        self.write_body(&block, start + n_head, body)?;
        self.patch(&block, start + n_head + n_body, tail)
    }

    /// Writes from a whole word on; a last word that is not full ends the buffer, and is filled up with zeros.
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
                // Hands the piece over, so that its staging memory is free before the next but one is filled.
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

    /// wgpu takes staging memory for each write.
    fn write_words(&self, block: &Block, at: u64, words: &[u8]) -> Result<(), Error> {
        let written = self.with_room(|| self.queue.write_buffer(&block.buffer, at, words));
        written.ok_or_else(|| self.no_room(STAGING, words.len() as u64))
    }

    pub(crate) fn read(&self, persistent: &Persistent, out: &mut [u8]) -> Result<(), Error> {
        self.check()?;
        let block = self.block_of(persistent)?;
        let mut pieces = out.chunks_mut(PIECE_BYTES).enumerate();
        pieces.try_for_each(|(i, piece)| self.read_piece(&block.buffer, i * PIECE_BYTES, piece))
    }

    pub(crate) fn read_piece(&self, buffer: &wgpu::Buffer, start: usize, out: &mut [u8]) -> Result<(), Error> {
        let size = words(out.len());
        let label = Some("brisk.read");
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let descriptor = wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false };
        let staging = self.create_staging(&descriptor)?;
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
        encoder.copy_buffer_to_buffer(buffer, start as u64, &staging, 0, size);
        let (sender, receiver) = mpsc::channel();
        encoder.map_buffer_on_submit(&staging, wgpu::MapMode::Read, .., move |result| {
            // The receiver is gone only if the wait for it failed.
            let _ = sender.send(result);
        });
        let index = self.queue.submit([encoder.finish()]);
        self.wait_for(Some(index))?;
        // Another thread's poll may have taken the callback and not yet called it.
        let mapped = receiver.recv_timeout(Duration::from_secs(60)).is_ok_and(|result| result.is_ok());
        let view = if mapped { staging.slice(..).get_mapped_range().ok() } else { None };
        let view = view.ok_or_else(|| self.failed("a buffer could not be read back".to_owned()))?;
        out.copy_from_slice(&view[..out.len()]);
        Ok(())
    }
}
