use crate::Philox;

/// What a parameter starts as.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Init {
    /// One value throughout.
    Constant(f32),
    /// Uniform within `±1 / √fan_in`: what PyTorch's linear and convolution layers start from, weights and biases alike.
    FanIn(usize),
    /// Normal with this standard deviation, mean 0.
    Normal(f32),
    /// Rows of `dim` numbers, normal with deviation 1 and mean 0, the row `padding` zeros: what PyTorch's embeddings start from.
    Embedding {
        /// Numbers a row.
        dim: usize,
        /// The row of zeros, if there is one.
        padding: Option<usize>,
    },
}

impl Init {
    /// Writes starting values of parameter number `stream`, from its element `first` on. They depend only on `seed`, the stream and the element.
    pub(crate) fn fill(self, seed: u64, stream: u32, first: usize, values: &mut [f32]) {
        let philox = Philox::new(seed);
        let draw = |i: usize| match self {
            Self::Constant(value) => value,
            Self::FanIn(fan_in) => (2.0 * philox.uniform(stream, i as u64) - 1.0) / (fan_in as f32).sqrt(),
            Self::Normal(std) => std * philox.normal(stream, i as u64),
            Self::Embedding { dim, padding } if i.checked_div(dim) == padding => 0.0,
            Self::Embedding { .. } => philox.normal(stream, i as u64),
        };
        values.iter_mut().zip(first..).for_each(|(value, i)| *value = draw(i));
    }
}
