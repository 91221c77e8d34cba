//! The communication library receives the step numbers of a run: a rank that waits too long names the step that it waits in.

use std::sync::{Arc, Mutex};

use brisk_loader::Rows;
use brisk_nn::tensor::Activation;
use brisk_nn::tensor::program::{Device, Selection};
use brisk_nn::{Adam, Mlp, MlpConfig, ParametersBuilder};
use brisk_replicate::{Collective, DynSlice, DynSliceMut, Error as ReplicaError, ReduceOp};
use brisk_train::{Binary, DataParallel, DataParallelConfig, Error, FeedConfig, Outputs, Trainable, Trainer, TrainerConfig};

/// A world of one replica, which records what it receives.
#[derive(Debug, Default)]
struct Alone {
    steps: Arc<Mutex<Vec<u64>>>,
}

impl Collective for Alone {
    fn rank(&self) -> usize {
        0
    }

    fn world_size(&self) -> usize {
        1
    }

    fn engine(&self) -> &str {
        "one rank"
    }

    fn all_reduce_values(&mut self, _values: DynSliceMut<'_>, _reduce: ReduceOp) -> Result<(), ReplicaError> {
        Ok(())
    }

    fn reduce_scatter_values(
        &mut self,
        input: DynSlice<'_>,
        shard: DynSliceMut<'_>,
        _reduce: ReduceOp,
    ) -> Result<(), ReplicaError> {
        self.all_gather_values(input, shard)
    }

    fn all_gather_values(&mut self, shard: DynSlice<'_>, output: DynSliceMut<'_>) -> Result<(), ReplicaError> {
        output.into_bytes().copy_from_slice(shard.bytes());
        Ok(())
    }

    fn broadcast_values(&mut self, _values: DynSliceMut<'_>, _root: usize) -> Result<(), ReplicaError> {
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), ReplicaError> {
        Ok(())
    }

    fn at_step(&mut self, step: u64) {
        self.steps.lock().expect("no panic").push(step);
    }

    fn fail(&mut self, why: &str) {
        panic!("{why}");
    }

    fn finish(self: Box<Self>) -> Result<(), ReplicaError> {
        Ok(())
    }
}

/// The step numbers that are sent in two epochs of four batches.
#[track_caller]
fn check(accumulate: usize, expected: &[u64]) -> Result<(), Error> {
    let mut builder = ParametersBuilder::new();
    let sizes = MlpConfig { n_inputs: 1, hidden: vec![], n_outputs: 1, activation: Activation::relu() };
    let model = Mlp::new(&mut builder, &sizes);
    let params = builder.build(0);
    let optimizer = Adam::new(&params);
    let numbers: Vec<f32> = (0..16).map(|row| row as f32).collect();
    let labels: Vec<f32> = (0..16).map(|row| (row % 2) as f32).collect();
    let rows = Rows::new(numbers, labels, 1).expect("a label a row");
    let config = TrainerConfig { batch_rows: 4, max_epochs: 2, accumulate, ..TrainerConfig::default() };
    let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;

    let alone = Alone::default();
    let steps = alone.steps.clone();
    let replicas = DataParallel::new(Box::new(alone), DataParallelConfig::default());
    let feed = FeedConfig::default();
    let trainer = Trainer::new(&device).config(config).feed(&feed).replicas(&replicas).prepare(
        Trainable::new(&model, &params, &optimizer),
        &Binary::new(),
        &rows,
        &rows,
    )?;
    trainer.fit(&mut Outputs::default())?;
    replicas.finish()?;
    assert_eq!(*steps.lock().expect("no panic"), expected, "{accumulate} batches a step");
    Ok(())
}

#[test]
fn each_batch_says_its_step() -> Result<(), Error> {
    check(1, &[0, 1, 2, 3, 4, 5, 6, 7])?;
    check(2, &[0, 0, 1, 1, 2, 2, 3, 3])
}
