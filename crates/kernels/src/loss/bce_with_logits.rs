use super::bce_with_logits_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, fold_workgroups};

/// How the losses of a batch become one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Reduction {
    /// `Σ w l / Σ w`: padding rows of weight 0 do not count.
    #[default]
    Mean,
    /// `Σ w l`.
    Sum,
}

/// Binary cross-entropy of logits: `l = (1 - t) x + (1 + (p - 1) t) log(1 + exp(-x))`, weighted by row and reduced.
///
/// # Shapes
/// `logits`, `target`, `weight`: `[n]`; `loss`: `[2]`, the reduced loss and what it was divided by (1 for a sum).
/// # Dtypes
/// f32; targets lie in 0..=1.
/// # Reference
/// `torch.nn.functional.binary_cross_entropy_with_logits`; with weights its mean divides by `n`, this one by their sum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BceWithLogits {
    /// Rows.
    pub n: usize,
    /// Mean or sum.
    pub reduction: Reduction,
    /// `p`, the weight of positive rows; 1 leaves them as they are.
    pub pos_weight: f32,
}

impl BceWithLogits {
    fn params(&self) -> Vec<u8> {
        let mean = u32::from(self.reduction == Reduction::Mean);
        bytemuck::cast_slice(&[self.n as u32, mean, self.pos_weight.to_bits(), 0]).to_vec()
    }
}

impl Kernel for BceWithLogits {
    fn name(&self) -> &'static str {
        "bce_with_logits"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read("logits", DType::F32, self.n),
            Arg::read("target", DType::F32, self.n),
            Arg::read("weight", DType::F32, self.n),
            Arg::write("loss", DType::F32, 2),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.bce_with_logits",
            wgsl: module!("bce_with_logits.wgsl"),
            entry: "main",
            constants: vec![],
            params: self.params(),
            reads: vec![0, 1, 2],
            writes: vec![3],
            workgroups: [1, 1, 1],
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        bce_with_logits_cpu::loss(self, args.read(0), args.read(1), args.read(2), args.write(3));
    }

    fn cost(&self) -> Cost {
        Cost { flops: 8 * self.n as u64, bytes: 12 * self.n as u64 }
    }
}

/// The gradient of [`BceWithLogits`]: `grad_x = grad_loss w ((1 - t) - (1 + (p - 1) t) σ(-x)) / divisor`.
///
/// # Shapes
/// `grad_loss`: `[1]`; `logits`, `target`, `weight`, `grad_logits`: `[n]`; `loss`: `[2]`, as the forward kernel left it.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BceWithLogitsGrad {
    /// The forward kernel.
    pub forward: BceWithLogits,
}

impl Kernel for BceWithLogitsGrad {
    fn name(&self) -> &'static str {
        "bce_with_logits_grad"
    }

    fn args(&self) -> Vec<Arg> {
        let n = self.forward.n;
        vec![
            Arg::read("grad_loss", DType::F32, 1),
            Arg::read("logits", DType::F32, n),
            Arg::read("target", DType::F32, n),
            Arg::read("weight", DType::F32, n),
            Arg::read("loss", DType::F32, 2),
            Arg::write("grad_logits", DType::F32, n),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n", self.forward.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.bce_with_logits_grad",
            wgsl: module!("bce_with_logits_grad.wgsl"),
            entry: "main",
            constants: vec![],
            params: self.forward.params(),
            reads: vec![0, 1, 2, 3, 4],
            writes: vec![5],
            workgroups: fold_workgroups(self.name(), self.forward.n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (grad_loss, logits, target) = (args.read::<f32>(0), args.read(1), args.read(2));
        bce_with_logits_cpu::grad(&self.forward, grad_loss[0], logits, target, args.read(3), args.read(4), args.write(5));
    }

    fn cost(&self) -> Cost {
        Cost { flops: 10 * self.forward.n as u64, bytes: 16 * self.forward.n as u64 }
    }
}
