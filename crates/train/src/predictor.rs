//! Inference: a model compiled for a few sizes of batches, which together take any number of rows.

use std::sync::Mutex;

use brisk_nn::tensor::program::kernels::STATE_LEN;
use brisk_nn::tensor::program::{Device, DeviceKind, Executable};
use brisk_nn::tensor::{DType, Graph, Persistent, Precision, Recording, Tensor};
use brisk_nn::{Bound, CategoricalColumn, Module, Parameters};

use crate::error::Error;
use crate::model::Model;
use crate::rows::inspect::{check_columns, column_count, first_non_finite, first_unknown_code, non_finite, unknown_code};
use crate::standardisation::Standardisation;

/// The sizes of batches that a model can be compiled for.
static BATCH_ROWS: [usize; 24] =
    [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536, 2048, 3072, 4096];

/// How rows are divided into batches.
#[derive(Debug, Clone, Copy)]
struct Batching {
    sizes: &'static [usize],
    /// How many rows take as long as starting a batch and reading its results: what a further batch costs.
    batch_cost: usize,
}

impl Batching {
    /// On the CPU, a batch costs little more than a call, and the rows of one of up to 512 stay in its cache.
    fn of(device: &Device) -> Self {
        match device.info().kind {
            DeviceKind::Cpu => {
                let n_sizes = BATCH_ROWS.partition_point(|&size| size <= 512);
                Self { sizes: &BATCH_ROWS[..n_sizes], batch_cost: 4 }
            }
            _ => Self { sizes: &BATCH_ROWS, batch_cost: 16 },
        }
    }

    /// The cost of predicting `n_rows` rows in units of a row, and the index of the size to begin with: one that takes all of
    /// them, or the next smaller one.
    fn cheapest(self, n_rows: usize) -> (usize, usize) {
        let Self { sizes, batch_cost } = self;
        let at = sizes.iter().position(|&size| size >= n_rows).unwrap_or(sizes.len());
        let one = sizes.get(at).map_or(usize::MAX, |size| size + batch_cost);
        let Some(below) = at.checked_sub(1) else { return (one, at) };
        // Of more rows than the largest batch takes, only the next batch is chosen.
        let rest = if at == sizes.len() { 0 } else { self.cheapest(n_rows - sizes[below]).0 };
        let several = sizes[below] + batch_cost + rest;
        if several < one { (several, below) } else { (one, at) }
    }
}

/// What a model returns for rows in memory, from one row to any number. `Send` and `Sync`: threads may share one; batches of one
/// size are computed one at a time.
///
/// Results for a row are equal up to rounding, whatever batch it is in. The model is recorded when the predictor is made, for
/// batches of 24 sizes from 1 to 4096 rows, on the CPU of 18 sizes to 512 rows, and compiled for a size when it is first needed;
/// all sizes share the parameters, and the memory of all of them is less than that of 16384 rows. The predictor has a copy of the
/// parameters: training the model further does not change it.
///
/// # Examples
/// ```
/// use brisk_nn::tensor::program::Device;
/// use brisk_nn::{Activation, Mlp, MlpConfig};
/// use brisk_train::{Model, Predictor, PredictorInputs};
///
/// let sizes = MlpConfig { n_inputs: 3, hidden: vec![16], n_outputs: 2, activation: Activation::relu() };
/// let model = Model::new(7, |params| Mlp::new(params, &sizes));
/// let predictor = Predictor::new(&Device::cpu()?, &model, 3)?;
/// let outputs = predictor.predict(&[0.5; 20 * 3], &[])?;
/// assert_eq!(outputs.len(), 20 * 2);
/// // Batches of different sizes may add up in another order.
/// let one = predictor.predict(&[0.5; 3], &[])?;
/// assert!((one[0] - outputs[0]).abs() < 1e-6);
///
/// // Several outputs, such as the probability beside the logit.
/// let inputs = PredictorInputs::numbers(3);
/// let several = Predictor::record(&Device::cpu()?, model.params(), &inputs, |params, x| {
///     let logits = model.module().forward(params, x);
///     vec![logits.sigmoid(), logits]
/// })?;
/// assert_eq!(several.predict_all(&[0.5; 3], &[])?[1], one);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Predictor {
    device: Device,
    inputs: PredictorInputs,
    /// Columns of each output.
    widths: Vec<usize>,
    batching: Batching,
    /// One for each size of the batching, in ascending order.
    batches: Vec<RecordedBatch>,
}

/// The rows that a [`Predictor`] takes.
#[derive(Debug, Clone, PartialEq)]
pub struct PredictorInputs {
    /// Columns that are numbers.
    pub n_cols: usize,
    /// Categorical columns.
    pub categories: Vec<CategoricalColumn>,
    /// How the numbers are standardised before outputs are recorded from them. `None` for parameters that were not trained on
    /// standardised features.
    pub scale: Option<Standardisation>,
}

impl PredictorInputs {
    /// Rows of `n_cols` numbers.
    pub fn numbers(n_cols: usize) -> Self {
        Self { n_cols, categories: Vec::new(), scale: None }
    }

    /// The same rows, standardised by `scale`. [`Standardisation::none`] leaves them as they are, such as for outputs that are
    /// recorded from rows that are standardised before.
    #[must_use]
    pub fn standardised(self, scale: &Standardisation) -> Self {
        Self { scale: Some(scale.clone()), ..self }
    }
}

/// The model for batches of one size, with its inputs and outputs.
#[derive(Debug)]
struct RecordedBatch {
    n_rows: usize,
    x: Persistent,
    categories: Option<Persistent>,
    state: Persistent,
    outputs: Vec<Persistent>,
    recording: Recording,
    /// Compiled when it is first needed; held while a batch of this size is computed.
    executable: Mutex<Option<Executable>>,
}

impl Predictor {
    /// A predictor of `model`'s outputs for rows of `n_cols` columns, which are standardised as in training; in its precision.
    ///
    /// # Errors
    /// [`Error::RowLayout`] if the model was trained on a different number of columns, or takes a different number;
    /// [`Error::Setting`] if a [`Step`](crate::Step) has trained its parameters on features that it standardised, and
    /// [`Model::trained_by`] was not called; [`Error::Tensor`] if it does not take such rows, or the device has no room.
    #[track_caller]
    pub fn new<M: Module>(device: &Device, model: &Model<M>, n_cols: usize) -> Result<Self, Error> {
        let module = model.module();
        let scale = model.checked_scale()?.cloned().unwrap_or_else(|| Standardisation::none(n_cols));
        let inputs = PredictorInputs { n_cols, categories: model.params().categorical_columns().to_vec(), scale: Some(scale) };
        check_columns("predicted", n_cols, module)?;
        Self::record_in(model.precision, device, model.params(), &inputs, |params, x| vec![module.forward(params, x)])
    }

    /// A predictor of whatever `outputs` records from the parameters, with their [newest](Parameters::newest) values and the
    /// [categories](Bound::categories) of the rows, if they have any, and from the features `[n_rows, n_cols]`: one tensor or
    /// several, whose first dimension is `n_rows`. It is called once for each size of batches. The outputs for a row must not
    /// depend on the other rows of a batch, some of which are padding.
    ///
    /// # Errors
    /// [`Error::Setting`] if the parameters were trained on standardised features, and `inputs` does not say
    /// [how](PredictorInputs::standardised); [`Error::RowLayout`] if it says so for another number of columns; [`Error::Tensor`]
    /// if recording fails, an output has another number of rows, or the device has no room.
    #[track_caller]
    pub fn record(
        device: &Device,
        params: &Parameters,
        inputs: &PredictorInputs,
        outputs: impl Fn(&Bound, &Tensor) -> Vec<Tensor>,
    ) -> Result<Self, Error> {
        Self::record_in(Precision::F32, device, params, inputs, outputs)
    }

    #[track_caller]
    fn record_in(
        precision: Precision,
        device: &Device,
        params: &Parameters,
        inputs: &PredictorInputs,
        outputs: impl Fn(&Bound, &Tensor) -> Vec<Tensor>,
    ) -> Result<Self, Error> {
        match &inputs.scale {
            Some(scale) if scale.mean().len() != inputs.n_cols => {
                return Err(column_count("predicted", inputs.n_cols, scale.mean().len()));
            }
            Some(_) => {}
            None => {
                let expected = "`PredictorInputs::standardised`, or `Predictor::new` after `Model::trained_by`";
                Standardisation::check(None, params, expected)?;
            }
        }
        let params = params.detached()?;
        params.write_initial(device)?;
        let batch = |n_rows| RecordedBatch::record(precision, &params, inputs, n_rows, &outputs);
        let batching = Batching::of(device);
        let mut batches = batching.sizes.iter().copied().map(batch).collect::<Result<Vec<_>, Error>>()?;
        // A model that the device cannot run is refused here.
        batches[0].executable = Mutex::new(Some(batches[0].compile(device)?));
        let widths = batches[0].outputs.iter().map(Persistent::len).collect();
        Ok(Self { device: device.clone(), inputs: inputs.clone(), widths, batching, batches })
    }

    /// The first output for each row.
    ///
    /// # Shapes
    /// `features`: `[n_rows, n_cols]`; `categories`: `[n_rows, n_categories]`, empty without any; the result
    /// `[n_rows, n_outputs]`; all row-major.
    /// # Errors
    /// As [`predict_all`](Self::predict_all).
    pub fn predict(&self, features: &[f32], categories: &[u32]) -> Result<Vec<f32>, Error> {
        Ok(self.predict_all(features, categories)?.swap_remove(0))
    }

    /// All outputs for each row.
    ///
    /// # Errors
    /// [`Error::Tensor`] if the lengths do not fit the columns, or the device fails; [`Error::Value`] for a feature that is NaN
    /// or infinite, as in training: some models, such as those with comparisons, return a number for it; [`Error::Value`] for a
    /// code beyond those of its column.
    pub fn predict_all(&self, features: &[f32], categories: &[u32]) -> Result<Vec<Vec<f32>>, Error> {
        let (n_cols, n_categories) = (self.inputs.n_cols, self.inputs.categories.len());
        let n_rows = self.check(features, categories)?;
        let mut all: Vec<Vec<f32>> = self.widths.iter().map(|width| Vec::with_capacity(n_rows * width)).collect();
        let mut first = 0;
        while first < n_rows {
            let batch = &self.batches[self.batching.cheapest(n_rows - first).1];
            let mut compiled = batch.executable.lock().expect("no thread panics while it computes a batch");
            let executable = match &mut *compiled {
                Some(executable) => executable,
                empty => empty.insert(batch.compile(&self.device)?),
            };
            let end = n_rows.min(first + batch.n_rows);
            if n_cols > 0 {
                let features = &features[first * n_cols..end * n_cols];
                if let Some((at, found)) = first_non_finite(features) {
                    let (row, column) = (first + at / n_cols, at % n_cols);
                    return Err(non_finite("predicted", row, column, None, found));
                }
                self.device.write_at(&batch.x, 0, features)?;
            }
            if let Some(codes) = &batch.categories {
                self.device.write_at(codes, 0, &categories[first * n_categories..end * n_categories])?;
            }
            executable.run(1)?;
            for ((output, all), width) in batch.outputs.iter().zip(&mut all).zip(&self.widths) {
                let values: Vec<f32> = self.device.read(output)?;
                all.extend_from_slice(&values[..(end - first) * width]);
            }
            first = end;
        }
        Ok(all)
    }

    /// The rows that it takes.
    pub fn inputs(&self) -> &PredictorInputs {
        &self.inputs
    }

    /// Columns of each output.
    pub fn n_outputs(&self) -> &[usize] {
        &self.widths
    }

    /// Checks the inputs, and returns the number of rows.
    fn check(&self, features: &[f32], categories: &[u32]) -> Result<usize, Error> {
        let (n_cols, n_categories) = (self.inputs.n_cols, self.inputs.categories.len());
        let refused = |arg, expected: String, found: usize| Err(Error::shape("predict", arg, expected, vec![found]));
        let n_rows = features.len().checked_div(n_cols).unwrap_or(categories.len() / n_categories.max(1));
        if features.len() != n_rows * n_cols {
            return refused("features", format!("a multiple of {n_cols}, the number of columns"), features.len());
        }
        if categories.len() != n_rows * n_categories {
            let expected = format!("[{n_rows}, {n_categories}], a code for each categorical column of {n_rows} rows");
            return refused("categories", expected, categories.len());
        }
        match first_unknown_code(categories, &self.inputs.categories) {
            Some((row, column, code)) => {
                Err(unknown_code("predicted", row, column, code, self.inputs.categories[column].n_codes))
            }
            None => Ok(n_rows),
        }
    }
}

impl RecordedBatch {
    fn compile(&self, device: &Device) -> Result<Executable, Error> {
        let executable = self.recording.compile(device)?;
        device.write(&self.state, &[0_u32; STATE_LEN])?;
        // The rows beyond a short batch are computed as well; they start as zeros.
        if !self.x.is_empty() {
            device.write(&self.x, &vec![0.0_f32; self.x.len()])?;
        }
        if let Some(categories) = &self.categories {
            device.write(categories, &vec![0_u32; categories.len()])?;
        }
        Ok(executable)
    }

    #[track_caller]
    fn record(
        precision: Precision,
        params: &Parameters,
        inputs: &PredictorInputs,
        n_rows: usize,
        outputs: &impl Fn(&Bound, &Tensor) -> Vec<Tensor>,
    ) -> Result<Self, Error> {
        let (n_cols, n_categories) = (inputs.n_cols, inputs.categories.len());
        let graph = Graph::inference("predict");
        let _caller = graph.enter_from_caller();
        let x = Persistent::new("x", DType::F32, n_rows * n_cols);
        let categories = (n_categories > 0).then(|| Persistent::new("categories", DType::U32, n_rows * n_categories));
        let codes = categories.as_ref().map(|codes| graph.tensor(codes, &[n_rows, n_categories]));
        let bound = params.bind(&graph).with_categories(&codes);
        let features = graph.tensor(&x, &[n_rows, n_cols]);
        // Without standardisation no kernel is needed.
        let features = match inputs.scale.as_ref().filter(|scale| !scale.is_plain()) {
            None => features,
            Some(scale) => {
                let row = |name, values: &[f32]| graph.constant(name, values, &[1, n_cols]);
                features.sub(&row("mean", scale.mean())).multiply(&row("inv_std", scale.inv_std()))
            }
        };
        let tensors = graph.autocast(precision, || outputs(&bound, &features));
        graph.check()?;
        if tensors.is_empty() {
            return Err(Error::refused("predict", "no outputs", "at least one tensor"));
        }
        let state = Graph::state_buffer();
        let mut stored = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            if tensor.shape().first() != Some(&n_rows) {
                let (expected, found) = (format!("[{n_rows}, …], a result for each row"), tensor.shape().to_vec());
                return Err(Error::shape("predict", "output", expected, found));
            }
            let output = Persistent::new("output", DType::F32, tensor.n_elements());
            graph.store(&tensor.cast(DType::F32), &state, &output);
            stored.push(output);
        }
        let recording = graph.recording()?;
        Ok(Self { n_rows, x, categories, state, outputs: stored, recording, executable: Mutex::new(None) })
    }
}
