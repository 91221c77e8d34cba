use std::rc::Rc;

use brisk_kernels::{ClassWeights, CrossEntropy, CrossEntropyGrad, DType, Reduction};

use crate::loss::check_len;
use crate::{Error, Tensor};

/// What a cross-entropy can be told besides its targets; the default is PyTorch's.
#[derive(Debug, Clone, Copy, Default)]
pub struct CrossEntropyOptions<'a> {
    /// Mean or sum.
    pub reduction: Reduction,
    /// How much of each target is spread over all classes: 0 for none, at most 1.
    pub label_smoothing: f32,
    /// `[n_classes]`: a weight for each class, which a mean divides by too; `None` where all count the same.
    pub class_weight: Option<&'a Tensor>,
    /// Rows with this target count for nothing, PyTorch's `ignore_index`.
    pub ignored: Option<u32>,
}

impl Tensor {
    /// Cross-entropy of logits against class numbers, weighted by row and reduced to one number; softmax and loss in one kernel.
    ///
    /// # Shapes
    /// `self`: `[…, n_classes]`; `target` (u32) and `weight`: an element a row; the result has none, `[]`.
    /// # Dtypes
    /// Any for `self`; the weights and the result f32.
    /// # Units
    /// A mean divides by the sum of the rows' weights, each times the weight of its class. A target that is no class makes the loss NaN.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`]; [`Error::Program`] if `target` is not u32, or for a smoothing outside 0 to 1.
    /// # Reference
    /// `torch.nn.functional.cross_entropy`.
    pub fn cross_entropy(&self, target: &Self, weight: &Self, options: CrossEntropyOptions<'_>) -> Result<Self, Error> {
        const OP: &str = "cross_entropy";
        let graph = self.graph();
        let (n_rows, n_classes) = self.rows_of_last();
        check_len(OP, "target", self, target, n_rows)?;
        check_len(OP, "weight", self, weight, n_rows)?;
        if let Some(class_weight) = options.class_weight {
            check_len(OP, "class_weight", self, class_weight, n_classes)?;
        }
        let CrossEntropyOptions { reduction, label_smoothing, class_weight, ignored } = options;
        let class_weights = if class_weight.is_some() { ClassWeights::Given } else { ClassWeights::Equal };
        let forward = CrossEntropy { n_rows, n_classes, reduction, label_smoothing, class_weights, ignored };
        let (_, [x]) = graph.operands(OP, &forward, [self])?;
        let inputs: Vec<_> = [&x, target, weight].into_iter().chain(class_weight).map(Self::slice).collect();
        let (loss, rows) = (graph.transient(OP, DType::F32, 2), graph.transient("rows", DType::F32, 4 * n_rows));
        graph.push(forward, &[&inputs[..], &[loss, rows]].concat())?;
        let x_id = x.id();
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            backward.give(x_id, CrossEntropyGrad { forward }, &[&[dy][..], &inputs, &[loss, rows]].concat())
        };
        graph.result(OP, &[&x], loss.slice(0..1), &[], None, Rc::new(rule))
    }
}
