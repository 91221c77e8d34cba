use super::layer_norm_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::expr::Expr;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::interval::{Interval, check_settings};
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::map::map_input::MapInput;
use crate::reduce::map_reduce::MapReduce;
use crate::reduce::reduce_op::Reducer;
use crate::reduce::row_dispatch::row_dispatch;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// Normalises each row: `y[r,c] = (x[r,c] - mean_r) / √(var_r + ε) · weight[c] + bias[c]`, where the variance is the biased one,
/// over all `n_cols` values.
///
/// # Shapes
/// `x`, `y`: `[n_rows, n_cols]`, row-major; `weight`, `bias`, if [`affine`](Self::affine) has them: `[n_cols]`;
/// `stats`: `[n_rows, 2]`, the mean and `1 / √(var + ε)` of each row, which the gradients need.
/// # Dtypes
/// f32. The mean is subtracted before squares are summed.
/// # Reference
/// Ba, Kiros & Hinton 2016, arXiv:1607.06450; `torch.nn.functional.layer_norm` over the last dimension.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerNorm {
    /// Rows.
    pub n_rows: usize,
    /// Columns, over which the statistics of a row are computed.
    pub n_cols: usize,
    /// ε, added to the variance.
    pub eps: f32,
    /// The operation on the normalised values.
    pub affine: Affine,
}

/// The operation of a normalisation on its normalised values; each weight or bias is a further argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Affine {
    /// Nothing.
    None,
    /// Multiplies by a weight for each column.
    Weight,
    /// Multiplies by a weight for each column and adds a bias for each.
    #[default]
    WeightAndBias,
}

impl Affine {
    const fn has_weight(self) -> bool {
        !matches!(self, Self::None)
    }

    const fn has_bias(self) -> bool {
        matches!(self, Self::WeightAndBias)
    }
}

impl LayerNorm {
    /// The kernel of the gradient of the weight: `grad_weight[c] = Σ_r grad_y[r,c] x̂[r,c]`. That of the bias is the sum of each
    /// column of `grad_y`.
    ///
    /// # Shapes
    /// Its arguments are `grad_y` and `x`, `[n_rows, n_cols]`; `stats` twice, `[n_rows, 2]`, as this kernel wrote it; and
    /// `grad_weight`, `[n_cols]`.
    /// # Dtypes
    /// f32.
    pub fn weight_grad(&self) -> MapReduce {
        let (rows, elements) = ([self.n_rows, 1], [self.n_rows, self.n_cols]);
        let statistic =
            |offset| MapInput { strides: vec![2, 1], offset, len: 2 * self.n_rows, ..MapInput::new(&rows, DType::F32) };
        let [grad_y, x, mean, inv_std] = [0, 1, 2, 3].map(Expr::input);
        MapReduce {
            inputs: vec![MapInput::new(&elements, DType::F32), MapInput::new(&elements, DType::F32), statistic(0), statistic(1)],
            exprs: vec![grad_y * ((x - mean) * inv_std)],
            ..MapReduce::of(Reducer::Sum, &elements, &[0])
        }
    }

    fn n(&self) -> usize {
        self.n_rows.saturating_mul(self.n_cols)
    }

    fn check_of(&self, kernel: &impl Kernel) -> Result<(), Error> {
        check_settings(kernel, &[("eps", self.eps, Interval::NonNegative)])?;
        check_sizes(kernel, &[("n_rows", self.n_rows), ("n_cols", self.n_cols)])
    }

    fn constants(&self) -> [(&'static str, f64); 2] {
        let flag = |is: bool| f64::from(u8::from(is));
        [("HAS_WEIGHT", flag(self.affine.has_weight())), ("HAS_BIAS", flag(self.affine.has_bias()))]
    }
}

impl Kernel for LayerNorm {
    fn signature(&self) -> Signature {
        let mut args = vec![Arg::read("x", DType::F32, self.n())];
        args.extend(self.affine.has_weight().then(|| Arg::read("weight", DType::F32, self.n_cols)));
        args.extend(self.affine.has_bias().then(|| Arg::read("bias", DType::F32, self.n_cols)));
        args.extend([Arg::write("y", DType::F32, self.n()), Arg::write("stats", DType::F32, [self.n_rows, 2])]);
        Signature::new("layer_norm", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.check_of(self)
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        // A binding that is not used must be filled as well.
        let (weight, bias) = match self.affine {
            Affine::None => ("x", "x"),
            Affine::Weight => ("weight", "x"),
            Affine::WeightAndBias => ("weight", "bias"),
        };
        let module = module!("layer_norm.wgsl", "../reduce/join_group.wgsl", "../reduce/join_sums.wgsl");
        let dispatch = row_dispatch(self, "kernels.layer_norm", module, adapter, [self.n_rows, self.n_cols])?;
        let dispatch = dispatch.constants(self.constants()).param("eps", self.eps);
        let reads = [Binding::of("x"), Binding::of(weight).named("weight"), Binding::of(bias).named("bias")];
        let writes = [Binding::of("y"), Binding::of("stats").elements("vec2f")];
        Ok(vec![dispatch.bind(&self.args(), reads, writes)?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let weight = self.affine.has_weight().then(|| args.read("weight"));
        let bias = self.affine.has_bias().then(|| args.read("bias"));
        layer_norm_cpu::run(self, args.read("x"), weight, bias, args.write("y"), args.write("stats"));
    }

    fn cost(&self) -> Cost {
        let n = self.n() as u64;
        Cost { flops: 8 * n, bytes: 8 * n + 8 * self.n_rows as u64 }
    }
}

/// The gradient of [`LayerNorm`] with respect to `x`: with `x̂ = (x - mean) s`, `s = 1 / √(var + ε)` and `g = grad_y · weight`,
/// `grad_x = s (g - mean_c g - x̂ mean_c (g x̂))`.
///
/// # Shapes
/// `grad_y`, `x`, `grad_x`: `[n_rows, n_cols]`; `weight`, if the forward kernel has one: `[n_cols]`; `stats`: `[n_rows, 2]`, as
/// the forward kernel wrote it.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LayerNormGrad {
    /// The forward kernel.
    pub forward: LayerNorm,
}

impl Kernel for LayerNormGrad {
    fn signature(&self) -> Signature {
        let LayerNorm { n_rows, n_cols, affine, .. } = self.forward;
        let n = self.forward.n();
        let mut args = vec![Arg::read("grad_y", DType::F32, n), Arg::read("x", DType::F32, n)];
        args.extend(affine.has_weight().then(|| Arg::read("weight", DType::F32, n_cols)));
        args.extend([Arg::read("stats", DType::F32, [n_rows, 2]), Arg::write("grad_x", DType::F32, n)]);
        Signature::new("layer_norm_grad", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.forward.check_of(self)
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let LayerNorm { n_rows, n_cols, affine, .. } = self.forward;
        let weight = if affine.has_weight() { "weight" } else { "stats" };
        let module = module!(
            "layer_norm_grad.wgsl",
            "../reduce/row_entries.wgsl",
            "../reduce/join_group.wgsl",
            "../reduce/join_sums.wgsl"
        );
        let dispatch = row_dispatch(self, "kernels.layer_norm_grad", module, adapter, [n_rows, n_cols])?
            .constants([self.forward.constants()[0]])
            .param("eps", self.forward.eps);
        let reads = [Binding::of("grad_y"), Binding::of("x"), Binding::of(weight).named("weight"), Binding::of("stats")];
        Ok(vec![dispatch.bind(&self.args(), reads, ["grad_x"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (grad_y, x, stats) = (args.read("grad_y"), args.read("x"), args.read("stats"));
        let weight = self.forward.affine.has_weight().then(|| args.read("weight"));
        layer_norm_cpu::grad(&self.forward, grad_y, x, weight, stats, args.write("grad_x"));
    }

    fn cost(&self) -> Cost {
        let n = self.forward.n() as u64;
        Cost { flops: 12 * n, bytes: 12 * n + 8 * self.forward.n_rows as u64 }
    }
}
