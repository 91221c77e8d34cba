//! The ring of mapped buffers behind [`Uploads`](crate::Uploads) on a GPU.

use std::sync::{Arc, mpsc};
use std::time::Duration;

use brisk_kernels::wgpu;

use crate::error::Error;
use crate::executor::{Executor, Staging};
use crate::gpu::device::{Block, GpuDevice, words};
use crate::record::upload::Upload;

const WORD_BYTES: usize = wgpu::COPY_BUFFER_ALIGNMENT as usize;
/// The alignment of the start of a mapped view.
const GRAIN_BYTES: usize = wgpu::MAP_ALIGNMENT as usize;

#[derive(Debug)]
pub(crate) struct Ring {
    device: Arc<GpuDevice>,
    slots: Vec<Slot>,
    next: usize,
    slot_bytes: usize,
}

#[derive(Debug)]
struct Slot {
    buffer: wgpu::Buffer,
    /// The submission that reads the slot, and the channel that reports when it can be written again; `None` while it is mapped.
    in_flight: Option<(wgpu::SubmissionIndex, mpsc::Receiver<Result<(), wgpu::BufferAsyncError>>)>,
}

/// Bytes of a slot that are to be copied to a block.
#[derive(Debug)]
struct Piece {
    block: Arc<Block>,
    from: usize,
    to: usize,
    len: usize,
}

impl Staging for Ring {
    fn write(&mut self, uploads: &[Upload<'_>]) -> Result<(), Error> {
        self.device.check()?;
        let (mut pieces, mut used) = (Vec::new(), 0);
        for upload in uploads {
            let block = self.device.block_of(upload.to)?;
            let range = upload.range();
            let n_ring = whole_words(&range, upload.to.len_bytes());
            let (mut bytes, rest) = upload.bytes.split_at(n_ring);
            let mut to = range.start;
            while !bytes.is_empty() {
                if used == self.slot_bytes {
                    self.hand_over(&mut pieces, &mut used)?;
                }
                let (now, later) = bytes.split_at(bytes.len().min(self.slot_bytes - used));
                self.fill(used, now)?;
                pieces.push(Piece { block: block.clone(), from: used, to, len: now.len() });
                used += now.len().next_multiple_of(GRAIN_BYTES);
                to += now.len();
                bytes = later;
            }
            if !rest.is_empty() {
                // Submitted in order: bytes that were put into the slot first reach the device first.
                self.hand_over(&mut pieces, &mut used)?;
                self.device.write(upload.to, range.start + n_ring, rest)?;
            }
        }
        self.hand_over(&mut pieces, &mut used)
    }
}

impl Ring {
    pub(crate) fn new(device: Arc<GpuDevice>, slot_bytes: usize, n_slots: usize) -> Result<Self, Error> {
        let slot_bytes = slot_bytes.next_multiple_of(GRAIN_BYTES).max(GRAIN_BYTES);
        let slots = (0..n_slots.max(1)).map(|_| Ok(Slot { buffer: device.slot(slot_bytes)?, in_flight: None }));
        let slots = slots.collect::<Result<_, Error>>()?;
        Ok(Self { device, slots, next: 0, slot_bytes })
    }

    /// Writes into the current slot, waiting until it is free.
    fn fill(&mut self, at: usize, bytes: &[u8]) -> Result<(), Error> {
        let gpu = &*self.device;
        let slot = &mut self.slots[self.next];
        if let Some((index, mapped)) = slot.in_flight.take() {
            gpu.wait_for(Some(index))?;
            // Another thread's poll may have taken the callback and not yet called it.
            let is_mapped = mapped.recv_timeout(Duration::from_secs(60)).is_ok_and(|mapped| mapped.is_ok());
            if !is_mapped {
                return Err(gpu.failed("staging memory could not be mapped again".to_owned()));
            }
        }
        let end = at + bytes.len().next_multiple_of(WORD_BYTES);
        let view = slot.buffer.slice(at as u64..end as u64).get_mapped_range_mut();
        let mut view = view.map_err(|error| gpu.failed(error.to_string()))?;
        view.slice(..bytes.len()).copy_from_slice(bytes);
        if end - at > bytes.len() {
            view.slice(bytes.len()..).copy_from_slice(&[0; WORD_BYTES][..end - at - bytes.len()]);
        }
        Ok(())
    }

    /// Submits the copies from the current slot and moves on to the next.
    fn hand_over(&mut self, pieces: &mut Vec<Piece>, used: &mut usize) -> Result<(), Error> {
        let gpu = &*self.device;
        if pieces.is_empty() {
            return Ok(());
        }
        let slot = &mut self.slots[self.next];
        slot.buffer.unmap();
        let label = Some("brisk.upload");
        let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
        for Piece { block, from, to, len } in pieces.drain(..) {
            encoder.copy_buffer_to_buffer(&slot.buffer, from as u64, &block.buffer, to as u64, words(len));
        }
        let (sender, receiver) = mpsc::channel();
        encoder.map_buffer_on_submit(&slot.buffer, wgpu::MapMode::Write, .., move |result| {
            // The receiver is gone if the ring is.
            let _ = sender.send(result);
        });
        slot.in_flight = Some((gpu.queue.submit([encoder.finish()]), receiver));
        self.next = (self.next + 1) % self.slots.len();
        *used = 0;
        gpu.check()
    }
}

/// How many bytes of `range` can be copied in whole words: those from the start of a word to the end of a word or of the buffer,
/// after which the rest of the word is unused.
fn whole_words(range: &std::ops::Range<usize>, buffer_bytes: usize) -> usize {
    if !range.start.is_multiple_of(WORD_BYTES) {
        0
    } else if range.end == buffer_bytes {
        range.len()
    } else {
        range.len() - range.len() % WORD_BYTES
    }
}

impl GpuDevice {
    fn slot(&self, len_bytes: usize) -> Result<wgpu::Buffer, Error> {
        let usage = wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC;
        let label = Some("brisk.upload");
        let descriptor = wgpu::BufferDescriptor { label, size: words(len_bytes), usage, mapped_at_creation: true };
        self.create_staging(&descriptor)
    }
}
