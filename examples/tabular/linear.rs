//! A linear model of the same columns, to see what the network is worth.

use std::time::Duration;

use brisk_examples::print;
use brisk_loader::{RowSource, Rows};
use brisk_nn::tensor::program::Device;
use brisk_tabular::{Error, Fitted, Fitting, Recipe};
use brisk_train::{Ended, Scores, StopFlag};

use crate::options::Options;

/// Of the time of the networks.
const SHARE: f64 = 0.05;

/// The shortest time, if there is more than four times as much.
pub(crate) const LEAST: Duration = Duration::from_secs(1);

/// The time for it, of what is left for all.
pub(crate) fn time_within(left: Option<Duration>) -> Duration {
    left.map_or(LEAST, |left| left.mul_f64(SHARE).max(LEAST).min(left / 4))
}

/// The scores of its predictions of `test`: of the one among the networks; or else of one that is trained for about a twentieth
/// of the time that they took, but at least a second, within the time that is `left`; `None` if there is none left, or if it was
/// stopped.
pub(crate) fn scores<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
    (options, device, stop): (&Options, &Device, &StopFlag),
    left: Option<Duration>,
    networks: &Fitted,
    (train, valid, test): (&S, &T, &Rows),
) -> Result<Option<Scores>, Error> {
    if let Some(linear) = &networks.linear {
        return linear.evaluate(test).map(Some);
    }
    let (preprocessing, target) = (networks.model.preprocessing().clone(), networks.model.target().clone());
    let seconds: f64 = networks.reports.iter().map(|report| report.train_seconds).sum();
    if left.is_some_and(|left| left.is_zero()) {
        print::note("no linear model is trained to compare with, since the time is over; allow more `--minutes`");
        return Ok(None);
    }
    let time = Duration::from_secs_f64(SHARE * seconds).max(LEAST);
    let fitting = Fitting {
        max_time: Some(left.map_or(time, |left| left.min(time))),
        class_weights: options.class_weights,
        configure: Box::new(|trainer, _| trainer.stop_on(stop)),
        ..Fitting::new(vec![Recipe::linear(train, &target)], options.seed)
    };
    let fitted = fitting.fit(device, preprocessing, target, train, valid)?;
    if fitted.report().ended == Ended::Stopped {
        return Ok(None);
    }
    fitted.model.evaluate(test).map(Some)
}
