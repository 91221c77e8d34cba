//! What users write themselves, under the trainer: a module with batch normalisation and dropout and a task, a short last batch,
//! and another head on a frozen backbone.

use brisk_loader::Rows;
use brisk_nn::{
    Activation, Adam, BatchNorm, BatchNormConfig, Bound, Dropout, Linear, Module, ParameterGroup, Parameters, ParametersBuilder,
    Schedule,
};
use brisk_tensor::{LossReduction, Tensor};
use brisk_train::metrics::{MeanAbsoluteError, Metric};
use brisk_train::{Checkpoint, Classification, Error, LabelledRows, Labels, Model, Predictor, Task, Trainer};

use crate::gpu::cpu;
use crate::run::noise;

/// A layer with batch normalisation and dropout, and a head.
#[derive(Debug)]
struct Network {
    layer: Linear,
    norm: BatchNorm,
    dropout: Dropout,
    head: Linear,
}

impl Network {
    fn new(p: &mut ParametersBuilder, n_outputs: usize) -> Self {
        Self {
            layer: Linear::new(p, "backbone.layer", 3, 16, Activation::identity()),
            norm: BatchNorm::new(
                p,
                "backbone.norm",
                &BatchNormConfig { activation: Activation::relu(), ..BatchNormConfig::new(16) },
            ),
            dropout: Dropout::new(0.2),
            head: Linear::new(p, "head", 16, n_outputs, Activation::identity()),
        }
    }
}

impl Module for Network {
    fn forward(&self, params: &Bound, x: &Tensor) -> Tensor {
        let x = self.norm.forward(params, &self.layer.forward(params, x));
        self.head.forward(params, &self.dropout.forward(params, &x))
    }
}

/// A number, by the absolute error.
#[derive(Debug)]
struct Median;

impl Task for Median {
    fn labels(&self) -> Labels {
        Labels::Numbers
    }
    fn n_outputs(&self) -> usize {
        1
    }
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        rows.reduce(&outputs.squeeze(1).l1_loss(&rows.labels, LossReduction::None))
    }
    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        vec![Box::new(MeanAbsoluteError::default())]
    }
    fn watched(&self) -> &str {
        "mae"
    }
}

fn rows(n: usize, label: fn([f32; 3]) -> f32) -> Rows {
    let row = |row| [0, 1, 2].map(|col| noise(row, col));
    Rows::new((0..n).flat_map(row).collect(), (0..n).map(|i| label(row(i))).collect(), 3).expect("a label for each row")
}

/// The values of all parameters whose names begin like this.
fn values(params: &Parameters, prefix: &str) -> Vec<f32> {
    let ids = params.ids_where(|entry| entry.name.starts_with(prefix));
    ids.into_iter().flat_map(|id| params.initial_of(id)).collect()
}

fn buffers(params: &Parameters) -> Vec<f32> {
    params.buffer_ids().flat_map(|id| params.buffer(id).initial()).collect()
}

#[test]
fn a_module_and_a_task_of_ones_own_are_trained_and_read() -> Result<(), Error> {
    // The last batch of an epoch has three rows.
    let rows = rows(403, |[x, y, z]| x + y * z);
    let mut model = Model::new(7, |p| Network::new(p, 1));
    let before = values(model.params(), "");
    let first = model.evaluate(&Median, &rows)?.get("mae").unwrap_or(f64::NAN);
    let mut trainer = Trainer::new(&cpu(2)).batch_rows(16).max_epochs(12).schedule(Schedule::one_cycle(1e-2));
    let report = trainer.fit(&mut model, &Median, &rows, &rows)?;
    let last = model.evaluate(&Median, &rows)?.get("mae").unwrap_or(f64::NAN);
    assert!(last < 0.6 * first && (last - report.best_value).abs() < 1e-4, "{first}, {last}, {}", report.best_value);
    assert_ne!(values(model.params(), ""), before, "the model has the trained parameters");
    assert!(buffers(model.params()).iter().all(|value| value.is_finite()), "running statistics");
    // Dropout is off, and batch normalisation uses its running statistics, whatever the batch.
    let outputs = model.predict(&rows)?;
    let predictor = Predictor::new(&cpu(1), &model, 3)?;
    for (row, output) in outputs.iter().enumerate().step_by(100) {
        let found = predictor.predict(&rows.features()[3 * row..3 * row + 3], &[])?[0];
        assert!((found - output).abs() < 1e-4, "row {row}: {found}, expected {output}");
    }
    Ok(())
}

#[test]
fn a_frozen_backbone_takes_another_head() -> Result<(), Error> {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.safetensors");
    let numbers = rows(403, |[x, y, z]| x + y * z);
    let mut first = Model::new(7, |p| Network::new(p, 1));
    let trainer = || Trainer::new(&cpu(2)).batch_rows(16).max_epochs(6).learning_rate(1e-2);
    trainer().fit(&mut first, &Median, &numbers, &numbers)?;
    first.save(&path)?;

    // The same rows with classes: another head on the trained backbone.
    let classes = rows(403, |[x, y, z]| f32::from(u8::from(x + y * z > -0.3)) + f32::from(u8::from(x + y * z > 0.3)));
    let mut second = Model::new(8, |p| Network::new(p, 3));
    let checkpoint = Checkpoint::load(&path)?;
    for id in second.params().ids_where(|entry| entry.name.starts_with("backbone.")) {
        let entry = second.params().entry(id);
        let values = checkpoint.f32(&entry.name, &entry.shape)?.to_vec();
        second.params_mut().set_initial(id, &values)?;
    }
    for id in second.params().buffer_ids() {
        let buffer = second.params().buffer(id);
        let values = checkpoint.f32(buffer.name(), buffer.shape())?.to_vec();
        second.params_mut().set_initial_buffer(id, &values)?;
    }
    let only_head = |params: &Parameters| {
        let head = ParameterGroup::new(params.ids_where(|entry| entry.name.starts_with("head")));
        Adam::new(params).groups(params, &[head])
    };
    let scale = first.standardisation().expect("a trained model has one").clone();
    trainer().try_optimizer(only_head).standardisation(scale).fit(&mut second, &Classification::of(3), &classes, &classes)?;
    assert_eq!(values(second.params(), "backbone."), values(first.params(), "backbone."), "bit-identical");
    assert_eq!(buffers(second.params()), buffers(first.params()), "bit-identical");
    let scores = second.evaluate(&Classification::of(3), &classes)?;
    assert!(scores.get("accuracy") > Some(0.6), "{scores}");
    Ok(())
}
