//! A model as one value: module, parameters, and how its input is standardised.

use std::collections::HashSet;
use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use brisk_atomic_file::listed;
use brisk_loader::{Encoding, Order};
use brisk_metrics::{MetricValue, Scored};
use brisk_nn::tensor::Precision;
use brisk_nn::tensor::program::Device;
use brisk_nn::{Activation, Buffer, Module, Parameters, ParametersBuilder};
use serde_json::Value;

use crate::checkpoint::Checkpoint;
use crate::checkpoint::kind::not_a_model;
use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::feed::{Feed, FeedConfig};
use crate::flat;
use crate::loaded_part::{LoadedPart, expected_within, prefix_before};
use crate::rows::inspect::{check_columns, column_count};
use crate::rows::{FeedRows, RowNames};
use crate::scorer::{EVALUATION_ROWS, Evaluation, RecordedScorer};
use crate::settings::json;
use crate::standardisation::Standardisation;
use crate::step::Step;
use crate::task::{Task, read_labels};

/// A module with its parameters and the standardisation of its input: a [`Trainer`](crate::Trainer) trains it, a file keeps it.
///
/// # Examples
/// See [`Trainer`](crate::Trainer).
#[derive(Debug)]
pub struct Model<M = Box<dyn Module>> {
    module: M,
    params: Parameters,
    scale: Option<Standardisation>,
    /// Of the rows that it was trained on.
    pub(crate) names: RowNames,
    /// The device of the training, or the one that was opened for the first prediction.
    device: OnceLock<Device>,
    pub(crate) precision: Precision,
}

impl<M: Module> Model<M> {
    /// A model that `make` builds, with initial values drawn by `seed`.
    pub fn new(seed: u64, make: impl FnOnce(&mut ParametersBuilder) -> M) -> Self {
        let mut builder = ParametersBuilder::new();
        let module = make(&mut builder);
        let (params, names) = (builder.build(seed), RowNames::default());
        Self { module, params, scale: None, names, device: OnceLock::new(), precision: Precision::F32 }
    }

    /// A model that `make` builds, with the parameters of a file: one that [`save`](Self::save) wrote, a checkpoint of a run, or
    /// a PyTorch `state_dict` in safetensors format. Without the standardisation of the input that brisk's files have, the input
    /// is taken as it is.
    ///
    /// # Errors
    /// [`Error::Io`], [`Error::Damaged`], [`Error::WrongFile`] for a file that cannot be read or is not that of a model;
    /// [`Error::CheckpointEntry`] for one of another model, which lacks tensors of this one or has more; for convolutions of
    /// another program: see [`load_pytorch`](Self::load_pytorch).
    pub fn load(path: impl AsRef<Path>, make: impl FnOnce(&mut ParametersBuilder) -> M) -> Result<Self, Error> {
        Self::from_checkpoint(&model_file(path.as_ref())?.in_ohwi(false)?, make)
    }

    /// [`load`](Self::load) for a PyTorch `state_dict` in safetensors format, whose weights of convolutions are
    /// `[out, in, height, width]`.
    ///
    /// Names must be those of the model's parameters. f16, bf16 and f64 are converted to f32; `num_batches_tracked`, which brisk
    /// does not have, is ignored. [`load_pytorch_part`](Self::load_pytorch_part) takes a part of a file. A linear layer after
    /// [`Flatten`](brisk_nn::Flatten) has its columns in another order in PyTorch, as described there.
    ///
    /// `DataParallel` and `torch.compile` put `module.` or `_orig_mod.` before all names: a model that is built
    /// [within](ParametersBuilder::within) `module` has them, too. A file of `torch.save` is converted in Python by
    /// `safetensors.torch.save_file(state_dict, path)`; in a checkpoint with more than the model, the `state_dict` is often the
    /// value of a key such as `model` or `state_dict`.
    ///
    /// # Errors
    /// As [`load`](Self::load).
    pub fn load_pytorch(path: impl AsRef<Path>, make: impl FnOnce(&mut ParametersBuilder) -> M) -> Result<Self, Error> {
        Self::from_checkpoint(&model_file(path.as_ref())?.in_ohwi(true)?, make)
    }

    /// Replaces the parameters and buffers whose names begin with `prefix` by those of a file, such as a backbone whose head is
    /// of another task; with an empty prefix, all that the file has. The others keep their values. The result says what was left
    /// out: nothing has to fit, but something has to be found. If the model has no standardisation of its input yet, it takes
    /// that of the file. For files of PyTorch with convolutions, see [`load_pytorch_part`](Self::load_pytorch_part).
    ///
    /// # Errors
    /// As [`load`](Self::load) for a file that cannot be read; [`Error::CheckpointEntry`] of the first tensor if none fits, and
    /// for convolutions of another program; [`Error::Setting`] if no name begins with `prefix`.
    ///
    /// # Reference
    /// `load_state_dict(…, strict=False)` of PyTorch, which returns missing and unexpected keys; another shape is an error there.
    /// # Examples
    /// ```
    /// use brisk_nn::{Activation, Linear, Sequential};
    /// use brisk_train::Model;
    ///
    /// # let path = std::env::temp_dir().join(format!("brisk-train-part-{}.safetensors", std::process::id()));
    /// let network = |n_classes: usize| {
    ///     Model::new(7, |p| {
    ///         let backbone = Linear::new(p, "backbone", 8, 16, Activation::relu());
    ///         Sequential(vec![Box::new(backbone), Box::new(Linear::new(p, "head", 16, n_classes, Activation::identity()))])
    ///     })
    /// };
    /// network(10).save(&path)?;
    ///
    /// let mut model = network(3);
    /// let part = model.load_part(&path, "")?;
    /// assert_eq!(part.loaded, ["backbone.weight", "backbone.bias"]);
    /// assert_eq!(part.mismatched[0].to_string(), "`head.weight` is [10, 16] in the file, [3, 16] in the model");
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_part(&mut self, path: impl AsRef<Path>, prefix: &str) -> Result<LoadedPart, Error> {
        let checkpoint = model_file(path.as_ref())?.in_ohwi(false).map_err(|mut error| {
            if let Error::CheckpointEntry { expected, .. } = &mut error {
                *expected =
                    "one in brisk's layout; use `Model::load_pytorch_part` if it is PyTorch's, [out, in, height, width]".into();
            }
            error
        })?;
        self.take_part(&checkpoint, prefix)
    }

    /// [`load_part`](Self::load_part) for a PyTorch `state_dict` in safetensors format, whose weights of convolutions are
    /// `[out, in, height, width]`; described at [`load_pytorch`](Self::load_pytorch).
    ///
    /// # Errors
    /// As [`load_part`](Self::load_part), but weights of convolutions are taken.
    ///
    /// # Examples
    /// A network of PyTorch for 1000 classes gives all but its head:
    /// ```
    /// use brisk_nn::{Activation, Conv2d, Conv2dConfig, GlobalAvgPool2d, Linear, Reshape, Sequential};
    /// use brisk_train::Model;
    ///
    /// # let path = std::env::temp_dir().join(format!("brisk-train-pytorch-part-{}.safetensors", std::process::id()));
    /// let network = |n_classes: usize| {
    ///     Model::new(7, |p| {
    ///         Sequential(vec![
    ///             Box::new(Reshape::new([8, 8, 3])),
    ///             Box::new(Conv2d::new(p, "conv1", &Conv2dConfig::square(3, 16, 3))),
    ///             Box::new(GlobalAvgPool2d),
    ///             Box::new(Linear::new(p, "fc", 16, n_classes, Activation::identity())),
    ///         ])
    ///     })
    /// };
    /// # network(1000).save_pytorch(&path)?;
    /// let mut model = network(3);
    /// let part = model.load_pytorch_part(&path, "")?;
    /// assert_eq!(part.loaded, ["conv1.weight", "conv1.bias"]);
    /// assert_eq!(part.mismatched[0].to_string(), "`fc.weight` is [1000, 16] in the file, [3, 16] in the model");
    /// # std::fs::remove_file(&path)?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn load_pytorch_part(&mut self, path: impl AsRef<Path>, prefix: &str) -> Result<LoadedPart, Error> {
        self.take_part(&model_file(path.as_ref())?.in_ohwi(true)?, prefix)
    }

    fn take_part(&mut self, checkpoint: &Checkpoint, prefix: &str) -> Result<LoadedPart, Error> {
        let part = LoadedPart::load(&mut self.params, checkpoint, prefix)?;
        if let (None, Some(scale)) = (&self.scale, Standardisation::in_checkpoint(checkpoint)?) {
            self.set_standardisation(scale);
        }
        Ok(part)
    }

    fn from_checkpoint(checkpoint: &Checkpoint, make: impl FnOnce(&mut ParametersBuilder) -> M) -> Result<Self, Error> {
        let mut model = Self::new(0, make);
        model.params.check()?;
        check_tensors(checkpoint, &model.params)?;
        model.set_values(&flat::values_of(checkpoint, &model.params, str::to_owned)?)?;
        model.set_buffers(|buffer| Ok(checkpoint.f32(buffer.name(), buffer.shape())?.to_vec()))?;
        model.precision = checkpoint.metadata_if_any(PRECISION, "f32, f16 or bf16")?.unwrap_or(model.precision);
        let names = checkpoint.metadata_if_any(RowNames::KEY, "the names of columns, labels, classes and categories as JSON")?;
        model.names = names.unwrap_or_default();
        if let Some(scale) = Standardisation::in_checkpoint(checkpoint)? {
            model.set_standardisation(scale);
        }
        Ok(model)
    }

    /// Writes parameters, buffers, the standardisation of the input, the precision of the training and the names of its columns,
    /// labels, classes and categories, atomically: a safetensors file with the names of PyTorch's `state_dict`, plus `input.mean`
    /// and `input.inv_std`. Weights of convolutions are `[out, height, width, in]`, as the string `conv_layout` says.
    ///
    /// # Errors
    /// [`Error::Setting`] if a [`Step`] has trained the parameters on features that it standardised, and
    /// [`trained_by`](Self::trained_by) was not called; [`Error::Write`]; an earlier file of that name is then unchanged.
    pub fn save(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        let mut checkpoint = self.state()?;
        self.scale.as_ref().map_or(Ok(()), |scale| scale.insert_into(&mut checkpoint))?;
        if checkpoint.tensors().any(|(_, shape, _)| shape.len() == 4) {
            // With "oihw" if the file is turned into one for PyTorch.
            checkpoint.insert_metadata("conv_layout", "ohwi");
        }
        describe(&mut checkpoint, &self.params, &self.names, self.precision)?;
        checkpoint.save(path)
    }

    /// Writes parameters and buffers for `load_state_dict(safetensors.torch.load_file(path))`: weights of convolutions are
    /// `[out, in, height, width]`. The standardisation of the input is not part of it; [`standardisation`](Self::standardisation)
    /// returns it. [`load`](Self::load) reads such a file, too.
    ///
    /// # Errors
    /// As [`save`](Self::save).
    pub fn save_pytorch(&self, path: impl AsRef<Path>) -> Result<(), Error> {
        self.state()?.ohwi_to_oihw().save(path)
    }

    /// The parameters and buffers by name.
    fn state(&self) -> Result<Checkpoint, Error> {
        self.checked_scale()?;
        let mut checkpoint = Checkpoint::new();
        let values = self.params.newest()?;
        for entry in self.params.entries() {
            checkpoint.insert(&entry.name, &entry.shape, values[entry.range.clone()].to_vec())?;
        }
        for buffer in self.params.buffers() {
            checkpoint.insert(buffer.name(), buffer.shape(), buffer.newest()?)?;
        }
        Ok(checkpoint)
    }

    /// The loss and the metrics of `task` on `rows`, counting each row once. Runs on the device that the model was trained on or
    /// [given](Self::on), else on [the best one](Device::best), which the model keeps; in the precision of the training, also
    /// after the model was saved and loaded.
    ///
    /// # Errors
    /// As [`Trainer::prepare`](crate::Trainer::prepare) for rows that do not suit the model or the task, or whose
    /// [names](brisk_loader::RowSource::names) are not those of the rows that the model was trained on; [`Error::Setting`] if a
    /// [`Step`] has trained the parameters on features that it standardised, and [`trained_by`](Self::trained_by) was not called.
    #[track_caller]
    pub fn evaluate<S: FeedRows>(&self, task: &dyn Task, rows: &S) -> Result<Scores, Error> {
        task.check()?;
        let labels = read_labels(&task.label_kinds(), "test", rows)?;
        let Evaluation { outputs, loss, .. } = self.outputs_of(&self.module, rows, Some(task))?;
        Scores::of(task, &outputs, &labels, loss)
    }

    /// What the model returns for each of `rows`, in order: `[n_rows, n_outputs]`, row-major. Labels and their names are ignored.
    /// A code that an embedding does not have counts as 0, which stands for unknown values.
    ///
    /// For classification these are logits: the predicted class is the index of the largest, and probabilities are their softmax,
    /// or for a single logit its sigmoid.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    #[track_caller]
    pub fn predict<S: FeedRows>(&self, rows: &S) -> Result<Vec<f32>, Error> {
        Ok(self.outputs_of(&self.module, rows, None)?.outputs)
    }

    /// The outputs of `module`, which uses this model's parameters.
    #[track_caller]
    pub(crate) fn outputs_of<S: FeedRows>(
        &self,
        module: &dyn Module,
        rows: &S,
        task: Option<&dyn Task>,
    ) -> Result<Evaluation, Error> {
        let device = match self.device.get().cloned().or_else(|| self.params.newest_device()) {
            Some(device) => device,
            None => {
                let device = Device::best()?;
                self.device.get_or_init(|| device).clone()
            }
        };
        let scale = self.checked_scale()?.cloned().unwrap_or_else(|| Standardisation::none(rows.n_cols()));
        if scale.mean().len() != rows.n_cols() {
            return Err(column_count("test", rows.n_cols(), scale.mean().len()));
        }
        check_columns("test", rows.n_cols(), &self.module)?;
        self.names.check("test", rows, task.is_some_and(|task| task.n_labels() > 0))?;
        self.params.write_newest(&device)?;
        let labels = task.map_or(brisk_nn::tensor::DType::F32, |task| task.labels().dtype());
        let config = FeedConfig { labels, ..FeedConfig::default() };
        let feed = Feed::new(&device, "test", rows, Order::Sequential, EVALUATION_ROWS, &config)?;
        let scorer =
            RecordedScorer::record(&device, module, &self.params, &feed, &scale, self.precision, DataParallel::single(), task)?;
        let scorer = scorer.compile(&device)?;
        feed.open(&device, |open| scorer.evaluate(open))
    }

    /// The same model, which predicts on `device`. Training moves it to the device of the trainer.
    #[must_use]
    pub fn on(self, device: &Device) -> Self {
        Self { device: OnceLock::from(device.clone()), ..self }
    }

    /// The module.
    pub fn module(&self) -> &M {
        &self.module
    }

    /// The parameters, whose [newest](Parameters::newest) values are those of the model.
    pub fn params(&self) -> &Parameters {
        &self.params
    }

    /// The parameters, to set their initial values: those from which training starts.
    pub fn params_mut(&mut self) -> &mut Parameters {
        &mut self.params
    }

    /// Takes over how a [`Step`] that trains these parameters standardises its input, its device and its precision. The values
    /// are those of the parameters, which the step trains: predictions, evaluations and files have the newest ones, also if the
    /// step is run again.
    ///
    /// # Errors
    /// [`Error::Setting`] if the step trains other parameters.
    ///
    /// # Examples
    /// See [`Step`].
    pub fn trained_by(&mut self, step: &Step<'_>) -> Result<(), Error> {
        if !step.trains(&self.params) {
            let found = "a step that does not train the parameters of this model";
            return Err(Error::setting("step", found, "one that does (`StepBuilder::train(model.params(), …)`)"));
        }
        self.set_standardisation(step.scale.clone());
        self.names = step.names();
        self.precision = step.precision;
        self.device = OnceLock::from(step.device.clone());
        Ok(())
    }

    /// The same parameters with another module over them, such as one that averages outputs over several views of its input.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::{Activation, Linear, Sequential};
    /// use brisk_train::Model;
    ///
    /// let model = Model::new(7, |params| Linear::new(params, "head", 4, 2, Activation::identity()));
    /// let model = model.map(|head| Sequential(vec![Box::new(head)]));
    /// ```
    pub fn map<N: Module>(self, wrap: impl FnOnce(M) -> N) -> Model<N> {
        let Self { module, params, scale, names, device, precision } = self;
        Model { module: wrap(module), params, scale, names, device, precision }
    }

    /// How the input is standardised, once the model has been trained or loaded with it.
    pub fn standardisation(&self) -> Option<&Standardisation> {
        self.scale.as_ref()
    }

    /// An untrained model that returns its input, on the device of this one.
    pub(crate) fn identity(&self) -> Model<Activation> {
        Model { device: self.device.clone(), ..Model::new(0, |_| Activation::identity()) }
    }

    /// Sets how the input is standardised, which training then keeps; [`Standardisation::none`] for a model whose input is not
    /// that of the rows, such as a generator that a [`Step`] trains on other features.
    pub fn set_standardisation(&mut self, scale: Standardisation) {
        self.params.set_trained_on(Some(scale.features()));
        self.scale = Some(scale);
    }

    /// Says how the values were computed that the model takes: [`Names::encoding`](brisk_loader::Names::encoding) of the rows
    /// that it is to be trained, evaluated and used on. Others are refused. Training sets it to that of the training rows.
    pub fn set_encoding(&mut self, encoding: Encoding) {
        self.names.encoding = encoding;
    }

    /// How the input is standardised, if the newest values of the parameters were trained with it.
    pub(crate) fn checked_scale(&self) -> Result<Option<&Standardisation>, Error> {
        let expected = "that of their training; call `Model::trained_by` with the step, or `Model::set_standardisation`";
        Standardisation::check(self.scale.as_ref(), &self.params, expected)?;
        Ok(self.scale.as_ref())
    }

    /// Takes over the values that a run has left on the device in `params`, which have this model's layout.
    pub(crate) fn take_trained(
        &mut self,
        device: &Device,
        params: &Parameters,
        replicas: &DataParallel,
        (scale, names): (Standardisation, RowNames),
        precision: Precision,
    ) -> Result<(), Error> {
        let held: Vec<f32> = device.read(params.values())?;
        self.set_values(&replicas.whole_values(params, &held)?)?;
        self.set_buffers(|buffer| Ok(device.read(buffer.values())?))?;
        self.set_standardisation(scale);
        self.names = names;
        (self.device, self.precision) = (OnceLock::from(device.clone()), precision);
        Ok(())
    }

    fn set_buffers(&mut self, values: impl Fn(&Buffer) -> Result<Vec<f32>, Error>) -> Result<(), Error> {
        for id in self.params.buffer_ids() {
            let values = values(self.params.buffer(id))?;
            self.params.set_initial_buffer(id, &values)?;
        }
        Ok(())
    }

    fn set_values(&mut self, flat: &[f32]) -> Result<(), Error> {
        for id in self.params.ids_where(|_| true) {
            let range = self.params.entry(id).range.clone();
            self.params.set_initial(id, &flat[range])?;
        }
        Ok(())
    }
}

/// The checkpoint at a path, unless that is of a table.
fn model_file(path: &Path) -> Result<Checkpoint, Error> {
    let checkpoint = Checkpoint::load(path)?;
    if checkpoint.has_metadata("brisk_table") {
        return Err(not_a_model(checkpoint.name().into(), "a table of rows; give the path of a model"));
    }
    Ok(checkpoint)
}

const PRECISION: &str = "precision";

/// The metadata with the names of the model's tensors, as JSON: files of runs have others, too.
const TENSORS: &str = "model.tensors";

/// Adds what a file says of a model besides its tensors.
pub(crate) fn describe(
    checkpoint: &mut Checkpoint,
    params: &Parameters,
    names: &RowNames,
    precision: Precision,
) -> Result<(), Error> {
    if precision != Precision::F32 {
        checkpoint.insert_metadata(PRECISION, precision);
    }
    if !names.is_empty() {
        checkpoint.insert_metadata(RowNames::KEY, json(names)?);
    }
    checkpoint.insert_metadata(TENSORS, json(&tensor_names(params))?);
    Ok(())
}

fn tensor_names(params: &Parameters) -> Vec<&str> {
    let buffers = params.buffers().iter().map(|buffer| buffer.name());
    params.entries().iter().map(|entry| &*entry.name).chain(buffers).collect()
}

/// Checks that a file has all tensors of a model, and no others of a model.
fn check_tensors(checkpoint: &Checkpoint, params: &Parameters) -> Result<(), Error> {
    let own = tensor_names(params);
    let refused = |names: &[&str], found: &str, expected: String| {
        let others = if names.len() > 1 { format!(", as are others: {}", listed(&names[1..])) } else { String::new() };
        let (checkpoint, name, found) = (checkpoint.name(), names[0].to_owned(), format!("{found}{others}"));
        Err(Error::CheckpointEntry { checkpoint, kind: "tensor", name, found, expected: expected.into() })
    };
    let missing: Vec<&str> = own.iter().copied().filter(|name| !checkpoint.contains(name)).collect();
    if !missing.is_empty() {
        let names: Vec<&str> = checkpoint.tensors().map(|(name, ..)| name).collect();
        let of_another = || format!("there; the file has {}: was it written for another model?", listed(&names));
        let expected = prefix_before(&own, checkpoint).map_or_else(of_another, expected_within);
        return refused(&missing, "missing", expected);
    }
    let own: HashSet<&str> = own.into_iter().collect();
    let listed_names = checkpoint.metadata::<Value>(TENSORS, "names as JSON").ok();
    let of_file: Vec<&str> = match listed_names.as_ref().and_then(Value::as_array) {
        Some(names) => names.iter().filter_map(Value::as_str).collect(),
        // Of a run of an earlier version, it is not known which are the model's.
        None if checkpoint.has_metadata("epoch") => Vec::new(),
        None => checkpoint.tensors().map(|(name, ..)| name).collect(),
    };
    let is_other = |name: &&str| {
        let is_known = own.contains(name) || Standardisation::is_named(name);
        // PyTorch counts batches in its batch normalisations, brisk does not.
        !is_known && !name.ends_with("num_batches_tracked")
    };
    let left: Vec<&str> = of_file.into_iter().filter(is_other).collect();
    if left.is_empty() {
        return Ok(());
    }
    let expected = "only those of this model; build the model that the file is of, or take a part of it by `Model::load_part` or `load_pytorch_part`";
    refused(&left, "one that the model does not have", expected.to_owned())
}

/// The results of an evaluation, by name. Its `Display` form is one line.
#[derive(Debug, Clone, PartialEq)]
pub struct Scores {
    /// The loss and the metrics that are numbers, in the order of the task.
    pub values: Vec<(String, f64)>,
    /// Metrics that are not numbers, such as a confusion matrix.
    pub others: Vec<(String, MetricValue)>,
    /// Metrics that do not exist for the rows, such as R² of labels that are all the same, and why.
    pub undefined: Vec<(String, String)>,
}

impl Scores {
    /// The metrics of `task`, for outputs that were computed elsewhere; `loss`, if it is known, comes first.
    ///
    /// # Shapes
    /// `outputs`: `[n, task.n_outputs()]`, `labels`: `[n, task.n_labels()]`.
    /// # Errors
    /// [`Error::Metric`] if a metric is not defined for them for another reason than that there are few rows.
    pub fn of(task: &dyn Task, outputs: &[f32], labels: &[f32], loss: Option<f64>) -> Result<Self, Error> {
        let rows = Scored { outputs, n_outputs: task.n_outputs(), labels, n_labels: task.n_labels(), weights: None };
        let mut scores = Self { values: Vec::new(), others: Vec::new(), undefined: Vec::new() };
        scores.values.extend(loss.map(|loss| ("loss".to_owned(), loss)));
        for mut metric in task.metrics() {
            let (name, value) = (metric.name().to_owned(), metric.measure(&rows));
            match value {
                Ok(MetricValue::Number(value)) => scores.values.push((name, value)),
                Ok(value) => scores.others.push((name, value)),
                Err(error) if error.is_of_few_rows() => scores.undefined.push((name, error.to_string())),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(scores)
    }

    /// The number of this name, such as `accuracy` or `loss`.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.values.iter().find(|(found, _)| found == name).map(|&(_, value)| value)
    }
}

impl fmt::Display for Scores {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.values.iter().enumerate() {
            write!(f, "{}{name} {value:.4}", if i == 0 { "" } else { ", " })?;
        }
        for (i, (name, _)) in self.undefined.iter().enumerate() {
            write!(f, "{}{name} undefined", if i + self.values.len() == 0 { "" } else { ", " })?;
        }
        Ok(())
    }
}
