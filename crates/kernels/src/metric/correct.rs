use super::correct_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::reduce::row_dispatch::row_dispatch;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// Whether the maximum of each row is in the column of its target: `y[r] = 1` if so, else 0. Its mean is the accuracy.
///
/// If several values are equal to the maximum, the first counts. NaN is ignored; a row that has only NaN is wrong.
///
/// # Shapes
/// `x`: `[n_rows, n_classes]`, row-major; `target`, `y`: `[n_rows]`.
/// # Dtypes
/// f32; `target` u32.
/// # Reference
/// `torch.argmax(x, -1) == target`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Correct {
    /// Rows.
    pub n_rows: usize,
    /// Columns, one per class.
    pub n_classes: usize,
}

impl Kernel for Correct {
    fn signature(&self) -> Signature {
        let args = [
            Arg::read("x", DType::F32, [self.n_rows, self.n_classes]),
            Arg::read("target", DType::U32, self.n_rows),
            Arg::write("y", DType::F32, self.n_rows),
        ];
        Signature::new("correct", args).sizes([("n_rows", self.n_rows), ("n_classes", self.n_classes)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let module = module!("correct.wgsl", "../reduce/row_entries.wgsl", "../reduce/join_group.wgsl", "../shader/nan.wgsl");
        let dispatch = row_dispatch(self, "kernels.correct", module, adapter, [self.n_rows, self.n_classes])?;
        let reads = [Binding::of("x"), Binding::of("target").named("targets")];
        Ok(vec![dispatch.bind(&self.args(), reads, ["y"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        correct_cpu::run(self, args.read("x"), args.read("target"), args.write("y"));
    }

    fn cost(&self) -> Cost {
        let n = (self.n_rows * self.n_classes) as u64;
        Cost { flops: n, bytes: 4 * n + 8 * self.n_rows as u64 }
    }
}
