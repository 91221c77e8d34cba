//! Timed replays, with one pass or one submit per kernel.

use std::time::Instant;

use brisk_kernels::gpu::Recorded;
use brisk_kernels::{bytemuck, wgpu};

use crate::error::Error;
use crate::executor::Executor;
use crate::gpu::device::GpuDevice;
use crate::gpu::executable::{GpuExecutable, GpuPart};
use crate::memory::lock;
use crate::profile::{Span, Timer, ns_since};

/// Kernels in one submit; each takes two queries.
const KERNELS_PER_SUBMIT: usize = 512;
const QUERY_BYTES: usize = wgpu::QUERY_SIZE as usize;

/// The timestamp queries, and the buffer that they are resolved into.
#[derive(Debug)]
struct Queries {
    set: wgpu::QuerySet,
    resolved: wgpu::Buffer,
    ns_a_tick: f64,
}

impl GpuDevice {
    pub(crate) fn profile(&self, executable: &GpuExecutable, n: usize) -> Result<(Timer, Vec<Span>), Error> {
        self.check()?;
        self.expect_run(&executable.name);
        let has_timestamps = self.device.features().contains(wgpu::Features::TIMESTAMP_QUERY);
        let kernels = &executable.kernels[..];
        if executable.parts.is_empty() && has_timestamps && !kernels.is_empty() {
            Ok((Timer::Timestamps, self.by_timestamps(kernels, n)?))
        } else {
            Ok((Timer::Waits, self.by_waits(executable, n)?))
        }
    }

    fn by_timestamps(&self, kernels: &[Recorded], n: usize) -> Result<Vec<Span>, Error> {
        let queries = self.queries(kernels.len().min(KERNELS_PER_SUBMIT))?;
        let mut ticks = Vec::with_capacity(2 * n * kernels.len());
        for _ in 0..n {
            for chunk in kernels.chunks(KERNELS_PER_SUBMIT) {
                self.submit(encode(&self.device, &queries, chunk))?;
                let mut bytes = vec![0; 2 * chunk.len() * QUERY_BYTES];
                self.read_piece(&queries.resolved, 0, &mut bytes)?;
                ticks.extend(bytes.chunks_exact(QUERY_BYTES).map(bytemuck::pod_read_unaligned::<u64>));
            }
        }
        let first = ticks.first().copied().unwrap_or(0);
        let ns = |ticks: u64| (queries.ns_a_tick * ticks as f64) as u64;
        let span = |(i, pair): (usize, &[u64])| Span {
            step: i % kernels.len(),
            start_ns: ns(pair[0].saturating_sub(first)),
            len_ns: ns(pair[1].saturating_sub(pair[0])),
        };
        Ok(ticks.chunks_exact(2).enumerate().map(span).collect())
    }

    fn queries(&self, n_kernels: usize) -> Result<Queries, Error> {
        let count = 2 * n_kernels;
        let label = Some("brisk.profile");
        let ty = wgpu::QueryType::Timestamp;
        let set = || self.device.create_query_set(&wgpu::QuerySetDescriptor { label, ty, count: count as u32 });
        let size = (count * QUERY_BYTES) as u64;
        let set = self.with_room(set).ok_or_else(|| self.no_room("timestamps", size))?;
        let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
        let resolved = self.create_staging(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false })?;
        Ok(Queries { set, resolved, ns_a_tick: f64::from(self.queue.get_timestamp_period()) })
    }

    fn by_waits(&self, executable: &GpuExecutable, n: usize) -> Result<Vec<Span>, Error> {
        self.wait()?;
        let _replay = lock(&executable.replaying);
        let start = Instant::now();
        let mut spans = Vec::with_capacity(n * executable.kernels.len());
        let whole = [GpuPart::of_kernels(executable.kernels.len())];
        let parts = if executable.parts.is_empty() { &whole } else { &executable.parts[..] };
        for part in std::iter::repeat_n(parts, n).flatten() {
            for step in part.kernels.clone() {
                spans.push(self.waited(start, step, &executable.kernels[step])?);
            }
            if part.has_host() {
                let start_ns = ns_since(start);
                self.run_host(part)?;
                self.wait()?;
                spans.push(Span { step: part.kernels.end, start_ns, len_ns: ns_since(start) - start_ns });
            }
        }
        Ok(spans)
    }

    /// Runs a kernel and waits for it.
    fn waited(&self, start: Instant, step: usize, kernel: &Recorded) -> Result<Span, Error> {
        let start_ns = ns_since(start);
        self.submit(self.encode(1, std::slice::from_ref(kernel)))?;
        self.wait()?;
        Ok(Span { step, start_ns, len_ns: ns_since(start) - start_ns })
    }
}

/// Encodes one pass per kernel, with a timestamp at its beginning and end.
fn encode(device: &wgpu::Device, queries: &Queries, kernels: &[Recorded]) -> wgpu::CommandBuffer {
    let label = Some("brisk.profile");
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor { label });
    for (i, kernel) in (0..).zip(kernels) {
        let timestamp_writes = Some(wgpu::ComputePassTimestampWrites {
            query_set: &queries.set,
            beginning_of_pass_write_index: Some(2 * i),
            end_of_pass_write_index: Some(2 * i + 1),
        });
        kernel.encode(&mut encoder.begin_compute_pass(&wgpu::ComputePassDescriptor { label, timestamp_writes }));
    }
    encoder.resolve_query_set(&queries.set, 0..2 * kernels.len() as u32, &queries.resolved, 0);
    encoder.finish()
}
