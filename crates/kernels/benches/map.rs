//! Elementwise expressions on the CPU executor, compared with a copy of the same number of elements.
//!
//! `cargo bench -p brisk-kernels --bench map [-- --smoke]`
//!
//! Each case is checked against single elements before it is timed, and timed in alternation with the copy, so that disturbances
//! of the machine affect both. The data does not fit in caches. `copy` is one input copied to the output by the same number of
//! threads; an operation with two inputs moves 1.5 times as many bytes.
#![expect(clippy::print_stdout, reason = "a benchmark prints")]

use std::time::Instant;

use brisk_kernels::expr::Expr;
use brisk_kernels::*;
use rayon::prelude::*;

/// Elements of each argument.
const N: usize = 16 << 20;
/// How often each side is timed.
const N_ROUNDS: usize = 21;

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke");
    let (n, n_rounds) = if smoke { (10_000, 1) } else { (N, N_ROUNDS) };
    println!("cpu, {} threads, f32, {n} elements; medians of {n_rounds} rounds, and the least", rayon::current_num_threads());
    println!("{:<10} {:>8} {:>8} {:>9} {:>9} {:>9} {:>6}", "case", "ms", "least", "GB/s", "copy ms", "least", "ratio");
    let mut bench = Bench::new(n, n_rounds);
    for (name, expr) in cases() {
        bench.time(name, &expr);
    }
}

fn cases() -> Vec<(&'static str, Expr)> {
    let (a, b) = (Expr::input(0), Expr::input(1));
    vec![
        ("add", &a + &b),
        ("mul", &a * &b),
        ("relu", a.relu()),
        ("exp", a.exp()),
        ("log", a.abs().log()),
        ("tanh", a.tanh()),
        ("sigmoid", a.sigmoid()),
        ("gelu", a.gelu()),
        ("silu", a.silu()),
        ("six", ((&a * 2.0 + 1.0).relu() - 0.25) * &a / 3.0),
        ("six, exp", ((&a * 0.5 + 1.0).exp() - 0.25) * (&a + 3.0)),
        ("six, two", ((&a * 2.0 + &b).relu() - 0.25) * &b / 3.0),
    ]
}

struct Bench {
    n_rounds: usize,
    inputs: [Vec<f32>; 2],
    y: Vec<f32>,
}

impl Bench {
    fn new(n: usize, n_rounds: usize) -> Self {
        let mut seed = 1_u32;
        let mut next = move || {
            seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (seed >> 8) as f32 / (1 << 22) as f32 - 2.0
        };
        let inputs = [0, 1].map(|_| (0..n).map(|_| next()).collect());
        Self { n_rounds, inputs, y: vec![0.0; n] }
    }

    fn time(&mut self, name: &str, expr: &Expr) {
        let Self { n_rounds, inputs, y } = self;
        let map = Map::flat(y.len(), expr.clone());
        let inputs = &inputs[..expr.n_inputs()];
        run(&map, inputs, y);
        for i in (0..y.len()).step_by(y.len() / 997) {
            let at: Vec<f32> = inputs.iter().map(|input| input[i]).collect();
            assert_eq!(y[i].to_bits(), expr.evaluate(&at).to_bits(), "{name}: element {i}");
        }
        let mut ms = [Vec::new(), Vec::new()];
        for _ in 0..*n_rounds {
            ms[0].push(ms_of(|| run(&map, inputs, y)));
            ms[1].push(ms_of(|| copy(&inputs[0], y)));
        }
        let [[ours, least], [copied, least_copied]] = ms.map(|mut ms| {
            ms.sort_by(f64::total_cmp);
            [ms[ms.len() / 2], ms[0]]
        });
        let rate = map.cost().bytes as f64 / ours / 1e6;
        println!("{name:<10} {ours:>8.2} {least:>8.2} {rate:>9.1} {copied:>9.2} {least_copied:>9.2} {:>6.2}", ours / copied);
    }
}

fn run(map: &Map, inputs: &[Vec<f32>], y: &mut [f32]) {
    let declared = map.args();
    let mut args = TwinArgs::new(&declared);
    inputs.iter().for_each(|input| args.push_read(bytemuck::cast_slice(input)));
    args.push_write(bytemuck::cast_slice_mut(y));
    map.twin(&mut args);
}

/// A copy of an input, by all threads.
fn copy(x: &[f32], y: &mut [f32]) {
    let len = x.len().div_ceil(rayon::current_num_threads());
    y.par_chunks_mut(len).zip(x.par_chunks(len)).for_each(|(y, x)| y.copy_from_slice(x));
}

fn ms_of(f: impl FnOnce()) -> f64 {
    let start = Instant::now();
    f();
    start.elapsed().as_secs_f64() * 1e3
}
