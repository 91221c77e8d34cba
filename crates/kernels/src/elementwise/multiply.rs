use super::multiply_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Elementwise, ElementwiseStep, Error, Kernel, TwinArgs, fold_workgroups};

/// `y = a b`, element by element: the weights of rows with those of a batch.
///
/// # Shapes
/// `a`, `b`, `y`: `[n]`.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Multiply {
    /// Elements.
    pub n: usize,
}

impl Kernel for Multiply {
    fn name(&self) -> &'static str {
        "multiply"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read("a", DType::F32, self.n), Arg::read("b", DType::F32, self.n), Arg::write("y", DType::F32, self.n)]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.multiply",
            wgsl: module!("multiply.wgsl"),
            entry: "main",
            constants: vec![],
            params: vec![],
            reads: vec![0, 1],
            writes: vec![2],
            workgroups: fold_workgroups(self.name(), self.n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        multiply_cpu::run(args.read(0), args.read(1), args.write(2));
    }

    fn elementwise(&self) -> Option<Elementwise> {
        Some(Elementwise { n: self.n, steps: vec![ElementwiseStep::Multiply] })
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: self.n as u64, bytes: 12 * self.n as u64 }
    }
}
