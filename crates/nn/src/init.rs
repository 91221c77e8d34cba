use brisk_kernels::Philox;

/// The initial values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Init {
    /// The same value for all elements.
    Constant(f32),
    /// Uniform within `±1 / √fan_in`: PyTorch's initial distribution for linear and convolution layers, for both weights and
    /// biases.
    FanIn(usize),
    /// As [`FanIn`](Self::FanIn) of `n_in`, the same `len` elements again and again: members of an ensemble that start alike.
    RepeatedFanIn { n_in: usize, len: usize },
    /// Uniform within `±` this number.
    Uniform(f32),
    /// Normal with this standard deviation, mean 0.
    Normal(f32),
    /// Normal with mean 0 and standard deviation `std`, without values beyond three deviations.
    TruncatedNormal { std: f32 },
    /// Normal with deviation 1 and mean 0, the same number for each run of `len` elements.
    NormalRuns { len: usize },
    /// 1 or -1, with equal chance.
    Signs,
    /// Filters `[n_out, height, width, n_in]` of which the first `n_in` of each group are the identity, 1 at the centre of their
    /// own channel, and the others are drawn as in [`FanIn`](Self::FanIn). So the convolution initially passes its input through.
    ///
    /// A filter has `n_in` input channels, those of its group, which has `n_group_filters` filters, `n_out` without groups. The
    /// identity is that of `torch.nn.init.dirac_`, which makes the other filters zeros.
    Dirac { kernel: [usize; 2], n_in: usize, n_group_filters: usize },
    /// Rows of `dim` numbers, normal with deviation 1 and mean 0, the row `padding` zeros: PyTorch's initial distribution for
    /// embeddings.
    Embedding { dim: usize, padding: Option<usize> },
}

impl Init {
    /// Uniform with variance `2 / fan_in`, which keeps the size of activations through ReLU. `fan_in` is how many inputs each
    /// output of a layer has: the columns of a linear layer, or height times width times input channels of a filter.
    ///
    /// # Reference
    /// `torch.nn.init.kaiming_uniform_` with `nonlinearity="relu"`; He, Zhang, Ren & Sun 2015, arXiv:1502.01852.
    /// # Examples
    /// ```
    /// use brisk_nn::{Activation, Init, Linear, ParametersBuilder};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// Linear::new(&mut builder, "hidden", 8, 16, Activation::relu());
    /// let mut params = builder.build(7);
    /// let weight = params.id_of("hidden.weight").expect("it was added");
    /// params.draw_initial(weight, Init::kaiming_uniform(8))?;
    /// let limit = (6.0_f32 / 8.0).sqrt();
    /// assert!(params.initial()[..8 * 16].iter().all(|value| value.abs() <= limit));
    /// # Ok::<(), brisk_nn::Error>(())
    /// ```
    pub fn kaiming_uniform(fan_in: usize) -> Self {
        Self::Uniform((6.0 / fan_in as f32).sqrt())
    }

    /// Normal with variance `2 / fan_in`, as [`kaiming_uniform`](Self::kaiming_uniform).
    ///
    /// # Reference
    /// `torch.nn.init.kaiming_normal_` with `nonlinearity="relu"`.
    pub fn kaiming_normal(fan_in: usize) -> Self {
        Self::Normal((2.0 / fan_in as f32).sqrt())
    }

    /// Uniform with variance `2 / (fan_in + fan_out)`, which keeps the size of activations and gradients through linear layers
    /// and tanh. `fan_out` is how many outputs each input has.
    ///
    /// # Reference
    /// `torch.nn.init.xavier_uniform_`; Glorot & Bengio 2010, *Understanding the difficulty of training deep feedforward neural
    /// networks*.
    pub fn xavier_uniform(fan_in: usize, fan_out: usize) -> Self {
        Self::Uniform((6.0 / (fan_in + fan_out) as f32).sqrt())
    }

    /// Normal with variance `2 / (fan_in + fan_out)`, as [`xavier_uniform`](Self::xavier_uniform).
    ///
    /// # Reference
    /// `torch.nn.init.xavier_normal_`.
    pub fn xavier_normal(fan_in: usize, fan_out: usize) -> Self {
        Self::Normal((2.0 / (fan_in + fan_out) as f32).sqrt())
    }

    /// Writes initial values of parameter number `stream`, starting with its element `first`. They depend only on `seed`, the
    /// stream and the element.
    pub(crate) fn fill(self, seed: u64, stream: u32, first: usize, values: &mut [f32]) {
        let philox = Philox::new(seed);
        let fan_in = |i: usize, fan_in: usize| (2.0 * philox.uniform(stream, i as u64) - 1.0) / (fan_in as f32).sqrt();
        let draw = |i: usize| match self {
            Self::Constant(value) => value,
            Self::FanIn(n) => fan_in(i, n),
            Self::Uniform(limit) => limit * (2.0 * philox.uniform(stream, i as u64) - 1.0),
            Self::RepeatedFanIn { n_in, len } => fan_in(i % len.max(1), n_in),
            Self::Dirac { kernel: [height, width], n_in, n_group_filters } => {
                let (tap, channel) = (i / n_in % (height * width), i % n_in);
                let filter = i / (n_in * height * width) % n_group_filters.max(1);
                let is_one = tap == height / 2 * width + width / 2 && channel == filter;
                if filter < n_in { f32::from(u8::from(is_one)) } else { fan_in(i, n_in * height * width) }
            }
            Self::Normal(std) => std * philox.normal(stream, i as u64),
            Self::TruncatedNormal { std } => {
                // Another number for each that is beyond, which is far from the counters of other elements.
                let numbers = (0..64).map(|attempt| philox.normal(stream, i as u64 | attempt << 56));
                std * numbers.into_iter().find(|number| number.abs() <= 3.0).unwrap_or(0.0)
            }
            Self::NormalRuns { len } => philox.normal(stream, (i / len.max(1)) as u64),
            Self::Signs => {
                if philox.uniform(stream, i as u64) < 0.5 {
                    -1.0
                } else {
                    1.0
                }
            }
            Self::Embedding { dim, padding } if i.checked_div(dim) == padding => 0.0,
            Self::Embedding { .. } => philox.normal(stream, i as u64),
        };
        values.iter_mut().zip(first..).for_each(|(value, i)| *value = draw(i));
    }
}
