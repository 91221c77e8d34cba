use brisk_tensor::{Error, Tensor};

use crate::bound::Bound;
use crate::categorical_column::CategoricalColumn;
use crate::embedding::Embedding;
use crate::module::Module;
use crate::parameters::ParametersBuilder;

/// A layer that appends the embedding of each categorical column to the numbers of each row.
///
/// # Shapes
/// `x`: `[n_rows, n_cols]`; the result `[n_rows, n_cols + n_embedded]`.
///
/// # Examples
/// ```
/// use brisk_nn::tensor::Graph;
/// use brisk_nn::{Activation, CategoricalColumn, CategoryEmbeddings, Linear, Module, ParametersBuilder, Sequential};
///
/// let mut p = ParametersBuilder::new();
/// // A column of 8 codes, and one of 1000 whose embedding has 8 dimensions.
/// let embeddings = CategoryEmbeddings::new(&mut p, &[CategoricalColumn::of(8), CategoricalColumn { n_codes: 1000, dim: 8 }]);
/// let linear = Linear::new(&mut p, "linear", 3 + embeddings.n_embedded(), 1, Activation::identity());
/// let model = Sequential(vec![Box::new(embeddings), Box::new(linear)]);
/// let graph = Graph::inference("scores");
/// let (x, codes) = (graph.constant("x", &[0.5; 6], &[2, 3]), graph.constant_codes("codes", &[7, 0, 1, 999], &[2, 2]));
/// let params = p.build(1).bind(&graph).with_categories(&codes);
/// assert_eq!(model.forward(&params, &x).shape(), [2, 1]);
/// graph.check()?;
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct CategoryEmbeddings {
    n_embedded: usize,
    embeddings: Vec<Embedding>,
}

impl CategoryEmbeddings {
    /// Adds `embeddings.0`, `embeddings.1`, …, one for each column, to the parameters, and the columns to
    /// [those of the model](crate::Parameters::categorical_columns).
    #[track_caller]
    pub fn new(params: &mut ParametersBuilder, columns: &[CategoricalColumn]) -> Self {
        let mut embeddings = Vec::with_capacity(columns.len());
        for (i, column) in columns.iter().enumerate() {
            embeddings.push(Embedding::new(params, &format!("embeddings.{i}"), column.n_codes, column.dim));
        }
        params.reads_categories(columns);
        let n_embedded = columns.iter().fold(0, |n: usize, column| n.saturating_add(column.dim));
        Self { n_embedded, embeddings }
    }

    /// The columns that they append to those of `x`.
    pub fn n_embedded(&self) -> usize {
        self.n_embedded
    }

    /// Records the look-ups of the [categories](Bound::categories), after `x`.
    ///
    /// # Errors
    /// [`Error::Shape`] if there is not a category for each column.
    #[track_caller]
    pub fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        match self.embedded(params, x) {
            Ok(embedded) if embedded.is_empty() => x.clone(),
            Ok(embedded) => x.concat_columns(&embedded.iter().collect::<Vec<_>>()),
            Err(failed) => failed,
        }
    }

    /// The look-ups, or a failed tensor.
    #[track_caller]
    pub(crate) fn embedded(&self, params: &Bound, x: &Tensor) -> Result<Vec<Tensor>, Tensor> {
        let mut embedded = Vec::with_capacity(self.embeddings.len());
        match params.categories() {
            // A loop, so that the place of each is the caller's.
            Some(codes) if matches!(codes.shape(), [_, n] if *n == self.embeddings.len()) => {
                for (col, embedding) in self.embeddings.iter().enumerate() {
                    embedded.push(embedding.forward(params, codes, col));
                }
            }
            _ if self.embeddings.is_empty() => {}
            codes => {
                let expected =
                    format!("[n_rows, {}], a column for each embedding; see `Bound::with_categories`", self.embeddings.len());
                let found = codes.map_or(Vec::new(), |codes| codes.shape().to_vec());
                let error = Error::Shape { op: "forward", arg: "categories", expected, found };
                return Err(x.graph().failed(error, x.dtype(), x.shape()));
            }
        }
        Ok(embedded)
    }
}

impl Module for CategoryEmbeddings {
    #[track_caller]
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        CategoryEmbeddings::forward(self, params, x)
    }
}
