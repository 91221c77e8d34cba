use brisk_kernels::{DType, RocAuc};

use crate::operation::check_kernel;
use crate::{Error, Forward, Operation, Tensor};

impl Tensor {
    /// The area under the ROC curve of these scores, where ties count half; not differentiable. NaN if a score is NaN, or if there is only one
    /// class.
    ///
    /// # Shapes
    /// `self`, `labels`, `weights`: the same number of elements; the result has no dimensions, `[]`.
    /// # Dtypes
    /// Any for `self`; the others and the result f32. A label above 0 is positive; weights are not negative.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Cost
    /// A sort on the device, with 20 to 40 bytes of scratch memory per row: see [`RocAuc`].
    /// # Reference
    /// `sklearn.metrics.roc_auc_score(labels, scores, sample_weight=weights)`.
    #[track_caller]
    pub fn roc_auc(&self, labels: &Self, weights: &Self) -> Self {
        self.graph().apply(RocAuc { n: self.n_elements() }, &[self, labels, weights])
    }
}

impl Operation for RocAuc {
    fn name(&self) -> &'static str {
        "roc_auc"
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x", "labels", "weights"]
    }

    fn is_differentiable(&self) -> bool {
        false
    }

    fn n_operands(&self, _: usize) -> usize {
        1
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        for (arg, input) in [("labels", inputs[1]), ("weights", inputs[2])] {
            input.check_len("roc_auc", arg, inputs[0].shape(), self.n)?;
        }
        check_kernel(self)?;
        Ok(Vec::new())
    }

    fn refused_shape(&self, _: &[&Tensor]) -> Vec<usize> {
        Vec::new()
    }

    fn output_dtype(&self, _: DType) -> DType {
        DType::F32
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let y = forward.output();
        forward.push(*self, &[&forward.inputs()[..], &[y]].concat())
    }
}
