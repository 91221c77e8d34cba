use brisk_nn::tensor::Reduction;
use brisk_nn::{Module, Schedule};
use brisk_report::{AxisScale, LineChart, Series};

use crate::error::Error;
use crate::feed::Feed;
use crate::model::Model;
use crate::rows::FeedRows;
use crate::standardisation::Standardisation;
use crate::step::Step;
use crate::task::{Task, read_labels};
use crate::trainer::Trainer;

/// The losses at learning rates that grow from step to step, and the rate that they suggest: [`Trainer::find_learning_rate`].
#[derive(Debug, Clone, PartialEq)]
pub struct LearningRates {
    /// The learning rate of each step.
    pub rates: Vec<f64>,
    /// The loss of each step, smoothed by an exponential mean with the factor 0.9, as in PyTorch Lightning.
    pub losses: Vec<f64>,
    /// The rate at which the loss falls fastest; `None` if it never falls.
    pub suggestion: Option<f64>,
}

/// The steps of a search.
const N_STEPS: usize = 100;

/// The rates of its first and of its last step.
const RATES: [f64; 2] = [1e-7, 1.0];

/// The first steps, which suggest no rate.
const SKIPPED_STEPS: usize = 10;

/// A search ends when the loss is this many times the best.
const DIVERGED: f64 = 4.0;

impl Trainer<'_> {
    /// Searches for a learning rate: trains a copy of the model for up to 100 steps, each with a higher rate than the one before,
    /// from 1e-7 to 1, until the loss diverges. The model is unchanged.
    ///
    /// # Reference
    /// Smith 2017, arXiv:1506.01186; the suggestion is that of PyTorch Lightning's `LearningRateFinder`: where the smoothed loss
    /// falls fastest, except for the first 10 steps and the last.
    /// # Errors
    /// As [`prepare`](Self::prepare), except for those of validation rows; [`Error::NoLearningRate`] if the loss diverges, or is
    /// not finite, within the first 10 steps.
    #[track_caller]
    pub fn find_learning_rate<M: Module, S: FeedRows>(
        &self,
        model: &Model<M>,
        task: &dyn Task,
        train: &S,
    ) -> Result<LearningRates, Error> {
        let (device, config) = (&self.device, &self.config);
        config.check()?;
        task.check()?;
        read_labels(&task.label_kinds(), "train", train)?;
        let scale =
            self.scale_of(model).map_or_else(|| Standardisation::of("train", train), |scale| scale.checked(train.n_cols()))?;
        let (feed_config, order) = self.feed_for(task);
        let feed = Feed::new(device, "train", train, order, config.batch_rows, &feed_config)?;
        let feed = self.training_batches(model, feed)?;
        let params = &model.params().detached()?;
        let optimizer = self.make_optimizer(params)?;
        let rate = |step: usize| RATES[0] * (RATES[1] / RATES[0]).powf(step as f64 / (N_STEPS - 1) as f64);
        let step = Step::over(device, &feed, &scale)
            .config(self.search_settings())
            .train(params, &*optimizer, &Schedule::from_fn(move |step, _| rate(step.min(N_STEPS - 1))))
            .epochs(N_STEPS)
            .record(|batch, params| batch.task_loss(model.module(), &params[0], task, Reduction::Mean))?;
        // `None` for a batch without weight, which was not trained on.
        let mut losses: Vec<Option<f32>> = Vec::new();
        for epoch in 0.. {
            let (of_epoch, is_finite) = step.run_epoch_to_the_end(epoch)?;
            // With accumulation, the loss of the first batch of each step; all batches of a step see the same parameters.
            losses.extend(of_epoch.into_iter().step_by(config.accumulate.max(1)));
            if losses.len() >= N_STEPS || !is_finite {
                break;
            }
        }
        losses.truncate(N_STEPS);
        let found = LearningRates::of(&losses, rate);
        if found.rates.len() <= SKIPPED_STEPS {
            let n_steps = found.rates.len();
            let trained: Vec<f32> = losses.into_iter().flatten().collect();
            let [first, last] = [0, n_steps].map(|step| trained.get(step).copied().unwrap_or(f32::NAN));
            return Err(Error::NoLearningRate { n_steps, rate: rate(n_steps), first, last });
        }
        Ok(found)
    }
}

impl LearningRates {
    /// Losses over learning rates, with the suggestion: a panel of a [`Report`](brisk_report::Report), or a file by
    /// [`Panel::to_svg`](brisk_report::Panel::to_svg).
    pub fn chart(&self) -> LineChart {
        let points = self.rates.iter().zip(&self.losses).map(|(&rate, &loss)| [rate, loss]);
        let chart = LineChart::new("Learning-rate finder", "learning rate", [Series::new("loss", points)]);
        let mark = self.suggestion.map(|rate| (rate, format!("suggested {rate:.1e}")));
        LineChart { y_label: "smoothed loss".to_owned(), scales: [AxisScale::Log, AxisScale::Linear], mark, ..chart }
    }

    fn of(losses: &[Option<f32>], rate: impl Fn(usize) -> f64) -> Self {
        let (mut mean, mut best) = (0.0, f64::INFINITY);
        let mut found = Self { rates: Vec::new(), losses: Vec::new(), suggestion: None };
        let trained = losses.iter().enumerate().filter_map(|(step, &loss)| Some((step, loss?)));
        for (n_before, (step, loss)) in trained.enumerate() {
            mean = 0.9 * mean + 0.1 * f64::from(loss);
            let smoothed = mean / (1.0 - 0.9_f64.powi(n_before as i32 + 1));
            if !smoothed.is_finite() || (step > 1 && smoothed > DIVERGED * best) {
                break;
            }
            best = best.min(smoothed);
            found.rates.push(rate(step));
            found.losses.push(smoothed);
        }
        let slope = |step: usize| (found.losses[step + 1] - found.losses[step - 1]) / 2.0;
        let steps = SKIPPED_STEPS.min(found.losses.len())..found.losses.len().saturating_sub(1);
        let steepest = steps.filter(|&step| slope(step) < 0.0).min_by(|&a, &b| slope(a).total_cmp(&slope(b)));
        found.suggestion = steepest.map(|step| found.rates[step]);
        found
    }
}
