//! A linear model of the same columns, to see what the network is worth.

use std::time::Duration;

use brisk_loader::{RowSource, Rows};
use brisk_nn::tensor::program::Device;
use brisk_tabular::{Error, Fitted, Fitting, Recipe};
use brisk_train::{Ended, Scores, StopFlag};

use crate::options::Options;

/// The scores of its predictions of `test`: of the one among the networks; or else of one that is trained for about a twentieth
/// of the time that they took, but at least a second; `None` if it was stopped.
pub(crate) fn scores<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
    (options, device, stop): (&Options, &Device, &StopFlag),
    networks: &Fitted,
    (train, valid, test): (&S, &T, &Rows),
) -> Result<Option<Scores>, Error> {
    const SHARE: f64 = 0.05;
    if let Some(linear) = &networks.linear {
        return linear.evaluate(test).map(Some);
    }
    let (preprocessing, target) = (networks.model.preprocessing().clone(), networks.model.target().clone());
    let seconds: f64 = networks.reports.iter().map(|report| report.train_seconds).sum();
    let fitting = Fitting {
        max_time: Some(Duration::from_secs_f64((SHARE * seconds).max(1.0))),
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
