use crate::error::Error;
use crate::graph::tensor::Tensor;

impl Tensor {
    /// Normalises each group of channels of each row: `(x - mean) / √(var + eps)` over all positions and the channels of the
    /// group, times `weight` plus `bias`, if given. The result is f32.
    ///
    /// # Shapes
    /// `self`: `[n, …, n_channels]`, the result likewise; `weight`, `bias`: `[n_channels]`. `n_groups` divides `n_channels`.
    /// # Errors
    /// [`Error::Shape`]; [`Error::ForeignTensor`].
    /// # Cost
    /// Two copies of the tensor, which bring the channels of a group together and back, if there are both positions and groups.
    /// # Reference
    /// `torch.nn.functional.group_norm`, whose channels are the second dimension; Wu & He 2018, arXiv:1803.08494.
    #[track_caller]
    pub fn group_norm(&self, n_groups: usize, weight: Option<&Self>, bias: Option<&Self>, eps: f32) -> Self {
        const OP: &str = "group_norm";
        let &[n_rows, ref positions @ .., n_channels] = self.shape() else {
            let error = Error::Shape { op: OP, arg: "x", expected: "[n, …, n_channels]".to_owned(), found: Vec::new() };
            return self.refused(error, self.shape());
        };
        if n_groups == 0 || !n_channels.is_multiple_of(n_groups) {
            let expected = format!("channels in {n_groups} groups of equal size");
            let error = Error::Shape { op: OP, arg: "x", expected, found: self.shape().to_vec() };
            return self.refused(error, self.shape());
        }
        for (arg, of_channels) in [("weight", weight), ("bias", bias)] {
            if let Err(error) = of_channels.map_or(Ok(()), |values| values.check_len(OP, arg, self.shape(), n_channels)) {
                return self.refused(error, self.shape());
            }
        }
        let (n_positions, of_group) = (positions.iter().product::<usize>(), n_channels / n_groups);
        let groups = self.reshape(&[n_rows, n_positions, n_groups, of_group]).permute(&[0, 2, 1, 3]);
        let normal = groups.reshape(&[n_rows * n_groups, n_positions * of_group]).layer_norm(None, None, eps);
        let normal = normal.reshape(&[n_rows, n_groups, n_positions, of_group]).permute(&[0, 2, 1, 3]).reshape(self.shape());
        let scaled = weight.map_or(normal.clone(), |weight| normal.multiply(weight));
        bias.map_or(scaled.clone(), |bias| &scaled + bias)
    }
}
