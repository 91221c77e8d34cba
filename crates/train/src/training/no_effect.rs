use brisk_nn::{EmaConfig, EmaStart};

use super::{Outputs, Training};
use crate::warning::Warning;

/// The most steps whose learning rates are looked at.
const MAX_STEPS: usize = 1 << 20;

impl Training<'_> {
    /// The settings that have no effect on this run, or another one than intended.
    pub(super) fn without_effect(&self) -> Vec<Warning> {
        let Self { config, n_batches, .. } = self;
        let n_steps = self.total_steps();
        let is_zero = |step| config.schedule.rate(step, n_steps) as f32 == 0.0;
        let mut found = Vec::new();
        let mut warn = |setting, reason| found.push(Warning::NoEffect { setting, reason });
        if (0..n_steps.min(MAX_STEPS)).all(is_zero) {
            warn("schedule", "the learning rate of each step is 0 in f32, so nothing is trained".to_owned());
        }
        if let Some(plateau) = &self.validation.plateau {
            let (patience, n_checks) = (plateau.patience, self.most_validations());
            let monitored = self.validation.monitored();
            let is_same = config.min_epochs == 0 && monitored == Some(self.validation.watched.as_str());
            let stops = config.early_stopping.as_ref().filter(|_| is_same).map(|early| early.patience);
            if n_checks <= patience.saturating_add(2) {
                let reason =
                    format!("it is {patience}, and the run has {n_checks} validations: too few for a reduction and steps");
                warn("reduce_lr_on_plateau.patience", reason);
            } else if let Some(stops) = stops.filter(|&stops| stops <= patience + 1) {
                let reason =
                    format!("it is {patience}, and early stopping ends the run after {stops} validations without an improvement");
                warn("reduce_lr_on_plateau.patience", reason);
            }
            if (0..n_steps.min(MAX_STEPS)).all(|step| !plateau.can_reduce(config.schedule.rate(step, n_steps))) {
                let (min_lr, eps) = (plateau.min_lr, plateau.eps);
                let reason = format!("it is {min_lr}, and no rate of the schedule can be reduced by more than {eps} (`eps`)");
                warn("reduce_lr_on_plateau.min_lr", reason);
            }
        }
        if config.accumulate > *n_batches {
            let (n, accumulate) = (n_batches, config.accumulate);
            warn("accumulate", format!("an epoch has {n} batches, so each step uses {n}/{accumulate} of their mean gradient"));
        }
        if let Some(EmaConfig { decay, every, first_step, start }) = config.ema {
            let left = match start {
                EmaStart::Given => "the model that the run leaves is the initial one",
                EmaStart::Parameters => "the model that the run leaves is not an average",
            };
            if first_step as usize > n_steps {
                warn("ema.first_step", format!("it is {first_step}, and the run has {n_steps} steps: {left}"));
            } else if every as usize > n_steps && n_steps > 1 {
                warn("ema.every", format!("it is {every}, and the run has {n_steps} steps: the average is updated once"));
            } else if decay == 1.0 {
                warn("ema.decay", format!("it is 1, so the average keeps the values that it starts with: {left}"));
            }
        }
        if config.validate_within_epoch.is_some() && config.max_epochs < config.validate_every {
            let (every, n_epochs) = (config.validate_every, config.max_epochs);
            let reason =
                format!("it is for epochs that are a multiple of {every} (`validate_every`), and the run has {n_epochs}");
            warn("validate_within_epoch", reason);
        }
        found
    }

    /// The number of validations of a run that ends neither early nor at a limit of time, or a few more.
    fn most_validations(&self) -> usize {
        let Self { config, n_batches, check_interval, .. } = self;
        let n_epochs = self.total_steps().div_ceil(n_batches.div_ceil(config.accumulate).max(1));
        n_epochs.div_ceil(config.validate_every) * check_interval.map_or(1, |interval| n_batches.div_ceil(interval))
    }

    /// The settings that have no effect without a folder.
    pub(super) fn without_folder(&self, outputs: &Outputs) -> Vec<Warning> {
        let config = &self.config;
        let of_checkpoints = [
            ("keep_best", config.keep_best > 0),
            ("checkpoint_every", config.checkpoint_every > 0),
            ("checkpoint_interval", config.checkpoint_interval.is_some()),
            ("checkpoint_on_error", config.checkpoint_on_error),
        ];
        let unused = of_checkpoints.into_iter().filter(|(_, is_set)| *is_set && outputs.folder.is_none());
        let reason = "the run has no folder for its checkpoints (`Trainer::folder`)";
        unused.map(|(setting, _)| Warning::NoEffect { setting, reason: reason.to_owned() }).collect()
    }
}
