//! A linear model of the same columns, to see what the network is worth.

use std::time::Duration;

use brisk_loader::{RowSource, Rows};
use brisk_nn::tensor::program::Device;
use brisk_tabular::{Error, Fitted, Fitting, Network, Recipe};
use brisk_train::{Ended, Scores, StopFlag};

use crate::options::Options;

/// The scores of its predictions of `test`, trained for about a twentieth of the time that the networks took, but at least a
/// second; `None` if it was stopped.
pub(crate) fn scores<S: RowSource<Feature = f32>, T: RowSource<Feature = f32>>(
    (options, device, stop): (&Options, &Device, &StopFlag),
    networks: &Fitted,
    (train, valid, test): (&S, &T, &Rows),
) -> Result<Option<Scores>, Error> {
    const SHARE: f64 = 0.05;
    let seconds: f64 = networks.reports.iter().map(|report| report.train_seconds).sum();
    let recipe = Recipe {
        lr: 1e-2,
        is_annealed: true,
        weight_decay: 0.0,
        max_epochs: 30,
        patience: 30,
        ..Recipe::of_one(Network::Mlp { hidden: Vec::new() }, train.n_rows())
    };
    let fitting = Fitting {
        max_time: Some(Duration::from_secs_f64((SHARE * seconds).max(1.0))),
        class_weights: options.class_weights,
        configure: Box::new(|trainer, _| trainer.stop_on(stop)),
        ..Fitting::new(vec![recipe], options.seed)
    };
    let (preprocessing, target) = (networks.model.preprocessing().clone(), networks.model.target().clone());
    let fitted = fitting.fit(device, preprocessing, target, train, valid)?;
    if fitted.report().ended == Ended::Stopped {
        return Ok(None);
    }
    fitted.model.evaluate(test).map(Some)
}
