//! How a target that is a number is scaled for training.

use std::time::Duration;

use brisk_examples::print;
use brisk_examples::tabular::{Program, in_options_of};
use brisk_loader::RowSource;
use brisk_nn::tensor::program::Device;
use brisk_table::Table;
use brisk_tabular::{Error, Fitting, Preprocessing, Recipe, Target, TargetScale, TargetScaleReason};
use brisk_train::{Labels, StopFlag, Trainer};

use crate::options::Options;

/// What `--target-scale` asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// The scale that predicts validation rows better.
    Auto,
    For(TargetScale),
}

/// The target as `--target-scale` asks for it; if it asks for none, numbers are only standardised.
///
/// # Errors
/// If the target has classes, or a number without a logarithm that it needs.
pub(crate) fn asked(options: &Options, target: Target, table: &Table) -> anyhow::Result<Target> {
    let scale = match options.target_scale {
        None => return Ok(target),
        Some(Asked::Auto) => TargetScale::Standard,
        Some(Asked::For(scale)) => scale,
    };
    target.with_scale(scale, table).map_err(|error| in_options_of(Program::Tabular, error))
}

/// A scale, and why it was chosen, unless it was asked for.
pub(crate) type Chosen = (TargetScale, Option<TargetScaleReason>);

/// What the short trainings by which the scale is chosen have of the settings.
pub(crate) fn fitting<'a>(
    options: &Options,
    device: &Device,
    recipes: Vec<Recipe>,
    max_time: Option<Duration>,
    stop: &'a StopFlag,
) -> Fitting<'a> {
    let configure = |trainer: Trainer<'static>, _| {
        print::note("a short training, to choose the scale of the target");
        trainer.stop_on(stop).progress()
    };
    Fitting {
        precision: options.precision_on(device),
        max_time,
        configure: Box::new(configure),
        ..Fitting::new(recipes, options.seed)
    }
}

/// The scale of the target, chosen by validation rows unless `--target-scale` says which; `None` for classes.
pub(crate) fn chosen<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
    device: &Device,
    options: &Options,
    fitting: &Fitting<'_>,
    preprocessing: &Preprocessing,
    (target, table): (&Target, &Table),
    train: &S,
    valid: &T,
) -> Result<Option<Chosen>, Error> {
    if !target.classes().is_empty() {
        return Ok(None);
    }
    if let Some(Asked::For(scale)) = options.target_scale {
        return Ok(Some((scale, None)));
    }
    // Rows that are only tested need a logarithm, too.
    let (scale, reason) = match target.clone().with_scale(TargetScale::Log, table) {
        Err(Error::NotPositive { .. }) => {
            let labels = Labels::Numbers.read("all", table)?;
            let smallest = labels.iter().map(|&label| f64::from(label) + target.offset()).fold(f64::INFINITY, f64::min);
            (TargetScale::Standard, TargetScaleReason::NotPositive { smallest })
        }
        _ => fitting.choose_target_scale(device, preprocessing, target, train, valid)?,
    };
    print::note(format_args!("target scale: {scale}, since {reason}"));
    Ok(Some((scale, Some(reason))))
}
