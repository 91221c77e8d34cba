//! A model layer by layer: shapes, parameters, operations, memory.

use std::fmt;

use brisk_nn::Module;
use brisk_nn::tensor::{DType, Graph, Persistent};
use brisk_report::{mebibytes, thousands};

use crate::error::Error;
use crate::model::Model;

/// The layers of a model for batches of one size: [`Model::summary`]. `Display` is a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// The layers, in the order in which they compute. A layer that is used twice is listed twice.
    pub layers: Vec<LayerSummary>,
    /// Rows of the batch.
    pub n_rows: usize,
    /// All parameters of the model, each counted once.
    pub n_parameters: usize,
    /// Floating-point operations of one evaluation of the batch.
    pub flops: u64,
    /// The memory that such an evaluation takes on a device by its plan: parameters, input and intermediate results.
    pub planned_bytes: usize,
}

/// One layer: the operations that were recorded together under its name.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerSummary {
    /// The name that its parameters begin with, such as `layers.0`; empty for operations without parameters.
    pub name: String,
    /// Its operations.
    pub operations: Vec<&'static str>,
    /// The shape of its result.
    pub shape: Vec<usize>,
    /// Its parameters; 0 where the layer has been listed before.
    pub n_parameters: usize,
    /// Its floating-point operations.
    pub flops: u64,
}

impl<M: Module> Model<M> {
    /// The layers of the model for a batch of `n_rows` rows of `n_cols` columns: their output shapes, parameters and
    /// floating-point operations, and the memory that an evaluation takes. Nothing is computed and no device is needed.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the model does not take such rows.
    /// # Examples
    /// ```
    /// use brisk_nn::{Activation, Mlp, MlpConfig};
    /// use brisk_train::Model;
    ///
    /// let sizes = MlpConfig { n_inputs: 784, hidden: vec![256], n_outputs: 26, activation: Activation::relu() };
    /// let summary = Model::new(7, |params| Mlp::new(params, &sizes)).summary(128, 784)?;
    /// assert_eq!(summary.n_parameters, 785 * 256 + 257 * 26);
    /// assert_eq!(summary.layers[0].shape, [128, 256]);
    /// println!("{summary}");
    /// # Ok::<(), brisk_train::Error>(())
    /// ```
    #[track_caller]
    pub fn summary(&self, n_rows: usize, n_cols: usize) -> Result<Summary, Error> {
        let graph = Graph::inference("summary");
        let _caller = graph.enter_from_caller();
        let (module, params) = (self.module(), self.params());
        let input = |name, dtype, n_cols: usize| {
            graph.tensor(&Persistent::new(name, dtype, n_rows.saturating_mul(n_cols)), &[n_rows, n_cols])
        };
        let x = input("x", DType::F32, n_cols);
        let n_categories = params.categorical_columns().len();
        let codes = (n_categories > 0).then(|| input("categories", DType::U32, n_categories));
        let bound = params.bind(&graph).with_categories(codes.as_ref());
        graph.autocast(self.precision, || module.forward(&bound, &x));
        graph.check()?;

        let parameters_of = |name: &str| {
            let entries = params.entries().iter().filter(|entry| entry.path() == name);
            entries.map(|entry| entry.range.len()).sum::<usize>()
        };
        let mut layers: Vec<LayerSummary> = Vec::new();
        for operation in graph.report().operations {
            let (name, flops) = (operation.scope, operation.flops);
            match layers.last_mut().filter(|layer| !name.is_empty() && layer.name == name) {
                Some(layer) => {
                    layer.flops += flops;
                    layer.shape = operation.shape;
                    layer.operations.push(operation.name);
                }
                None => {
                    let is_new = !name.is_empty() && layers.iter().all(|layer| layer.name != name);
                    let n_parameters = if is_new { parameters_of(&name) } else { 0 };
                    let operations = vec![operation.name];
                    layers.push(LayerSummary { name, operations, shape: operation.shape, n_parameters, flops });
                }
            }
        }
        Ok(Summary {
            n_rows,
            n_parameters: params.entries().iter().map(|entry| entry.range.len()).sum(),
            flops: layers.iter().map(|layer| layer.flops).sum(),
            planned_bytes: Graph::planned_peak_bytes(&[&graph])?,
            layers,
        })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = ["layer", "operations", "output shape", "parameters", "FLOPs"].map(str::to_owned);
        let rows = self.layers.iter().map(|layer| {
            let LayerSummary { name, operations, shape, n_parameters, flops } = layer;
            [name.clone(), operations.join(" "), format!("{shape:?}"), thousands(*n_parameters as u64), thousands(*flops)]
        });
        let total =
            ["total".to_owned(), String::new(), String::new(), thousands(self.n_parameters as u64), thousands(self.flops)];
        let rows: Vec<[String; 5]> = std::iter::once(head).chain(rows).chain([total]).collect();
        let widths: [usize; 5] = std::array::from_fn(|col| rows.iter().map(|row| row[col].chars().count()).max().unwrap_or(0));
        let [a, b, c, d, e] = widths;
        for [name, operations, shape, parameters, flops] in &rows {
            writeln!(f, "{name:a$}  {operations:b$}  {shape:c$}  {parameters:>d$}  {flops:>e$}")?;
        }
        write!(f, "{} for an evaluation of {} rows", mebibytes(self.planned_bytes as u64), thousands(self.n_rows as u64))
    }
}
