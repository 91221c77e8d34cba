mod anomaly;
mod average;
mod best_checkpoints;
mod checkpoint_writer;
mod checks;
mod computation;
mod copied;
mod copies;
mod due;
mod epochs;
mod feeds;
mod fit;
mod joint_copies;
mod losses;
mod no_effect;
mod notified;
mod outputs;
mod resume;
mod run_copies;
mod snapshot;
mod snapshot_memory;
mod state;
mod steps;
#[expect(clippy::module_inception, reason = "the type that the folder is about")]
mod training;
mod validation;

use std::cell::RefCell;
use std::rc::Rc;

use average::Average;
use brisk_loader::Order;
use brisk_nn::Augment;
use brisk_nn::tensor::program::Device;
use computation::Computation;
use feeds::Feeds;
use resume::compared;
use twox_hash::XxHash3_64;
use validation::Validation;

use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::feed::{FeedChoice, FeedConfig, RowWeights};
use crate::memory_check::check_memory;
use crate::rows::inspect::{check_category_count, check_columns, check_label_count, column_count, layout_of};
use crate::rows::{FeedRows, RowLayout, RowNames};
use crate::scorer::{EVALUATION_ROWS, RecordedScorer};
use crate::settings::{by_name, json};
use crate::standardisation::Standardisation;
use crate::step::{RecordedStep, Trained};
use crate::survey::Wanted;
use crate::task::{Task, first_wrong_label, label_error};
use crate::trainable::Trainable;
use crate::trainer_config::{Limit, TrainerConfig};
use crate::warning::Warning;

pub use outputs::Outputs;
pub use training::Training;

/// The set-up of a run, apart from the rows.
#[derive(Debug)]
pub(crate) struct Setup<'s, 'a> {
    pub(crate) device: &'s Device,
    pub(crate) config: TrainerConfig,
    pub(crate) feed: &'s FeedConfig,
    /// How columns are standardised, unless by the training rows.
    pub(crate) scale: Option<Standardisation>,
    /// Whether that is how the model has been trained before, rather than a setting.
    pub(crate) is_scale_kept: bool,
    /// How training batches are made, unless by gathering rows.
    pub(crate) augment: Option<Rc<dyn Augment + 'a>>,
    pub(crate) replicas: &'a DataParallel,
}

impl<'a> Training<'a> {
    #[track_caller]
    pub(crate) fn new<S: FeedRows, V: FeedRows>(
        setup: Setup<'_, 'a>,
        trainable: Trainable<'a>,
        task: &dyn Task,
        (train, valid): (&'a S, &'a V),
    ) -> Result<Self, Error> {
        let Setup { device, config, feed, scale, is_scale_kept, augment, replicas } = setup;
        let Trainable { module, params, optimizer } = trainable;
        config.check()?;
        task.check()?;
        let order = feed.order.as_ref().map_or("shuffled".to_owned(), ToString::to_string);
        let augmentation = augment.as_ref().map_or("none".to_owned(), |augment| format!("{augment:?}"));
        let others = [("order".to_owned(), order), ("augmentation".to_owned(), augmentation)];
        replicas.agree(by_name(&config)?.into_iter().chain(others).collect())?;
        replicas.agree_on_model(params, optimizer)?;
        if let (Some(interval), false) = (config.checkpoint_interval, replicas.is_single()) {
            let expected = "none with replicas, whose clocks differ; use `checkpoint_every`";
            return Err(Error::setting("checkpoint_interval", format!("{interval:?}"), expected));
        }
        let average = Average::of(config.ema, params, optimizer)?;
        let averages = average.len_bytes();
        check_memory(device, params, optimizer, averages, &[], replicas)?;
        if train.n_cols() != valid.n_cols() {
            return Err(column_count("valid", valid.n_cols(), train.n_cols()));
        }
        let n_labels = task.n_labels();
        let names = RowNames::of(train);
        names.check("valid", valid, n_labels > 0)?;
        RowNames::of(valid).check_encoding("train", names.encoding, n_labels > 0)?;
        check_label_count("train", train, n_labels)?;
        check_label_count("valid", valid, n_labels)?;
        let layout = RowLayout { labels: task.labels().dtype(), ..layout_of("train", train)? };
        if augment.is_none() {
            check_columns("train", train.n_cols(), module)?;
        }
        if valid.n_rows() == 0 {
            let found = format!("none of {} rows were held out for validation", train.n_rows());
            return Err(Error::row_set("valid", found, "some of each class; use more rows, or hold out more of them"));
        }
        layout_of("valid", valid)?;
        let scale = scale.or_else(|| Standardisation::known(train));
        let needs_moments = scale.is_none() || is_scale_kept;
        let shares_weights = train.has_weights() && !replicas.is_single() && feed.choice != FeedChoice::Resident;
        let columns = params.categorical_columns();
        let kinds = task.label_kinds();
        let first_wrong_label = |labels: &[f32]| first_wrong_label(&kinds, labels);
        let wanted = Wanted {
            labels: false,
            first_wrong_label: &first_wrong_label,
            moments: needs_moments,
            weights: shares_weights,
            columns,
            batch_rows: config.batch_rows,
        };
        let of_train = replicas.survey("train", train, &wanted)?;
        let of_valid =
            replicas.survey("valid", valid, &Wanted { labels: true, moments: false, weights: false, batch_rows: 1, ..wanted })?;
        let digests = [of_train.digest, of_valid.digest];
        let n_cols = train.n_cols();
        replicas
            .agree_on_digests([("train", train.n_rows(), n_cols, digests[0]), ("valid", valid.n_rows(), n_cols, digests[1])])?;
        let wrong_label = of_train.wrong_label.map(|(place, label)| label_error(&kinds, "train", train, place, label));
        let in_valid = || of_valid.wrong_label.map(|(place, label)| label_error(&kinds, "valid", valid, place, label));
        wrong_label.or_else(in_valid).map_or(Ok(()), Err)?;
        let mut valid_labels = of_valid.labels;
        let batch_rows = config.batch_rows.min(train.n_rows()).max(1);
        let limit_valid = |limit: Limit| limit.of_setting("limit_valid_batches", valid.n_rows().div_ceil(batch_rows));
        let n_valid_batches = config.limit_valid_batches.map(limit_valid).transpose()?;
        let n_valid_rows = n_valid_batches.map_or(valid.n_rows(), |n_batches| valid.n_rows().min(n_batches * batch_rows));
        valid_labels.truncate(n_valid_rows * n_labels);
        check_category_count("train", train, columns)?;
        check_category_count("valid", valid, columns)?;
        of_train.wrong_code_or_weight.or(of_valid.wrong_code_or_weight).map_or(Ok(()), Err)?;
        let mut validation = Validation::new(task, &config, valid_labels)?;
        let undefined = validation.leave_out_undefined(train.n_rows())?;
        of_train.non_finite.or(of_valid.non_finite).map_or(Ok(()), Err)?;
        let by_rows = of_train.moments.as_ref().map(Standardisation::of_moments);
        let of_rows = is_scale_kept.then(|| Standardisation::known(train).or_else(|| by_rows.clone())).flatten();
        let scale = match scale {
            Some(scale) => scale.checked(n_cols)?,
            None => by_rows.expect("moments are computed where there is no scale"),
        };
        let misfit = of_rows.and_then(|of_rows| {
            scale.misfit(&of_rows).map(|column| Warning::KeptStandardisation {
                column,
                kept: [scale.mean()[column], 1.0 / scale.inv_std()[column]],
                of_rows: [of_rows.mean()[column], 1.0 / of_rows.inv_std()[column]],
            })
        });

        let feed =
            Feeds { device, replicas, config: FeedConfig { labels: task.labels().dtype(), ..replicas.feed_config(feed)? } };
        let weights = if shares_weights { RowWeights::Known(of_train.weights.into()) } else { RowWeights::Unknown };
        let train = feed.feed("train", train, Some(config.seed), config.batch_rows, &weights)?;
        let train = if config.drop_last { train.drop_last() } else { train };
        let train = match &augment {
            None => train,
            Some(augment) => train.augmented(augment.clone()),
        };
        let ignores_weights = valid.has_weights();
        let left = feed.config.budget_bytes.map(|budget| budget.saturating_sub(train.len_bytes()));
        // The first rows of the table are those of any number of replicas only in its order.
        let order = (n_valid_rows < valid.n_rows()).then_some(Order::Sequential);
        let feed = Feeds { config: FeedConfig { budget_bytes: left, order, ..feed.config }, ..feed };
        let valid = feed.feed("valid", valid, None, EVALUATION_ROWS, &RowWeights::Unused)?.first_rows(n_valid_rows);

        let mut warnings = config.warnings(train.n_rows());
        warnings.extend(misfit);
        warnings.extend(undefined);
        warnings.extend(ignores_weights.then_some(Warning::UnusedWeights { n_rows: n_valid_rows }));
        let of_parts = replicas.normalises_parts() && !params.buffers().is_empty();
        let of_iterates = matches!(average, Average::OfOptimizer(_)) && !params.buffers().is_empty();
        warnings.extend(of_iterates.then_some(Warning::StatisticsOfIterates));
        warnings.extend(of_parts.then(|| Warning::StatisticsOfReplica { n_replicas: replicas.world_size() }));
        let config = TrainerConfig { batch_rows: train.batch_rows(), ..config };
        let n_batches = config.train_batches(train.n_batches())?;
        let check_interval = config.validate_within_epoch.map(|interval| interval.of(n_batches)).transpose()?;
        let trained = [Trained { params, optimizer, ema: average.ema() }];
        let step = RecordedStep::record(&train, &scale, &config, &trained, &[], replicas, |batch, reduction, bound| {
            batch.task_loss(module, &bound[0], task, reduction)
        })?;
        // A model may require a multiple of more rows.
        let computation = Computation::of(&trainable, task, layout, augment.as_ref(), computation::ROWS)
            .or_else(|_| Computation::of(&trainable, task, layout, augment.as_ref(), config.batch_rows))?;
        // A function is compared by its values.
        let n_steps = config.total_steps(n_batches);
        let rates = (0..n_steps.min(n_batches)).map(|step| config.schedule.rate(step, n_steps));
        let rates = format!("{:x}", XxHash3_64::oneshot(bytemuck::cast_slice(&rates.collect::<Vec<f64>>())));
        let rates = ("learning rates".to_owned(), rates);
        replicas.agree(computation.iter().map(Computation::described).chain([rates]).collect())?;
        let evaluated = average.evaluated(params);
        let scorer = RecordedScorer::record(device, module, &evaluated, &valid, &scale, config.precision, replicas, Some(task))?;
        check_memory(device, params, optimizer, averages, &[&step.graph, &scorer.graph], replicas)?;
        let (step, scorer) = (step.compile(device)?, scorer.compile(device)?);
        let average = average.compile(device)?;
        let device = device.clone();
        let mut training = Self {
            settings: compared(json(&config)?),
            config,
            device,
            params,
            optimizer,
            average,
            evaluated,
            scale,
            train,
            validation,
            step,
            scorer,
            n_batches,
            check_interval,
            digests,
            names,
            computation,
            replicas,
            warnings,
            writer: RefCell::default(),
            copies: RefCell::default(),
            memory: RefCell::default(),
        };
        training.warnings.extend(training.without_effect());
        training.start_over()?;
        Ok(training)
    }
}
