use brisk_kernels::{DType, RocAuc};

use crate::loss::check_len;
use crate::{Error, Tensor};

impl Tensor {
    /// The area under the ROC curve of these scores, ties counting half, without a gradient; NaN where a score is, or there is one class.
    ///
    /// # Shapes
    /// `self`, `labels`, `weights`: the same number of elements; the result has none, `[]`.
    /// # Dtypes
    /// Any for `self`; the rest and the result f32. A label above 0 is a 1, weights are not negative.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`].
    /// # Cost
    /// A sort on the device, in scratch of 20 to 40 bytes a row: see [`RocAuc`].
    /// # Reference
    /// `sklearn.metrics.roc_auc_score(labels, scores, sample_weight=weights)`.
    pub fn roc_auc(&self, labels: &Self, weights: &Self) -> Result<Self, Error> {
        const OP: &str = "roc_auc";
        let (n, graph) = (self.n_elements(), self.graph());
        check_len(OP, "labels", self, labels, n)?;
        check_len(OP, "weights", self, weights, n)?;
        let y = graph.transient(OP, DType::F32, 1);
        graph.push(RocAuc { n }, &[self.slice(), labels.slice(), weights.slice(), y])?;
        graph.wrap(y, &[])
    }
}
