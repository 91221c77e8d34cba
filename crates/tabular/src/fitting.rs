use std::time::{Duration, Instant};

use brisk_loader::RowSource;
use brisk_nn::tensor::Precision;
use brisk_nn::tensor::program::Device;
use brisk_train::{EarlyStopping, Ended, FitReport, Limit, Scores, Task, Trainer};

use crate::budget::{Budget, Passes, cost};
use crate::class_rows::{check_threshold, check_watched};
use crate::ensemble::selected;
use crate::error::Error;
use crate::importance::{Importance, ImportanceOptions};
use crate::intervals;
use crate::model::TabularModel;
use crate::preprocessing::Preprocessing;
use crate::recipe::Recipe;
use crate::target::Target;
use crate::threshold::ThresholdMetric;
use crate::validated::Validated;
use crate::weights::{ClassWeights, Reweighted, WeightedTask, labelled, loss_weights};

/// Trains a model by recipes: one network each, of which the model keeps those that predict validation rows best together, and
/// calibrates it.
///
/// # Examples
/// ```
/// use std::time::Duration;
///
/// use brisk_loader::{Rows, split};
/// use brisk_nn::tensor::program::Device;
/// use brisk_tabular::{Columns, Effort, Fitting, Preprocessing, Scaling, Target};
///
/// let x: Vec<f32> = (0..400).map(|row| (row as f32 * 0.7549).fract()).collect();
/// let labels: Vec<f32> = x.iter().map(|x| f32::from(u8::from((0.3..0.7).contains(x)))).collect();
/// let rows = Rows::new(x, labels, 1)?;
/// let columns = Columns::numbers(["x"]);
/// let [train, valid] = split(&rows, 7, [0.8, 0.2])?;
/// let preprocessing = Preprocessing::fit(&columns, &train, Scaling::Quantile)?;
/// let target = Target::detect("y", &[], None, &rows)?;
/// let [train, valid] = [&train, &valid].map(|rows| preprocessing.over(&columns, rows).map(|rows| rows.with_target(&target)));
/// let [train, valid] = [train?.to_rows("train")?, valid?.to_rows("valid")?];
///
/// let recipes = Effort::Quick.recipes(&train, &target, 7);
/// let fitting = Fitting { max_time: Some(Duration::from_secs(60)), ..Fitting::new(recipes, 7) };
/// let fitted = fitting.fit(&Device::best()?, preprocessing, target, &train, &valid)?;
/// assert!(fitted.model.evaluate(&valid)?.get("accuracy").is_some_and(|accuracy| accuracy > 0.8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fitting<'a> {
    /// The networks, in the order in which they are trained.
    pub recipes: Vec<Recipe>,
    /// The seed of the first network; those after it have the next ones.
    pub seed: u64,
    /// The time for all of it. What follows the networks is a part of it: choosing those to keep, calibration, importance, and
    /// what the caller predicts [afterwards](Self::rows_after); how long that takes is estimated from a pass over the validation
    /// rows that is measured before a network is trained. Of the rest, the first of several networks has at most half, each
    /// further one half of what is left, the last one all of it, and a linear model its [share](Recipe::cost); one starts only if
    /// there is time for half a network like those before. Each trains as many epochs as fit, so that an annealed learning rate
    /// reaches its end; if time ends before, the network is as good as it was at its best validation.
    pub max_time: Option<Duration>,
    /// How many rows the caller predicts with the model after the fitting, within [`max_time`](Self::max_time): those of several
    /// sets, or several times those of one.
    pub rows_after: usize,
    /// The precision of products.
    pub precision: Precision,
    /// How much the classes count in the loss, by which also the validation decides when training ends and which networks are
    /// kept. Rows count by their weights in any case.
    pub class_weights: ClassWeights,
    /// What the threshold of predictions is chosen for, on the validation rows; `None` for 0.5.
    pub threshold: Option<ThresholdMetric>,
    /// The share of numbers that [intervals](crate::Intervals) of predictions are to hold, by the validation rows; `None` for no
    /// intervals.
    pub intervals: Option<f64>,
    /// Whether and how the importance of columns is measured on the validation rows; `None` for not at all. It predicts at most
    /// 5,000 rows, or as many as take about a twentieth of the time of the training; and fewer, or none, if
    /// [`max_time`](Self::max_time) is over before.
    pub importance: Option<ImportanceOptions>,
    /// Is called before each network with about how long the rest takes: this network and the others, those of all
    /// [folds](Self::fit_folds), and what follows them, as in [`max_time`](Self::max_time). It is estimated from some steps of
    /// the first network, which are measured for it, and then from the networks that were trained.
    pub on_estimate: Option<Box<dyn Fn(Duration) + 'a>>,
    /// More settings of each trainer, such as a progress bar, given the number of the network; with [folds](Self::fit_folds),
    /// those of a fold follow those of the folds before it.
    pub configure: Box<dyn Fn(Trainer<'static>, usize) -> Trainer<'static> + 'a>,
}

/// What [`Fitting::fit`] returns.
#[derive(Debug)]
#[non_exhaustive]
pub struct Fitted {
    /// The model.
    pub model: TabularModel,
    /// The runs of the networks that were trained.
    pub reports: Vec<FitReport>,
    /// The weight of each network in the predictions; 0 for those that were left out.
    pub weights: Vec<f32>,
    /// The linear model, calibrated as the model is, to compare it with; `None` if none was trained. With
    /// [folds](Fitting::fit_folds), the mean of theirs.
    pub linear: Option<TabularModel>,
    /// The scores of the model of each fold on the rows of the fold, if there are [folds](Fitting::fit_folds). They also decided
    /// when its training ended.
    pub fold_scores: Vec<Scores>,
}

impl Fitted {
    /// The run of the network with the greatest weight.
    pub fn report(&self) -> &FitReport {
        let best = (1..self.weights.len()).fold(0, |best, i| if self.weights[i] > self.weights[best] { i } else { best });
        &self.reports[best]
    }
}

impl std::fmt::Debug for Fitting<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Fitting")
            .field("recipes", &self.recipes)
            .field("seed", &self.seed)
            .field("max_time", &self.max_time)
            .field("rows_after", &self.rows_after)
            .field("class_weights", &self.class_weights)
            .field("threshold", &self.threshold)
            .field("intervals", &self.intervals)
            .field("importance", &self.importance)
            .field("precision", &self.precision)
            .finish_non_exhaustive()
    }
}

impl<'a> Fitting<'a> {
    /// Without a limit of time.
    pub fn new(recipes: Vec<Recipe>, seed: u64) -> Self {
        Self {
            recipes,
            seed,
            max_time: None,
            rows_after: 0,
            on_estimate: None,
            precision: Precision::F32,
            class_weights: ClassWeights::Observed,
            threshold: None,
            intervals: None,
            importance: None,
            configure: Box::new(|trainer, _| trainer),
        }
    }

    /// Trains the networks for rows that are preprocessed and have the [labels](crate::Preprocessed::with_target) of the target.
    ///
    /// # Errors
    /// As [`Trainer::fit`] and [`TabularModel::evaluate`]; [`Error::NoRecipe`]; [`Error::NotClasses`] for weights of the classes
    /// of a number; [`Error::NotTwoClasses`] and [`Error::ThresholdClass`] for a threshold; [`Error::WatchedClass`];
    /// [`Error::NotNumber`], [`Error::Coverage`] and [`Error::FewIntervalRows`] for intervals.
    pub fn fit<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
        &self,
        device: &Device,
        preprocessing: Preprocessing,
        target: Target,
        train: &S,
        valid: &T,
    ) -> Result<Fitted, Error> {
        self.fit_sets(device, &preprocessing, &target, &[(train, valid)])
    }

    /// Checks that the settings are those of the kind of target.
    ///
    /// # Errors
    /// [`Error::NotClasses`], [`Error::NotTwoClasses`], [`Error::NotNumber`], [`Error::Coverage`].
    pub fn check(&self, target: &Target) -> Result<(), Error> {
        self.class_weights.check(target)?;
        self.threshold.map_or(Ok(()), |_| target.check_two_classes())?;
        self.intervals.map_or(Ok(()), |coverage| intervals::check(coverage).and_then(|()| target.check_number(intervals::NAME)))
    }

    /// Checks that the validation rows, or those of all folds, are enough for the settings.
    ///
    /// # Errors
    /// [`Error::WatchedClass`], [`Error::ThresholdClass`], [`Error::FewIntervalRows`]; those of the rows.
    pub fn check_valid<'v, T: RowSource + 'v>(&self, target: &Target, valid: impl Iterator<Item = &'v T>) -> Result<(), Error> {
        let valid = valid.map(|valid| labelled(target, "valid", valid)).collect::<Result<Vec<_>, _>>()?;
        valid.iter().try_for_each(|valid| check_watched(target, &self.recipes, valid))?;
        let all = Validated::of_all(valid.iter());
        self.threshold.map_or(Ok(()), |_| check_threshold(target, &all))?;
        self.intervals.map_or(Ok(()), |coverage| intervals::check_rows(target, coverage, all.labels.len()))
    }

    /// Trains the networks for each of these sets of training and validation rows. The model is the mean over the sets of the
    /// same selection of networks: the one whose predictions of the validation rows of all sets are best.
    ///
    /// A set without all of its networks, since the run was stopped in it, is left out if there is one before it; networks that
    /// some set did not have the time for are left out, too.
    pub(super) fn fit_sets<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
        &self,
        device: &Device,
        preprocessing: &Preprocessing,
        target: &Target,
        sets: &[(&S, &T)],
    ) -> Result<Fitted, Error> {
        self.check(target)?;
        for &(train, valid) in sets {
            preprocessing.check_rows(target, "train", train)?;
            preprocessing.check_rows(target, "valid", valid)?;
        }
        self.check_valid(target, sets.iter().map(|(_, valid)| *valid))?;
        let mut trained: Vec<Networks> = Vec::new();
        let n_valid = sets.first().map_or(0, |(_, valid)| valid.n_rows());
        let mut budget = Budget::new(self.max_time, &self.recipes, sets.len(), self.passes(n_valid, sets.len()));
        for (i, &rows) in sets.iter().enumerate() {
            budget.begin_set(i);
            trained.push(self.train(device, preprocessing, target, rows, &mut budget, i * self.recipes.len())?);
            if trained[i].is_stopped() {
                break;
            }
        }
        let is_stopped = trained.last().is_some_and(Networks::is_stopped);
        let n_kept = if is_stopped && trained.len() > 1 { trained.len() - 1 } else { trained.len() };
        let kept = &trained[..n_kept];
        let n_networks = kept.iter().map(|set| set.models.len()).min().ok_or(Error::NoRecipe)?;

        let shares = Self::select(kept, sets, n_networks, target)?;
        let in_training = Validated::of_all(kept.iter().map(|set| &set.in_training));
        let constant = target.constant_of(&in_training);
        let classes = self.class_weights.of(target, &in_training.labels, in_training.weights.as_deref())?;
        let calibrated = |shares: &[f32]| -> Result<_, Error> {
            let (mut model, of_sets, validated) = Self::mean_over(kept, sets, shares)?;
            model.calibrate_to(&validated, &constant, classes.as_deref());
            Ok((model, of_sets, validated))
        };
        let (mut model, mut of_sets, validated) = calibrated(&shares)?;
        let only = |linear| (0..n_networks).map(|i| f32::from(u8::from(i == linear))).collect::<Vec<f32>>();
        let linear = self.recipes[..n_networks].iter().position(Recipe::is_linear);
        let linear = linear.map(|linear| calibrated(&only(linear)).map(|(model, ..)| model)).transpose()?;
        if let Some(metric) = self.threshold {
            model.choose_threshold_on(metric, validated)?;
        } else if let Some(coverage) = self.intervals {
            model.choose_intervals_on(coverage, validated)?;
        }

        // What the model of each set is worth on its validation rows.
        let share_kept = self.cost_kept(&shares) / cost(&self.recipes[..n_networks]);
        let pass = kept.iter().map(|set| set.pass).sum::<Duration>().mul_f64(share_kept);
        let (mut fold_scores, mut importances) = (Vec::new(), Vec::new());
        for (i, (own, (_, valid))) in of_sets.iter_mut().zip(sets).enumerate() {
            own.calibration = model.calibration.clone();
            if sets.len() > 1 {
                fold_scores.push(own.evaluate(*valid)?);
            }
            if let Some(options) = self.importance.as_ref().filter(|_| !is_stopped) {
                let options = self.importance_within(options, &trained[i], &shares, sets[i].0.n_rows());
                let left = budget.left_for_importance(i, pass).filter(|_| !trained[i].pass.is_zero());
                // As many rows as the passes that fit into the time that is left.
                let n_passes = left.map(|left| left.as_secs_f64() / trained[i].pass.mul_f64(share_kept).as_secs_f64());
                let fitting = n_passes.map_or(usize::MAX, |n_passes| (n_passes * valid.n_rows() as f64) as usize);
                let options = ImportanceOptions { max_predictions: options.max_predictions.min(fitting), ..options };
                importances.extend(own.measure_importance(device, *valid, &options)?.cloned());
            }
        }
        model.importance = Importance::mean_of(&importances).filter(|_| importances.len() == sets.len());
        let share =
            |set: usize, network: usize| shares.get(network).filter(|_| set < n_kept).map_or(0.0, |of| of / n_kept as f32);
        let of_set = |(set, networks): (usize, &Networks)| (0..networks.reports.len()).map(move |network| (set, network));
        let weights = trained.iter().enumerate().flat_map(of_set).map(|(set, network)| share(set, network)).collect();
        let reports = trained.into_iter().flat_map(|set| set.reports).collect();
        Ok(Fitted { model, reports, weights, linear, fold_scores })
    }

    /// The share of each network in the mean that predicts the validation rows of all sets best.
    fn select<S, T: RowSource<Feature = f32>>(
        trained: &[Networks],
        sets: &[(&S, &T)],
        n_networks: usize,
        target: &Target,
    ) -> Result<Vec<f32>, Error> {
        let mut outputs = vec![Vec::new(); n_networks];
        for (set, (_, valid)) in trained.iter().zip(sets) {
            for (outputs, model) in outputs.iter_mut().zip(&set.models) {
                outputs.extend(model.validated("valid", *valid)?.outputs);
            }
        }
        Ok(selected(outputs, &Validated::of_all(trained.iter().map(|set| &set.in_loss)), target.classes().len()))
    }

    /// The networks for rows to train on and rows to validate by, in the time that is `left`.
    fn train<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
        &self,
        device: &Device,
        preprocessing: &Preprocessing,
        target: &Target,
        (train, valid): (&S, &T),
        budget: &mut Budget<'_>,
        first_network: usize,
    ) -> Result<Networks, Error> {
        let in_training = labelled(target, "train", train)?;
        let classes = self.class_weights.of(target, &in_training.labels, in_training.weights.as_deref())?;
        let mut in_loss = labelled(target, "valid", valid)?;
        in_loss.weights = loss_weights(&in_loss.labels, in_loss.weights, classes.as_deref());
        // The trainer does not weigh validation rows; the metrics of the task do.
        let task = WeightedTask { task: target.task(), weights: in_loss.weights.clone().map(Into::into) };
        let of_train = loss_weights(&in_training.labels, in_training.weights.clone(), classes.as_deref());
        let train = &Reweighted { rows: train, weights: of_train };
        let valid = &Reweighted { rows: valid, weights: None };
        let mut networks = Networks { models: Vec::new(), reports: Vec::new(), pass: Duration::ZERO, in_training, in_loss };
        for (i, recipe) in self.recipes.iter().enumerate() {
            if !budget.has_time_for(i) {
                break;
            }
            let is_first = first_network + i == 0;
            let seed = self.seed + (first_network + i) as u64;
            let new_model = || TabularModel::new(seed, preprocessing.clone(), target.clone(), recipe.network.clone());
            // That a batch has all rows is a warning of the first network only.
            let batch_rows = recipe.batch_rows.min(if is_first { usize::MAX } else { train.n_rows() });
            let trainer = || recipe.trainer(device).batch_rows(batch_rows).precision(self.precision).seed(seed);
            let is_measured = budget.max_time().is_some() || (is_first && self.on_estimate.is_some());
            let pace = if is_measured {
                let pace = Pace::of(budget.time_for(i), trainer(), new_model(), &task, train, valid)?;
                budget.add_pass(recipe, pace.pass);
                Some(pace)
            } else {
                None
            };
            let most = budget.time_for(i);
            let fitting = pace.zip(most).map_or(usize::MAX, |(pace, time)| pace.epochs_within(time));
            let max_epochs = recipe.max_epochs.min(fitting);
            let trainer = trainer().max_epochs(max_epochs).configure(|config| config.max_time = most);
            let mut model = new_model();
            let mut trainer = (self.configure)(trainer, first_network + i);
            if let Some(on_estimate) = &self.on_estimate {
                on_estimate(budget.to_go(i, pace.map_or(0.0, |pace| pace.epoch_s * max_epochs as f64)));
            }
            networks.reports.push(trainer.fit(model.model_mut(), &task, train, valid)?);
            networks.models.push(model);
            networks.pass = budget.pass();
            if networks.is_stopped() {
                break;
            }
        }
        Ok(networks)
    }

    /// The mean over the sets of their networks, of which each has this share; the means of each set; and what these predict of
    /// the validation rows of their set.
    fn mean_over<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
        trained: &[Networks],
        sets: &[(&S, &T)],
        shares: &[f32],
    ) -> Result<(TabularModel, Vec<TabularModel>, Validated), Error> {
        let (mut validated, mut of_sets) = (Vec::new(), Vec::new());
        for (set, (_, valid)) in trained.iter().zip(sets) {
            let chosen: Vec<_> = shares.iter().copied().zip(&set.models).filter(|(share, _)| *share > 0.0).collect();
            let mean = TabularModel::mean_of(&chosen)?;
            validated.push(mean.validated("valid", *valid)?);
            of_sets.push(mean);
        }
        let share = 1.0 / of_sets.len() as f32;
        let all = TabularModel::mean_of(&of_sets.iter().map(|mean| (share, mean)).collect::<Vec<_>>())?;
        Ok((all, of_sets, Validated::of_all(validated.iter())))
    }

    /// The options of importance with at most as many predictions as take a twentieth of the time of the training.
    fn importance_within(
        &self,
        options: &ImportanceOptions,
        Networks { reports, .. }: &Networks,
        shares: &[f32],
        n_train: usize,
    ) -> ImportanceOptions {
        let epochs = reports.iter().zip(&self.recipes).map(|(report, recipe)| report.n_epochs.max(1) as f64 * recipe.cost());
        // A step computes about three times as much for a row as a prediction does.
        let share = 3.0 * epochs.sum::<f64>() * n_train as f64 / 20.0 / self.cost_kept(shares);
        ImportanceOptions {
            max_predictions: options.max_predictions.min((share as usize).max(MIN_PREDICTIONS)),
            ..options.clone()
        }
    }

    /// The cost of the networks that have a share in the mean.
    fn cost_kept(&self, shares: &[f32]) -> f64 {
        shares.iter().zip(&self.recipes).filter(|(share, _)| **share > 0.0).map(|(_, recipe)| recipe.cost()).sum()
    }

    /// What follows the networks of each of `n_sets`, in passes over `n_valid` rows.
    fn passes(&self, n_valid: usize, n_sets: usize) -> Passes {
        const MOST: f64 = 1e9;
        let of_rows = |n_rows: usize| (n_rows as f64 / n_valid.max(1) as f64).min(MOST);
        // Networks are chosen, their mean is calibrated, and training may end with a validation.
        let own = if n_sets > 1 { 4.0 } else { 3.0 };
        let importance = self.importance.as_ref().map_or(0.0, |_| of_rows(MIN_PREDICTIONS));
        Passes { own, after: of_rows(self.rows_after), importance }
    }
}

/// The networks of a set of training rows, in the order of their recipes.
struct Networks {
    models: Vec<TabularModel>,
    reports: Vec<FitReport>,
    /// The time of a pass of all of them over the validation rows; zero if it was not measured.
    pass: Duration,
    /// The labels and the weights of the training rows, and those of the validation rows in the loss.
    in_training: Validated,
    in_loss: Validated,
}

impl Networks {
    fn is_stopped(&self) -> bool {
        self.reports.last().is_some_and(|report| report.ended == Ended::Stopped)
    }
}

/// How fast a network is.
#[derive(Debug, Clone, Copy)]
struct Pace {
    /// About the seconds of an epoch, with validation.
    epoch_s: f64,
    /// The time of a pass over the validation rows.
    pass: Duration,
}

impl Pace {
    /// That of a few steps of a model that is then thrown away, if it has this time.
    fn of<S: RowSource<Feature = f32>, V: RowSource<Feature = f32>>(
        time: Option<Duration>,
        trainer: Trainer<'static>,
        mut model: TabularModel,
        task: &dyn Task,
        train: &S,
        valid: &V,
    ) -> Result<Self, Error> {
        const STEPS: usize = 8;
        // The largest share of the time that these steps may take, if they are slow.
        const MEASURED: u32 = 10;
        let mut few = trainer.max_epochs(STEPS).max_steps(STEPS).configure(|config| {
            config.limit_valid_batches = Some(Limit::Batches(1));
            // So few rows may be of one class, for which there are no other metrics.
            let monitor = Some("valid_loss".to_owned());
            config.early_stopping = config.early_stopping.take().map(|early| EarlyStopping { monitor, ..early });
            config.max_time = time.map(|time| time / MEASURED);
        });
        let rows_per_s = few.fit(model.model_mut(), task, train, valid)?.train_rows_per_s;
        let started = Instant::now();
        model.model().predict(valid)?;
        Ok(Self { epoch_s: epoch_at(rows_per_s, train.n_rows(), valid.n_rows()), pass: started.elapsed() })
    }

    /// How many epochs take about this time, at least one.
    fn epochs_within(self, time: Duration) -> usize {
        // The time that is planned: the rest is for what differs from the measured steps.
        const PLANNED: f64 = 0.9;
        ((PLANNED * time.as_secs_f64() / self.epoch_s) as usize).max(1)
    }
}

/// About the seconds of an epoch if a step trains `rows_per_s`.
fn epoch_at(rows_per_s: f64, n_train: usize, n_valid: usize) -> f64 {
    // Of the time of a training step, since validation has no backward pass.
    const VALIDATION_SHARE: f64 = 1.0 / 3.0;
    (n_train as f64 + VALIDATION_SHARE * n_valid as f64) / rows_per_s
}

/// Predictions for the importance of columns, however short the training was.
const MIN_PREDICTIONS: usize = 5000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_epochs_are_planned_as_fit() {
        let pace = Pace { epoch_s: epoch_at(1000.0, 900, 300), pass: Duration::ZERO };
        let epochs = |seconds: u64| pace.epochs_within(Duration::from_secs(seconds));
        // A second an epoch, of which a tenth of the time is spare.
        assert_eq!([epochs(100), epochs(10), epochs(1), epochs(0)], [90, 9, 1, 1]);
    }
}
