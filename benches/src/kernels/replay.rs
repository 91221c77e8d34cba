//! The cost of a dispatch in addition to its own work: replayed, or submitted one by one. The work is additions of 64 elements,
//! each of which waits for the previous one.

use std::cell::RefCell;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use brisk_program::kernels::gpu::{Recorded, Recorder};
use brisk_program::kernels::{DType, Map, bytemuck, wgpu};
use brisk_program::{Device, Executable, Persistent, Program};

use super::turns::{Turns, seconds};
use crate::options::Options;
use crate::row::{Better, Row, Table};

const N: usize = 64;
/// As many as in a small network's step.
const N_KERNELS: usize = 50;
/// Replays per submit.
const N_REPLAYS: usize = 10;
const N_DISPATCHES: usize = N_KERNELS * N_REPLAYS;
/// The initial values of the three buffers: small enough that the sum of fifty additions is finite. Later values overflow, which
/// does not affect the time.
const START: [f32; 3] = [1e-20, 2e-20, 0.0];
const HOST_LIMIT_S: f64 = 1e-6;

pub(super) fn run(options: &Options) -> Result<Table> {
    let device = &options.device;
    let chain = Chain::new(device)?;
    let anew = Anew::new(device)?;
    let expected = chain.result(|| chain.replayed(1))?;
    ensure!(expected[0] > 1e-11, "fifty additions come to {}: there is nothing to time", expected[0]);
    for (found, way) in [(chain.result(|| chain.one_by_one(1))?, "one by one"), (anew.result()?, "anew")] {
        ensure!(found == expected, "{way} gives {}, a replay {}: there is nothing to time", found[0], expected[0]);
    }

    // The wait for the device is not timed if only the host's part is measured.
    let host = |work: &dyn Fn() -> Result<()>| -> Result<f64> {
        let taken = seconds(N_DISPATCHES, work)?;
        device.wait()?;
        Ok(taken)
    };
    let whole = |work: &dyn Fn() -> Result<()>| -> Result<f64> {
        seconds(N_DISPATCHES, || {
            work()?;
            Ok(device.wait()?)
        })
    };
    let [handed, replayed, singly, eagerly] = Turns::of(options).take([
        &mut || host(&|| chain.replayed(N_REPLAYS)),
        &mut || whole(&|| chain.replayed(N_REPLAYS)),
        &mut || whole(&|| chain.one_by_one(N_REPLAYS)),
        &mut || whole(&|| anew.run(N_REPLAYS)),
    ])?;
    let [encoded, finished, submitted] = anew.parts(options.n_rounds)?;

    let line = |case: &str, ours, reference| Row {
        suite: "kernels",
        case: case.to_owned(),
        ours,
        unit: "s",
        reference,
        target: None,
        better: Better::Less,
    };
    let done = |reference: &str, theirs| {
        line("a replayed dispatch, until the device is done", replayed.clone(), Some((reference.to_owned(), theirs)))
    };
    let host_part = "a replayed dispatch, the host's part".to_owned();
    let rows = vec![
        Row::at_most("kernels", host_part, handed, "s", HOST_LIMIT_S),
        line("of that, setting its pipeline and bind group", encoded, None),
        line("of that, finishing the encoder", finished, None),
        line("of that, submitting", submitted, None),
        done("a submit an operation", singly),
        done("bindings and a submit an operation", eagerly),
    ];
    Ok(Table { device: device.info().clone(), rows })
}

/// Adds `x` and `y` into each other in turn, as in a Fibonacci sequence.
struct Chain {
    device: Device,
    x: [Persistent; 3],
    whole: Executable,
    single: Vec<Executable>,
}

impl Chain {
    fn new(device: &Device) -> Result<Self> {
        let x = ["x0", "x1", "x2"].map(|name| Persistent::new(name, DType::F32, N));
        let add = |program: &mut Program, i: usize| {
            let args = [i, i + 1, i + 2].map(|i| program.persistent(&x[i % 3]));
            program.push(Map::binary(N, |a, b| a + b), &args)
        };
        let mut whole = Program::new("whole");
        let mut single = Vec::new();
        for i in 0..N_KERNELS {
            add(&mut whole, i)?;
            let mut program = Program::new("single");
            add(&mut program, i)?;
            single.push(device.compile(&program)?);
        }
        let whole = device.compile(&whole)?;
        Ok(Self { device: device.clone(), x, whole, single })
    }

    fn replayed(&self, n: usize) -> Result<()> {
        Ok(self.whole.run(n)?)
    }

    fn one_by_one(&self, n: usize) -> Result<()> {
        (0..n).try_for_each(|_| self.single.iter().try_for_each(|operation| Ok(operation.run(1)?)))
    }

    /// The result of `run` for the initial values.
    fn result(&self, run: impl FnOnce() -> Result<()>) -> Result<Vec<f32>> {
        self.x.iter().zip(START).try_for_each(|(x, value)| self.device.write(x, &[value; N]))?;
        run()?;
        Ok(self.device.read(&self.x[N_KERNELS % 3])?)
    }
}

/// The same with wgpu only: as an eager library does it, which keeps pipelines and creates everything else for each operation;
/// and as a replay does it, split into its parts.
struct Anew {
    device: wgpu::Device,
    queue: wgpu::Queue,
    recorder: RefCell<Recorder>,
    buffers: [wgpu::Buffer; 3],
    staging: wgpu::Buffer,
}

impl Anew {
    fn new(device: &Device) -> Result<Self> {
        let (device, queue) = device.wgpu().context("an adapter")?;
        let size = size_of::<[f32; N]>() as u64;
        let create =
            |usage| device.create_buffer(&wgpu::BufferDescriptor { label: None, size, usage, mapped_at_creation: false });
        let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
        let buffers = START.map(|value| {
            let buffer = create(usage);
            queue.write_buffer(&buffer, 0, bytemuck::cast_slice(&[value; N]));
            buffer
        });
        let staging = create(wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::COPY_DST);
        let recorder = RefCell::new(Recorder::new(device));
        Ok(Self { device: device.clone(), queue: queue.clone(), recorder, buffers, staging })
    }

    fn bindings(&self, i: usize) -> [wgpu::BufferBinding<'_>; 3] {
        [i, i + 1, i + 2].map(|i| self.buffers[i % 3].as_entire_buffer_binding())
    }

    fn encoder(&self) -> wgpu::CommandEncoder {
        self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default())
    }

    fn run(&self, n: usize) -> Result<()> {
        for i in (0..n).flat_map(|_| 0..N_KERNELS) {
            let mut encoder = self.encoder();
            self.recorder.borrow_mut().record(&Map::binary(N, |a, b| a + b), &self.bindings(i), &mut encoder)?;
            self.queue.submit([encoder.finish()]);
        }
        Ok(())
    }

    fn result(&self) -> Result<Vec<f32>> {
        self.run(1)?;
        let mut encoder = self.encoder();
        encoder.copy_buffer_to_buffer(&self.buffers[N_KERNELS % 3], 0, &self.staging, 0, self.staging.size());
        self.queue.submit([encoder.finish()]);
        self.staging.slice(..).map_async(wgpu::MapMode::Read, |_| {});
        self.device.poll(wgpu::PollType::wait_indefinitely())?;
        Ok(bytemuck::cast_slice(&self.staging.slice(..).get_mapped_range()?).to_vec())
    }

    /// Seconds per dispatch of encoding, finishing and submitting what a replay does.
    fn parts(&self, n_rounds: usize) -> Result<[Vec<f64>; 3]> {
        let prepare = |i: usize| self.recorder.borrow_mut().prepare(&Map::binary(N, |a, b| a + b), &self.bindings(i));
        let kernels = (0..N_KERNELS).map(prepare).collect::<Result<Vec<Recorded>, _>>()?;
        let mut parts = [(); 3].map(|()| Vec::with_capacity(n_rounds));
        for round in 0..=n_rounds {
            let started = Instant::now();
            let mut encoder = self.encoder();
            let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
            (0..N_REPLAYS).flat_map(|_| &kernels).for_each(|kernel| kernel.encode(&mut pass));
            drop(pass);
            let encoded = started.elapsed();
            let commands = encoder.finish();
            let finished = started.elapsed();
            self.queue.submit([commands]);
            let submitted = started.elapsed();
            self.device.poll(wgpu::PollType::wait_indefinitely())?;
            if round > 0 {
                for (part, time) in parts.iter_mut().zip([encoded, finished - encoded, submitted - finished]) {
                    part.push(time.as_secs_f64() / N_DISPATCHES as f64);
                }
            }
        }
        Ok(parts)
    }
}
