use brisk_kernels::{ClassWeights, CrossEntropy, CrossEntropyGrad, DType, Reduction};

use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::Tensor;

/// The options of a cross-entropy; the default is PyTorch's.
#[derive(Debug, Clone, Copy, Default)]
pub struct CrossEntropyOptions<'a> {
    /// Mean or sum.
    pub reduction: Reduction,
    /// The fraction of each target that is spread over all classes: 0 for none, at most 1.
    pub label_smoothing: f32,
    /// `[n_classes]`: a weight for each class, by which a mean divides too; `None` for equal weights.
    pub class_weight: Option<&'a Tensor>,
    /// Rows with this target are ignored: PyTorch's `ignore_index`.
    pub ignored: Option<u32>,
}

impl Tensor {
    /// Cross-entropy of logits against class numbers, weighted by row and reduced to one number; softmax and loss in one kernel.
    ///
    /// # Shapes
    /// `self`: `[…, n_classes]`; `target` (u32) and `weight`: one element per row; the result has no dimensions, `[]`.
    /// # Dtypes
    /// Any for `self`; the weights and the result f32.
    /// # Units
    /// A mean divides by the sum of the rows' weights, times that of its class. A target that is no class makes the loss NaN.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`]; [`Error::Dtype`] if `target` is not u32; [`Error::Program`] for a smoothing
    /// outside 0 to 1.
    /// # Reference
    /// `torch.nn.functional.cross_entropy`.
    #[track_caller]
    pub fn cross_entropy(&self, target: &Self, weight: &Self, options: CrossEntropyOptions<'_>) -> Self {
        let (n_rows, n_classes) = self.rows_of_last();
        let CrossEntropyOptions { reduction, label_smoothing, class_weight, ignored } = options;
        let class_weights = if class_weight.is_some() { ClassWeights::Given } else { ClassWeights::Equal };
        let operation = CrossEntropy { n_rows, n_classes, reduction, label_smoothing, class_weights, ignored };
        let inputs: Vec<_> = [self, target, weight].into_iter().chain(class_weight).collect();
        self.graph().apply(operation, &inputs)
    }
}

const NAME: &str = "cross_entropy";

impl Operation for CrossEntropy {
    fn signature(&self) -> Signature {
        Signature {
            autocast: AutocastRule::Full,
            n_operands: 1,
            dtype: Some(DType::F32),
            ..Signature::new(NAME, &["x", "target", "weight", "class_weight"])
        }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let lengths = [("target", self.n_rows), ("weight", self.n_rows), ("class_weight", self.n_classes)];
        for (input, (arg, len)) in inputs[1..].iter().zip(lengths) {
            input.check_len(NAME, arg, inputs[0].shape(), len)?;
        }
        check_kernel(self)?;
        inputs[1].check_codes(NAME, "target")?;
        Ok(Vec::new())
    }

    fn refused_shape(&self, _: &[&Tensor]) -> Vec<usize> {
        Vec::new()
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        // After the loss, what a mean divides by; then four numbers per row for the backward pass.
        let (loss, rows) = (forward.output_with_scratch(1), forward.transient("rows", DType::F32, 4 * self.n_rows));
        forward.push(*self, &[&forward.inputs()[..], &[loss, rows]].concat())?;
        forward.save(loss);
        forward.save(rows);
        Ok(())
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let inputs = (0..backward.n_inputs()).map(|i| backward.input(i));
        let args: Vec<_> = std::iter::once(backward.grad()).chain(inputs).chain([backward.saved(0), backward.saved(1)]).collect();
        backward.give(0, CrossEntropyGrad { forward: *self }, &args)
    }
}
