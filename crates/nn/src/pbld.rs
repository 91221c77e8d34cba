use std::f32::consts::{PI, TAU};

use brisk_kernels::Transpose;
use brisk_kernels::expr::Expr;
use brisk_tensor::{ElementwiseOperation, Tensor};

use crate::bound::Bound;
use crate::by_column::{by_column, by_row};
use crate::init::Init;
use crate::parameters::{ParameterId, ParametersBuilder};

/// Embeddings of numbers by waves with trained phases, followed by the numbers: `[W cos(2πcx + p) + b, x]` for each column
/// (periodic, bias, linear, DenseNet).
///
/// # Shapes
/// `x`: `[n_rows, n_columns]`; the result `[n_rows, n_columns dim]`. `frequencies` and `phases`: `[n_columns, 1, n_frequencies]`;
/// `weight`: `[n_columns, n_frequencies, dim - 1]`; `bias`: `[n_columns, 1, dim - 1]`.
/// # Reference
/// Holzmüller, Grinsztajn & Steinwart 2024, *Better by Default: Strong Pre-Tuned MLPs and Boosted Trees on Tabular Data*,
/// arXiv:2407.04491; `num_emb_type="pbld"` of the package `pytabkit`.
#[derive(Debug, Clone, PartialEq)]
pub struct Pbld {
    n_columns: usize,
    dim: usize,
    frequencies: ParameterId,
    phases: ParameterId,
    weight: ParameterId,
    bias: ParameterId,
}

impl Pbld {
    /// Adds `name.frequencies`, normal with deviation `std` in cycles per unit, `name.phases`, uniform within ±π, `name.weight`
    /// and `name.bias`. [`Parameters::check`](crate::Parameters::check) refuses fewer than two numbers for a column.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::Graph;
    /// use brisk_nn::{ParametersBuilder, Pbld};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// let embedding = Pbld::new(&mut builder, "numbers", 2, 16, 0.1, 4);
    /// let graph = Graph::inference("embed");
    /// let x = graph.constant("x", &[0.5, 0.0, 7.0, 1.0], &[2, 2]);
    /// assert_eq!(embedding.forward(&builder.build(7).bind(&graph), &x).shape(), [2, 8]);
    /// graph.check()?;
    /// # Ok::<(), brisk_nn::Error>(())
    /// ```
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, n_columns: usize, n_frequencies: usize, std: f32, dim: usize) -> Self {
        if dim < 2 {
            params.refuse("pbld", format!("{dim} numbers for a column of `{name}`"), "at least 2: a wave, and the number");
        }
        let n_waves = dim.saturating_sub(1);
        let frequencies = params.add(format!("{name}.frequencies"), &[n_columns, 1, n_frequencies], Init::Normal(std));
        let phases = params.add(format!("{name}.phases"), &[n_columns, 1, n_frequencies], Init::Uniform(PI));
        let weight = params.add(format!("{name}.weight"), &[n_columns, n_frequencies, n_waves], Init::FanIn(n_frequencies));
        let bias = params.add(format!("{name}.bias"), &[n_columns, 1, n_waves], Init::FanIn(n_frequencies));
        Self { n_columns, dim, frequencies, phases, weight, bias }
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
        let by_column = match by_column("pbld", x, self.n_columns, self.dim) {
            Ok(by_column) => by_column,
            Err(failed) => return failed,
        };
        let _scope = params.enter(self.weight);
        let [of_x, frequency, phase] = [0, 1, 2].map(Expr::input);
        let waves = ElementwiseOperation::new("pbld", (of_x * frequency * TAU + phase).cos());
        let waves = x.graph().apply(waves, &[&by_column, params.tensor(self.frequencies), params.tensor(self.phases)]);
        let embedded = waves.batched_matmul(params.tensor(self.weight), Transpose::None).add(params.tensor(self.bias));
        by_row(&embedded.concat(&[&by_column], 2))
    }
}
