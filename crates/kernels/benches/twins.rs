//! The twins compared with what bounds them: plain calls of the `gemm` crate on the same number of threads, and a copy of the
//! same bytes.
//!
//! `cargo bench -p brisk-kernels --bench twins [-- --smoke]`
//!
//! Each case is checked before it is timed, and timed in alternation with its bound, so that disturbances of the machine affect
//! both. The data is warm.
#![expect(clippy::print_stdout, unsafe_code, reason = "a benchmark prints, and `gemm` takes raw pointers")]

use std::time::Instant;

use brisk_kernels::*;
use rayon::prelude::*;

/// How often each side of a comparison is timed.
const N_ROUNDS: usize = 15;

/// A matrix product of a layer: its name, and the kernel at a batch size.
type Product = (&'static str, fn(usize) -> Matmul);

const PRODUCTS: [Product; 7] = [
    ("first layer, forward", |batch| forward(batch, 256, 28)),
    ("hidden layer, forward", |batch| forward(batch, 256, 256)),
    ("last layer, forward", |batch| forward(batch, 1, 256)),
    ("hidden layer, gradient of the input", |batch| grad_input(batch, 256, 256)),
    ("last layer, gradient of the input", |batch| grad_input(batch, 256, 1)),
    ("hidden layer, gradient of the weights", |batch| grad_weights(batch, 256, 256)),
    ("last layer, gradient of the weights", |batch| grad_weights(batch, 256, 1)),
];

fn forward(batch: usize, n_out: usize, n_in: usize) -> Matmul {
    Matmul { n_batch: 1, m: batch, n: n_out, k: n_in, transpose: Transpose::B, epilogue: Epilogue::bias(&Activation::relu()) }
}

fn grad_input(batch: usize, n_in: usize, n_out: usize) -> Matmul {
    Matmul {
        n_batch: 1,
        m: batch,
        n: n_in,
        k: n_out,
        transpose: Transpose::None,
        epilogue: Epilogue::with_matrix(Activation::relu().grad_from_output().expect("it follows from the output")),
    }
}

fn grad_weights(batch: usize, n_in: usize, n_out: usize) -> Matmul {
    Matmul { n_batch: 1, m: n_out, n: n_in, k: batch, transpose: Transpose::A, epilogue: Epilogue::none() }
}

fn main() {
    let smoke = std::env::args().any(|arg| arg == "--smoke");
    let batches: &[usize] = if smoke { &[32] } else { &[1024, 8192] };
    let n_rounds = if smoke { 1 } else { N_ROUNDS };
    println!("cpu, {} threads, f32, warm; medians of {n_rounds} rounds", rayon::current_num_threads());
    println!("{:<40} {:>6} {:>9} {:>16} {:>16} {:>6}", "case", "batch", "ms", "ours", "bound", "ratio");
    for &batch in batches {
        for (name, product) in PRODUCTS {
            time_product(name, batch, &product(batch), n_rounds);
        }
        let columns = MapReduce::of(Reducer::Sum, &[batch, 256], &[0]);
        time_moves("column_sum of 256 columns", batch, &columns, n_rounds);
        let rows = GatherRows { dtype: DType::F32, first_row: 0, n_table_rows: 100_000, n_cols: 28, n: batch };
        time_moves("gather_rows of 28 columns", batch, &rows, n_rounds);
        let celu = Map::unary(batch * 256, |x| x.celu(1.0));
        time_moves("activate, celu of 256 columns", batch, &celu, n_rounds);
        for n_cols in [10, 256] {
            let softmax = Softmax { n_rows: batch, n_cols, form: SoftmaxForm::Probability };
            time_moves(&format!("softmax of {n_cols} columns"), batch, &softmax, n_rounds);
            time_moves(&format!("cross_entropy of {n_cols} columns"), batch, &CrossEntropy::new(batch, n_cols), n_rounds);
            let layer_norm = LayerNorm { n_rows: batch, n_cols, eps: 1e-5, affine: Affine::WeightAndBias };
            time_moves(&format!("layer_norm of {n_cols} columns"), batch, &layer_norm, n_rounds);
            time_moves(
                &format!("sum of {n_cols} columns"),
                batch,
                &MapReduce::of(Reducer::Sum, &[batch * n_cols], &[0]),
                n_rounds,
            );
        }
        time_moves(
            "bce_with_logits",
            batch,
            &BceWithLogits { n: batch, reduction: Reduction::Mean, pos_weight: 1.0 }.loss(),
            n_rounds,
        );
    }
}

/// Buffers for a kernel's arguments, filled with numbers in 0..1 or with rows below 100 000.
fn buffers(kernel: &dyn Kernel) -> Vec<Vec<f32>> {
    let mut seed = 1_u32;
    let mut next = move || {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        seed >> 8
    };
    let value = |arg: &Arg, random: u32| match (arg.dtype, arg.name) {
        (DType::U32, "rows") => f32::from_bits(random % 100_000),
        (DType::U32, _) => f32::from_bits(0),
        _ => random as f32 / (1 << 24) as f32,
    };
    kernel.args().iter().map(|arg| (0..arg.len).map(|_| value(arg, next())).collect()).collect()
}

fn run(kernel: &dyn Kernel, buffers: &mut [Vec<f32>]) {
    let declared = kernel.args();
    let mut args = TwinArgs::new(&declared);
    for (arg, buffer) in declared.iter().zip(buffers) {
        if arg.access.writes() {
            args.push_write(bytemuck::cast_slice_mut(buffer));
        } else {
            args.push_read(bytemuck::cast_slice(buffer));
        }
    }
    kernel.twin(&mut args);
}

/// Median seconds of each of two sides, timed in alternation, each repeated for about two milliseconds.
fn time_both(n_rounds: usize, mut ours: impl FnMut(), mut bound: impl FnMut()) -> [f64; 2] {
    let mut seconds = [Vec::new(), Vec::new()];
    ours();
    let once = seconds_of(1, &mut ours);
    let n_runs = if n_rounds == 1 { 1 } else { ((0.004 / once) as usize).clamp(1, 1000) };
    for _ in 0..n_rounds {
        seconds[0].push(seconds_of(n_runs, &mut ours));
        seconds[1].push(seconds_of(n_runs, &mut bound));
    }
    seconds.map(|mut all| {
        all.sort_by(f64::total_cmp);
        all[all.len() / 2]
    })
}

fn seconds_of(n_runs: usize, f: &mut impl FnMut()) -> f64 {
    let start = Instant::now();
    for _ in 0..n_runs {
        f();
    }
    start.elapsed().as_secs_f64() / n_runs as f64
}

fn time_product(name: &str, batch: usize, matmul: &Matmul, n_rounds: usize) {
    let mut held = buffers(matmul);
    let (a, b) = (held[0].clone(), held[1].clone());
    let mut y = vec![0.0; matmul.m * matmul.n];
    check(matmul, &held, &mut y, &a, &b);
    let [ours, bound] = time_both(n_rounds, || run(matmul, &mut held), || gemm(matmul, &a, &b, &mut y));
    let gflops = |seconds: f64| matmul.cost().flops as f64 / seconds / 1e9;
    println!(
        "{name:<40} {batch:>6} {:>9.4} {:>9.1} GFLOP/s {:>9.1} GFLOP/s {:>6.2}",
        ours * 1e3,
        gflops(ours),
        gflops(bound),
        bound / ours
    );
}

/// The product without its epilogue equals plain `gemm`.
fn check(matmul: &Matmul, held: &[Vec<f32>], y: &mut [f32], a: &[f32], b: &[f32]) {
    let bare = Matmul { epilogue: Epilogue::none(), ..*matmul };
    let mut buffers = buffers(&bare);
    buffers[..2].clone_from_slice(&held[..2]);
    run(&bare, &mut buffers);
    gemm(matmul, a, b, y);
    for (ours, plain) in buffers[2].iter().zip(&*y) {
        assert!((ours - plain).abs() <= 1e-4 * plain.abs() + 1e-4, "{matmul:?}: {ours}, gemm says {plain}");
    }
}

/// The `gemm` crate, called as its public interface does, by each thread for its share of the rows. Results are row-major and
/// `gemm` prefers column-major, so it computes `yᵀ = bᵀ aᵀ`.
fn gemm(matmul: &Matmul, a: &[f32], b: &[f32], y: &mut [f32]) {
    let Matmul { m, n, k, transpose, .. } = *matmul;
    let (a_row, a_col) = if transpose.a() { (1, m) } else { (k, 1) };
    let (b_row, b_col) = if transpose.b() { (1, k) } else { (n, 1) };
    let n_rows = m.div_ceil(rayon::current_num_threads());
    y.par_chunks_mut(n_rows * n).enumerate().for_each(|(share, y)| {
        // SAFETY: this thread's share has `y.len() / n` rows, and the slices hold `m x k` and `k x n` elements at these strides.
        unsafe {
            gemm_f32::gemm::f32::get_gemm_fn()(
                n,
                y.len() / n,
                k,
                y.as_mut_ptr(),
                n as isize,
                1,
                false,
                b.as_ptr(),
                b_row as isize,
                b_col as isize,
                a[share * n_rows * a_row..].as_ptr(),
                a_row as isize,
                a_col as isize,
                0.0,
                1.0,
                false,
                false,
                false,
                gemm_common::Parallelism::None,
            );
        }
    });
}

fn time_moves(name: &str, batch: usize, kernel: &dyn Kernel, n_rounds: usize) {
    let mut held = buffers(kernel);
    let bytes = kernel.cost().bytes as usize;
    // A copy reads and writes: half the bytes each.
    let (from, mut to) = (vec![1_u8; bytes / 2], vec![0_u8; bytes / 2]);
    let [ours, bound] = time_both(n_rounds, || run(kernel, &mut held), || to.copy_from_slice(std::hint::black_box(&from)));
    let rate = |seconds: f64| bytes as f64 / seconds / 1e9;
    println!(
        "{name:<40} {batch:>6} {:>9.4} {:>9.2} GB/s    {:>9.2} GB/s    {:>6.2}",
        ours * 1e3,
        rate(ours),
        rate(bound),
        bound / ours
    );
}
