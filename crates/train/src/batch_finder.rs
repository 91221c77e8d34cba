use brisk_nn::tensor::Graph;
use brisk_nn::{Ema, Module};

use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::feed::{RowWeights, Wanted};
use crate::model::Model;
use crate::rows::FeedRows;
use crate::rows::inspect::check_label_count;
use crate::scorer::{EVALUATION_ROWS, RecordedScorer};
use crate::standardisation::Standardisation;
use crate::step::{RecordedStep, Trained};
use crate::task::Task;
use crate::trainer::Trainer;

impl Trainer<'_> {
    /// The largest batch, a power of two and at most the number of rows, with which training and validation on one device take at
    /// most `budget_bytes` by their plan: rows on the device, parameters, gradients, state of the optimizer and intermediate
    /// results. Nothing is computed and nothing is put on the device.
    ///
    /// A batch that fits is not always the best one: a larger one takes fewer steps, and usually needs another learning rate.
    ///
    /// # Errors
    /// [`Error::Setting`] if even a batch of one row takes more; [`Error::RowSet`]; [`Error::Tensor`] if the model does not fit
    /// the rows or the task.
    /// # Examples
    /// ```
    /// use brisk_loader::Rows;
    /// use brisk_nn::tensor::program::Device;
    /// use brisk_nn::{Activation, Mlp, MlpConfig};
    /// use brisk_train::{Binary, Model, Trainer};
    ///
    /// let rows = Rows::new(vec![0.5; 8 * 10_000], vec![0.0; 10_000], 8)?;
    /// let sizes = MlpConfig { n_inputs: 8, hidden: vec![256], n_outputs: 1, activation: Activation::relu() };
    /// let model = Model::new(7, |params| Mlp::new(params, &sizes));
    /// let trainer = Trainer::new(&Device::cpu()?);
    /// let n_rows = trainer.find_batch_rows(&model, &Binary::new(), &rows, 4 << 20)?;
    /// let trainer = trainer.batch_rows(n_rows);
    /// # assert!((32..=8192).contains(&n_rows), "{n_rows}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[track_caller]
    pub fn find_batch_rows<M: Module, S: FeedRows>(
        &self,
        model: &Model<M>,
        task: &dyn Task,
        train: &S,
        budget_bytes: usize,
    ) -> Result<usize, Error> {
        self.config.check()?;
        task.check()?;
        check_label_count("train", train, task.n_labels())?;
        let mut n_rows = train.n_rows().checked_ilog2().map_or(1, |log| 1 << log);
        loop {
            // Larger batches may also be refused, such as by the size of a binding.
            match self.planned_bytes(model, task, train, n_rows) {
                Ok(bytes) if bytes <= budget_bytes => return Ok(n_rows),
                Ok(bytes) if n_rows == 1 => {
                    let found = format!("{budget_bytes}, while a batch of one row takes {bytes}");
                    return Err(Error::setting("budget_bytes", found, "bytes for at least one row"));
                }
                Err(error) if n_rows == 1 => return Err(error),
                _ => n_rows /= 2,
            }
        }
    }

    /// What a run with batches of `n_rows` rows takes.
    #[track_caller]
    fn planned_bytes<M: Module, S: FeedRows>(
        &self,
        model: &Model<M>,
        task: &dyn Task,
        train: &S,
        n_rows: usize,
    ) -> Result<usize, Error> {
        let (device, config, params) = (&self.device, &self.config, model.params());
        let (feed_config, order) = self.feed_for(task);
        let weights = &RowWeights::Unknown;
        let wanted = Wanted { device, set: "train", source: train, order, batch_rows: n_rows, config: &feed_config, weights };
        let feed = self.training_batches(model, wanted.planned()?)?;
        let scale = Standardisation::none(train.n_cols());
        let optimizer = self.make_optimizer(params)?;
        let ema = config.ema.map(|config| Ema::new(params, config));
        let replicas = DataParallel::single();
        let trained = [Trained { params, optimizer: &*optimizer, ema: ema.as_ref() }];
        let step =
            RecordedStep::record(&feed, &scale, &self.search_settings(), &trained, &[], replicas, |batch, reduction, bound| {
                batch.task_loss(model.module(), &bound[0], task, reduction)
            })?;
        let evaluated = feed.in_batches(EVALUATION_ROWS);
        let precision = config.precision;
        let scorer = RecordedScorer::record(device, model.module(), params, &evaluated, &scale, precision, replicas, Some(task))?;
        Ok(Graph::planned_peak_bytes(&[&step.graph, &scorer.graph])?)
    }
}
