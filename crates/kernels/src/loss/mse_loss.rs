use super::mse_loss_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, Reduction, TwinArgs, fold_workgroups};

/// Mean squared error: `Σ_r w[r] Σ_c (x[r,c] - t[r,c])²`, divided by `n_cols Σ w` for a mean.
///
/// # Shapes
/// `x`, `target`: `[n_rows, n_cols]`; `weight`: `[n_rows]`; `loss`: `[2]`, the reduced loss and what it was divided by.
/// # Dtypes
/// f32.
/// # Reference
/// `torch.nn.functional.mse_loss`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MseLoss {
    /// Rows.
    pub n_rows: usize,
    /// Columns.
    pub n_cols: usize,
    /// Mean or sum.
    pub reduction: Reduction,
}

impl MseLoss {
    fn params(&self) -> Vec<u8> {
        let mean = u32::from(self.reduction == Reduction::Mean);
        bytemuck::cast_slice(&[self.n_rows as u32, self.n_cols as u32, mean, 0]).to_vec()
    }
}

impl Kernel for MseLoss {
    fn name(&self) -> &'static str {
        "mse_loss"
    }

    fn args(&self) -> Vec<Arg> {
        let n = self.n_rows * self.n_cols;
        vec![
            Arg::read("x", DType::F32, n),
            Arg::read("target", DType::F32, n),
            Arg::read("weight", DType::F32, self.n_rows),
            Arg::write("loss", DType::F32, 2),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n_rows", self.n_rows), ("n_cols", self.n_cols)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.mse_loss",
            wgsl: module!("mse_loss.wgsl"),
            entry: "main",
            constants: vec![],
            params: self.params(),
            reads: vec![0, 1, 2],
            writes: vec![3],
            workgroups: [1, 1, 1],
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        mse_loss_cpu::loss(self, args.read(0), args.read(1), args.read(2), args.write(3));
    }

    fn cost(&self) -> Cost {
        let n = (self.n_rows * self.n_cols) as u64;
        Cost { flops: 3 * n, bytes: 8 * n }
    }
}

/// The gradient of [`MseLoss`] in `x`: `grad_x = grad_loss 2 w (x - t) / divisor`.
///
/// # Shapes
/// `grad_loss`: `[1]`; `x`, `target`, `grad_x`: `[n_rows, n_cols]`; `weight`: `[n_rows]`; `loss`: `[2]`, as the forward kernel left it.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MseLossGrad {
    /// The forward kernel.
    pub forward: MseLoss,
}

impl Kernel for MseLossGrad {
    fn name(&self) -> &'static str {
        "mse_loss_grad"
    }

    fn args(&self) -> Vec<Arg> {
        let n = self.forward.n_rows * self.forward.n_cols;
        vec![
            Arg::read("grad_loss", DType::F32, 1),
            Arg::read("x", DType::F32, n),
            Arg::read("target", DType::F32, n),
            Arg::read("weight", DType::F32, self.forward.n_rows),
            Arg::read("loss", DType::F32, 2),
            Arg::write("grad_x", DType::F32, n),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n_rows", self.forward.n_rows), ("n_cols", self.forward.n_cols)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let n = self.forward.n_rows * self.forward.n_cols;
        Ok(vec![Dispatch {
            label: "kernels.mse_loss_grad",
            wgsl: module!("mse_loss_grad.wgsl"),
            entry: "main",
            constants: vec![],
            params: self.forward.params(),
            reads: vec![0, 1, 2, 3, 4],
            writes: vec![5],
            workgroups: fold_workgroups(self.name(), n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (grad_loss, x, target) = (args.read::<f32>(0), args.read(1), args.read(2));
        mse_loss_cpu::grad(&self.forward, grad_loss[0], x, target, args.read(3), args.read(4), args.write(5));
    }

    fn cost(&self) -> Cost {
        let n = (self.forward.n_rows * self.forward.n_cols) as u64;
        Cost { flops: 3 * n, bytes: 12 * n }
    }
}
