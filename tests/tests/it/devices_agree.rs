//! The shaders train as the twins do.

use brisk_train::{Error, TrainerConfig};

use crate::gpu::{cpu, gpu};
use crate::run::Setting;

#[test]
fn loss_curves_and_auc_are_those_of_the_cpu() -> Result<(), Error> {
    let Some(gpu) = gpu() else { return Ok(()) };
    let default = Setting::default();
    // Small: a software adapter is slow.
    let setting = Setting { n_rows: 600, config: TrainerConfig { max_epochs: 2, ..default.config.clone() }, ..default };
    let (expected, values) = setting.ready().fit(&cpu(2))?;
    let (found, gpu_values) = setting.ready().fit(&gpu)?;
    assert_eq!(found.history.len(), expected.history.len(), "as many epochs");
    for (epoch, (found, expected)) in found.history.iter().zip(&expected.history).enumerate() {
        let off = (found.0 - expected.0).abs() / expected.0;
        assert!(off <= 1e-3, "epoch {epoch}: the loss is {} and {} on the cpu", found.0, expected.0);
        assert!((found.1 - expected.1).abs() <= 2e-3, "epoch {epoch}: the AUC is {} and {} on the cpu", found.1, expected.1);
    }
    let furthest = gpu_values.iter().zip(&values).fold(0.0_f32, |furthest, (a, b)| furthest.max((a - b).abs()));
    // Adam's steps are of the size of the rate whatever the gradient: where one is rounding alone, its sign may differ.
    assert!(furthest <= 20.0 * 3e-3, "a parameter is {furthest} away from the cpu's");
    Ok(())
}
