use std::time::{Duration, Instant};

use brisk_loader::{RowSource, Rows};
use brisk_nn::tensor::Precision;
use brisk_nn::tensor::program::Device;
use brisk_train::{Ended, FitReport, Limit, Trainer};

use crate::error::Error;
use crate::model::TabularModel;
use crate::preprocessing::Preprocessing;
use crate::recipe::Recipe;
use crate::target::Target;

/// Trains a model by recipes: one network each, of which the model keeps those that predict validation rows best together, and calibrates it.
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
/// let fitting = Fitting { max_time: Some(Duration::from_secs(60)), ..Fitting::new(Effort::Quick.recipes(&train, &target, 7), 7) };
/// let fitted = fitting.fit(&Device::best()?, preprocessing, target, &train, &valid)?;
/// assert!(fitted.model.evaluate(&valid)?.get("accuracy").is_some_and(|accuracy| accuracy > 0.8));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Fitting<'a> {
    /// The networks, in the order in which they are trained.
    pub recipes: Vec<Recipe>,
    /// The seed of the first network; those after it have the next ones.
    pub seed: u64,
    /// The time for all networks. The first of several has at most half of it, each further one half of what is left, and one starts only if there is
    /// time for half a network like those before. Each trains as many epochs as fit, so that an annealed learning rate reaches its end; if time ends before, the network is as
    /// good as it was at its best validation.
    pub max_time: Option<Duration>,
    /// The precision of products.
    pub precision: Precision,
    /// More settings of each trainer, such as a progress bar, given the number of the network.
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
            .field("precision", &self.precision)
            .finish_non_exhaustive()
    }
}

impl<'a> Fitting<'a> {
    /// Without a limit of time.
    pub fn new(recipes: Vec<Recipe>, seed: u64) -> Self {
        Self { recipes, seed, max_time: None, precision: Precision::F32, configure: Box::new(|trainer, _| trainer) }
    }

    /// Trains the networks for rows that are preprocessed and have the [labels](crate::Preprocessed::with_target) of the target.
    ///
    /// # Errors
    /// As [`Trainer::fit`]; [`Error::NoRecipe`].
    pub fn fit(
        &self,
        device: &Device,
        preprocessing: Preprocessing,
        target: Target,
        train: &Rows,
        valid: &Rows,
    ) -> Result<Fitted, Error> {
        let started = Instant::now();
        let (mut models, mut reports): (Vec<TabularModel>, Vec<FitReport>) = (Vec::new(), Vec::new());
        for (i, recipe) in self.recipes.iter().enumerate() {
            let elapsed = started.elapsed();
            let left = self.max_time.map(|time| time.saturating_sub(elapsed));
            if i > 0 && left.is_some_and(|left| left < elapsed / (2 * i as u32)) {
                break;
            }
            let is_last = i + 1 == self.recipes.len();
            let most = left.map(|left| if is_last { left } else { left / 2 }.max(LEAST_TIME));
            let new_model =
                || TabularModel::new(self.seed + i as u64, preprocessing.clone(), target.clone(), recipe.network.clone());
            let max_epochs = match most {
                Some(time) => {
                    epochs_within(time, self.trainer(device, recipe), new_model(), train, valid)?.min(recipe.max_epochs)
                }
                None => recipe.max_epochs,
            };
            let trainer = self.trainer(device, recipe).seed(self.seed + i as u64).max_epochs(max_epochs);
            let trainer = trainer.configure(|config| config.max_time = most);
            let mut model = new_model();
            let task = model.task();
            let report = (self.configure)(trainer, i).fit(model.model_mut(), &*task, train, valid)?;
            let ended = report.ended;
            models.push(model);
            reports.push(report);
            if ended == Ended::Stopped {
                break;
            }
        }
        let (mut model, weights) = TabularModel::joined(models, valid)?;
        model.calibrate(train, valid)?;
        Ok(Fitted { model, reports, weights })
    }
}

impl Fitting<'_> {
    fn trainer(&self, device: &Device, recipe: &Recipe) -> Trainer<'static> {
        recipe.trainer(device).precision(self.precision)
    }
}

/// How many epochs take about this time, at least one, as a few steps of a model show that is then thrown away.
fn epochs_within(
    time: Duration,
    trainer: Trainer<'static>,
    mut model: TabularModel,
    train: &Rows,
    valid: &Rows,
) -> Result<usize, Error> {
    const STEPS: usize = 8;
    // Of the time of a training step, since validation has no backward pass.
    const VALIDATION_SHARE: f64 = 1.0 / 3.0;
    // The time that is planned: the rest is for what differs from these steps.
    const PLANNED: f64 = 0.9;
    let few = trainer.max_epochs(STEPS).max_steps(STEPS).configure(|config| config.limit_valid_batches = Some(Limit::Batches(1)));
    let task = model.task();
    let rows_per_s = { few }.fit(model.model_mut(), &*task, train, valid)?.train_rows_per_s;
    let rows_per_epoch = train.n_rows() as f64 + VALIDATION_SHARE * valid.n_rows() as f64;
    Ok(((PLANNED * time.as_secs_f64() * rows_per_s / rows_per_epoch) as usize).max(1))
}

/// Given to a network although there is no time left, so that there is a model.
const LEAST_TIME: Duration = Duration::from_millis(100);
