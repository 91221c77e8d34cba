//! Twins on the CPU executor: matrix products compared with the `gemm` crate and with what the processor multiplies in registers,
//! kernels that move data with a copy of the same number of bytes.

use std::hint::black_box;

use anyhow::{Result, ensure};
use brisk_program::Device;
use brisk_program::kernels::*;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::case::Case;
use super::gemm::gemm;
use super::peak::Peak;
use super::turns::{Turns, seconds};
use crate::options::{Options, Scale};
use crate::row::{Better, Row, Table};

pub(super) fn run(options: &Options) -> Result<Table> {
    let device = Device::cpu()?;
    // As many threads as the device has, which is also the default of PyTorch and `gemm`.
    let bench = Bench { pool: ThreadPoolBuilder::new().build()?, turns: Turns::of(options), device };
    let size = |full: usize, smoke| if options.scale == Scale::Smoke { smoke } else { full };
    let (square, batch) = (size(1024, 40), size(1024, 40));
    let mut rows = Vec::new();
    for (name, matmul) in products(square, batch) {
        rows.push(bench.product(name, matmul)?);
    }
    let large = product(size(8192, 40), 256, 256, Transpose::B);
    for (name, matmul) in [("square", product(square, square, square, Transpose::None)), ("hidden layer", large)] {
        rows.extend(bench.limited(name, &matmul, DType::F32, Peak::of_f32())?);
        rows.extend(bench.limited(name, &matmul, DType::Bf16, Peak::of_bf16())?);
    }
    // The activations of a layer of 256 at batch 8192.
    let (n_rows, n_cols) = (size(8192, 40), 256);
    let n = n_rows * n_cols;
    let layer_norm = LayerNorm { n_rows, n_cols, eps: 1e-5, affine: Affine::WeightAndBias };
    let batch_norm = BatchNormShape { n_rows, n_channels: n_cols, n_groups: 1 };
    rows.push(bench.move_bytes("add", Map::binary(n, |a, b| a + b))?);
    rows.push(bench.move_bytes("activate, relu", Map::unary(n, |x| x.relu()))?);
    rows.push(bench.move_bytes("activate, gelu", Map::unary(n, |x| x.gelu()))?);
    rows.push(bench.move_bytes("sum of all", MapReduce::of(Reducer::Sum, &[n], &[0]))?);
    rows.push(bench.move_bytes("sum of columns", MapReduce::of(Reducer::Sum, &[n_rows, n_cols], &[0]))?);
    rows.push(bench.move_bytes("softmax", Softmax { n_rows, n_cols, form: SoftmaxForm::Probability })?);
    rows.push(bench.move_bytes("layer norm", layer_norm)?);
    rows.push(
        bench
            .move_bytes("batch norm, statistics", BatchNormStats { shape: batch_norm, n_weights: 0, eps: 1e-5, momentum: 0.1 })?,
    );
    rows.push(bench.move_bytes("batch norm", batch_norm.normalise(&Activation::identity()))?);
    rows.push(bench.move_bytes("adam", brisk_nn::Adam::kernel(n))?);
    Ok(Table { device: bench.device.info().clone(), rows })
}

fn product(m: usize, n: usize, k: usize, transpose: Transpose) -> Matmul {
    Matmul { n_batch: 1, m, n, k, transpose, epilogue: Epilogue::none() }
}

/// The square product, and those of 28-256-256-256-1.
fn products(square: usize, batch: usize) -> [(&'static str, Matmul); 8] {
    [
        ("square", product(square, square, square, Transpose::None)),
        ("first layer", product(batch, 256, 28, Transpose::B)),
        ("hidden layer", product(batch, 256, 256, Transpose::B)),
        ("last layer", product(batch, 1, 256, Transpose::B)),
        ("hidden layer, gradient of the input", product(batch, 256, 256, Transpose::None)),
        ("hidden layer, gradient of the weights", product(256, 256, batch, Transpose::A)),
        ("first layer, gradient of the weights", product(256, 28, batch, Transpose::A)),
        ("last layer, gradient of the weights", product(1, 256, batch, Transpose::A)),
    ]
}

struct Bench {
    device: Device,
    pool: ThreadPool,
    turns: Turns,
}

impl Bench {
    fn product(&self, name: &str, matmul: Matmul) -> Result<Row> {
        let case = Case::new(&self.device, matmul.clone(), &self.turns)?;
        let (a, b, ours) = (case.read("a")?, case.read("b")?, case.read("y")?);
        let mut theirs = vec![0.0; ours.len()];
        self.pool.install(|| gemm(&matmul, &a, &b, &mut theirs));
        check(&matmul, &a, &b, &ours)?;
        check(&matmul, &a, &b, &theirs)?;

        let n_runs = self.turns.n_runs(case.seconds()?);
        let [ours, theirs] = self.turns.take([&mut || case.flops_per_s(), &mut || {
            let theirs = seconds(n_runs, || {
                self.pool.install(|| (0..n_runs).for_each(|_| gemm(&matmul, &a, &b, &mut theirs)));
                Ok(())
            });
            Ok(case.cost.flops as f64 / theirs?)
        }])?;
        let Matmul { m, n, k, .. } = matmul;
        Ok(Row {
            suite: "kernels",
            case: format!("twin, {name}, {m} x {n} x {k}"),
            ours,
            unit: "FLOP/s",
            reference: Some(("limit:flops, the gemm crate".to_owned(), theirs)),
            target: Some(0.9),
            better: Better::More,
        })
    }

    /// A product whose operands and result are stored in `dtype`, compared with the processor's instructions for it, if it has
    /// some.
    fn limited(&self, name: &str, matmul: &Matmul, dtype: DType, peak: Option<Peak>) -> Result<Option<Row>> {
        let Some(peak) = peak else { return Ok(None) };
        let case = Case::stored(&self.device, matmul.clone(), dtype, &self.turns)?;
        let n_runs = peak.n_runs(&self.pool, &self.turns)?;
        let [ours, limit] = self.turns.take([&mut || case.flops_per_s(), &mut || peak.flops_per_s(&self.pool, n_runs)])?;
        let &Matmul { m, n, k, .. } = matmul;
        Ok(Some(Row {
            suite: "kernels",
            case: format!("twin, {name}, {m} x {n} x {k}, {dtype}"),
            ours,
            unit: "FLOP/s",
            reference: Some((format!("limit:flops, {} in registers", peak.name), limit)),
            target: Some(0.85),
            better: Better::More,
        }))
    }

    fn move_bytes(&self, name: &str, kernel: impl Kernel) -> Result<Row> {
        let case = Case::new(&self.device, kernel, &self.turns)?;
        // A copy reads and writes: half of the bytes each.
        let n_half = case.cost.bytes as usize / 2;
        let (from, mut to) = (vec![1_u8; n_half], vec![0_u8; n_half]);
        let n_runs = self.turns.n_runs(case.seconds()?);
        let share = n_half.div_ceil(self.pool.current_num_threads());
        let mut copy = || {
            let (to, from) = (black_box(&mut to).par_chunks_mut(share), black_box(&from).par_chunks(share));
            to.zip(from).for_each(|(to, from)| to.copy_from_slice(from));
        };
        let [ours, copied] = self.turns.take([&mut || case.bytes_per_s(), &mut || {
            let copied = seconds(n_runs, || {
                self.pool.install(|| (0..n_runs).for_each(|_| copy()));
                Ok(())
            });
            Ok(case.cost.bytes as f64 / copied?)
        }])?;
        Ok(Row {
            suite: "kernels",
            case: format!("twin, {name}"),
            ours,
            unit: "B/s",
            reference: Some(("limit:memcpy".to_owned(), copied)),
            target: None,
            better: Better::More,
        })
    }
}

/// Checks some elements of a product against their definition, in `f64`.
fn check(matmul: &Matmul, a: &[f32], b: &[f32], y: &[f32]) -> Result<()> {
    let Matmul { m, n, k, transpose, .. } = *matmul;
    for at in (0..m * n).step_by((m * n).div_ceil(97)) {
        let (i, j) = (at / n, at % n);
        let term = |l: usize| {
            let a = if transpose.a() { a[l * m + i] } else { a[i * k + l] };
            let b = if transpose.b() { b[j * k + l] } else { b[l * n + j] };
            f64::from(a) * f64::from(b)
        };
        let (found, expected) = (f64::from(y[at]), (0..k).map(term).sum::<f64>());
        ensure!(
            (found - expected).abs() <= 1e-5 * k as f64,
            "{matmul:?}: y[{at}] is {found}, expected {expected}: there is nothing to time"
        );
    }
    Ok(())
}
