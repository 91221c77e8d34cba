use super::cross_entropy_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::{Access, Arg};
use crate::dtype::DType;
use crate::error::Error;
use crate::expr::Expr;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::interval::{Interval, check_settings};
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::loss::weighted_mean::Reduction;
use crate::map::map_input::MapInput;
use crate::reduce::map_reduce::MapReduce;
use crate::reduce::row_dispatch::row_dispatch;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;
use crate::shader::param::Param;

/// Cross-entropy of logits and class numbers, weighted by row and reduced; softmax and loss in one kernel.
///
/// With `p` the softmax of a row, `t` its class, `v` the class weights and `ε` the smoothing, a row's loss is
/// `l = -(1 - ε) v[t] log p[t] - ε / n_classes Σ_c v[c] log p[c]`. A sum is `Σ w l`, a mean `Σ w l / Σ w v[t]`.
///
/// # Shapes
/// `logits`: `[n_rows, n_classes]`; `target`, `weight`: `[n_rows]`; `class_weight`, if [`ClassWeights::Given`]: `[n_classes]`;
/// `loss`: `[2]`, the reduced loss and its divisor (1 for a sum); `rows`: `[n_rows, 4]`, the values of each row that the gradient
/// needs: the maximum logit `m`, `log Σ exp(x - m)`, `(1 - ε) v[t] + ε / n_classes Σ v`, and `w v[t]`.
/// # Dtypes
/// f32; `target` u32. A target that is not a class makes the loss NaN.
/// # Reference
/// `torch.nn.functional.cross_entropy`, whose `weight` is `class_weight` here; it has no weights by row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossEntropy {
    /// Rows.
    pub n_rows: usize,
    /// Columns of the logits.
    pub n_classes: usize,
    /// Mean or sum.
    pub reduction: Reduction,
    /// `ε`, the fraction of the target that is spread over all classes: 0 for none, at most 1.
    pub label_smoothing: f32,
    /// Whether classes have weights.
    pub class_weights: ClassWeights,
    /// Rows with this target do not count, PyTorch's `ignore_index`.
    pub ignored: Option<u32>,
}

/// Whether the classes of a [`CrossEntropy`] have weights.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ClassWeights {
    /// All classes count the same.
    #[default]
    Equal,
    /// A further argument has a weight for each class.
    Given,
}

impl CrossEntropy {
    /// PyTorch's defaults: the mean, without smoothing or class weights.
    pub const fn new(n_rows: usize, n_classes: usize) -> Self {
        Self {
            n_rows,
            n_classes,
            reduction: Reduction::Mean,
            label_smoothing: 0.0,
            class_weights: ClassWeights::Equal,
            ignored: None,
        }
    }

    fn inputs(&self) -> Vec<Arg> {
        let mut args = vec![
            Arg::read("logits", DType::F32, [self.n_rows, self.n_classes]),
            Arg::read("target", DType::U32, self.n_rows),
            Arg::read("weight", DType::F32, self.n_rows),
        ];
        if self.class_weights == ClassWeights::Given {
            args.push(Arg::read("class_weight", DType::F32, self.n_classes));
        }
        args
    }

    fn check_of(&self, kernel: &impl Kernel) -> Result<(), Error> {
        check_settings(kernel, &[("label_smoothing", self.label_smoothing, Interval::Unit)])?;
        check_sizes(kernel, &[("n_rows", self.n_rows), ("n_classes", self.n_classes)])
    }

    fn params(&self) -> [(&'static str, Param); 3] {
        [
            ("ignores", u32::from(self.ignored.is_some()).into()),
            ("ignored", self.ignored.unwrap_or(0).into()),
            ("smoothing", self.label_smoothing.into()),
        ]
    }

    /// The reduction of the rows' losses: its arguments are `rows`, `losses`, `loss` and scratch memory.
    fn merge(&self) -> MapReduce {
        let n = self.n_rows;
        let weights = MapInput { strides: vec![4], offset: 3, len: n.saturating_mul(4), ..MapInput::new(&[n], DType::F32) };
        let losses = MapInput::new(&[n], DType::F32);
        let [weight, loss] = [0, 1].map(Expr::input);
        match self.reduction {
            Reduction::Mean => self.reduction.kernel(&[n], vec![weights, losses], loss, weight),
            Reduction::Sum => self.reduction.kernel(&[n], vec![losses], weight, loss),
        }
    }

    fn constant(&self) -> (&'static str, f64) {
        ("CLASS_WEIGHTS", f64::from(u8::from(self.class_weights == ClassWeights::Given)))
    }

    fn twin_inputs<'a>(&self, args: &TwinArgs<'a>) -> cross_entropy_cpu::Inputs<'a> {
        cross_entropy_cpu::Inputs {
            logits: args.read("logits"),
            target: args.read("target"),
            weight: args.read("weight"),
            class_weight: (self.class_weights == ClassWeights::Given).then(|| args.read("class_weight")),
        }
    }

    /// The inputs to bind. Without class weights, the row weights are bound in their place, since every binding must be filled.
    fn bound(&self) -> [Binding; 4] {
        let class_weight = if self.class_weights == ClassWeights::Given { "class_weight" } else { "weight" };
        [
            Binding::of("logits").named("x"),
            Binding::of("target").named("targets"),
            Binding::of("weight").named("weights"),
            Binding::of(class_weight).named("class_weights"),
        ]
    }
}

impl Kernel for CrossEntropy {
    fn signature(&self) -> Signature {
        let mut args = self.inputs();
        args.push(Arg::write("loss", DType::F32, 2));
        args.push(Arg::write("rows", DType::F32, [self.n_rows, 4]));
        args.push(Arg::scratch("losses", DType::F32, self.n_rows));
        args.extend(self.merge().args().into_iter().filter(|arg| arg.access == Access::Scratch));
        Signature::new("cross_entropy", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.check_of(self)
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let loss = self.inputs().len();
        let (rows, losses) = (loss + 1, loss + 2);
        let module = module!("cross_entropy.wgsl", "class_weight.wgsl", "../reduce/join_group.wgsl", "../reduce/exp_sums.wgsl");
        let of_rows = row_dispatch(self, "kernels.cross_entropy", module, adapter, [self.n_rows, self.n_classes])?
            .constants([self.constant()])
            .params(self.params())
            .param("nan_bits", f32::NAN.to_bits())
            .bind(&self.args(), self.bound(), [Binding::of("rows").elements("vec4f"), Binding::of("losses")])?;
        let merged = match self.reduction {
            Reduction::Mean => vec![rows, losses, loss, losses + 1, losses + 2],
            Reduction::Sum => vec![losses, loss, losses + 1, losses + 2],
        };
        let mut dispatches = vec![of_rows];
        dispatches.extend(self.merge().dispatches_over(&merged)?);
        Ok(dispatches)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let inputs = self.twin_inputs(args);
        cross_entropy_cpu::loss(self, &inputs, args.write("loss"), args.write("rows"), args.write("losses"));
    }

    fn cost(&self) -> Cost {
        let n = (self.n_rows * self.n_classes) as u64;
        Cost { flops: 5 * n, bytes: 4 * n + 32 * self.n_rows as u64 }
    }
}

/// The gradient of [`CrossEntropy`] with respect to the logits:
/// `grad_x[c] = grad_loss w (q p[c] - (1 - ε) v[t] [c = t] - ε / n_classes v[c]) / divisor`, where
/// `q = (1 - ε) v[t] + ε / n_classes Σ v`.
///
/// # Shapes
/// `grad_loss`: `[1]`; then the inputs of the forward kernel, and `loss` and `rows` as it wrote them; `grad_logits`:
/// `[n_rows, n_classes]`.
/// # Dtypes
/// f32; `target` u32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CrossEntropyGrad {
    /// The forward kernel.
    pub forward: CrossEntropy,
}

impl Kernel for CrossEntropyGrad {
    fn signature(&self) -> Signature {
        let mut args = vec![Arg::read("grad_loss", DType::F32, 1)];
        args.extend(self.forward.inputs());
        args.push(Arg::read("loss", DType::F32, 2));
        args.push(Arg::read("rows", DType::F32, [self.forward.n_rows, 4]));
        args.push(Arg::write("grad_logits", DType::F32, [self.forward.n_rows, self.forward.n_classes]));
        Signature::new("cross_entropy_grad", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.forward.check_of(self)
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let n = self.forward.n_rows * self.forward.n_classes;
        let module = module!("cross_entropy_grad.wgsl", "class_weight.wgsl");
        let dispatch = Dispatch::elementwise(self.name(), "kernels.cross_entropy_grad", module, n)?
            .constants([self.forward.constant()])
            .param("n_rows", self.forward.n_rows)
            .param("n_cols", self.forward.n_classes)
            .params(self.forward.params());
        let mut reads = vec![Binding::of("grad_loss")];
        reads.extend(self.forward.bound());
        reads.extend([Binding::of("loss"), Binding::of("rows").elements("vec4f")]);
        Ok(vec![dispatch.bind(&self.args(), reads, ["grad_logits"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let grad_loss = args.read::<f32>("grad_loss")[0];
        let inputs = self.forward.twin_inputs(args);
        let (loss, rows) = (args.read("loss"), args.read("rows"));
        cross_entropy_cpu::grad(&self.forward, grad_loss, &inputs, loss, rows, args.write("grad_logits"));
    }

    fn cost(&self) -> Cost {
        let n = (self.forward.n_rows * self.forward.n_classes) as u64;
        Cost { flops: 6 * n, bytes: 8 * n + 24 * self.forward.n_rows as u64 }
    }
}
