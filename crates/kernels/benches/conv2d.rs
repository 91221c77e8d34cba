//! Convolutions and their gradients on the twin, compared with PyTorch on the same number of threads.
//!
//! `BRISK_PYTHON=python cargo bench -p brisk-kernels --bench conv2d [-- --smoke]`
//!
//! Without `BRISK_PYTHON`, which names a Python with PyTorch, only brisk is timed. Each case is checked before it is timed, and
//! the two sides alternate, so that disturbances of the machine affect both. The data is warm. Backward is the gradients of
//! input, weights and bias.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use brisk_kernels::*;

/// How often each side of a comparison is timed.
const N_ROUNDS: usize = 15;

/// Name; images, height, width, channels; channels out, kernel, stride, padding.
type Case = (&'static str, [usize; 4], [usize; 4]);

const CASES: [Case; 12] = [
    ("2x2, 3 to 24 at 32x32", [500, 32, 32, 3], [24, 2, 1, 0]),
    ("3x3, 3 to 8 at 32x32", [500, 32, 32, 3], [8, 3, 1, 1]),
    ("3x3, 24 to 16 at 31x31", [500, 31, 31, 24], [16, 3, 1, 1]),
    ("3x3, 16 to 32 at 15x15", [500, 15, 15, 16], [32, 3, 1, 1]),
    ("3x3, 32 to 32 at 15x15", [500, 15, 15, 32], [32, 3, 1, 1]),
    ("3x3, 32 to 64 at 7x7", [500, 7, 7, 32], [64, 3, 1, 1]),
    ("3x3, 3 to 64 at 32x32", [64, 32, 32, 3], [64, 3, 1, 1]),
    ("3x3, 64 to 64 at 32x32", [64, 32, 32, 64], [64, 3, 1, 1]),
    ("3x3, 64 to 128 at 32x32, stride 2", [64, 32, 32, 64], [128, 3, 2, 1]),
    ("3x3, 256 to 256 at 8x8", [64, 8, 8, 256], [256, 3, 1, 1]),
    ("1x1, 64 to 256 at 16x16", [64, 16, 16, 64], [256, 1, 1, 0]),
    ("5x5, 24 to 48 at 16x16", [64, 16, 16, 24], [48, 5, 1, 2]),
];

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke");
    let n_rounds = if smoke { 1 } else { N_ROUNDS };
    let mut peer = if smoke { None } else { Peer::start() };
    let n_threads = rayon::current_num_threads();
    println!("cpu, {n_threads} threads, f32, warm; medians of {n_rounds} rounds; the ratio is PyTorch's time over ours");
    println!("{:<36} {:>9} {:>10} {:>12} {:>12} {:>6}", "case", "", "ms", "GFLOP/s", "PyTorch ms", "ratio");
    for (name, [n_images, height, width, n_channels], [n_out, kernel, stride, padding]) in CASES {
        let x = Images { n_images: if smoke { 2 } else { n_images }, height, width, n_channels };
        let window = Window { stride: [stride; 2], ..Window::square(kernel, padding) };
        let shape = ConvShape::dense(x, n_out, window);
        time(
            name,
            shape,
            [n_threads, x.n_images, height, width, n_channels, n_out, kernel, stride, padding],
            n_rounds,
            &mut peer,
        );
    }
}

fn time(name: &str, shape: ConvShape, sizes: [usize; 9], n_rounds: usize, peer: &mut Option<Peer>) {
    let forward = Conv2d { shape, epilogue: Epilogue::bias(&Activation::identity()) };
    let mut forward = Run::new(&forward);
    let grads: [&dyn Kernel; 3] = [
        &Conv2dGradInput { shape, epilogue: Epilogue::none() },
        &Conv2dGradWeight { shape },
        &MapReduce::of(Reducer::Sum, &[shape.y().n_pixels(), shape.n_out], &[0]),
    ];
    let mut grads = grads.map(Run::new);
    forward.run();
    grads.iter_mut().for_each(Run::run);
    check(&shape, &forward.buffers, &grads);

    let mut ms = [(); 4].map(|()| Vec::with_capacity(n_rounds));
    for _ in 0..n_rounds {
        ms[0].push(milliseconds(|| forward.run()));
        ms[1].push(milliseconds(|| grads.iter_mut().for_each(Run::run)));
        if let Some(peer) = peer {
            let [theirs, theirs_backward] = peer.milliseconds(&sizes);
            ms[2].push(theirs);
            ms[3].push(theirs_backward);
        }
    }
    let flops = Conv2dGradWeight { shape }.cost().flops as f64;
    for (direction, (i, flops)) in [("forward", (0, flops)), ("backward", (1, 2.0 * flops))] {
        let ours = median(&mut ms[i]);
        let (theirs, ratio) = match ms[i + 2].is_empty() {
            true => ("-".to_owned(), "-".to_owned()),
            false => {
                let theirs = median(&mut ms[i + 2]);
                (format!("{theirs:.2}"), format!("{:.2}", theirs / ours))
            }
        };
        println!("{name:<36} {direction:>9} {ours:>10.2} {:>12.1} {theirs:>12} {ratio:>6}", flops / ours / 1e6);
    }
}

/// A kernel with its own buffers.
struct Run<'a> {
    kernel: &'a dyn Kernel,
    args: Vec<Arg>,
    buffers: Vec<Vec<f32>>,
}

impl<'a> Run<'a> {
    /// Buffers filled with numbers in -1..1.
    fn new(kernel: &'a dyn Kernel) -> Self {
        let mut seed = 1_u32;
        let mut next = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as f32 / (1 << 23) as f32 - 1.0
        };
        let args = kernel.args();
        let buffers = args.iter().map(|arg| (0..arg.len).map(|_| next()).collect()).collect();
        Self { kernel, args, buffers }
    }

    fn run(&mut self) {
        let mut args = TwinArgs::new(&self.args);
        for (arg, buffer) in self.args.iter().zip(&mut self.buffers) {
            if arg.access.writes() {
                args.push_write(bytemuck::cast_slice_mut(buffer));
            } else {
                args.push_read(bytemuck::cast_slice(buffer));
            }
        }
        self.kernel.twin(&mut args);
    }
}

/// Compares some elements of each result with their sums by definition, and `grad_x` and `grad_weight` with `y` by the identity
/// below.
fn check(shape: &ConvShape, forward: &[Vec<f32>], grads: &[Run<'_>; 3]) {
    let (x, weight, bias, y) = (&forward[0], &forward[1], &forward[2], &forward[3]);
    let (out, window) = (shape.y(), shape.window);
    for at in (0..y.len()).step_by(y.len() / 97 + 1) {
        let (o, pixel) = (at % shape.n_out, at / shape.n_out);
        let (image, i, j) = (pixel / out.width / out.height, pixel / out.width % out.height, pixel % out.width);
        let mut sum = f64::from(bias[o]);
        for (u, v) in (0..window.kernel[0]).flat_map(|u| (0..window.kernel[1]).map(move |v| (u, v))) {
            let h = (i * window.stride[0] + u).checked_sub(window.padding[0]).filter(|&h| h < shape.x.height);
            let w = (j * window.stride[1] + v).checked_sub(window.padding[1]).filter(|&w| w < shape.x.width);
            let (Some(h), Some(w)) = (h, w) else { continue };
            for c in 0..shape.x.n_channels {
                let weight = weight[((o * window.kernel[0] + u) * window.kernel[1] + v) * shape.x.n_channels + c];
                sum +=
                    f64::from(weight) * f64::from(x[((image * shape.x.height + h) * shape.x.width + w) * shape.x.n_channels + c]);
            }
        }
        assert!((f64::from(y[at]) - sum).abs() < 1e-3, "{shape:?}: y[{at}] is {}, expected {sum}", y[at]);
    }
    // Σ grad_y conv(x, w) = Σ grad_x x = Σ grad_weight w, each gradient with the operands it was given.
    let dot = |a: &[f32], b: &[f32]| a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b)).sum::<f64>();
    for (run, of_weight) in [(&grads[0], false), (&grads[1], true)] {
        let (grad_y, given, result) = (&run.buffers[0], &run.buffers[1], &run.buffers[2]);
        let conv = Conv2d { shape: *shape, epilogue: Epilogue::none() };
        let mut conv = Run::new(&conv);
        conv.buffers[usize::from(!of_weight)].clone_from(given);
        conv.run();
        let other = &conv.buffers[usize::from(of_weight)];
        let (found, expected) = (dot(result, other), dot(grad_y, &conv.buffers[2]));
        let off = (found - expected).abs() / dot(grad_y, grad_y).sqrt() / dot(&conv.buffers[2], &conv.buffers[2]).sqrt();
        assert!(off < 1e-5, "{shape:?}: {:?} gives {found}, expected {expected}", run.kernel);
    }
}

fn milliseconds(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64() * 1e3
}

fn median(all: &mut [f64]) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}

/// PyTorch in a separate process, which waits for its turns.
struct Peer {
    process: Child,
    ask: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    /// `None` if `BRISK_PYTHON` is not set.
    fn start() -> Option<Self> {
        let python = std::env::var_os("BRISK_PYTHON")?;
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/conv2d.py");
        let process = Command::new(&python).arg(script).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut process = process.unwrap_or_else(|error| panic!("{}: {error}", python.display()));
        let (Some(ask), Some(answers)) = (process.stdin.take(), process.stdout.take()) else { unreachable!("both are piped") };
        Some(Self { process, ask, answers: BufReader::new(answers) })
    }

    /// The times of the forward and the backward pass.
    fn milliseconds(&mut self, sizes: &[usize]) -> [f64; 2] {
        let sizes: Vec<String> = sizes.iter().map(usize::to_string).collect();
        writeln!(self.ask, "{}", sizes.join(" ")).unwrap_or_else(|error| panic!("PyTorch's side is gone: {error}"));
        let mut answer = String::new();
        self.answers.read_line(&mut answer).unwrap_or_else(|error| panic!("PyTorch's side is gone: {error}"));
        let mut numbers = answer.split_whitespace().map(|number| number.parse().ok());
        match (numbers.next().flatten(), numbers.next().flatten()) {
            (Some(forward), Some(backward)) => [forward, backward],
            _ => panic!(
                "PyTorch's side says {answer:?}, expected two numbers; does {:?} have torch?",
                std::env::var_os("BRISK_PYTHON")
            ),
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // The process also ends when its input does; this is for one that hangs.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
