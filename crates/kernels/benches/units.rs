//! Products, convolutions and their gradients in f16 on an adapter's tensor cores, compared with the tiled form in f16 and in
//! f32.
//!
//! `cargo bench -p brisk-kernels --features coop --bench units [-- --smoke]`
//!
//! Each is checked against its twin before it is timed. The three alternate; several dispatches go into one submit, and the wait
//! for the device is inside. Operands are warm. On a software adapter, where tiles are extremely slow, use `--smoke`, which runs
//! everything once with small sizes.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::time::Instant;

use brisk_kernels::gpu::{Recorded, Recorder};
use brisk_kernels::*;
use half::f16;

/// How often each form is timed.
const N_ROUNDS: usize = 9;

/// Images, height and width, channels; channels out, kernel, stride, padding.
const CONVOLUTIONS: [([usize; 3], [usize; 4]); 4] = [
    ([512, 32, 64], [64, 3, 1, 1]),
    ([512, 16, 64], [256, 3, 1, 1]),
    ([512, 8, 256], [256, 3, 1, 1]),
    ([512, 32, 64], [128, 3, 2, 1]),
];

/// The rows, the columns and the K dimension of square products.
const PRODUCTS: [usize; 2] = [1024, 4096];

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke");
    let Some(mut bench) = pollster::block_on(Bench::open(smoke)) else {
        println!("no adapter: nothing is measured");
        return;
    };
    let Adapter { name, kind, coop, .. } = bench.recorder.adapter().clone();
    if kind == AdapterKind::Software && !smoke {
        println!("{name} is a software adapter, which is only measured with --smoke");
        return;
    }
    let units = coop
        .map_or("no cooperative matrices listed".to_owned(), |shape| format!("cooperative matrices of {0} by {0}", shape.size()));
    println!(
        "{name}, {units}; medians of {} rounds; the ratio is the time of f16 tiles divided by that of cooperative matrices",
        bench.n_rounds
    );
    println!("{:<52} {:>10} {:>10} {:>10} {:>10} {:>6}", "", "f32 ms", "f16 ms", "coop ms", "TFLOP/s", "ratio");
    for size in PRODUCTS.map(|size| if smoke { 32 } else { size }) {
        let product = Matmul { n_batch: 1, m: size, n: size, k: size, transpose: Transpose::B, epilogue: Epilogue::none() };
        bench.row(&format!("product {size} by {size} by {size}"), product, &[DType::F16; 3]);
    }
    for ([n_images, size, n_channels], [n_out, kernel, stride, padding]) in CONVOLUTIONS {
        let (n_images, size) = if smoke { (1, 6) } else { (n_images, size) };
        let [n_channels, n_out] = [n_channels, n_out].map(|n| if smoke { 16 } else { n });
        let x = Images { n_images, height: size, width: size, n_channels };
        let shape = ConvShape::dense(x, n_out, Window { stride: [stride; 2], ..Window::square(kernel, padding) });
        let name = format!("{kernel}x{kernel}, {n_channels} to {n_out} at {size}x{size}, stride {stride}");
        bench.row(&format!("{name}: y"), Conv2d { shape, epilogue: Epilogue::none() }, &[DType::F16; 3]);
        bench.row(&format!("{name}: grad_x"), Conv2dGradInput { shape, epilogue: Epilogue::none() }, &[DType::F16; 3]);
        bench.row(&format!("{name}: grad_weight"), Conv2dGradWeight { shape }, &[DType::F16, DType::F16, DType::F32]);
    }
}

struct Bench {
    device: wgpu::Device,
    queue: wgpu::Queue,
    recorder: Recorder,
    n_rounds: usize,
}

impl Bench {
    async fn open(smoke: bool) -> Option<Self> {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.flags = wgpu::InstanceFlags::empty();
        let instance = wgpu::Instance::new(descriptor);
        let mut adapters = instance.enumerate_adapters(wgpu::Backends::PRIMARY).await;
        adapters.sort_by_key(|adapter| adapter.get_info().device_type == wgpu::DeviceType::Cpu);
        let adapter = adapters.into_iter().next()?;
        let mut descriptor = wgpu::DeviceDescriptor {
            required_features: adapter.features() & (wgpu::Features::SUBGROUP | wgpu::Features::SHADER_F16),
            required_limits: adapter.limits(),
            ..Default::default()
        };
        let coop = CoopShape::request(&adapter, &mut descriptor);
        let (device, queue) = adapter.request_device(&descriptor).await.ok()?;
        let recorder = Recorder::new(&device).with_coop(coop);
        Some(Self { device, queue, recorder, n_rounds: if smoke { 1 } else { N_ROUNDS } })
    }

    /// The times of the three forms of `kernel`, whose f16 form is stored as `dtypes`; of two forms if there are no tensor cores.
    fn row(&mut self, name: &str, kernel: impl Kernel + Clone, dtypes: &[DType]) {
        let in_f16 = || stored(kernel.clone(), dtypes).unwrap_or_else(|error| panic!("{error}"));
        let coop = self.recorder.adapter().coop;
        let mut forms = vec![On { kernel: Box::new(kernel.clone()), coop: None }, On { kernel: in_f16(), coop: None }];
        forms.extend(coop.map(|_| On { kernel: in_f16(), coop }));
        let prepared: Vec<(Recorded, usize)> = forms.iter().map(|form| self.prepare(name, form)).collect();
        let mut ms = vec![Vec::with_capacity(self.n_rounds); forms.len()];
        for _ in 0..self.n_rounds {
            for ((recorded, n_runs), ms) in prepared.iter().zip(&mut ms) {
                ms.push(self.milliseconds(recorded, *n_runs) / *n_runs as f64);
            }
        }
        let medians: Vec<f64> = ms.iter_mut().map(|ms| median(ms)).collect();
        let flops = kernel.cost().flops as f64;
        let of_units = medians.get(2).map(|&ms| [ms, flops / ms / 1e9, medians[1] / ms].map(|number| format!("{number:.2}")));
        let [units, rate, ratio] = of_units.unwrap_or_else(|| ["-"; 3].map(str::to_owned));
        println!("{name:<52} {:>10.2} {:>10.2} {units:>10} {rate:>10} {ratio:>6}", medians[0], medians[1]);
    }

    /// A form with its own buffers, checked, and how many executions are timed together.
    fn prepare(&mut self, name: &str, form: &On) -> (Recorded, usize) {
        let args = form.args();
        let mut host: Vec<Vec<u8>> = args.iter().map(random_bytes).collect();
        let held: Vec<wgpu::Buffer> = host.iter().map(|bytes| self.upload(bytes)).collect();
        let bindings: Vec<_> = held.iter().map(wgpu::Buffer::as_entire_buffer_binding).collect();
        let recorded = self.recorder.prepare(form, &bindings).unwrap_or_else(|error| panic!("{error}"));
        self.milliseconds(&recorded, 1);
        let mut twin_args = TwinArgs::new(&args);
        for (arg, bytes) in args.iter().zip(&mut host) {
            if arg.access.writes() { twin_args.push_write(bytes) } else { twin_args.push_read(bytes) }
        }
        form.twin(&mut twin_args);
        let result = args.iter().position(|arg| arg.access == Access::Write).expect("a result");
        let dtype = args[result].dtype;
        let found = floats(dtype, &self.download(&held[result], host[result].len()));
        for (i, (found, expected)) in found.iter().zip(floats(dtype, &host[result])).enumerate() {
            assert!(
                (found - expected).abs() <= 0.01 + 0.002 * expected.abs(),
                "{name}: element {i} is {found}, expected {expected}"
            );
        }
        let once = self.milliseconds(&recorded, 1);
        (recorded, ((50.0 / once) as usize).clamp(1, 100))
    }

    fn milliseconds(&self, recorded: &Recorded, n_runs: usize) -> f64 {
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        for _ in 0..n_runs {
            recorded.encode(&mut pass);
        }
        drop(pass);
        let commands = encoder.finish();
        let start = Instant::now();
        self.queue.submit([commands]);
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap_or_else(|error| panic!("{error}"));
        start.elapsed().as_secs_f64() * 1e3
    }

    fn upload(&self, bytes: &[u8]) -> wgpu::Buffer {
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let size = bytes.len() as u64;
        let buffer = self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        self.queue.write_buffer(&buffer, 0, bytes);
        buffer
    }

    fn download(&self, buffer: &wgpu::Buffer, n_bytes: usize) -> Vec<u8> {
        let size = n_bytes as u64;
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(buffer, 0, &staging, 0, size);
        self.queue.submit([encoder.finish()]);
        staging.slice(..).map_async(wgpu::MapMode::Read, |mapped| mapped.unwrap_or_else(|error| panic!("{error}")));
        self.device.poll(wgpu::PollType::wait_indefinitely()).unwrap_or_else(|error| panic!("{error}"));
        staging.slice(..).get_mapped_range().unwrap_or_else(|error| panic!("{error}")).to_vec()
    }
}

/// A kernel for which the adapter reports to be hardware, with these tensor cores or none.
#[derive(Debug)]
struct On {
    kernel: Box<dyn Kernel>,
    coop: Option<CoopShape>,
}

impl Kernel for On {
    fn signature(&self) -> Signature {
        self.kernel.signature()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.kernel.dispatches(&adapter.clone().with_kind(AdapterKind::Hardware).with_coop(self.coop))
    }
    fn twin(&self, args: &mut TwinArgs<'_>) {
        self.kernel.twin(args);
    }
}

/// Numbers in -1..1, the same in each type for the same count, apart from rounding.
fn random_bytes(arg: &Arg) -> Vec<u8> {
    let mut seed = 1_u32;
    let numbers = (0..arg.len).map(|_| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
    });
    match arg.dtype {
        DType::F16 => bytemuck::pod_collect_to_vec(&numbers.map(f16::from_f32).collect::<Vec<_>>()),
        _ => bytemuck::pod_collect_to_vec(&numbers.collect::<Vec<_>>()),
    }
}

fn floats(dtype: DType, bytes: &[u8]) -> Vec<f32> {
    match dtype {
        DType::F16 => bytemuck::pod_collect_to_vec::<u8, f16>(bytes).into_iter().map(f16::to_f32).collect(),
        _ => bytemuck::pod_collect_to_vec(bytes),
    }
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
