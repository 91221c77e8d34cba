//! The twins of training steps in f16 and bf16, compared with f32: a network of 28-256-256-256-1, as for HIGGS, and the
//! convolutions of small images.
//!
//! `cargo bench -p brisk-kernels --bench stored [-- [--smoke] [NAME]]`; with a name, only the kernels whose names contain it.
//!
//! Weights and activations are stored in 16 bits; biases and the gradients of parameters are f32. The three are timed in
//! alternation, kernel by kernel, so that disturbances of the machine affect all of them. The data is warm. Each kernel in 16
//! bits is first checked against f32.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::time::Instant;

use brisk_kernels::*;

/// How often each kernel is timed.
const N_ROUNDS: usize = 15;

/// `S` is stored in 16 bits, the others in f32.
#[derive(Clone, Copy)]
enum As {
    Half,
    Full,
}
use As::{Full, Half};

/// A kernel of the step, and how each argument is stored.
type StepKernel = (&'static str, Box<dyn Fn() -> Box<dyn Kernel>>, Vec<As>);

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke");
    let wanted = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).unwrap_or_default();
    let batches: &[usize] = if smoke { &[32] } else { &[1024, 8192] };
    let n_rounds = if smoke { 1 } else { N_ROUNDS };
    println!("cpu, {} threads, warm; medians of {n_rounds} rounds, ms; ratios to f32", rayon::current_num_threads());
    println!("{:<40} {:>6} {:>9} {:>9} {:>6} {:>9} {:>6}", "kernel", "batch", "f32", "f16", "ratio", "bf16", "ratio");
    let image_batch = if smoke { 2 } else { 128 };
    let steps = batches.iter().map(|&batch| (batch, step(batch))).chain([(image_batch, convolutions(image_batch))]);
    for (batch, kernels) in steps {
        let mut totals = [0.0; 3];
        for (name, kernel, stored_as) in kernels.into_iter().filter(|(name, ..)| name.contains(&wanted)) {
            let times = time(&*kernel, &stored_as, n_rounds);
            row(name, batch, times);
            totals.iter_mut().zip(times).for_each(|(total, time)| *total += time);
        }
        if wanted.is_empty() {
            row("step", batch, totals);
        }
    }
}

fn row(name: &str, batch: usize, [f32, f16, bf16]: [f64; 3]) {
    let [f32_ms, f16_ms, bf16_ms] = [f32, f16, bf16].map(|seconds| seconds * 1e3);
    println!("{name:<40} {batch:>6} {f32_ms:>9.3} {f16_ms:>9.3} {:>6.2} {bf16_ms:>9.3} {:>6.2}", f16 / f32, bf16 / f32);
}

/// The kernels of a step of the network, except for the loss and the optimizer, which are in f32.
fn step(batch: usize) -> Vec<StepKernel> {
    let relu = Activation::relu();
    let layers = [("first", 28, 256), ("second", 256, 256), ("third", 256, 256), ("last", 256, 1)];
    let mut kernels: Vec<StepKernel> = Vec::new();
    let mut push = |name: &'static str, kernel: Matmul, stored_as: Vec<As>| {
        kernels.push((name, Box::new(move || Box::new(kernel.clone())), stored_as));
    };
    for (i, (_, n_in, n_out)) in layers.into_iter().enumerate() {
        let act = if n_out == 1 { Activation::identity() } else { relu.clone() };
        let forward = Matmul { n_batch: 1, m: batch, n: n_out, k: n_in, transpose: Transpose::B, epilogue: Epilogue::bias(&act) };
        let names = ["first layer", "second layer", "third layer", "last layer"];
        push(names[i], forward, vec![Half, Half, Full, Half]);
        let grad_weight = Matmul { n_batch: 1, m: n_out, n: n_in, k: batch, transpose: Transpose::A, epilogue: Epilogue::none() };
        let names = ["first layer's weights", "second layer's weights", "third layer's weights", "last layer's weights"];
        push(names[i], grad_weight, vec![Half, Half, Full]);
        if i > 0 {
            let grad_input = Matmul {
                n_batch: 1,
                m: batch,
                n: n_in,
                k: n_out,
                transpose: Transpose::None,
                epilogue: Epilogue::with_matrix(relu.grad_from_output().expect("it follows from the output")),
            };
            push(["", "second layer's input", "third layer's input", "last layer's input"][i], grad_input, vec![Half; 4]);
        }
    }
    for _ in 0..3 {
        let sum = MapReduce::of(Reducer::Sum, &[batch, 256], &[0]);
        kernels.push(("a hidden layer's bias", Box::new(move || Box::new(sum.clone())), vec![Half, Full]));
    }
    kernels
}

/// Convolutions of 3 x 3 with padding, and their gradients.
fn convolutions(batch: usize) -> Vec<StepKernel> {
    let names = [
        ["3 to 16 channels, 16 x 16", "weights of 3 to 16 channels", ""],
        ["16 to 16 channels, 16 x 16", "weights of 16 to 16 channels", "input of 16 to 16 channels"],
        ["32 to 32 channels, 8 x 8", "weights of 32 to 32 channels", "input of 32 to 32 channels"],
        ["64 to 64 channels, 16 x 16", "weights of 64 to 64 channels", "input of 64 to 64 channels"],
        ["128 to 256 channels, 8 x 8", "weights of 128 to 256 channels", "input of 128 to 256 channels"],
    ];
    let sizes = [(16, 3, 16), (16, 16, 16), (8, 32, 32), (16, 64, 64), (8, 128, 256)];
    let mut kernels: Vec<StepKernel> = Vec::new();
    for ([forward, grad_weight, grad_input], (side, n_channels, n_out)) in names.into_iter().zip(sizes) {
        let x = Images { n_images: batch, height: side, width: side, n_channels };
        let shape = ConvShape::dense(x, n_out, Window { kernel: [3, 3], stride: [1, 1], padding: [1, 1] });
        let epilogue = Epilogue::none;
        kernels.push((forward, Box::new(move || Box::new(Conv2d { shape, epilogue: epilogue() })), vec![Half; 3]));
        kernels.push((grad_weight, Box::new(move || Box::new(Conv2dGradWeight { shape })), vec![Half, Half, Full]));
        if n_channels > 3 {
            kernels.push((
                grad_input,
                Box::new(move || Box::new(Conv2dGradInput { shape, epilogue: epilogue() })),
                vec![Half; 3],
            ));
        }
    }
    kernels
}

/// Seconds in f32, f16 and bf16.
fn time(kernel: &dyn Fn() -> Box<dyn Kernel>, stored_as: &[As], n_rounds: usize) -> [f64; 3] {
    let mut forms = [DType::F32, DType::F16, DType::Bf16].map(|half| {
        let dtypes: Vec<DType> = stored_as.iter().map(|of| if matches!(of, Half) { half } else { DType::F32 }).collect();
        let kernel = stored(kernel(), &dtypes).unwrap_or_else(|error| panic!("{error}"));
        let buffers = buffers(&*kernel);
        (kernel, buffers)
    });
    let results = forms.each_mut().map(|(kernel, buffers)| {
        run(&**kernel, buffers);
        result(&**kernel, buffers)
    });
    let largest = results[0].iter().fold(0.0_f32, |largest, x| largest.max(x.abs()));
    for (half, allowed) in results[1..].iter().zip([0.002, 0.02]) {
        for (half, full) in half.iter().zip(&results[0]) {
            assert!((half - full).abs() <= allowed * largest, "{:?}: {half}, in f32 {full}", forms[0].0);
        }
    }
    let mut seconds = [const { Vec::new() }; 3];
    let start = Instant::now();
    run(&*forms[0].0, &mut forms[0].1);
    let n_runs = if n_rounds == 1 { 1 } else { ((0.004 / start.elapsed().as_secs_f64()) as usize).clamp(1, 1000) };
    for _ in 0..n_rounds {
        for ((kernel, buffers), seconds) in forms.iter_mut().zip(&mut seconds) {
            let start = Instant::now();
            for _ in 0..n_runs {
                run(&**kernel, buffers);
            }
            seconds.push(start.elapsed().as_secs_f64() / n_runs as f64);
        }
    }
    seconds.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    })
}

/// Words for a kernel's arguments: the same numbers around zero in each type.
fn buffers(kernel: &dyn Kernel) -> Vec<Vec<u32>> {
    let mut seed = 1_u32;
    let mut next = move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) as f32 / (1 << 24) as f32 - 0.5
    };
    let words = |arg: &Arg| -> Vec<u32> {
        let floats: Vec<f32> = (0..arg.len).map(|_| next()).collect();
        convert(DType::F32, arg.dtype, bytemuck::cast_slice(&floats), arg.len)
    };
    kernel.args().iter().map(words).collect()
}

/// The first argument that the kernel writes, in f32.
fn result(kernel: &dyn Kernel, buffers: &[Vec<u32>]) -> Vec<f32> {
    let args = kernel.args();
    let Some(i) = args.iter().position(|arg| arg.access == Access::Write) else { return vec![] };
    bytemuck::cast_slice(&convert(args[i].dtype, DType::F32, &buffers[i], args[i].len)).to_vec()
}

fn convert(from: DType, to: DType, words: &[u32], n: usize) -> Vec<u32> {
    if from == to {
        return words.to_vec();
    }
    let mut out = vec![0_u32; (n * to.size_bytes()).div_ceil(4)];
    let cast = Cast { n, from, to };
    let declared = cast.args();
    let mut args = TwinArgs::new(&declared);
    args.push_read(&bytemuck::cast_slice(words)[..n * from.size_bytes()]);
    args.push_write(&mut bytemuck::cast_slice_mut(&mut out)[..n * to.size_bytes()]);
    cast.twin(&mut args);
    out
}

fn run(kernel: &dyn Kernel, buffers: &mut [Vec<u32>]) {
    let declared = kernel.args();
    let mut args = TwinArgs::new(&declared);
    for (arg, buffer) in declared.iter().zip(buffers) {
        if arg.access.writes() {
            args.push_write(&mut bytemuck::cast_slice_mut(buffer)[..arg.len_bytes()]);
        } else {
            args.push_read(&bytemuck::cast_slice(buffer)[..arg.len_bytes()]);
        }
    }
    kernel.twin(&mut args);
}
