//! The overhead of an operation: recorded once and replayed, or submitted one by one.
//!
//! `cargo bench -p brisk-program`; `BRISK_DEVICE` selects the adapter; by default a hardware adapter is used if there is one,
//! else a software adapter. The cpu executor is always measured too. `-- --smoke` uses tiny sizes. The program is a chain of
//! additions of 64 elements, whose own work is negligible.
#![expect(clippy::print_stdout, reason = "a bench reports")]

use std::time::Instant;

use brisk_program::kernels::gpu::Recorder;
use brisk_program::kernels::{DType, Map, wgpu};
use brisk_program::{Device, Error, Executable, Persistent, Program, Selection};

const N: usize = 64;
/// Kernels of one step, as many as in a small network.
const N_KERNELS: usize = 50;

fn main() -> Result<(), Error> {
    let is_smoke = std::env::args().any(|arg| arg == "--smoke");
    let (n_steps, n_repeats) = if is_smoke { (2, 1) } else { (40, 11) };
    println!(
        "a step of {N_KERNELS} additions of {N} f32; medians of {n_repeats} times {n_steps} steps, measured in turn, results checked first"
    );
    println!();
    println!("| device | how | µs per dispatch | spread | against replayed |");
    println!("|---|---|---|---|---|");
    for device in devices()? {
        measure(&device, n_steps, n_repeats)?;
    }
    Ok(())
}

fn devices() -> Result<Vec<Device>, Error> {
    let cpu = Device::cpu()?;
    let selection = match Selection::from_env() {
        Selection::Best if Device::list().is_empty() => Selection::Cpu,
        Selection::Best => Selection::Index(0),
        asked => asked,
    };
    Ok(if selection == Selection::Cpu { vec![cpu] } else { vec![Device::builder().selection(selection).open()?, cpu] })
}

/// `x` and `y` are added into each other in turn, as in a Fibonacci sequence, so each dispatch waits for the one before.
struct Chain {
    x: [Persistent; 3],
    whole: Program,
    single: Vec<Program>,
}

impl Chain {
    fn new() -> Result<Self, Error> {
        let x = ["x0", "x1", "x2"].map(|name| Persistent::new(name, DType::F32, N));
        let mut whole = Program::new("whole");
        let mut single = Vec::new();
        for i in 0..N_KERNELS {
            push(&mut whole, &x, i)?;
            let mut program = Program::new(format!("single {i}"));
            push(&mut program, &x, i)?;
            single.push(program);
        }
        Ok(Self { x, whole, single })
    }

    fn result(&self, device: &Device, run: impl FnOnce() -> Result<(), Error>) -> Result<Vec<f32>, Error> {
        self.x.iter().zip([1e-20_f32, 2e-20, 0.0]).try_for_each(|(x, value)| device.write(x, &[value; N]))?;
        run()?;
        device.read(&self.x[N_KERNELS % 3])
    }
}

fn push(program: &mut Program, x: &[Persistent; 3], i: usize) -> Result<(), Error> {
    let args = [i, i + 1, i + 2].map(|i| program.persistent(&x[i % 3]));
    program.push(Map::binary(N, |a, b| a + b), &args)
}

fn measure(device: &Device, n_steps: usize, n_repeats: usize) -> Result<(), Error> {
    let chain = Chain::new()?;
    let whole = device.compile(&chain.whole)?;
    let single = chain.single.iter().map(|program| device.compile(program)).collect::<Result<Vec<_>, _>>()?;
    let one_by_one = || single.iter().try_for_each(|executable| executable.run(1));
    let awaited = || single.iter().try_for_each(|executable| run_and_wait(device, executable));
    let anew = (device.info().kind.executor() == "gpu").then(|| Anew::open(device));

    let expected = chain.result(device, || whole.run(1))?;
    assert!(expected[0] > 1e-11, "fifty additions make a number large");
    assert_eq!(chain.result(device, one_by_one)?, expected, "one by one");
    assert_eq!(chain.result(device, awaited)?, expected, "awaited");
    if let Some(anew) = &anew {
        assert_eq!(anew.result(), expected, "anew");
    }

    let mut times: [Vec<f64>; 6] = Default::default();
    for _ in 0..=n_repeats {
        times[0].push(us_a_dispatch(device, n_steps, || whole.run(n_steps))?);
        times[1].push(us_a_dispatch(device, n_steps, || (0..n_steps).try_for_each(|_| whole.run(1)))?);
        times[2].push(us_a_dispatch(device, n_steps, || (0..n_steps).try_for_each(|_| one_by_one()))?);
        times[3].push(us_a_dispatch(device, n_steps, || (0..n_steps).try_for_each(|_| awaited()))?);
        if let Some(anew) = &anew {
            let start = Instant::now();
            (0..n_steps).for_each(|_| anew.step());
            anew.wait();
            times[4].push(us_since(start, n_steps));
            times[5].push(anew.us_to_encode());
        }
    }
    let names = [
        "**replayed**: `run(n)`",
        "one submit per step: `run(1)`",
        "one submit per operation",
        "one submit and one wait per operation",
        "one bind group, pass and submit per operation",
        "encoding, of replayed",
    ];
    let replayed = median(&times[0]).0;
    for (name, times) in names.iter().zip(&times).filter(|(_, times)| !times.is_empty()) {
        let (median, low, high) = median(times);
        println!("| {} | {name} | {median:.2} | {low:.2} to {high:.2} | {:.2}× |", device.info().name, median / replayed);
    }
    Ok(())
}

fn run_and_wait(device: &Device, executable: &Executable) -> Result<(), Error> {
    executable.run(1)?;
    device.wait()
}

fn us_a_dispatch(device: &Device, n_steps: usize, run: impl FnOnce() -> Result<(), Error>) -> Result<f64, Error> {
    let start = Instant::now();
    run()?;
    device.wait()?;
    Ok(us_since(start, n_steps))
}

fn us_since(start: Instant, n_steps: usize) -> f64 {
    1e6 * start.elapsed().as_secs_f64() / (n_steps * N_KERNELS) as f64
}

/// Median, minimum and maximum, without the first round, which warms up.
fn median(times: &[f64]) -> (f64, f64, f64) {
    let mut times = times[1..].to_vec();
    times.sort_by(f64::total_cmp);
    (times[times.len() / 2], times[0], times[times.len() - 1])
}

/// A minimal eager library on the same adapter: pipelines are kept, everything else is created for each operation.
struct Anew {
    device: wgpu::Device,
    queue: wgpu::Queue,
    recorder: std::cell::RefCell<Recorder>,
    buffers: [wgpu::Buffer; 3],
}

impl Anew {
    fn open(of: &Device) -> Self {
        let instance = wgpu::Instance::new(wgpu::InstanceDescriptor {
            flags: wgpu::InstanceFlags::empty(),
            ..wgpu::InstanceDescriptor::new_without_display_handle()
        });
        let adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::PRIMARY));
        let adapter = adapters.iter().find(|adapter| adapter.get_info().name == of.info().name).expect("it was there just now");
        let (device, queue) =
            pollster::block_on(adapter.request_device(&wgpu::DeviceDescriptor::default())).expect("it opens again");
        let buffers = [1e-20_f32, 2e-20, 0.0].map(|value| {
            let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
            let size = 4 * N as u64;
            let buffer = device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
            queue.write_buffer(&buffer, 0, brisk_program::kernels::bytemuck::cast_slice(&[value; N]));
            buffer
        });
        let recorder = Recorder::new(&device).into();
        Self { device, queue, recorder, buffers }
    }

    fn step(&self) {
        for i in 0..N_KERNELS {
            let bindings = [i, i + 1, i + 2].map(|i| self.buffers[i % 3].as_entire_buffer_binding());
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            self.recorder.borrow_mut().record(&Map::binary(N, |a, b| a + b), &bindings, &mut encoder).expect("an add");
            self.queue.submit([encoder.finish()]);
        }
    }

    /// The time of the work that [`Executable::run`] does before it submits.
    fn us_to_encode(&self) -> f64 {
        let prepare = |i: usize| {
            let bindings = [i, i + 1, i + 2].map(|i| self.buffers[i % 3].as_entire_buffer_binding());
            self.recorder.borrow_mut().prepare(&Map::binary(N, |a, b| a + b), &bindings).expect("an add")
        };
        let kernels: Vec<_> = (0..N_KERNELS).map(prepare).collect();
        let start = Instant::now();
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
        (0..10).flat_map(|_| &kernels).for_each(|kernel| kernel.encode(&mut pass));
        drop(pass);
        drop(encoder.finish());
        us_since(start, 10)
    }

    fn wait(&self) {
        self.device.poll(wgpu::PollType::wait_indefinitely()).expect("the device is there");
    }

    fn result(&self) -> Vec<f32> {
        self.step();
        let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST;
        let size = 4 * N as u64;
        let staging = self.device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
        encoder.copy_buffer_to_buffer(&self.buffers[N_KERNELS % 3], 0, &staging, 0, size);
        self.queue.submit([encoder.finish()]);
        staging.slice(..).map_async(wgpu::MapMode::Read, |result| result.expect("a small buffer can be mapped"));
        self.wait();
        let view = staging.slice(..).get_mapped_range().expect("it is mapped");
        brisk_program::kernels::bytemuck::cast_slice(&view).to_vec()
    }
}
