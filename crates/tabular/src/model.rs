use std::fs;
use std::path::Path;
use std::sync::Mutex;

use brisk_loader::RowSource;
use brisk_nn::Module;
use brisk_nn::tensor::program::Device;
use brisk_train::{Error as TrainError, FeedElement, Model, Predictor, Scores, Standardisation, Task};

use crate::calibration::{Calibration, ClassCalibration};
use crate::class_rows::check_threshold;
use crate::columns::Columns;
use crate::description::{Description, FORMAT, Score, UNSEALED};
use crate::error::Error;
use crate::importance::{Importance, ImportanceOptions, Sample};
use crate::intervals::{self, IntervalScore, Intervals};
use crate::mean::weighted_mean;
use crate::model_folder::{DESCRIPTION, PARAMETERS, TARGETS, n_models, parsed, read, remove, remove_models, write};
use crate::network::{Member, Network, member_path};
use crate::number_calibration::NumberCalibration;
use crate::preprocessing::{Preprocessed, Preprocessing};
use crate::tabular_predictor::TabularPredictor;
use crate::target::Target;
use crate::text_options::TextOptions;
use crate::threshold::{Threshold, ThresholdMetric};
use crate::validated::Validated;
use crate::weights::{WeightedTask, labelled};

/// A network for a table, with everything needed to predict rows by it: how columns are preprocessed, the target, and the
/// network's sizes.
///
/// # Examples
/// See [the module](super).
#[derive(Debug)]
pub struct TabularModel {
    preprocessing: Preprocessing,
    target: Target,
    pub(super) calibration: Option<Calibration>,
    threshold: Option<Threshold>,
    intervals: Option<Intervals>,
    network: Network,
    model: Model<Box<dyn Module>>,
    scores: Vec<(String, f64)>,
    text: TextOptions,
    pub(super) importance: Option<Importance>,
}

impl TabularModel {
    /// A network that has not been trained, with initial values drawn by `seed`.
    pub fn new(seed: u64, preprocessing: Preprocessing, target: Target, network: Network) -> Self {
        let n_inputs = preprocessing.feature_names().len();
        let embeddings = preprocessing.embeddings();
        let mut model = Model::new(seed, |params| network.build(params, n_inputs, &embeddings, &target));
        // The preprocessing has already scaled the columns.
        model.set_standardisation(Standardisation::none(n_inputs));
        model.set_encoding(preprocessing.encoding(&target));
        let (scores, text) = (Vec::new(), TextOptions::default());
        let (calibration, threshold, intervals, importance) = (None, None, None, None);
        Self { preprocessing, target, calibration, threshold, intervals, network, model, scores, text, importance }
    }

    /// `rows` with the features, categories and labels that the network takes.
    ///
    /// # Errors
    /// As [`Preprocessing::over`].
    pub fn rows<S: RowSource<Feature: FeedElement>>(&self, columns: &Columns, rows: S) -> Result<Preprocessed<S>, Error> {
        Ok(self.preprocessing.over(columns, rows)?.with_target(&self.target))
    }

    /// The metrics of the task on `rows`, which are [preprocessed](Self::rows), in the units of the target; rows count by their
    /// weights, if they have any. The accuracy is that of predictions with the model's [threshold](Self::threshold).
    ///
    /// # Errors
    /// As [`Model::evaluate`]; [`Error::RowSet`](brisk_train::Error::RowSet) for rows, or labels, that this model has not
    /// converted: their [encoding](brisk_loader::Names::encoding) is another one.
    pub fn evaluate<S: RowSource<Feature = f32>>(&self, rows: &S) -> Result<Scores, Error> {
        self.scores_at_threshold(self.predicted("test", rows)?)
    }

    /// The metrics of [predictions](Self::predicted), with the accuracy of the model's threshold.
    pub(super) fn scores_at_threshold(&self, predicted: Validated) -> Result<Scores, Error> {
        let accuracy = self.threshold.map(|at| ThresholdMetric::Accuracy.score(&predicted, at.value));
        let mut scores = self.scores_of(predicted)?;
        for (_, value) in scores.values.iter_mut().filter(|(name, _)| name == "accuracy") {
            *value = accuracy.unwrap_or(*value);
        }
        Ok(scores)
    }

    /// The metrics of the same constant prediction for each of `rows`: the shares of the classes among the rows `of_train`, or
    /// the mean of their labels, by the weights of the rows.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn evaluate_constant<S, T>(&self, of_train: &T, rows: &S) -> Result<Scores, Error>
    where
        S: RowSource<Feature = f32>,
        T: RowSource<Feature = f32>,
    {
        let output = self.constant_outputs("train", of_train)?;
        let mut rows = self.labelled("test", rows)?;
        self.target.restore(&mut rows.labels);
        rows.outputs = output.repeat(rows.labels.len());
        self.scores_of(rows)
    }

    /// How much lower the log loss of `rows`, or their squared error, is than that of the [constant](Self::evaluate_constant)
    /// prediction for the rows `of_train`, and the standard error of this difference: the model has learned something beyond
    /// chance if the difference is more than two of these errors.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn gain_over_constant<S, T>(&self, of_train: &T, rows: &S) -> Result<[f64; 2], Error>
    where
        S: RowSource<Feature = f32>,
        T: RowSource<Feature = f32>,
    {
        let constant = self.constant_outputs("train", of_train)?.repeat(rows.n_rows());
        let predicted = self.predicted("test", rows)?;
        let [own, of_constant] = [&predicted.outputs, &constant].map(|outputs| self.target.losses(outputs, &predicted.labels));
        let lower: Vec<f64> = of_constant.iter().zip(own).map(|(constant, own)| constant - own).collect();
        let mean = |numbers: &mut dyn Iterator<Item = f64>| weighted_mean(numbers, predicted.weights.as_deref());
        let gain = mean(&mut lower.iter().copied());
        let variance = mean(&mut lower.iter().map(|lower| (lower - gain).powi(2)));
        Ok([gain, (variance / predicted.n_effective()).sqrt()])
    }

    /// Checks that rows are those of [`rows`](Self::rows).
    fn check_rows<S: RowSource>(&self, set: &'static str, rows: &S) -> Result<(), Error> {
        self.preprocessing.check_rows(&self.target, set, rows)
    }

    /// The labels and weights of such rows, without outputs.
    fn labelled<S: RowSource>(&self, set: &'static str, rows: &S) -> Result<Validated, Error> {
        self.check_rows(set, rows)?;
        labelled(&self.target, set, rows)
    }

    /// The metrics of [predictions](Self::predicted).
    pub(super) fn scores_of(&self, Validated { outputs, labels, weights }: Validated) -> Result<Scores, Error> {
        let task = WeightedTask { task: self.task(), weights: weights.map(Into::into) };
        Ok(Scores::of(&task, &outputs, &labels, None)?)
    }

    /// The outputs for rows, which are not calibrated.
    pub(super) fn validated<S: RowSource<Feature = f32>>(&self, set: &'static str, rows: &S) -> Result<Validated, Error> {
        let labelled = self.labelled(set, rows)?;
        Ok(Validated { outputs: self.model.predict(rows)?, ..labelled })
    }

    /// Calibrated predictions of rows: logits, or numbers in the units of the labels.
    pub(super) fn predicted<S: RowSource<Feature = f32>>(&self, set: &'static str, rows: &S) -> Result<Validated, Error> {
        let mut validated = self.validated(set, rows)?;
        self.finish(&mut validated);
        Ok(validated)
    }

    /// Makes the outputs of the network calibrated predictions, and brings the labels to the same units.
    pub(super) fn finish(&self, rows: &mut Validated) {
        self.finish_outputs(&mut rows.outputs);
        self.target.restore(&mut rows.labels);
    }

    fn finish_outputs(&self, outputs: &mut [f32]) {
        self.target.restore(outputs);
        self.calibration.iter().for_each(|calibration| calibration.apply(outputs));
    }

    /// The best constant prediction of rows: the [share of each class, or the mean](Target::constant_of).
    pub(super) fn constant_of<S: RowSource>(&self, set: &'static str, rows: &S) -> Result<Vec<f64>, Error> {
        Ok(self.target.constant_of(&self.labelled(set, rows)?))
    }

    /// The same as outputs of a network for one row: logits, or the number.
    fn constant_outputs<S: RowSource>(&self, set: &'static str, rows: &S) -> Result<Vec<f32>, Error> {
        Ok(constant_output(&self.constant_of(set, rows)?))
    }

    /// Fits the probabilities of classes, or numbers, to `valid`, rows that the network was not trained on, and returns the
    /// [calibration](Calibration), which predictions and the model's folder then have. If the log loss is not lower than that of
    /// the frequencies of the classes among the rows `train`, predictions become a blend of both; numbers with a squared error
    /// that is not lower than that of their mean [become this mean](NumberCalibration::is_constant).
    ///
    /// A [threshold](Self::threshold) and [intervals](Self::intervals) are of calibrated predictions: if the model has them, they
    /// are chosen again by `valid`, for the same metric and coverage.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate) and [`choose_intervals`](Self::choose_intervals); the model is then as it was.
    pub fn calibrate<S, T>(&mut self, train: &S, valid: &T) -> Result<&Calibration, Error>
    where
        S: RowSource<Feature = f32>,
        T: RowSource<Feature = f32>,
    {
        let (constant, validated) = (self.constant_of("train", train)?, self.validated("valid", valid)?);
        let (calibration, threshold, intervals) = (self.calibration.clone(), self.threshold, self.intervals);
        self.calibrate_to(&validated, &constant, None);
        let chosen = threshold.map_or(Ok(()), |at| self.choose_threshold_on(at.metric, validated.clone()).map(drop));
        let chosen =
            chosen.and_then(|()| intervals.map_or(Ok(()), |of| self.choose_intervals_on(of.coverage, validated).map(drop)));
        if let Err(error) = chosen {
            (self.calibration, self.threshold, self.intervals) = (calibration, threshold, intervals);
            return Err(error);
        }
        Ok(self.calibration.as_ref().expect("it was calibrated"))
    }

    /// The same for outputs of the network, which was trained with such weights of the classes.
    pub(super) fn calibrate_to(&mut self, rows: &Validated, constant: &[f64], class_weights: Option<&[f32]>) -> &Calibration {
        (self.calibration, self.threshold, self.intervals) = (None, None, None);
        let calibration = if let (Target::Number { .. }, [mean]) = (&self.target, constant) {
            let mut rows = rows.clone();
            self.finish(&mut rows);
            Calibration::Number(NumberCalibration::fit(&rows, *mean, self.target.zero()))
        } else {
            let frequencies = constant.iter().map(|&share| share as f32).collect();
            Calibration::Classes(ClassCalibration::fit(rows, frequencies, class_weights))
        };
        self.calibration.insert(calibration)
    }

    /// Chooses the [threshold](Threshold) of predictions with the highest score on `valid`, rows that the network was not trained
    /// on, after [calibration](Self::calibrate). Predictions and the model's folder then have it.
    ///
    /// # Errors
    /// [`Error::NotTwoClasses`]; [`Error::ThresholdClass`]; as [`evaluate`](Self::evaluate).
    pub fn choose_threshold<S: RowSource<Feature = f32>>(
        &mut self,
        metric: ThresholdMetric,
        valid: &S,
    ) -> Result<Threshold, Error> {
        let validated = self.validated("valid", valid)?;
        self.choose_threshold_on(metric, validated)
    }

    /// The same for outputs of the network.
    pub(super) fn choose_threshold_on(&mut self, metric: ThresholdMetric, mut rows: Validated) -> Result<Threshold, Error> {
        self.target.check_two_classes()?;
        check_threshold(&self.target, &rows)?;
        self.finish(&mut rows);
        Ok(*self.threshold.insert(Threshold::fit(metric, &rows)))
    }

    /// The score on `rows` of predictions with a threshold of this value.
    ///
    /// # Errors
    /// As [`choose_threshold`](Self::choose_threshold).
    pub fn threshold_score<S: RowSource<Feature = f32>>(&self, at: Threshold, rows: &S) -> Result<f64, Error> {
        self.target.check_two_classes()?;
        Ok(at.metric.score(&self.predicted("test", rows)?, at.value))
    }

    /// The threshold of predictions, if one was chosen: without it, the more probable class is predicted.
    pub fn threshold(&self) -> Option<Threshold> {
        self.threshold
    }

    /// How predictions are calibrated, if they are.
    pub fn calibration(&self) -> Option<&Calibration> {
        self.calibration.as_ref()
    }

    /// Chooses how far [intervals](Intervals) reach from predictions so that they hold this share of the numbers, by `valid`,
    /// rows that the network was not trained on, after [calibration](Self::calibrate). Predictions and the model's folder then
    /// have them.
    ///
    /// # Errors
    /// [`Error::NotNumber`]; [`Error::Coverage`]; [`Error::FewIntervalRows`]; as [`evaluate`](Self::evaluate).
    pub fn choose_intervals<S: RowSource<Feature = f32>>(&mut self, coverage: f64, valid: &S) -> Result<Intervals, Error> {
        let validated = self.validated("valid", valid)?;
        self.choose_intervals_on(coverage, validated)
    }

    /// The same for outputs of the network.
    pub(super) fn choose_intervals_on(&mut self, coverage: f64, mut rows: Validated) -> Result<Intervals, Error> {
        self.target.check_number(intervals::NAME)?;
        self.finish(&mut rows);
        Ok(*self.intervals.insert(Intervals::fit(&self.target, coverage, &rows)?))
    }

    /// How many of the numbers of `rows` are within the model's [intervals](Self::intervals), and how wide these are; `None`
    /// without intervals.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate).
    pub fn interval_score<S: RowSource<Feature = f32>>(&self, rows: &S) -> Result<Option<IntervalScore>, Error> {
        let Some(intervals) = &self.intervals else { return Ok(None) };
        Ok(Some(intervals.score(&self.target, &self.predicted("test", rows)?)))
    }

    /// The intervals of predictions, if they were [chosen](Self::choose_intervals).
    pub fn intervals(&self) -> Option<Intervals> {
        self.intervals
    }

    /// Measures the [importance](Importance) of each column on `valid`, rows that the network was not trained on; predictions are
    /// [calibrated](Self::calibrate) if the model is. The model's folder then has the result. `None` if there are too many
    /// columns for the [most predictions](ImportanceOptions::max_predictions), or if predictions are not finite.
    ///
    /// # Errors
    /// As [`evaluate`](Self::evaluate) and [`predictor`](Self::predictor).
    pub fn measure_importance<S: RowSource<Feature = f32>>(
        &mut self,
        device: &Device,
        valid: &S,
        options: &ImportanceOptions,
    ) -> Result<Option<&Importance>, Error> {
        self.check_rows("valid", valid)?;
        self.importance = None;
        let Some(sample) = Sample::of(&self.preprocessing, valid, options)? else { return Ok(None) };
        let predictor = Predictor::new(device, &self.model, self.preprocessing.feature_names().len())?;
        let (mut labels, weights) = (sample.rows().labels.to_vec(), sample.weights());
        self.target.restore(&mut labels);
        let score = |features: &[f32], categories: &[u32]| {
            let mut outputs = predictor.predict(features, categories)?;
            self.finish_outputs(&mut outputs);
            Ok(self.target.loss(&outputs, &labels, weights))
        };
        let constant = self.target.constant_loss(&labels, weights);
        self.importance = sample.importance(&self.preprocessing, self.target.loss_name(), constant, score)?;
        Ok(self.importance.as_ref())
    }

    /// The importance of each column, if it was [measured](Self::measure_importance).
    pub fn importance(&self) -> Option<&Importance> {
        self.importance.as_ref()
    }

    /// The model whose predictions are the mean of those of others, by these weights, which sum to 1: a copy of the only one, or
    /// an [ensemble](Network::Ensemble). It is not calibrated.
    ///
    /// # Errors
    /// [`Error::NoRecipe`] if there are none; those of the device that has the parameters.
    pub(super) fn mean_of(models: &[(f32, &Self)]) -> Result<Self, Error> {
        let (_, first) = models.first().ok_or(Error::NoRecipe)?;
        let members: Vec<_> = models.iter().flat_map(|&(weight, model)| model.members(weight)).collect();
        let network = match &members[..] {
            [(only, ..)] => only.network.clone(),
            _ => Network::Ensemble { members: members.iter().map(|(member, ..)| member.clone()).collect() },
        };
        let is_ensemble = members.len() > 1;
        let mut joined = Self::new(0, first.preprocessing.clone(), first.target.clone(), network);
        joined.text = first.text.clone();
        for (i, (_, model, path)) in members.into_iter().enumerate() {
            let (from, to) = (model.model.params(), joined.model.params_mut());
            let newest = from.newest().map_err(TrainError::from)?;
            let prefix = if is_ensemble { format!("{}.", member_path(i)) } else { String::new() };
            let name_of = |name: &str| Some(format!("{prefix}{}", name.strip_prefix(&path)?));
            for entry in from.entries() {
                let Some(name) = name_of(&entry.name) else { continue };
                let id = to.id_of(&name).expect("an ensemble has the parameters of its members");
                to.set_initial(id, &newest[entry.range.clone()]).map_err(TrainError::from)?;
            }
            for buffer in from.buffers() {
                let Some(name) = name_of(buffer.name()) else { continue };
                let id = to.buffer_id_of(&name).expect("an ensemble has the buffers of its members");
                to.set_initial_buffer(id, &buffer.newest().map_err(TrainError::from)?).map_err(TrainError::from)?;
            }
        }
        Ok(joined)
    }

    /// The networks of which this one consists, with their shares of `weight`, the model itself, and what the names of their
    /// parameters begin with.
    fn members(&self, weight: f32) -> Vec<(Member, &Self, String)> {
        match &self.network {
            Network::Ensemble { members } => {
                let of_member = |(i, member): (usize, &Member)| {
                    let member = Member { weight: weight * member.weight, network: member.network.clone() };
                    (member, self, format!("{}.", member_path(i)))
                };
                members.iter().enumerate().map(of_member).collect()
            }
            network => vec![(Member { weight, network: network.clone() }, self, String::new())],
        }
    }

    /// A predictor for rows with the columns of the training table.
    ///
    /// # Errors
    /// As [`Predictor::new`].
    pub fn predictor(&self, device: &Device) -> Result<TabularPredictor, Error> {
        let predictor = Predictor::new(device, &self.model, self.preprocessing.feature_names().len())?;
        let (preprocessing, target) = (self.preprocessing.clone(), self.target.clone());
        let (calibration, threshold, intervals) = (self.calibration.clone(), self.threshold, self.intervals);
        let matched = Mutex::default();
        Ok(TabularPredictor { predictor, preprocessing, matched, target, calibration, threshold, intervals })
    }

    /// The task of the target.
    pub fn task(&self) -> Box<dyn Task> {
        self.target.task()
    }

    /// How columns become features.
    pub fn preprocessing(&self) -> &Preprocessing {
        &self.preprocessing
    }

    /// What is predicted.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// The sizes of the network.
    pub fn network(&self) -> &Network {
        &self.network
    }

    /// The network with its parameters.
    pub fn model(&self) -> &Model<Box<dyn Module>> {
        &self.model
    }

    /// The same for training it. What was fitted to its predictions is removed: [calibration](Self::calibrate),
    /// [threshold](Self::choose_threshold), [intervals](Self::choose_intervals), [importance](Self::measure_importance) and
    /// [scores](Self::scores).
    pub fn model_mut(&mut self) -> &mut Model<Box<dyn Module>> {
        (self.calibration, self.threshold, self.intervals, self.importance) = (None, None, None, None);
        self.scores.clear();
        &mut self.model
    }

    /// Scores that are kept with the model, by name.
    pub fn scores(&self) -> &[(String, f64)] {
        &self.scores
    }

    /// Sets the scores that are kept with the model.
    pub fn set_scores(&mut self, scores: Vec<(String, f64)>) {
        self.scores = scores;
    }

    /// How the text of the training table was read: its decimal mark and its words for missing values.
    pub fn text_options(&self) -> &TextOptions {
        &self.text
    }

    /// Sets how text is read, which is kept with the model. (`header` and `skip_lines` belong to a file and are not.)
    pub fn set_text_options(&mut self, text: TextOptions) {
        self.text = text;
    }

    /// Writes the model to a folder, which is created: `parameters.safetensors`, and `model.json` with everything else. An
    /// existing model is replaced, and [several](crate::TabularModels) are removed; if that is interrupted, [`load`](Self::load)
    /// returns an error instead of a mixture of the two.
    ///
    /// # Errors
    /// [`Error::Io`](brisk_train::Error::Io) if the folder cannot be created; [`Error::Write`](brisk_train::Error::Write).
    pub fn save(&self, folder: impl AsRef<Path>) -> Result<(), Error> {
        let folder = folder.as_ref();
        fs::create_dir_all(folder).map_err(|cause| TrainError::Io { path: folder.to_owned(), action: "create", cause })?;
        // From now on, the folder is that of one model.
        let former = n_models(folder);
        remove(&folder.join(TARGETS))?;
        let parameters = folder.join(PARAMETERS);
        self.model.save(&parameters)?;
        let parameters_crc32 = crc32fast::hash(&read(&parameters)?);
        let description = Description {
            format: FORMAT,
            brisk_version: env!("CARGO_PKG_VERSION").to_owned(),
            checksum: UNSEALED.to_owned(),
            parameters_crc32,
            text: self.text.clone(),
            network: self.network.clone(),
            target: self.target.clone(),
            calibration: self.calibration.clone(),
            threshold: self.threshold,
            intervals: self.intervals,
            preprocessing: self.preprocessing.clone(),
            scores: self.scores.iter().map(Score::of).collect(),
            importance: self.importance.clone(),
        };
        write(&folder.join(DESCRIPTION), description.to_text())?;
        remove_models(folder, 0..former)
    }

    /// Reads a model from its folder.
    ///
    /// # Errors
    /// [`Error::NoModel`] if a file is missing; [`Error::SeveralModels`] for a folder of several; [`Error::ModelFormat`] for
    /// another version of the format; [`Error::ModelFile`], [`Error::OtherParameters`],
    /// [`Error::Damaged`](brisk_train::Error::Damaged) for files that are damaged or do not belong together;
    /// [`Error::Io`](brisk_train::Error::Io).
    pub fn load(folder: impl AsRef<Path>) -> Result<Self, Error> {
        let [path, parameters, targets] = [DESCRIPTION, PARAMETERS, TARGETS].map(|name| folder.as_ref().join(name));
        if targets.is_file() {
            return Err(Error::SeveralModels { path: targets });
        }
        for path in [&path, &parameters] {
            if !path.is_file() {
                return Err(Error::NoModel { path: path.clone() });
            }
        }
        let text = read(&path)?;
        let value = parsed(&path, &text, FORMAT)?;
        let damaged = |problem: String| Error::ModelFile { path: path.clone(), problem };
        let description = Description::of(&value).map_err(damaged)?;
        let parameter_bytes = read(&parameters)?;
        let (found, n_bytes) = (crc32fast::hash(&parameter_bytes), parameter_bytes.len());
        drop(parameter_bytes);
        if found != description.parameters_crc32 {
            let expected = description.parameters_crc32;
            return Err(Error::OtherParameters { path: parameters, found, expected });
        }
        let Description { network, target, preprocessing, .. } = &description;
        let (n_inputs, n_outputs) = (preprocessing.feature_names().len(), target.task().n_outputs());
        let min_bytes = 4 * network.min_parameters(n_inputs, n_outputs);
        if min_bytes > n_bytes as u128 {
            return Err(damaged(format!("`network` has at least {min_bytes} bytes of parameters, their file has {n_bytes}")));
        }
        description.check_sum(&text).map_err(damaged)?;
        let scores = description.scores();
        let Description { text, network, target, calibration, threshold, intervals, preprocessing, importance, .. } = description;
        let embeddings = preprocessing.embeddings();
        let mut model = Model::load(&parameters, |params| network.build(params, n_inputs, &embeddings, &target))?;
        model.set_encoding(preprocessing.encoding(&target));
        Ok(Self { preprocessing, target, calibration, threshold, intervals, network, model, scores, text, importance })
    }
}

/// A [constant prediction](Target::constant_of) as the output of a network for one row: logits, or the number.
pub(super) fn constant_output(constant: &[f64]) -> Vec<f32> {
    match *constant {
        [mean] => vec![mean as f32],
        [no, yes] => vec![(yes.ln() - no.ln()) as f32],
        _ => constant.iter().map(|share| share.ln() as f32).collect(),
    }
}
