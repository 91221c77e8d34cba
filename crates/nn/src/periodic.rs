use std::f32::consts::{FRAC_PI_2, TAU};

use brisk_kernels::expr::Expr;
use brisk_kernels::{Interval, Outside, Transpose};
use brisk_tensor::{ElementwiseOperation, Tensor};

use crate::bound::Bound;
use crate::by_column::{by_column, by_row};
use crate::init::Init;
use crate::parameters::{ParameterId, ParametersBuilder};

/// Embeddings of numbers by waves: `relu(W [cos 2πcx, sin 2πcx] + b)` for each column, whose frequencies `c` are trained.
///
/// # Shapes
/// `x`: `[n_rows, n_columns]`; the result `[n_rows, n_columns dim]`. `frequencies`: `[n_columns, 1, 1, n_frequencies]`; `weight`:
/// `[n_columns, 2 n_frequencies, dim]`; `bias`: `[n_columns, 1, dim]`.
/// # Reference
/// Gorishniy, Rubachev & Babenko 2022, *On Embeddings for Numerical Features in Tabular Deep Learning*, arXiv:2203.05556: PLR;
/// `PeriodicEmbeddings` of the package `rtdl_num_embeddings`, with `lite=False`.
#[derive(Debug, Clone, PartialEq)]
pub struct Periodic {
    n_columns: usize,
    n_frequencies: usize,
    dim: usize,
    frequencies: ParameterId,
    weight: ParameterId,
    bias: ParameterId,
}

impl Periodic {
    /// Adds `name.frequencies`, normal with deviation `std` and at most three times that, `name.weight` and `name.bias`.
    /// [`Parameters::check`](crate::Parameters::check) refuses a deviation that is not above 0.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::Graph;
    /// use brisk_nn::{ParametersBuilder, Periodic};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// let embedding = Periodic::new(&mut builder, "numbers", 2, 24, 0.1, 16);
    /// let graph = Graph::inference("embed");
    /// let x = graph.constant("x", &[0.5, 0.0, 7.0, 1.0], &[2, 2]);
    /// assert_eq!(embedding.forward(&builder.build(7).bind(&graph), &x).shape(), [2, 32]);
    /// graph.check()?;
    /// # Ok::<(), brisk_nn::Error>(())
    /// ```
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, n_columns: usize, n_frequencies: usize, std: f32, dim: usize) -> Self {
        if let Err(Outside { found, expected, .. }) = Interval::Positive.check("std", std) {
            params.refuse("periodic", format!("std = {found} for `{name}`"), expected);
        }
        let n_waves = 2 * n_frequencies;
        let frequencies =
            params.add(format!("{name}.frequencies"), &[n_columns, 1, 1, n_frequencies], Init::TruncatedNormal { std });
        let weight = params.add(format!("{name}.weight"), &[n_columns, n_waves, dim], Init::FanIn(n_waves));
        let bias = params.add(format!("{name}.bias"), &[n_columns, 1, dim], Init::FanIn(n_waves));
        Self { n_columns, n_frequencies, dim, frequencies, weight, bias }
    }

    /// The number of columns of its result.
    pub fn n_outputs(&self) -> usize {
        self.n_columns * self.dim
    }

    /// Records the layer.
    ///
    /// # Errors
    /// [`Error::Shape`](brisk_tensor::Error::Shape) if `x` has a different number of columns.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let Self { n_columns, n_frequencies, dim, .. } = *self;
        let by_column = match by_column("periodic", x, n_columns, dim) {
            Ok(by_column) => by_column,
            Err(failed) => return failed,
        };
        let (graph, n_rows) = (x.graph(), x.shape()[0]);
        let _scope = params.enter(self.weight);
        let by_column = by_column.reshape(&[n_columns, n_rows, 1, 1]);
        // The sine is the cosine of a quarter turn less.
        let phases = graph.constant("periodic.phases", &[0.0, -FRAC_PI_2], &[1, 1, 2, 1]);
        let [of_x, frequency, phase] = [0, 1, 2].map(Expr::input);
        let waves = ElementwiseOperation::new("periodic", (of_x * frequency * TAU + phase).cos());
        let waves = graph.apply(waves, &[&by_column, params.tensor(self.frequencies), &phases]);
        let embedded = waves
            .reshape(&[n_columns, n_rows, 2 * n_frequencies])
            .batched_matmul(params.tensor(self.weight), Transpose::None)
            .map2(params.tensor(self.bias), |product, bias| (product + bias).max(0.0));
        by_row(&embedded)
    }
}
