//! Replays with host steps between kernels.

use std::ops::Range;
use std::sync::Arc;

use brisk_kernels::wgpu;

use crate::error::Error;
use crate::gpu::transfer::{Read, Readable};
use crate::gpu::{Block, GpuDevice, GpuExecutable, encode_pass};
use crate::memory::lock;
use crate::record::host_step::{HostBuffers, HostPart, RecordedHost, parts_of};
use crate::record::program::{Program, StepArg};

/// Kernels that are submitted together, and the host step after them.
#[derive(Debug)]
pub(crate) struct GpuPart {
    pub(crate) kernels: Range<usize>,
    host: Option<GpuHost>,
}

#[derive(Debug)]
struct GpuHost {
    step: RecordedHost,
    args: Vec<HostArg>,
    /// Memory for a copy of each argument if the step only reads; else empty.
    copies: Vec<Readable>,
}

#[derive(Debug)]
struct HostArg {
    block: Arc<Block>,
    /// Offset in the block.
    start_bytes: usize,
    len_bytes: usize,
}

/// A step that only reads, whose arguments are being copied.
struct Late<'a> {
    host: &'a GpuHost,
    reads: Vec<Read<'a>>,
    index: wgpu::SubmissionIndex,
}

impl GpuPart {
    /// The first `n` kernels, without a host step.
    pub(crate) fn of_kernels(n: usize) -> Self {
        Self { kernels: 0..n, host: None }
    }

    pub(crate) fn has_host(&self) -> bool {
        self.host.is_some()
    }
}

impl GpuHost {
    /// Encodes copies of the arguments.
    fn copy_args(&self, encoder: &mut wgpu::CommandEncoder) -> Vec<Read<'_>> {
        let copies = self.copies.iter().zip(&self.args);
        copies.map(|(copy, arg)| copy.copy(encoder, &arg.block.buffer, arg.start_bytes)).collect()
    }
}

impl GpuDevice {
    pub(crate) fn parts(&self, program: &Program, blocks: &[Option<(Arc<Block>, usize)>]) -> Result<Vec<GpuPart>, Error> {
        let part = |HostPart { kernels, host }| {
            let host = host.map(|step| self.host(step, &program.steps[kernels.end].args, blocks)).transpose()?;
            Ok(GpuPart { kernels, host })
        };
        parts_of(program).into_iter().map(part).collect()
    }

    fn host(&self, step: RecordedHost, args: &[StepArg], blocks: &[Option<(Arc<Block>, usize)>]) -> Result<GpuHost, Error> {
        let arg = |arg: &StepArg| {
            let (block, start_bytes) = blocks[arg.buffer].as_ref().expect("a buffer that a step names has a place");
            HostArg { block: block.clone(), start_bytes: start_bytes + arg.bytes.start, len_bytes: arg.bytes.len() }
        };
        let args: Vec<HostArg> = args.iter().map(arg).collect();
        let copied = if step.only_reads() { &args[..] } else { &[] };
        let copies = copied.iter().map(|arg| self.readable(arg.len_bytes)).collect::<Result<_, _>>()?;
        Ok(GpuHost { step, args, copies })
    }

    pub(crate) fn run_with_host(&self, executable: &GpuExecutable, n: usize) -> Result<(), Error> {
        let _alone = lock(&executable.replaying);
        let mut late: Option<Late<'_>> = None;
        for part in std::iter::repeat_n(&executable.parts, n).flatten() {
            let mut encoder = self.encoder();
            encode_pass(&mut encoder, 1, &executable.kernels[part.kernels.clone()]);
            let copied = part.host.as_ref().filter(|host| host.step.only_reads());
            let reads = copied.map(|host| host.copy_args(&mut encoder));
            let index = self.submit(encoder.finish())?;
            // While the device computes this part, the host runs the step of the last one.
            self.finish(late.take())?;
            match (&part.host, reads) {
                (Some(host), Some(reads)) => late = Some(Late { host, reads, index }),
                (Some(_), None) => self.run_host(part)?,
                (None, _) => {}
            }
        }
        self.finish(late)
    }

    fn finish(&self, late: Option<Late<'_>>) -> Result<(), Error> {
        let Some(Late { host, reads, index }) = late else { return Ok(()) };
        self.wait_for(Some(index))?;
        host.step.run(&mut Copied { device: self, reads })
    }

    /// Runs the host step of a part, with its arguments as they are on the device now.
    pub(crate) fn run_host(&self, part: &GpuPart) -> Result<(), Error> {
        part.host.as_ref().map_or(Ok(()), |host| host.step.run(&mut OnGpu { device: self, args: &host.args }))
    }
}

/// Arguments that have been copied to the host, where they stay until the step is done.
#[derive(Debug)]
struct Copied<'a> {
    device: &'a GpuDevice,
    reads: Vec<Read<'a>>,
}

impl HostBuffers for Copied<'_> {
    fn read(&mut self, arg: usize, start: usize, out: &mut [u8]) -> Result<(), Error> {
        self.reads[arg].lend(self.device, |bytes| out.copy_from_slice(&bytes[start..start + out.len()]))
    }

    fn write(&mut self, _: usize, _: usize, _: &[u8]) -> Result<(), Error> {
        unreachable!("a step that only reads has no argument to write")
    }
}

/// Arguments on the device.
#[derive(Debug)]
struct OnGpu<'a> {
    device: &'a GpuDevice,
    args: &'a [HostArg],
}

impl HostBuffers for OnGpu<'_> {
    fn read(&mut self, arg: usize, start: usize, out: &mut [u8]) -> Result<(), Error> {
        let HostArg { block, start_bytes, .. } = &self.args[arg];
        self.device.read_at(block, start_bytes + start, out)
    }

    fn write(&mut self, arg: usize, start: usize, bytes: &[u8]) -> Result<(), Error> {
        let HostArg { block, start_bytes, .. } = &self.args[arg];
        self.device.write_at(block, start_bytes + start, bytes, false)
    }
}
