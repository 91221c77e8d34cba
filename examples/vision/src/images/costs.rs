use anyhow::Result;
use brisk_loader::RowSource;
use brisk_nn::tensor::Graph;
use brisk_nn::tensor::program::Device;
use brisk_train::{FeedElement, FeedProbe, Task, Trainable, Trainer};

/// What a run takes, apart from its steps.
#[derive(Debug, Clone, Copy)]
pub struct Costs {
    /// Peak memory of the run on the device, as planned.
    pub planned_peak_bytes: usize,
    /// Images gathered per second, without augmentation and training.
    pub loader_rows_per_s: f64,
}

impl Costs {
    /// Plans the run that `trainer` would make, and gathers its images for a moment.
    ///
    /// # Errors
    /// If the run is not possible.
    pub fn of<'r, 'a: 'r, S, V>(
        device: &Device,
        trainer: &Trainer<'a>,
        trainable: Trainable<'r>,
        task: &dyn Task,
        train: &'r S,
        valid: &'r V,
    ) -> Result<Self>
    where
        S: RowSource<Feature: FeedElement>,
        V: RowSource<Feature: FeedElement>,
    {
        let training = trainer.prepare(trainable, task, train, valid)?;
        let [step, evaluation] = training.graphs();
        let probe = FeedProbe::new(device, training.train_rows(), training.scale())?;
        Ok(Self { planned_peak_bytes: Graph::planned_peak_bytes(&[step, evaluation])?, loader_rows_per_s: probe.rows_per_s()? })
    }
}
