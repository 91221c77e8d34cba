use super::share_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, TwinArgs, fold_workgroups};

/// Each element's share of a total: `y = x / total`, and 0 where the total is 0, as that of a batch without rows.
///
/// # Shapes
/// `x`, `y`: `[n]`; `total`: `[1]`.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Elements.
    pub n: usize,
}

impl Kernel for Share {
    fn name(&self) -> &'static str {
        "share"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read("x", DType::F32, self.n), Arg::read("total", DType::F32, 1), Arg::write("y", DType::F32, self.n)]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        Ok(vec![Dispatch {
            label: "kernels.share",
            wgsl: module!("share.wgsl"),
            entry: "main",
            constants: vec![],
            params: vec![],
            reads: vec![0, 1],
            writes: vec![2],
            workgroups: fold_workgroups(self.name(), self.n.div_ceil(64))?,
        }])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        share_cpu::run(args.read(0), args.read::<f32>(1)[0], args.write(2));
    }

    fn cost(&self) -> Cost {
        Cost { flops: self.n as u64, bytes: 8 * self.n as u64 }
    }
}
