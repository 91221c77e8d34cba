use super::accumulate_batches_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Binding, Cost, DType, Dispatch, Error, Kernel, STATE_LEN, TwinArgs};

/// Sums gradients over `every` batches, and replaces the gradients by their mean; between the backward pass and the kernels that read gradients.
///
/// `total = g` for the first batch of a group, `sum + g` for the others. In the last of a group, and in the epoch's last batch, `g = total / every`,
/// so that a short group at the end counts for less. In the others `sum = total`, and `state.skip = 2`: no step is due.
///
/// # Shapes
/// `grads`, `sum`: `[n]`; `state`: [`STATE_LEN`].
/// # Dtypes
/// f32; `state` u32.
/// # Reference
/// `accumulate_grad_batches` of PyTorch Lightning, which divides the losses instead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccumulateBatches {
    /// Gradients.
    pub n: usize,
    /// Batches a step, at least 1; groups are counted from the epoch's first batch.
    pub every: u32,
    /// Batches of an epoch, the last of which ends a group; 0 for an epoch of unlimited length.
    pub n_batches: u32,
}

impl Kernel for AccumulateBatches {
    fn name(&self) -> &'static str {
        "accumulate_batches"
    }

    fn args(&self) -> Vec<Arg> {
        vec![
            Arg::read_write("grads", DType::F32, self.n),
            Arg::read_write("sum", DType::F32, self.n),
            Arg::read_write("state", DType::U32, STATE_LEN),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        check_sizes(self, &[("n", self.n), ("every", self.every as usize)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let module = module!("accumulate_batches.wgsl");
        let dispatch = Dispatch::elementwise(self.name(), "kernels.accumulate_batches", module, self.n)?
            .param("every", self.every)
            .param("n_batches", self.n_batches)
            .param("inverse", self.inverse());
        Ok(vec![dispatch.bind(&self.args(), Binding::NONE, ["grads", "sum", "state"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        accumulate_batches_cpu::run(self, args.write("grads"), args.write("sum"), args.write("state"));
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }

    fn cost(&self) -> Cost {
        Cost { flops: 2 * self.n as u64, bytes: 12 * self.n as u64 }
    }
}

impl AccumulateBatches {
    /// The factor that turns a sum into a mean.
    pub(crate) fn inverse(&self) -> f32 {
        1.0 / self.every as f32
    }
}
