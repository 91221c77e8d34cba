//! Operations recorded in a lower precision.

use std::collections::BTreeSet;

use brisk_kernels::{Activation, DType};

use crate::error::Error;
use crate::graph::Graph;
use crate::graph::autocast::{ACTIVATE, Autocast, AutocastRegion, AutocastRule};
use crate::graph::operation::{Operation, Signature};
use crate::graph::stored::promoted;
use crate::graph::tensor::Tensor;

impl Graph {
    /// Records the operations of `record` with products in a lower precision. It is for the forward pass and the loss; the
    /// backward pass uses the dtypes of its forward pass.
    ///
    /// Parameters stay f32, and so do their gradients. Products read cast copies, one for each parameter however often it is
    /// used. What happens to an operation is its [`AutocastRule`]:
    /// - `Lower`: operands are cast and the result has that dtype: `linear`, `matmul`, `batched_matmul`, `conv2d`;
    /// - `Full`: the result is f32: `softmax`, `log_softmax`, `layer_norm`, `group_norm`, `rms_norm`, `sum`, `norm` and the
    ///   losses;
    /// - `Promote`: the dtype of the operands, f32 where they differ: all others, such as `activate`, `batch_norm`, `add`.
    ///
    /// Sums are kept in f32 whatever dtype values are stored in. Regions nest, and the innermost one counts; within
    /// [`Precision::F32`](crate::Precision::F32) every operation is of the third kind. [`Graph::report`] lists the dtypes that
    /// resulted.
    ///
    /// # Errors
    /// [`Error::UnusedOverride`] for an override that names no operation of the region.
    /// # Reference
    /// `torch.autocast`, with its lists for CUDA.
    /// # Examples
    /// ```
    /// use brisk_tensor::{Activation, DType, Graph, Precision};
    ///
    /// let graph = Graph::inference("halves");
    /// let x = graph.constant("x", &[0.1; 32], &[4, 8]);
    /// let weight = graph.constant("weight", &[0.2; 16], &[2, 8]);
    /// let (logits, scores) = graph.autocast(Precision::F16, || {
    ///     let logits = x.linear(&weight, None, Activation::identity());
    ///     let scores = logits.softmax(1);
    ///     (logits, scores)
    /// });
    /// assert_eq!((logits.dtype(), scores.dtype()), (DType::F16, DType::F32));
    /// ```
    #[track_caller]
    pub fn autocast<T>(&self, region: impl Into<Autocast>, record: impl FnOnce() -> T) -> T {
        let region = AutocastRegion { autocast: region.into(), recorded: BTreeSet::new() };
        let outer = self.inner_mut().autocast.replace(region);
        let ended = self.at_end(|inner| inner.autocast = outer);
        let recorded = record();
        let checked = self.inner().autocast.as_ref().map_or(Ok(()), AutocastRegion::check);
        drop(ended);
        self.catch(checked);
        recorded
    }

    /// Records an operation that ends in `activation`: within its own kernel, or as an operation after it where the backward pass
    /// needs the activation's input or an override sets the precision of `activate`.
    #[track_caller]
    pub(crate) fn apply_activated<O: Operation>(
        &self,
        activation: &Activation,
        operation: impl Fn(Activation) -> O,
        inputs: &[&Tensor],
    ) -> Tensor {
        let is_overridden = self.overrides_activation();
        let stored = self.activation_of(activation, &operation(Activation::identity()).signature(), inputs);
        if stored.is_identity() || stored.from_output.is_some() && !is_overridden {
            return self.apply(operation(stored), inputs);
        }
        self.apply(operation(Activation::identity()), inputs).activate(activation.clone())
    }

    /// The activation of an operation with this signature, whose derivative depends on the dtype of its result.
    pub(crate) fn activation_of(&self, activation: &Activation, signature: &Signature, inputs: &[&Tensor]) -> Activation {
        let inner = self.inner();
        let dtype = inner.autocast.as_ref().and_then(|region| region.autocast.casts(signature.name, signature.autocast).1);
        let operands = inputs.iter().take(signature.n_operands).map(|input| input.dtype());
        activation.clone().stored_as(dtype.unwrap_or_else(|| promoted(operands)))
    }

    /// Whether an override sets the precision of `activate`.
    pub(crate) fn overrides_activation(&self) -> bool {
        self.inner_mut().autocast.as_mut().is_some_and(|region| {
            region.recorded.insert(ACTIVATE);
            region.autocast.override_of(ACTIVATE).is_some()
        })
    }

    /// Casts the operands of `op` as the innermost region requires, and returns the dtype of its result.
    pub(crate) fn cast_operands(&self, op: &'static str, rule: AutocastRule, operands: &mut [Tensor]) -> Result<DType, Error> {
        let (operand_dtype, result_dtype) = self.inner_mut().autocast.as_mut().map_or((None, None), |region| {
            region.recorded.insert(op);
            region.autocast.casts(op, rule)
        });
        if let Some(dtype) = operand_dtype {
            for operand in &mut *operands {
                *operand = self.rounded(operand, dtype)?;
            }
        }
        Ok(result_dtype.unwrap_or_else(|| promoted(operands.iter().map(Tensor::dtype))))
    }
}
