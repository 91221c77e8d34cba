use super::clip_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, fold_workgroups};

/// Scales gradients down so that their norm is at most `max_norm`: `g *= min(1, max_norm / (norm + 1e-6))`.
///
/// Their norm is a [`MapReduce`](crate::MapReduce) with [`ReduceOp::Norm`](crate::ReduceOp::Norm) before it. If that is NaN, so is
/// every gradient then that is not 0. Zeros stay: those between the parameters of a flat buffer are never written again.
///
/// # Shapes
/// `norm`: `[1]`; `grads`: `[n]`.
/// # Dtypes
/// f32.
/// # Reference
/// `torch.nn.utils.clip_grad_norm_`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClipByNorm {
    /// Gradients.
    pub n: usize,
    /// The largest norm that is left as it is.
    pub max_norm: f32,
}

impl Kernel for ClipByNorm {
    fn name(&self) -> &'static str {
        "clip_by_norm"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read("norm", DType::F32, 1), Arg::read_write("grads", DType::F32, self.n)]
    }

    fn check(&self) -> Result<(), Error> {
        check_limit(self.name(), "max_norm", self.max_norm)?;
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.clip_by_norm",
            wgsl: module!("clip_by_norm.wgsl"),
            entry: "main",
            constants: vec![],
            params: bytemuck::cast_slice(&[self.max_norm, 0.0, 0.0, 0.0]).to_vec(),
            reads: vec![0],
            writes: vec![1],
            workgroups: fold_workgroups(self.name(), self.n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        clip_cpu::by_norm(self, args.read::<f32>(0)[0], args.write(1));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: self.n as u64, bytes: 8 * self.n as u64 }
    }
}

/// Cuts each gradient to `-limit..=limit`; NaN stays NaN.
///
/// # Shapes
/// `grads`: `[n]`.
/// # Dtypes
/// f32.
/// # Reference
/// `torch.nn.utils.clip_grad_value_`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ClipByValue {
    /// Gradients.
    pub n: usize,
    /// The largest magnitude that is left as it is.
    pub limit: f32,
}

impl Kernel for ClipByValue {
    fn name(&self) -> &'static str {
        "clip_by_value"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read_write("grads", DType::F32, self.n)]
    }

    fn check(&self) -> Result<(), Error> {
        check_limit(self.name(), "limit", self.limit)?;
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.clip_by_value",
            wgsl: module!("clip_by_value.wgsl"),
            entry: "main",
            constants: vec![],
            params: bytemuck::cast_slice(&[self.limit, 0.0, 0.0, 0.0]).to_vec(),
            reads: vec![],
            writes: vec![0],
            workgroups: fold_workgroups(self.name(), self.n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        clip_cpu::by_value(self, args.write(0));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: self.n as u64, bytes: 8 * self.n as u64 }
    }
}

fn check_limit(kernel: &'static str, name: &str, limit: f32) -> Result<(), Error> {
    if limit >= 0.0 {
        return Ok(());
    }
    Err(Error::Unsupported { kernel, found: format!("{name} = {limit}"), expected: "a number that is not negative" })
}
