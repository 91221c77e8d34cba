use std::rc::Rc;

use brisk_kernels::{Affine, ColumnSum, DType, LayerNorm, LayerNormGrad, LayerNormWeightGrad};

use crate::loss::check_len;
use crate::{Error, Tensor};

impl Tensor {
    /// Normalises along the last dimension: `(x - mean) / √(var + eps)`, times `weight`, plus `bias`, where they are given.
    ///
    /// # Shapes
    /// `self`: `[…, n_cols]`, the result likewise; `weight`, `bias`: `[n_cols]`.
    /// # Errors
    /// [`Error::Shape`], also for a bias without a weight; [`Error::ForeignTensor`].
    /// # Reference
    /// `torch.nn.functional.layer_norm` over the last dimension.
    pub fn layer_norm(&self, weight: Option<&Self>, bias: Option<&Self>, eps: f32) -> Result<Self, Error> {
        const OP: &str = "layer_norm";
        let graph = self.graph();
        let (n_rows, n_cols) = self.rows_of_last();
        for (name, tensor) in [("weight", weight), ("bias", bias)] {
            if let Some(tensor) = tensor {
                check_len(OP, name, self, tensor, n_cols)?;
            }
        }
        let affine = match (weight, bias) {
            (None, None) => Affine::None,
            (Some(_), None) => Affine::Weight,
            (Some(_), Some(_)) => Affine::WeightAndBias,
            (None, Some(bias)) => {
                let expected = "a weight beside it; give it one of ones".to_owned();
                return Err(Error::Shape { op: OP, arg: "bias", expected, found: bias.shape().to_vec() });
            }
        };
        let forward = LayerNorm { n_rows, n_cols, eps, affine };
        let (dtype, [input]) = graph.operands(OP, &forward, [self])?;
        let (y, stats) = (graph.transient(OP, dtype, self.n_elements()), graph.transient("stats", DType::F32, 2 * n_rows));
        let inputs: Vec<_> = [&input].into_iter().chain(weight).chain(bias).collect();
        let args: Vec<_> = inputs.iter().map(|input| input.slice()).chain([y, stats]).collect();
        graph.push(forward, &args)?;

        let (x_id, x) = (input.id(), input.slice());
        let (weight, bias) = (weight.map(|weight| (weight.id(), weight.slice())), bias.map(Self::id));
        let rule = move |backward: &mut crate::Backward<'_>, dy| {
            if let Some(bias) = bias.filter(|&id| backward.wants(id)) {
                backward.give(bias, ColumnSum { n_rows, n_cols }, &[dy])?;
            }
            if let Some((id, _)) = weight.filter(|&(id, _)| backward.wants(id)) {
                backward.give(id, LayerNormWeightGrad { forward }, &[dy, x, stats])?;
            }
            if backward.wants(x_id) {
                let args: Vec<_> = [dy, x].into_iter().chain(weight.map(|(_, slice)| slice)).chain([stats]).collect();
                backward.give(x_id, LayerNormGrad { forward }, &args)?;
            }
            Ok(())
        };
        graph.result(OP, &inputs, y, self.shape(), None, Rc::new(rule))
    }
}
