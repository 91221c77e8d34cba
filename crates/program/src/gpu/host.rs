//! Replays with host steps between kernels.

use brisk_kernels::wgpu;

use crate::error::Error;
use crate::gpu::device::{GpuDevice, encode_pass};
use crate::gpu::executable::{GpuExecutable, GpuHost, GpuPart, HostArg};
use crate::gpu::transfer::Read;
use crate::memory::lock;
use crate::record::host_step::HostBuffers;

/// A step that only reads, whose arguments are being copied.
struct Late<'a> {
    host: &'a GpuHost,
    reads: Vec<Read<'a>>,
    index: wgpu::SubmissionIndex,
}

impl GpuDevice {
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
