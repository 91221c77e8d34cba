use super::add_to_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, fold_workgroups};

/// `sum += x`: gradients of one batch after another added up.
///
/// # Shapes
/// `x`, `sum`: `[n]`.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddTo {
    /// Elements.
    pub n: usize,
}

impl Kernel for AddTo {
    fn name(&self) -> &'static str {
        "add_to"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read("x", DType::F32, self.n), Arg::read_write("sum", DType::F32, self.n)]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.add_to",
            wgsl: module!("add_to.wgsl"),
            entry: "main",
            constants: vec![],
            params: vec![],
            reads: vec![0],
            writes: vec![1],
            workgroups: fold_workgroups(self.name(), self.n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        add_to_cpu::run(args.read(0), args.write(1));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: self.n as u64, bytes: 12 * self.n as u64 }
    }
}
