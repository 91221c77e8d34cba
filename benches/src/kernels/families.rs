//! Kernels on an adapter, by family: those that move data compared with the adapter's copies, products and convolutions with its
//! arithmetic.

use anyhow::Result;
use brisk_program::kernels::expr::Expr;
use brisk_program::kernels::*;
use brisk_program::{Device, DeviceKind};

use super::case::Case;
use super::limits::{Copies, MultiplyAdd};
use super::turns::Turns;
use crate::options::{Options, Scale};
use crate::row::{Better, Row, Table};

/// Target shares of the adapter's maximum, on hardware.
const OF_COPIES: f64 = 0.8;
const OF_ARITHMETIC: f64 = 0.6;
const N_COLS: usize = 256;

/// The amount of work that keeps an adapter busy.
struct Sizes {
    /// Rows of [`N_COLS`] that kernels process: larger than caches, on hardware.
    n_rows: usize,
    /// Rows and columns of a product.
    square: usize,
    /// Images of 32 x 32.
    n_images: usize,
    /// Workgroups of a measurement of arithmetic.
    n_groups: usize,
}

impl Sizes {
    fn of(options: &Options) -> Self {
        match (options.scale, options.device.info().kind) {
            (Scale::Smoke, _) => Self { n_rows: 3, square: 40, n_images: 1, n_groups: 1 },
            (Scale::Full, DeviceKind::Gpu) => Self { n_rows: 1 << 17, square: 4096, n_images: 512, n_groups: 1 << 14 },
            (Scale::Full, _) => Self { n_rows: 1 << 13, square: 1024, n_images: 8, n_groups: 1 << 8 },
        }
    }
}

pub(super) fn run(options: &Options) -> Result<Table> {
    let sizes = Sizes::of(options);
    let bench = Bench { device: &options.device, turns: Turns::of(options), sizes: &sizes };
    let mut rows = bench.moves()?;
    rows.extend(bench.products()?);
    Ok(Table { device: options.device.info().clone(), rows })
}

struct Bench<'a> {
    device: &'a Device,
    turns: Turns,
    sizes: &'a Sizes,
}

impl Bench<'_> {
    fn moves(&self) -> Result<Vec<Row>> {
        let (n_rows, n_cols) = (self.sizes.n_rows, N_COLS);
        let n = n_rows * n_cols;
        let [x, dy, scale] = [0, 1, 2].map(Expr::input);
        let softmax = Softmax { n_rows, n_cols, form: SoftmaxForm::Probability };
        let layer_norm = LayerNorm { n_rows, n_cols, eps: 1e-5, affine: Affine::WeightAndBias };
        let shape = BatchNormShape { n_rows, n_channels: n_cols, n_groups: 1 };
        let images = Images { n_images: n_rows.div_ceil(4), height: 8, width: 8, n_channels: 16 };
        let pool = PoolShape { x: images, window: Window { stride: [2; 2], ..Window::square(2, 0) }, rounding: Rounding::Down };
        Ok(vec![
            self.moved("add", Map::binary(n, |a, b| a + b))?,
            self.moved("activate, relu", Map::unary(n, |x| x.relu()))?,
            self.moved("activate, gelu", Map::unary(n, |x| x.gelu()))?,
            self.moved("gradient of relu by its output", Map::flat(n, x.le(0.0).select(0.0, &dy)))?,
            self.moved("add, relu and multiply, fused", Map::flat(n, (x + dy).relu() * scale))?,
            self.moved("dropout", Map::dropout(n, 0.1, Draws::default()))?,
            self.moved("sum of all", MapReduce::of(Reducer::Sum, &[n], &[0]))?,
            self.moved("sum of columns", MapReduce::of(Reducer::Sum, &[n_rows, n_cols], &[0]))?,
            self.moved("softmax", softmax)?,
            self.moved("softmax, gradient", SoftmaxGrad { forward: softmax })?,
            self.moved("cross-entropy", CrossEntropy::new(n_rows, n_cols))?,
            self.moved("layer norm", layer_norm)?,
            self.moved("layer norm, gradient", LayerNormGrad { forward: layer_norm })?,
            self.moved("batch norm, statistics", BatchNormStats { shape, n_weights: 0, eps: 1e-5, momentum: 0.1 })?,
            self.moved("batch norm", shape.normalise(&Activation::identity()))?,
            self.moved("batch norm, gradient", shape.grad_x())?,
            self.moved("max pool 2x2", MaxPool2d { shape: pool })?,
            self.moved("sgd", brisk_nn::Sgd::kernel(n))?,
            self.moved("adam", brisk_nn::Adam::kernel(n))?,
        ])
    }

    fn products(&self) -> Result<Vec<Row>> {
        let Sizes { square: n, n_images, .. } = *self.sizes;
        let product = |m, n, k, transpose| Matmul { n_batch: 1, m, n, k, transpose, epilogue: Epilogue::none() };
        let x = Images { n_images, height: 32, width: 32, n_channels: 64 };
        let shape = ConvShape::dense(x, 64, Window::square(3, 1));
        let square = product(n, n, n, Transpose::None);
        let conv = Conv2d { shape, epilogue: Epilogue::none() };
        let mut rows = vec![
            self.multiplied(&format!("product, {n} x {n} x {n}"), square.clone(), DType::F32)?,
            self.multiplied("product, hidden layer, batch 1024", product(1024.min(n), 256, 256, Transpose::B), DType::F32)?,
            self.multiplied("product, gradient of its weights", product(256, 256, 1024.min(n), Transpose::A), DType::F32)?,
            self.multiplied("convolution 3x3, 64 to 64", conv.clone(), DType::F32)?,
            self.multiplied(
                "convolution, gradient of its input",
                Conv2dGradInput { shape, epilogue: Epilogue::none() },
                DType::F32,
            )?,
            self.multiplied("convolution, gradient of its weights", Conv2dGradWeight { shape }, DType::F32)?,
        ];
        for (dtype, name) in [(DType::F16, "f16"), (DType::Bf16, "bf16")] {
            rows.push(self.multiplied(&format!("product, {n} x {n} x {n}, {name}"), square.clone(), dtype)?);
            rows.push(self.multiplied(&format!("convolution 3x3, 64 to 64, {name}"), conv.clone(), dtype)?);
        }
        Ok(rows)
    }

    /// A kernel that moves data, compared with a copy of the same number of bytes.
    fn moved(&self, name: &str, kernel: impl Kernel) -> Result<Row> {
        let case = Case::new(self.device, kernel, &self.turns)?;
        let copies = Copies::new(self.device, case.cost.bytes, &self.turns)?;
        let [ours, limit] = self.turns.take([&mut || case.bytes_per_s(), &mut || copies.bytes_per_s()])?;
        Ok(self.row(name, ours, "B/s", ("limit:memcpy, the adapter's", limit), OF_COPIES))
    }

    /// A kernel that multiplies, compared with independent multiply-adds.
    fn multiplied(&self, name: &str, kernel: impl Kernel, dtype: DType) -> Result<Row> {
        let case = match dtype {
            DType::F32 => Case::new(self.device, kernel, &self.turns)?,
            dtype => Case::stored(self.device, kernel, dtype, &self.turns)?,
        };
        let limit = Case::new(self.device, MultiplyAdd { n_groups: self.sizes.n_groups }, &self.turns)?;
        let [ours, limit] = self.turns.take([&mut || case.flops_per_s(), &mut || limit.flops_per_s()])?;
        Ok(self.row(name, ours, "FLOP/s", ("limit:flops, multiply-adds in f32", limit), OF_ARITHMETIC))
    }

    /// The target for a hardware adapter; a software adapter only checks that the shaders run.
    fn row(&self, case: &str, ours: Vec<f64>, unit: &'static str, limit: (&str, Vec<f64>), target: f64) -> Row {
        Row {
            suite: "kernels",
            case: format!("WGSL, {case}"),
            ours,
            unit,
            reference: Some((limit.0.to_owned(), limit.1)),
            target: (self.device.info().kind == DeviceKind::Gpu).then_some(target),
            better: Better::More,
        }
    }
}
