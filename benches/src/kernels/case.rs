use anyhow::{Context, Result, ensure};
use brisk_program::kernels::bytemuck::{cast_slice, cast_slice_mut};
use brisk_program::kernels::{self, Access, Arg, Cost, DType, Kernel, Philox, TwinArgs};
use brisk_program::{Device, Executable, Persistent, Program};
use half::{bf16, f16};

use super::turns::{Turns, seconds};

/// A kernel with its own buffers, on a device.
pub(super) struct Case {
    /// The kernel and its sizes.
    name: String,
    pub(super) cost: Cost,
    device: Device,
    executable: Executable,
    /// One buffer for each argument that is not scratch.
    buffers: Vec<Persistent>,
    n_runs: usize,
}

impl Case {
    /// Compiles the kernel, fills its buffers, and checks that its result equals that of the twin on one thread.
    pub(super) fn new(device: &Device, kernel: impl Kernel, turns: &Turns) -> Result<Self> {
        let (name, cost, args) = (format!("{kernel:?}"), kernel.cost(), kernel.args());
        let start: Vec<_> = (0..).zip(&args).map(|(stream, arg)| values(stream, arg)).collect();
        let expected = by_twin(&kernel, &args, start.clone())?;
        let mut program = Program::new(kernel.name());
        let given = args.iter().filter(|arg| arg.access != Access::Scratch);
        let buffers: Vec<_> = given.map(|arg| Persistent::new(arg.name, arg.dtype, arg.len)).collect();
        let slices: Vec<_> = buffers.iter().map(|buffer| program.persistent(buffer)).collect();
        program.push(kernel, &slices)?;
        let executable = device.compile(&program)?;
        for (buffer, words) in buffers.iter().zip(&start) {
            device.write_bytes(buffer, &cast_slice(words)[..buffer.len_bytes()])?;
        }
        executable.run(1)?;
        let mut case = Self { name, cost, device: device.clone(), executable, buffers, n_runs: 1 };
        case.check(&args, &expected)?;
        case.n_runs = turns.n_runs(case.seconds()?);
        Ok(case)
    }

    /// The same with its floats stored in 16 bits.
    pub(super) fn stored(device: &Device, kernel: impl Kernel, dtype: DType, turns: &Turns) -> Result<Self> {
        let args = kernel.args();
        let given = args.iter().filter(|arg| arg.access != Access::Scratch);
        let dtypes: Vec<_> = given.map(|arg| if arg.dtype == DType::F32 { dtype } else { arg.dtype }).collect();
        Self::new(device, kernels::stored(kernel, &dtypes)?, turns)
    }

    /// Seconds of one replay, averaged over enough replays to be measurable.
    pub(super) fn seconds(&self) -> Result<f64> {
        self.device.wait()?;
        seconds(self.n_runs, || {
            self.executable.run(self.n_runs)?;
            Ok(self.device.wait()?)
        })
    }

    /// Bytes per second, as the kernel declares them.
    pub(super) fn bytes_per_s(&self) -> Result<f64> {
        Ok(self.cost.bytes as f64 / self.seconds()?)
    }

    /// Operations per second, as the kernel declares them.
    pub(super) fn flops_per_s(&self) -> Result<f64> {
        Ok(self.cost.flops as f64 / self.seconds()?)
    }

    /// The present content of an f32 argument.
    pub(super) fn read(&self, name: &str) -> Result<Vec<f32>> {
        let buffer = self.buffers.iter().find(|buffer| buffer.name() == name);
        Ok(self.device.read(buffer.with_context(|| format!("{} has no argument `{name}`", self.name))?)?)
    }

    fn check(&self, args: &[Arg], expected: &[Vec<u32>]) -> Result<()> {
        for ((arg, buffer), words) in args.iter().zip(&self.buffers).zip(expected).filter(|((arg, _), _)| arg.access.writes()) {
            let mut found = vec![0_u32; words.len()];
            let bytes = self.device.read_bytes(buffer)?;
            cast_slice_mut(&mut found)[..bytes.len()].copy_from_slice(&bytes);
            let place = format!("{} on {}: `{}`", self.name, self.device.info(), arg.name);
            match floats(arg, &found).zip(floats(arg, words)) {
                Some((found, expected)) => is_close(&place, &found, &expected, tolerance(arg.dtype))?,
                None => ensure!(found == *words, "{place} is not what the twin says: there is nothing to time"),
            }
        }
        Ok(())
    }
}

/// The result of the twin on one thread for these words of memory.
fn by_twin(kernel: &impl Kernel, args: &[Arg], mut words: Vec<Vec<u32>>) -> Result<Vec<Vec<u32>>> {
    let mut twin_args = TwinArgs::new(args);
    for (arg, words) in args.iter().zip(&mut words) {
        let bytes = &mut cast_slice_mut::<_, u8>(words)[..arg.len_bytes()];
        if arg.access.writes() {
            twin_args.push_write(bytes);
        } else {
            twin_args.push_read(bytes);
        }
    }
    let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    one_thread.install(|| kernel.twin(&mut twin_args));
    drop(twin_args);
    Ok(words)
}

/// The initial content of an argument, as words of memory: numbers in -0.5..1, positive ones if a kernel computes their root, and
/// 0 for indices.
fn values(stream: u32, arg: &Arg) -> Vec<u32> {
    let n_words = arg.len_bytes().div_ceil(size_of::<u32>());
    let least = if ["y2", "running_var"].contains(&arg.name) { 0.1 } else { -0.5 };
    let uniform = |block| Philox::new(1).block([block, 0, stream, 0]).map(|word| (word >> 8) as f32 / (1 << 24) as f32);
    let floats = (0..).flat_map(uniform).map(|u| least + (1.0 - least) * u);
    let in_twos = |bits: fn(f32) -> u16| floats.clone().take(n_words).map(|x| u32::from(bits(x)) * 0x1_0001).collect();
    match arg.dtype {
        DType::F32 => floats.take(n_words).map(f32::to_bits).collect(),
        DType::F16 => in_twos(|x| f16::from_f32(x).to_bits()),
        DType::Bf16 => in_twos(|x| bf16::from_f32(x).to_bits()),
        _ => vec![0; n_words],
    }
}

/// An argument's words as numbers, if its elements are floats.
fn floats(arg: &Arg, words: &[u32]) -> Option<Vec<f32>> {
    let halves = |number: fn(u16) -> f32| cast_slice(words).iter().take(arg.len).map(|&bits| number(bits)).collect();
    match arg.dtype {
        DType::F32 => Some(cast_slice(words).to_vec()),
        DType::F16 => Some(halves(|bits| f16::from_bits(bits).to_f32())),
        DType::Bf16 => Some(halves(|bits| bf16::from_bits(bits).to_f32())),
        _ => None,
    }
}

/// The tolerance of results, relative to the largest of them: a few roundings.
fn tolerance(dtype: DType) -> f32 {
    match dtype {
        DType::F16 => 2e-3,
        DType::Bf16 => 2e-2,
        _ => 1e-5,
    }
}

fn is_close(place: &str, found: &[f32], expected: &[f32], tolerance: f32) -> Result<()> {
    let greatest = expected.iter().fold(0.0_f32, |greatest, x| greatest.max(x.abs()));
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let is_close = (found - expected).abs() <= tolerance * greatest;
        ensure!(is_close, "{place}[{i}] is {found}, the twin says {expected}: there is nothing to time");
    }
    Ok(())
}
