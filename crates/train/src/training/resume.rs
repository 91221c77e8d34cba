//! The properties of a run that a checkpoint records, and whether another run can resume from it.

use brisk_loader::Order;
use brisk_replicate::Wire;
use serde_json::Value;

use super::Training;
use super::computation::shortened;
use super::validation::Validation;
use crate::checkpoint::{Checkpoint, FORMAT_VERSION};
use crate::error::{Error, ResumeDifference, ResumeMismatch};
use crate::rows::{Difference, RowNames};
use crate::run_state::RunState;
use crate::settings::compare;
use crate::standardisation::Standardisation;
use crate::trainer_config::TrainerConfig;

/// A property of a run, apart from its settings, that is recorded under `key` and must be the same in a run that resumes.
struct Recorded {
    key: &'static str,
    what: &'static str,
    mismatch: ResumeMismatch,
    value: String,
    /// Whether a position within an epoch has a different meaning if this differs.
    moves_batches: bool,
}

/// The key for the name of the watched metric.
const WATCHED: &str = "watched";

/// The key for what the watched metric computes.
const DEFINITION: &str = "watched_definition";

/// The key for what the metric of `reduce_lr_on_plateau` computes, if the run has that setting.
const PLATEAU_DEFINITION: &str = "plateau_definition";

/// The key for the type in which gradients are sent; checkpoints of earlier versions do not have it.
const WIRE: &str = "wire";

/// The key for the settings of the trainer that are compared, as JSON: a checkpoint does not depend on how often one is written.
const SETTINGS: &str = "settings";

/// The key for samples of the learning rates of a function, such as `0:0.1 10:0.05`; those of other schedules are settings.
const RATES: &str = "learning_rates";

/// How many steps after the first one are sampled, evenly over the run.
const SAMPLED_RATES: usize = 64;

/// The settings that a checkpoint records.
pub(super) fn compared(mut settings: Value) -> Value {
    if let Value::Object(settings) = &mut settings {
        settings.retain(|name, _| !is_one_of(TrainerConfig::FREE, name));
    }
    settings
}

/// Whether `name` is one of the settings, or a part of one.
fn is_one_of(settings: &[&str], name: &str) -> bool {
    let is = |setting: &&str| name.strip_prefix(setting).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'));
    settings.iter().any(is)
}

impl Training<'_> {
    /// The differences from the run that wrote the checkpoint, in what [`resume`](Self::resume) requires to be the same.
    pub fn resume_differences(&self, checkpoint: &Checkpoint) -> Vec<ResumeDifference> {
        let versions = || ["none".to_owned(), FORMAT_VERSION.to_string()];
        let format = || ResumeDifference::new(ResumeMismatch::Format, "format version", versions());
        let mut all: Vec<_> = checkpoint.format_version().is_none().then(format).into_iter().collect();
        all.extend(self.differing(checkpoint).into_iter().map(|(_, difference)| difference));
        // Other rows usually have other means and deviations.
        let has_same_rows = all.iter().all(|found| found.mismatch != ResumeMismatch::Rows);
        all.extend(self.differing_settings(checkpoint));
        all.extend(self.differing_rate(checkpoint));
        all.extend(has_same_rows.then(|| self.differing_standardisation(checkpoint)).flatten());
        all.extend(self.differing_name(checkpoint));
        all.extend(self.differing_computation(checkpoint));
        all
    }

    /// Checks that this run may resume from the checkpoint, and returns its position. Changes neither device nor disk.
    pub(super) fn accept(&self, checkpoint: &Checkpoint, allowed: &[ResumeMismatch]) -> Result<RunState, Error> {
        self.replicas.agree_on_checkpoint(checkpoint)?;
        // The error for a different model names one of its parameters, rather than a digest or a copy of one.
        self.params.entries().iter().try_for_each(|entry| checkpoint.check_f32(&entry.name, &entry.shape))?;
        let refused: Vec<ResumeDifference> =
            self.resume_differences(checkpoint).into_iter().filter(|found| !allowed.contains(&found.mismatch)).collect();
        if !refused.is_empty() {
            return Err(Error::ResumeMismatch { checkpoint: checkpoint.name(), differences: refused });
        }
        let Validation { watched, plateau, .. } = &self.validation;
        let mut run = RunState::of(checkpoint, self.early_stopping(), plateau.clone(), watched, self.params)?;
        let settings = self.differing_settings(checkpoint);
        if self.differing(checkpoint).iter().any(|(recorded, _)| recorded.moves_batches)
            || settings.iter().any(|found| is_one_of(TrainerConfig::MOVES_BATCHES, &found.what))
        {
            // The batches of the epoch have changed, so the epoch starts again.
            run.restart_epoch();
        }
        run.schedule_steps = self.schedule_steps(checkpoint)?;
        run.check(checkpoint, self.n_batches, self.config.accumulate)?;
        Ok(run)
    }

    /// Adds the values that must be the same when a run resumes.
    pub(super) fn record_into(&self, checkpoint: &mut Checkpoint, run: &RunState) {
        checkpoint.insert_metadata(SETTINGS, &self.settings);
        for Recorded { key, value, .. } in self.recorded() {
            checkpoint.insert_metadata(key, value);
        }
        for part in &self.computation {
            checkpoint.insert_metadata(part.key, &part.value);
        }
        checkpoint.insert_metadata(SCHEDULE_STEPS, run.schedule_steps);
        let schedule = &self.config.schedule;
        if schedule.is_function() {
            let last = run.schedule_steps.saturating_sub(1);
            let step = |i: usize| (last as u128 * i as u128 / SAMPLED_RATES as u128) as usize;
            let mut steps: Vec<usize> = (0..=SAMPLED_RATES).map(step).collect();
            steps.dedup();
            let rate = |step| format!("{step}:{}", schedule.rate(step, run.schedule_steps) as f32);
            checkpoint.insert_metadata(RATES, steps.into_iter().map(rate).collect::<Vec<_>>().join(" "));
        }
    }

    /// The number of steps for which the schedule was planned: by this run, or, if it is
    /// [extended](crate::TrainerConfig::extend), by the one that wrote the checkpoint.
    fn schedule_steps(&self, checkpoint: &Checkpoint) -> Result<usize, Error> {
        if self.config.extend && checkpoint.has_metadata(SCHEDULE_STEPS) {
            return checkpoint.metadata(SCHEDULE_STEPS, "a number of steps");
        }
        Ok(self.total_steps())
    }

    fn differing(&self, checkpoint: &Checkpoint) -> Vec<(Recorded, ResumeDifference)> {
        let differs = |recorded: Recorded| {
            let found = match checkpoint.metadata::<String>(recorded.key, "text") {
                Ok(found) => found,
                Err(_) if recorded.key == WIRE => described_wire(Wire::F32),
                // Files from before the format had versions record less.
                Err(_) if checkpoint.format_version().is_none() => return None,
                Err(_) => "not recorded".to_owned(),
            };
            let difference = ResumeDifference::new(recorded.mismatch, recorded.what, [found, recorded.value.clone()]);
            (difference.checkpoint != difference.run).then_some((recorded, difference))
        };
        let mut all: Vec<(Recorded, ResumeDifference)> = self.recorded().into_iter().filter_map(differs).collect();
        if all.iter().any(|(recorded, _)| recorded.key == WATCHED) {
            all.retain(|(recorded, _)| recorded.key != DEFINITION);
        }
        all
    }

    /// The settings that change results and differ: all but those known not to.
    fn differing_settings(&self, checkpoint: &Checkpoint) -> Vec<ResumeDifference> {
        let mut differences = Vec::new();
        let Ok(theirs) = checkpoint.metadata::<Value>(SETTINGS, "settings as JSON") else {
            // Files from before the format had versions record less.
            let values = ["not recorded", "compared"].map(str::to_owned);
            differences
                .extend(checkpoint.format_version().map(|_| ResumeDifference::new(ResumeMismatch::Settings, SETTINGS, values)));
            return differences;
        };
        let is_scaled = self.step.scaler.config().enabled;
        compare(&theirs, &self.settings, "", &mut |what, values| {
            let is_of_precision = is_one_of(&["precision", "scaler"], &what);
            let mismatch = if is_of_precision { ResumeMismatch::Precision } else { ResumeMismatch::Settings };
            if !is_one_of(TrainerConfig::FREE, &what) && (is_scaled || !is_one_of(&["scaler"], &what)) {
                differences.push(ResumeDifference::new(mismatch, what, values));
            }
        });
        differences
    }

    /// The first of the sampled learning rates that a function gives differently.
    fn differing_rate(&self, checkpoint: &Checkpoint) -> Option<ResumeDifference> {
        let schedule = &self.config.schedule;
        // Checkpoints of earlier versions do not have them.
        let rates: String = checkpoint.metadata(RATES, "steps and learning rates").ok().filter(|_| schedule.is_function())?;
        let n_steps = checkpoint.metadata(SCHEDULE_STEPS, "a number of steps").unwrap_or_else(|_| self.total_steps());
        let differing = |sample: &str| {
            let (step, rate) = sample.split_once(':')?;
            let own = schedule.rate(step.parse().ok()?, n_steps) as f32;
            let is_same = rate.parse().is_ok_and(|rate: f32| rate == own);
            let what = format!("learning rate of step {step}");
            (!is_same).then(|| ResumeDifference::new(ResumeMismatch::Settings, what, [rate.to_owned(), own.to_string()]))
        };
        rates.split(' ').find_map(differing)
    }

    /// The first name of a column, label, class or category that differs, if both runs know it.
    fn differing_name(&self, checkpoint: &Checkpoint) -> Option<ResumeDifference> {
        let theirs: RowNames = checkpoint.metadata(RowNames::KEY, "names as JSON").ok()?;
        let Difference { kind, at, found, expected } = theirs.difference(&self.names, true)?;
        Some(ResumeDifference::new(ResumeMismatch::Rows, format!("name of {kind} {at}"), [expected, found]))
    }

    /// The parts of what is computed that differ; the whole step, of which most are parts, only if no part does.
    fn differing_computation(&self, checkpoint: &Checkpoint) -> Vec<ResumeDifference> {
        if checkpoint.format_version().is_none() {
            return Vec::new();
        }
        let mut differences = Vec::new();
        for part in &self.computation {
            let found = checkpoint.metadata::<String>(part.key, "text").unwrap_or_else(|_| "not recorded".to_owned());
            if found != part.value && (differences.is_empty() || !part.has_others()) {
                let values = shortened(&found, &part.value);
                differences.push(ResumeDifference::new(ResumeMismatch::Computation, part.what, values));
            }
        }
        differences
    }

    /// The first column that is standardised differently.
    fn differing_standardisation(&self, checkpoint: &Checkpoint) -> Option<ResumeDifference> {
        let theirs = Standardisation::in_checkpoint(checkpoint).ok()??;
        let theirs = Some(theirs).filter(|theirs| theirs.mean().len() == self.scale.mean().len())?;
        let col = self.scale.differing_column(&theirs)?;
        let described = |scale: &Standardisation| {
            format!("column {col} by mean {} and deviation {}", scale.mean()[col], 1.0 / scale.inv_std()[col])
        };
        Some(ResumeDifference::new(ResumeMismatch::Rows, "standardisation", [described(&theirs), described(&self.scale)]))
    }

    fn recorded(&self) -> Vec<Recorded> {
        use ResumeMismatch::{Rows, Settings};

        let config = &self.config;
        let [train, valid] = self.digests.map(|digest| format!("digest {digest}"));
        let order = match self.train.order() {
            Order::Shuffled { seed: of_order } if *of_order == config.seed => "shuffled by the seed".to_owned(),
            order => order.to_string(),
        };
        let n_valid = self.valid_rows().n_rows().to_string();
        let wire = described_wire(self.replicas.config.wire);
        let recorded = |key, what, mismatch, value, moves_batches| Recorded { key, what, mismatch, value, moves_batches };
        let mut all = vec![
            recorded("train_rows", "training rows", Rows, train, true),
            recorded("valid_rows", "validation rows", Rows, valid, false),
            recorded("order", "order of rows", Settings, order, true),
            recorded("n_batches", "batches per epoch", Settings, self.n_batches.to_string(), true),
            recorded(WIRE, "type in which gradients are sent", Settings, wire, false),
            recorded(WATCHED, "watched metric", Settings, self.validation.watched.clone(), false),
            recorded(DEFINITION, "definition of the watched metric", Settings, self.validation.definition.clone(), false),
            recorded("n_valid_rows", "number of validation rows", Settings, n_valid, false),
        ];
        let of_plateau = "definition of the metric of `reduce_lr_on_plateau`";
        let definition = self.validation.plateau_definition.clone();
        all.extend(definition.map(|definition| recorded(PLATEAU_DEFINITION, of_plateau, Settings, definition, false)));
        if config.schedule.depends_on_length() && !config.extend {
            let steps = self.total_steps().to_string();
            all.push(recorded(SCHEDULE_STEPS, ResumeDifference::SCHEDULE_LENGTH, Settings, steps, false));
        }
        all
    }
}

fn described_wire(wire: Wire) -> String {
    format!("{wire:?}").to_lowercase()
}

/// The key for the number of steps for which the schedule was planned.
const SCHEDULE_STEPS: &str = "schedule_steps";
