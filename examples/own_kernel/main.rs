//! A custom kernel, recorded together with those of brisk, on the CPU and on a GPU.
//!
//! `cargo run --release --example own_kernel`; `-- --device gpu|software|NAME|INDEX` picks the adapter.

use std::process::ExitCode;

use anyhow::{Result, ensure};
use brisk_examples::command_line::{self, value};
use brisk_examples::print;
use brisk_program::kernels::{Adapter, Arg, DType, Dispatch, Epilogue, Error, Kernel, Matmul, Signature, Transpose, TwinArgs};
use brisk_program::{Device, Persistent, Program, Selection};
use clap::Parser;

/// `y = cap * tanh(x / cap)`: bounded logits, as in Gemma 2 (arXiv:2408.00118).
#[derive(Debug)]
struct SoftCap {
    n: usize,
    cap: f32,
}

/// Called for each element. `Dispatch` declares `params`, `x` and `y`, and the entry point.
const WGSL: &str = "
fn element(i: u32) {
    if i < arrayLength(&y) {
        y[i] = params.cap * tanh(x[i] / params.cap);
    }
}
";

impl Kernel for SoftCap {
    fn signature(&self) -> Signature {
        Signature::new("soft_cap", [Arg::read("x", DType::F32, self.n), Arg::write("y", DType::F32, self.n)])
    }

    fn check(&self) -> Result<(), Error> {
        if self.cap > 0.0 {
            return Ok(());
        }
        Err(Error::Unsupported { kernel: self.name(), found: format!("a cap of {}", self.cap), expected: "a cap above 0" })
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let soft_cap = Dispatch::elementwise(self.name(), "own_kernel.soft_cap", WGSL, self.n)?.param("cap", self.cap);
        Ok(vec![soft_cap.bind(&self.args(), ["x"], ["y"])?])
    }

    /// The specification of the WGSL in plain Rust, which also runs on machines without a GPU.
    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (x, y) = (args.read::<f32>("x"), args.write::<f32>("y"));
        for (y, x) in y.iter_mut().zip(x) {
            *y = self.cap * (x / self.cap).tanh();
        }
    }
}

const N_ROWS: usize = 100;
const N_INPUTS: usize = 32;
const N_CLASSES: usize = 10;
const CAP: f32 = 3.0;

/// Runs a kernel that brisk does not have, on the CPU executor and on an adapter, and compares the results
#[derive(Debug, Parser)]
#[command(name = "own_kernel")]
struct Options {
    /// Adapter to compare with: gpu, software, or the name or index of an adapter [default: the first adapter]
    #[arg(long, value_name = "DEVICE", help_heading = "Running", env = "BRISK_DEVICE", hide_env_values = true, value_parser = value::device())]
    device: Option<Selection>,
}

fn main() -> ExitCode {
    command_line::run(|options| run(options).map(|()| ExitCode::SUCCESS))
}

fn run(options: Options) -> Result<()> {
    let device = options.device.filter(|selection| *selection != Selection::Best);

    let rows = Persistent::new("rows", DType::F32, N_ROWS * N_INPUTS);
    let weights = Persistent::new("weights", DType::F32, N_CLASSES * N_INPUTS);
    let capped = Persistent::new("capped logits", DType::F32, N_ROWS * N_CLASSES);

    // Record once: a matrix product of brisk, then the kernel above.
    let mut program = Program::new("classify");
    let [x, w, y] = [&rows, &weights, &capped].map(|buffer| program.persistent(buffer));
    let logits = program.transient("logits", DType::F32, N_ROWS * N_CLASSES);
    let product =
        Matmul { n_batch: 1, m: N_ROWS, n: N_CLASSES, k: N_INPUTS, transpose: Transpose::B, epilogue: Epilogue::none() };
    program.push(product, &[x, w, logits])?;
    program.push(SoftCap { n: N_ROWS * N_CLASSES, cap: CAP }, &[logits, y])?;
    print::result(format_args!("recorded {}; {}", program.kernel_names().collect::<Vec<_>>().join(", "), program.plan()?))?;

    // Replay on any device.
    let run = |device: &Device| -> Result<Vec<f32>> {
        device.write(&rows, &waves(N_ROWS * N_INPUTS, 0.37))?;
        device.write(&weights, &waves(N_CLASSES * N_INPUTS, 0.71))?;
        device.compile(&program)?.run(1)?;
        let values = device.read::<f32>(&capped)?;
        let largest = values.iter().fold(0.0_f32, |largest, value| largest.max(value.abs()));
        print::result(format_args!("{}: {} logits, the largest {largest:.4}, capped at {CAP}", device.info(), values.len()))?;
        Ok(values)
    };
    let by_twin = run(&Device::cpu()?)?;
    if device.is_none() && Device::list().is_empty() {
        return print::result("no adapter was found, so the WGSL was not run");
    }
    let device = Device::builder().selection(device.unwrap_or(Selection::Index(0))).open()?;
    let by_wgsl = run(&device)?;

    let difference = by_twin.iter().zip(&by_wgsl).map(|(a, b)| (a - b).abs()).fold(0.0_f32, f32::max);
    print::result(format_args!("twin and WGSL differ by {difference:e} at most"))?;
    ensure!(difference < 1e-4, "the WGSL does not compute what the twin does");
    Ok(())
}

fn waves(n: usize, step: f32) -> Vec<f32> {
    (0..n).map(|i| (i as f32 * step).sin()).collect()
}
