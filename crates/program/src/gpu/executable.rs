//! A program on a GPU: recorded kernels, and host steps between them.

use std::ops::Range;
use std::sync::{Arc, Mutex};

use brisk_kernels::gpu::Recorded;
use brisk_kernels::wgpu;

use crate::error::Error;
use crate::gpu::device::{Block, GpuDevice};
use crate::gpu::transfer::{Read, Readable};
use crate::record::host_part::{HostPart, RecordedHost, parts_of};
use crate::record::program::{Program, StepArg};

#[derive(Debug)]
pub(crate) struct GpuExecutable {
    pub(super) device: Arc<GpuDevice>,
    pub(super) name: Arc<str>,
    pub(crate) kernels: Vec<Recorded>,
    pub(crate) parts: Vec<GpuPart>,
    /// Held during a replay with host steps.
    pub(crate) replaying: Mutex<()>,
    pub(super) n_dispatches: usize,
    /// Kept alive, and counted, as long as the executable exists.
    pub(super) _blocks: Vec<Arc<Block>>,
}

/// Kernels that are submitted together, and the host step after them.
#[derive(Debug)]
pub(crate) struct GpuPart {
    pub(crate) kernels: Range<usize>,
    pub(super) host: Option<GpuHost>,
}

#[derive(Debug)]
pub(super) struct GpuHost {
    pub(super) step: RecordedHost,
    pub(super) args: Vec<HostArg>,
    /// Memory for a copy of each argument if the step only reads; else empty.
    pub(super) copies: Vec<Readable>,
}

#[derive(Debug)]
pub(super) struct HostArg {
    pub(super) block: Arc<Block>,
    /// Offset in the block.
    pub(super) start_bytes: usize,
    pub(super) len_bytes: usize,
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
    pub(super) fn copy_args(&self, encoder: &mut wgpu::CommandEncoder) -> Vec<Read<'_>> {
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
}
