//! A kernel of your own, recorded among those of brisk, on the CPU and on a GPU.
//!
//! `cargo run --release --example own_kernel`; `-- --device gpu|software|NAME|INDEX` picks the adapter, which is else the first there is.
#![expect(clippy::print_stdout, reason = "an example shows what it did")]

use anyhow::{Context, Result, ensure};
use brisk_program::kernels::{
    Adapter, Arg, DType, Dispatch, Epilogue, Error, Kernel, Matmul, Transpose, TwinArgs, bytemuck, fold_workgroups,
};
use brisk_program::{Device, Persistent, Program, Selection};

/// `y = cap * tanh(x / cap)`: logits that cannot run away, as Gemma 2 bounds its own (arXiv:2408.00118).
#[derive(Debug)]
struct SoftCap {
    n: usize,
    cap: f32,
}

/// Valid as it stands. Binding 0 is `params`, then come what is read and what is written, in the order of `Dispatch`.
const WGSL: &str = "
struct Params { cap: f32, pad0: f32, pad1: f32, pad2: f32 }

@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read> x: array<f32>;
@group(0) @binding(2) var<storage, read_write> y: array<f32>;

@compute @workgroup_size(64)
fn soft_cap(@builtin(workgroup_id) group: vec3u, @builtin(num_workgroups) groups: vec3u, @builtin(local_invocation_index) lane: u32) {
    let i = (group.y * groups.x + group.x) * 64u + lane;
    if i < arrayLength(&y) {
        y[i] = params.cap * tanh(x[i] / params.cap);
    }
}
";

impl Kernel for SoftCap {
    fn name(&self) -> &'static str {
        "soft_cap"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read("x", DType::F32, self.n), Arg::write("y", DType::F32, self.n)]
    }

    fn check(&self) -> Result<(), Error> {
        if self.cap > 0.0 {
            return Ok(());
        }
        Err(Error::Unsupported { kernel: self.name(), found: format!("a cap of {}", self.cap), expected: "a cap above 0" })
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "own_kernel.soft_cap",
            wgsl: WGSL,
            entry: "soft_cap",
            constants: vec![],
            types: vec![],
            params: bytemuck::cast_slice(&[self.cap, 0.0, 0.0, 0.0]).to_vec(),
            reads: vec![0],
            writes: vec![1],
            workgroups: fold_workgroups(self.name(), self.n.div_ceil(64))?,
        }])
    }

    /// What the WGSL computes, in plain Rust: the specification, and what runs where there is no GPU.
    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (x, y) = (args.read::<f32>(0), args.write::<f32>(1));
        for (y, x) in y.iter_mut().zip(x) {
            *y = self.cap * (x / self.cap).tanh();
        }
    }
}

const N_ROWS: usize = 100;
const N_INPUTS: usize = 32;
const N_CLASSES: usize = 10;
const CAP: f32 = 3.0;

fn main() -> Result<()> {
    let asked = device_option()?;

    let rows = Persistent::new("rows", DType::F32, N_ROWS * N_INPUTS);
    let weights = Persistent::new("weights", DType::F32, N_CLASSES * N_INPUTS);
    let capped = Persistent::new("capped logits", DType::F32, N_ROWS * N_CLASSES);

    // Record once: a matrix product of ours, then the kernel above.
    let mut program = Program::new("classify");
    let [x, w, y] = [&rows, &weights, &capped].map(|buffer| program.persistent(buffer));
    let logits = program.transient("logits", DType::F32, N_ROWS * N_CLASSES);
    let product = Matmul { m: N_ROWS, n: N_CLASSES, k: N_INPUTS, transpose: Transpose::B, epilogue: Epilogue::None };
    program.push(product, &[x, w, logits])?;
    program.push(SoftCap { n: N_ROWS * N_CLASSES, cap: CAP }, &[logits, y])?;
    println!("recorded {}; {}", program.kernel_names().collect::<Vec<_>>().join(", "), program.plan()?);

    // Replay on any device.
    let run = |device: &Device| -> Result<Vec<f32>> {
        device.write(&rows, &waves(N_ROWS * N_INPUTS, 0.37))?;
        device.write(&weights, &waves(N_CLASSES * N_INPUTS, 0.71))?;
        device.compile(&program)?.run(1)?;
        let values = device.read::<f32>(&capped)?;
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        println!("{}: {} logits, the largest {largest:.4}, capped at {CAP}", device.info(), values.len());
        Ok(values)
    };
    let by_twin = run(&Device::cpu()?)?;
    if asked.is_none() && Device::list().is_empty() {
        println!("there is no adapter here, so the WGSL was not run");
        return Ok(());
    }
    let device = Device::builder().selection(asked.unwrap_or(Selection::Index(0))).open()?;
    let by_wgsl = run(&device)?;

    let difference = by_twin.iter().zip(&by_wgsl).map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max);
    println!("twin and WGSL differ by {difference:e} at most");
    ensure!(difference < 1e-4, "the WGSL does not compute what the twin does");
    Ok(())
}

/// The value of `--device`, or of `BRISK_DEVICE`.
fn device_option() -> Result<Option<Selection>> {
    let mut args = std::env::args().skip(1);
    let option = match args.next().as_deref() {
        None => return Ok(Some(Selection::from_env()).filter(|selection| *selection != Selection::Best)),
        Some("--device") => args.next().context("--device wants a name: cpu, gpu, software, or an adapter's name or index")?,
        Some(other) => anyhow::bail!("`{other}` is no option; there is --device NAME"),
    };
    Ok(Some(option.parse()?))
}

fn waves(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}
