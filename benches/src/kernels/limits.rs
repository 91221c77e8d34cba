//! The maximum speed of an adapter, measured in alternation with the kernels that are compared with it.

use anyhow::{Context, Result};
use brisk_program::Device;
use brisk_program::kernels::{Adapter, Arg, Binding, Cost, DType, Dispatch, Error, Kernel, Map, Signature, TwinArgs, wgpu};

use super::case::Case;
use super::turns::{Turns, seconds};

/// Copies of one size: by the driver, and by a kernel.
pub(super) struct Copies {
    device: wgpu::Device,
    queue: wgpu::Queue,
    from: wgpu::Buffer,
    to: wgpu::Buffer,
    n_runs: usize,
    by_kernel: Case,
}

impl Copies {
    /// Copies that read and write as many bytes in total as a kernel.
    pub(super) fn new(device: &Device, n_bytes: u64, turns: &Turns) -> Result<Self> {
        let n = (n_bytes as usize / 2).div_ceil(size_of::<f32>());
        let by_kernel = Case::new(device, Map::unary(n, |x| x), turns)?;
        let (device, queue) = device.wgpu().context("an adapter")?;
        let [from, to] = [(); 2].map(|()| {
            let (label, size) = (Some("copied"), (n * size_of::<f32>()) as u64);
            let usage = wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
            device.create_buffer(&wgpu::BufferDescriptor { label, size, usage, mapped_at_creation: false })
        });
        let mut copies = Self { device: device.clone(), queue: queue.clone(), from, to, n_runs: 1, by_kernel };
        copies.by_driver()?;
        copies.n_runs = turns.n_runs(copies.by_driver()?);
        Ok(copies)
    }

    /// Bytes per second, read and written, of the faster copy.
    pub(super) fn bytes_per_s(&self) -> Result<f64> {
        let seconds = self.by_driver()?.min(self.by_kernel.seconds()?);
        Ok(self.by_kernel.cost.bytes as f64 / seconds)
    }

    fn by_driver(&self) -> Result<f64> {
        seconds(self.n_runs, || {
            let mut encoder = self.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            for _ in 0..self.n_runs {
                encoder.copy_buffer_to_buffer(&self.from, 0, &self.to, 0, self.from.size());
            }
            self.queue.submit([encoder.finish()]);
            self.device.poll(wgpu::PollType::wait_indefinitely())?;
            Ok(())
        })
    }
}

/// Invocations of a workgroup, and numbers of an invocation's vector.
const LANES: usize = 64;
const WIDTH: usize = 4;
const N_STEPS: usize = 1024;

/// `a = a f + f` repeated on numbers in registers, without reads or writes in between: `y[i] = Σ a`, over four with different
/// initial values.
#[derive(Debug, Clone)]
pub(super) struct MultiplyAdd {
    pub(super) n_groups: usize,
}

impl Kernel for MultiplyAdd {
    fn signature(&self) -> Signature {
        let args = [Arg::read("x", DType::F32, LANES * WIDTH), Arg::write("y", DType::F32, [self.n_groups, LANES, WIDTH])];
        Signature::new("multiply_add", args)
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let wgsl = include_str!("multiply_add.wgsl");
        let vectors = |name| Binding::of(name).elements("vec4f");
        let multiply_add = Dispatch::new("bench.multiply_add", wgsl, [self.n_groups as u32, 1, 1]);
        Ok(vec![multiply_add.constants([("N_STEPS", N_STEPS as f64)]).bind(&self.args(), [vectors("x")], [vectors("y")])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (x, y): (&[f32], &mut [f32]) = (args.read("x"), args.write("y"));
        let turned = |x: f32, apart: f32| (0..N_STEPS).fold(x + apart, |a, _| a * (0.5 * x) + 0.5 * x);
        let group: Vec<f32> = x.iter().map(|&x| (0..4).map(|apart| turned(x, apart as f32)).sum()).collect();
        y.chunks_exact_mut(group.len()).for_each(|y| y.copy_from_slice(&group));
    }

    fn cost(&self) -> Cost {
        let n = self.n_groups * LANES * WIDTH;
        Cost { flops: (2 * 4 * N_STEPS * n) as u64, bytes: (n * size_of::<f32>()) as u64 }
    }
}
