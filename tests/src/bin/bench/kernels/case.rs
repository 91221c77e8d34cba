use anyhow::{Context, Result, ensure};
use brisk_program::kernels::bytemuck::{cast_slice, cast_slice_mut};
use brisk_program::kernels::{Access, Arg, DType, Kernel, Philox, TwinArgs};
use brisk_program::{Device, Executable, Persistent, Program};

use super::turns::{Turns, seconds};

/// A kernel over buffers of its own, on a device.
pub(super) struct Case<K> {
    pub(super) kernel: K,
    device: Device,
    executable: Executable,
    args: Vec<Arg>,
    /// One for each argument that is no scratch.
    buffers: Vec<Persistent>,
    n_runs: usize,
}

impl<K: Kernel + Clone> Case<K> {
    /// The kernel compiled, its buffers filled, what it computes found to be what the twin computes on one thread.
    pub(super) fn new(device: &Device, kernel: K, turns: &Turns) -> Result<Self> {
        let args = kernel.args();
        let mut program = Program::new(kernel.name());
        let given = args.iter().filter(|arg| arg.access != Access::Scratch);
        let buffers: Vec<_> = given.map(|arg| Persistent::new(arg.name, arg.dtype, arg.len)).collect();
        let slices: Vec<_> = buffers.iter().map(|buffer| program.persistent(buffer)).collect();
        program.push(kernel.clone(), &slices)?;
        let executable = device.compile(&program)?;
        let mut case = Self { kernel, device: device.clone(), executable, args, buffers, n_runs: 1 };
        case.check()?;
        case.n_runs = turns.n_runs(case.seconds()?);
        Ok(case)
    }

    /// Seconds of one replay, of as many as take some time.
    pub(super) fn seconds(&self) -> Result<f64> {
        self.device.wait()?;
        seconds(self.n_runs, || {
            self.executable.run(self.n_runs)?;
            Ok(self.device.wait()?)
        })
    }

    /// What an argument holds now.
    pub(super) fn read(&self, name: &str) -> Result<Vec<f32>> {
        let buffer = self.buffers.iter().find(|buffer| buffer.name() == name);
        Ok(self.device.read(buffer.with_context(|| format!("{:?} has no argument `{name}`", self.kernel))?)?)
    }

    /// Bytes a second, of those that the kernel declares, for a time.
    pub(super) fn bytes_per_s(&self, seconds: f64) -> f64 {
        self.kernel.cost().bytes as f64 / seconds
    }

    /// Operations a second, of those that the kernel declares, for a time.
    pub(super) fn flops_per_s(&self, seconds: f64) -> f64 {
        self.kernel.cost().flops as f64 / seconds
    }

    fn check(&self) -> Result<()> {
        let mut words: Vec<Vec<u32>> = (0..).zip(&self.args).map(|(stream, arg)| values(stream, arg)).collect();
        for ((arg, buffer), words) in self.args.iter().zip(&self.buffers).zip(&words) {
            self.device.write(buffer, &cast_slice::<_, u8>(words)[..arg.len_bytes()])?;
        }
        self.executable.run(1)?;
        let mut twin_args = TwinArgs::new();
        for (arg, words) in self.args.iter().zip(&mut words) {
            let bytes = &mut cast_slice_mut::<_, u8>(words)[..arg.len_bytes()];
            if arg.access.writes() {
                twin_args.push_write(bytes);
            } else {
                twin_args.push_read(bytes);
            }
        }
        let one_thread = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
        one_thread.install(|| self.kernel.twin(&mut twin_args));
        for ((arg, buffer), words) in self.args.iter().zip(&self.buffers).zip(&words).filter(|((arg, _), _)| arg.access.writes())
        {
            let found: Vec<u8> = self.device.read(buffer)?;
            let expected = &cast_slice::<_, u8>(words)[..arg.len_bytes()];
            let place = format!("{:?} on {}: `{}`", self.kernel, self.device.info(), arg.name);
            match arg.dtype {
                DType::F32 => is_close(&place, cast_slice(&found), cast_slice(expected))?,
                _ => ensure!(found == expected, "{place} is not what the twin says: there is nothing to time"),
            }
        }
        Ok(())
    }
}

/// Each within some roundings of the greatest.
fn is_close(place: &str, found: &[f32], expected: &[f32]) -> Result<()> {
    let greatest = expected.iter().fold(0.0_f32, |greatest, x| greatest.max(x.abs()));
    for (i, (&found, &expected)) in found.iter().zip(expected).enumerate() {
        let is_close = (found - expected).abs() <= 1e-5 * greatest;
        ensure!(is_close, "{place}[{i}] is {found}, the twin says {expected}: there is nothing to time");
    }
    Ok(())
}

/// What an argument starts with, as words of memory: numbers in -0.5..1, positive ones where a kernel takes their root, and for indices 0.
fn values(stream: u32, arg: &Arg) -> Vec<u32> {
    let n_words = arg.len_bytes().div_ceil(size_of::<u32>());
    if arg.dtype != DType::F32 {
        return vec![0; n_words];
    }
    let least = if ["v", "running_var"].contains(&arg.name) { 0.1 } else { -0.5 };
    let uniform = |block| Philox::new(1).block([block, 0, stream, 0]).map(|word| (word >> 8) as f32 / (1 << 24) as f32);
    let floats = (0..).flat_map(uniform).map(|u| least + (1.0 - least) * u);
    floats.take(n_words).map(f32::to_bits).collect()
}
