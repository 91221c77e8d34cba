use brisk_kernels::Transpose;
use brisk_kernels::expr::Expr;
use brisk_tensor::{ElementwiseOperation, Tensor};

use crate::bound::Bound;
use crate::by_column::{by_column, by_row};
use crate::init::Init;
use crate::parameters::{ParameterId, ParametersBuilder};

/// Embeddings of numbers by a piecewise-linear encoding: `e = w x + c + V ple(x)` for each column, without an activation.
///
/// Between the edges `b₀ < b₁ < … < b_T` of a column, component `t` of `ple(x)` is `(x - b_{t-1}) / (b_t - b_{t-1})`, clamped to
/// 0 and 1, except that the first is not clamped below and the last not above. `V` starts as zeros, so that the embedding is
/// linear at first.
///
/// # Shapes
/// `x`: `[n_rows, n_columns]`; the result `[n_rows, n_columns dim]`. `weight` and `bias`: `[n_columns, 1, dim]`; `pieces`:
/// `[n_columns, n_bins, dim]`.
/// # Reference
/// Gorishniy, Rubachev & Babenko 2022, *On Embeddings for Numerical Features in Tabular Deep Learning*, arXiv:2203.05556;
/// `PiecewiseLinearEmbeddings` of version B of the package `rtdl_num_embeddings`.
#[derive(Debug, Clone, PartialEq)]
pub struct PiecewiseLinear {
    n_columns: usize,
    n_bins: usize,
    dim: usize,
    encoding: [Vec<f32>; 4],
    weight: ParameterId,
    bias: ParameterId,
    pieces: ParameterId,
}

/// Stands for no limit, so that products with 0 are not NaN.
const UNLIMITED: f32 = f32::MAX;

impl PiecewiseLinear {
    /// Adds `name.weight`, `name.bias` and `name.pieces` for columns with these edges, each at least two in increasing order.
    /// [`Parameters::check`](crate::Parameters::check) refuses others.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::tensor::Graph;
    /// use brisk_nn::{ParametersBuilder, PiecewiseLinear};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// let embedding = PiecewiseLinear::new(&mut builder, "numbers", &[vec![0.0, 1.0, 5.0], vec![-1.0, 1.0]], 16);
    /// let graph = Graph::inference("embed");
    /// let x = graph.constant("x", &[0.5, 0.0, 7.0, 1.0], &[2, 2]);
    /// assert_eq!(embedding.forward(&builder.build(7).bind(&graph), &x).shape(), [2, 32]);
    /// graph.check()?;
    /// # Ok::<(), brisk_nn::Error>(())
    /// ```
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, name: &str, edges: &[Vec<f32>], dim: usize) -> Self {
        let increase = |edges: &&Vec<f32>| edges.is_sorted_by(|a, b| a < b) && edges.iter().all(|edge| edge.is_finite());
        if let Some(column) = edges.iter().position(|edges| edges.len() < 2 || !increase(&edges)) {
            let found = format!("edges {:?} for column {column} of `{name}`", edges[column]);
            params.refuse("piecewise_linear", found, "at least two edges for each column, finite and increasing");
        }
        let n_columns = edges.len();
        let n_bins = edges.iter().map(|edges| edges.len().saturating_sub(1)).max().unwrap_or(0).max(1);
        let weight = params.add(format!("{name}.weight"), &[n_columns, 1, dim], Init::FanIn(dim));
        let bias = params.add(format!("{name}.bias"), &[n_columns, 1, dim], Init::FanIn(dim));
        let pieces = params.add(format!("{name}.pieces"), &[n_columns, n_bins, dim], Init::Constant(0.0));
        Self { n_columns, n_bins, dim, encoding: encoding(edges, n_bins), weight, bias, pieces }
    }

    /// The number of columns of its input.
    pub fn n_columns(&self) -> usize {
        self.n_columns
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
        let Self { n_columns, n_bins, dim, .. } = *self;
        let by_column = match by_column("piecewise_linear", x, n_columns, dim) {
            Ok(by_column) => by_column,
            Err(failed) => return failed,
        };
        let graph = x.graph();
        let _scope = params.enter(self.weight);
        let names = ["piecewise.start", "piecewise.slope", "piecewise.min", "piecewise.max"];
        let constant = |i: usize| graph.constant(names[i], &self.encoding[i], &[n_columns, 1, n_bins]);
        let [start, slope, min, max] = [0, 1, 2, 3].map(constant);
        let [of_x, of_start, of_slope, of_min, of_max] = [0, 1, 2, 3, 4].map(Expr::input);
        let encode = ((of_x - of_start) * of_slope).max(of_min).min(of_max);
        let encoded =
            graph.apply(ElementwiseOperation::new("piecewise_linear", encode), &[&by_column, &start, &slope, &min, &max]);
        let pieces = encoded.batched_matmul(params.tensor(self.pieces), Transpose::None);
        let [of_pieces, of_x, of_weight, of_bias] = [0, 1, 2, 3].map(Expr::input);
        let linear = ElementwiseOperation::new("embed_numbers", of_pieces + of_x * of_weight + of_bias);
        let embedded = graph.apply(linear, &[&pieces, &by_column, params.tensor(self.weight), params.tensor(self.bias)]);
        by_row(&embedded)
    }
}

/// The start, the slope, the minimum and the maximum of each component, `[n_columns, n_bins]` each. The last component of a
/// column is the last of all; columns with fewer edges have components of 0 before it.
fn encoding(edges: &[Vec<f32>], n_bins: usize) -> [Vec<f32>; 4] {
    let mut encoding = [const { Vec::new() }; 4];
    for edges in edges {
        let n_own = edges.len().saturating_sub(1);
        for bin in 0..n_bins {
            let own = if bin + 1 == n_bins { n_own.checked_sub(1) } else { Some(bin).filter(|bin| bin + 1 < n_own) };
            let component = own.map_or([0.0; 4], |bin| {
                let slope = 1.0 / (edges[bin + 1] - edges[bin]);
                let min = if bin == 0 { -UNLIMITED } else { 0.0 };
                let max = if bin + 1 == n_own { UNLIMITED } else { 1.0 };
                [edges[bin], slope, min, max]
            });
            encoding.iter_mut().zip(component).for_each(|(values, value)| values.push(value));
        }
    }
    encoding
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(edges: &[Vec<f32>], n_bins: usize, column: usize, x: f32) -> Vec<f32> {
        let [start, slope, min, max] = encoding(edges, n_bins);
        let of = |i: usize| ((x - start[i]) * slope[i]).max(min[i]).min(max[i]);
        (column * n_bins..(column + 1) * n_bins).map(of).collect()
    }

    #[test]
    fn numbers_are_encoded_as_in_the_paper() {
        let edges = [vec![0.0, 1.0, 3.0, 7.0], vec![0.0, 2.0], vec![0.0, 1.0, 3.0]];
        for (column, x, expected) in [
            (0, -1.0, [-1.0, 0.0, 0.0]),
            (0, 0.5, [0.5, 0.0, 0.0]),
            (0, 2.0, [1.0, 0.5, 0.0]),
            (0, 5.0, [1.0, 1.0, 0.5]),
            (0, 11.0, [1.0, 1.0, 2.0]),
            // One bin is a linear scale; with fewer bins than others, the last component stays the last.
            (1, -1.0, [0.0, 0.0, -0.5]),
            (1, 3.0, [0.0, 0.0, 1.5]),
            (2, 2.0, [1.0, 0.0, 0.5]),
            (2, -2.0, [-2.0, 0.0, 0.0]),
        ] {
            assert_eq!(encoded(&edges, 3, column, x), expected, "column {column}, {x}");
        }
    }
}
