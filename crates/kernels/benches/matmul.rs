//! The matrix product on an adapter, checked against the twin and then timed.
//!
//! `cargo bench -p brisk-kernels --bench matmul [-- --smoke] [direct|tiled]`
//!
//! Pipelines are made and warmed up outside the timed region; several dispatches go into one submit, and the wait for the device
//! is inside. Operands are warm.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::time::Instant;

use brisk_kernels::gpu::Recorder;
use brisk_kernels::*;

/// How often each product is timed.
const N_ROUNDS: usize = 7;

/// `m, n, k` and whether `a` or `b` is stored transposed: a square one, and those of an MLP 28-256-256-256-1 at batch 1024.
const SHAPES: [(usize, usize, usize, Transpose); 10] = [
    (1024, 1024, 1024, Transpose::None),
    (1024, 256, 28, Transpose::B),
    (1024, 256, 256, Transpose::B),
    (1024, 256, 256, Transpose::None),
    (256, 256, 1024, Transpose::A),
    (256, 28, 1024, Transpose::A),
    (256, 300, 300, Transpose::None),
    (1024, 1, 256, Transpose::B),
    (1024, 256, 1, Transpose::None),
    (1, 256, 1024, Transpose::A),
];

/// The product with one family of dispatches.
#[derive(Debug)]
struct By(Option<MatmulFamily>, Matmul);

impl Kernel for By {
    fn signature(&self) -> Signature {
        self.1.signature()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        match self.0 {
            Some(family) => self.1.dispatches_by(family, adapter),
            None => self.1.dispatches(adapter),
        }
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.1.twin(args);
    }
}

fn main() {
    let has = |word: &str| std::env::args().any(|arg| arg == word);
    let families = [("direct", MatmulFamily::Direct), ("tiled", MatmulFamily::Tiled)];
    let family = families.into_iter().find(|(word, _)| has(word)).map(|(_, family)| family);
    let Some((name, device, queue)) = pollster::block_on(open()) else {
        println!("no adapter: nothing is measured");
        return;
    };
    println!("{name}, f32, warm; medians of {N_ROUNDS}, family {}", family.map_or("by adapter".to_owned(), |f| format!("{f:?}")));
    println!("{:>6} {:>6} {:>6} {:>10} {:>10} {:>10} {:>14}", "m", "n", "k", "transpose", "ms", "GFLOP/s", "pipeline ms");
    let mut recorder = Recorder::new(&device);
    for (m, n, k, transpose) in SHAPES {
        let size = |n: usize| if has("--smoke") { n.min(40) } else { n };
        let matmul = Matmul { n_batch: 1, m: size(m), n: size(n), k: size(k), transpose, epilogue: Epilogue::none() };
        measure(&By(family, matmul), &device, &queue, &mut recorder, if has("--smoke") { 1 } else { N_ROUNDS });
    }
}

async fn open() -> Option<(String, wgpu::Device, wgpu::Queue)> {
    let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
    descriptor.flags = wgpu::InstanceFlags::empty();
    let instance = wgpu::Instance::new(descriptor);
    let mut adapters = instance.enumerate_adapters(wgpu::Backends::PRIMARY).await;
    adapters.sort_by_key(|adapter| adapter.get_info().device_type == wgpu::DeviceType::Cpu);
    let adapter = adapters.into_iter().next()?;
    let descriptor = wgpu::DeviceDescriptor {
        required_features: adapter.features() & (wgpu::Features::SUBGROUP | wgpu::Features::SHADER_INT64),
        required_limits: adapter.limits(),
        ..Default::default()
    };
    let (device, queue) = adapter.request_device(&descriptor).await.ok()?;
    Some((adapter.get_info().name, device, queue))
}

fn measure(kernel: &By, device: &wgpu::Device, queue: &wgpu::Queue, recorder: &mut Recorder, n_rounds: usize) {
    let mut seed = 1_u32;
    let mut float = || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let mut host: Vec<Vec<f32>> = kernel.args().iter().map(|arg| (0..arg.len).map(|_| float()).collect()).collect();
    let held: Vec<wgpu::Buffer> = host.iter().map(|floats| upload(device, queue, floats)).collect();
    let bindings: Vec<_> = held.iter().map(wgpu::Buffer::as_entire_buffer_binding).collect();

    let start = Instant::now();
    let recorded = recorder.prepare(kernel, &bindings).unwrap_or_else(|error| panic!("{error}"));
    submit(device, queue, &recorded, 1);
    let first = start.elapsed();
    let declared = kernel.args();
    let mut args = TwinArgs::new(&declared);
    for (arg, floats) in declared.iter().zip(&mut host) {
        if arg.access.writes() {
            args.push_write(bytemuck::cast_slice_mut(floats));
        } else {
            args.push_read(bytemuck::cast_slice(floats));
        }
    }
    kernel.twin(&mut args);
    for (i, (found, expected)) in download(device, queue, &held[2], host[2].len()).iter().zip(&host[2]).enumerate() {
        assert!((found - expected).abs() <= 1e-3, "{kernel:?}: element {i} is {found}, expected {expected}");
    }

    let start = Instant::now();
    submit(device, queue, &recorded, 1);
    let once = start.elapsed();
    let n_runs = ((0.1 / once.as_secs_f64()) as usize).clamp(1, 100);
    let mut seconds: Vec<f64> = (0..n_rounds)
        .map(|_| {
            let start = Instant::now();
            submit(device, queue, &recorded, n_runs);
            start.elapsed().as_secs_f64() / n_runs as f64
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    let median = seconds[seconds.len() / 2];
    let Matmul { m, n, k, transpose, .. } = kernel.1;
    let transpose = format!("{transpose:?}");
    let made = first.saturating_sub(once).as_secs_f64() * 1e3;
    let gflops = kernel.1.cost().flops as f64 / median / 1e9;
    println!("{m:>6} {n:>6} {k:>6} {transpose:>10} {:>10.3} {gflops:>10.1} {made:>14.0}", median * 1e3);
}

fn submit(device: &wgpu::Device, queue: &wgpu::Queue, recorded: &brisk_kernels::gpu::Recorded, n_runs: usize) {
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
    for _ in 0..n_runs {
        recorded.encode(&mut pass);
    }
    drop(pass);
    queue.submit([encoder.finish()]);
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap_or_else(|error| panic!("{error}"));
}

fn upload(device: &wgpu::Device, queue: &wgpu::Queue, floats: &[f32]) -> wgpu::Buffer {
    let buffer = device.create_buffer(&wgpu::BufferDescriptor {
        label: None,
        size: floats.len() as u64 * 4,
        usage: wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST,
        mapped_at_creation: false,
    });
    queue.write_buffer(&buffer, 0, bytemuck::cast_slice(floats));
    buffer
}

fn download(device: &wgpu::Device, queue: &wgpu::Queue, buffer: &wgpu::Buffer, len: usize) -> Vec<f32> {
    let size = len as u64 * 4;
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
    let staging = device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
    let mut encoder = device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
    encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, size);
    queue.submit([encoder.finish()]);
    staging.slice(..).map_async(wgpu::MapMode::Read, |mapped| mapped.unwrap_or_else(|error| panic!("{error}")));
    device.poll(wgpu::PollType::wait_indefinitely()).unwrap_or_else(|error| panic!("{error}"));
    bytemuck::pod_collect_to_vec(&staging.slice(..).get_mapped_range().unwrap_or_else(|error| panic!("{error}")))
}
