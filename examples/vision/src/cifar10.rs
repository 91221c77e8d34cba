//! Training runs of a recipe on CIFAR-10: the tables, the settings of a run, and its results.

use std::cell::RefCell;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail, ensure};
use brisk_examples::elsewhere::{is_url, shown};
use brisk_examples::import_error::{in_words_of, training as words_of_training};
use brisk_loader::{RowSource, Subset, split};
use brisk_nn::tensor::Precision;
use brisk_nn::tensor::program::Device;
use brisk_table::{CifarOptions, CifarSet, Remedy, Table, Typed, import_if_changed, printable};
use brisk_train::report::ImageGrid;
use brisk_train::{
    BatchesEnd, Callback, Classification, Error, FeedChoice, FeedConfig, Limit, Model, RunView, Selective, Standardisation,
    StopFlag, Trainable, Trainer, ValidationEnd, Warning,
};
use brisk_vision::{Network, Recipe, View, WithViews};

use crate::images::Costs;

/// Training and test set.
#[derive(Debug)]
pub struct Cifar10 {
    /// 50,000 images.
    pub train: Table,
    /// 10,000 images.
    pub test: Table,
}

/// The channels' means, for values from 0 to 1.
const MEAN: [f32; 3] = [0.4914, 0.4822, 0.4465];
/// The channels' standard deviations.
const STD: [f32; 3] = [0.2470, 0.2435, 0.2616];

/// The number of wrong predictions that the report shows.
const N_WRONG: usize = 30;

/// The number of classes of the data set.
pub const N_CLASSES: usize = 10;

impl Cifar10 {
    /// Opens the tables in `folder`. If there is a `source`, they are made from its binary files, unless they have been before: a
    /// folder with `data_batch_1.bin` and so on, which may be compressed, or the published archive. If `source` is a folder with
    /// these two tables, opens those.
    ///
    /// # Errors
    /// If the files do not exist or cannot be read, or the tables cannot be written.
    pub fn open(source: Option<&Path>, folder: &Path) -> Result<Self> {
        if let Some(source) = source.filter(|source| !source.exists()) {
            if is_url(source) {
                bail!("{}: is a URL, and this program takes none; download the files of CIFAR-10", printable(&shown(source)));
            }
            bail!("{}: cannot open the files of CIFAR-10: there is no such file or folder", printable(source));
        }
        let (source, folder) = match source {
            Some(source) if source.join(TRAIN).exists() => (None, source),
            source => (source, folder),
        };
        let table = |name: &str, set| -> Result<Table> {
            let path = folder.join(name);
            if let Some(source) = source {
                std::fs::create_dir_all(folder).with_context(|| format!("{}: cannot create the folder", printable(folder)))?;
                let imported = import_if_changed(source, &path, &CifarOptions { set, ..CifarOptions::default() }, |_| ());
                imported.map_err(|error| anyhow!(in_words_of(&error, remedy)))?;
            } else if !path.exists() {
                let remedy =
                    "name the folder or archive with the files of CIFAR-10 by `--data`; `cargo xtask fetch cifar10` downloads it";
                bail!("{}: there is no such table; {remedy}", printable(&path));
            }
            Ok(Table::open(path)?)
        };
        Ok(Self { train: table(TRAIN, CifarSet::Train)?, test: table(TEST, CifarSet::Test)? })
    }

    /// The names of the classes, or their numbers if the files do not name them.
    pub fn class_names(&self) -> Vec<String> {
        match self.train.classes() {
            [] => (0..N_CLASSES).map(|class| class.to_string()).collect(),
            names => names.to_vec(),
        }
    }
}

/// Remedies in terms of the example.
fn remedy(remedy: Remedy) -> Option<&'static str> {
    match remedy {
        Remedy::ReadAsCifar100 => Some("train on it with the example images"),
        _ => words_of_training(remedy),
    }
}

/// The names of the tables of training and test images.
const TRAIN: &str = "train.safetensors";
const TEST: &str = "test.safetensors";

/// The names of both tables.
pub const TABLE_NAMES: [&str; 2] = [TRAIN, TEST];

/// The recipe and the other settings of a run.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The recipe.
    pub recipe: Recipe,
    /// The number of training images to use, drawn at random with a fixed seed; all if `None`.
    pub n_train: Option<usize>,
    /// The number of test images to use, drawn in the same way.
    pub n_test: Option<usize>,
    /// The precision of matrix products.
    pub precision: Precision,
    /// Determines initial values, the order of images and their augmentation.
    pub seed: u64,
    /// Ends the run after this many steps.
    pub max_steps: Option<usize>,
    /// The fraction of the test images, those with the least confident predictions, that is evaluated with six views after all
    /// were evaluated with one; `None` skips this evaluation.
    pub selective_share: Option<f64>,
    /// Whether to show a progress bar.
    pub has_progress: bool,
    /// Whether to measure [`Outcome::costs`] before the run.
    pub measures_costs: bool,
    /// Where the report of the run is written.
    pub report: Option<PathBuf>,
    /// What the report says of the recipe.
    pub report_settings: Vec<(String, String)>,
    /// Ends the run when it is set.
    pub stop: StopFlag,
}

/// The result of a run.
#[derive(Debug)]
pub struct Outcome {
    /// The trained network.
    pub model: Model<Network>,
    /// The warnings of the run.
    pub warnings: Vec<Warning>,
    /// What the run took apart from its steps, if that was asked for.
    pub costs: Option<Costs>,
    /// The number of images that the run trained on.
    pub n_images: usize,
    /// The number of epochs, of which the last may be incomplete.
    pub n_epochs: usize,
    /// Trained parameters.
    pub n_parameters: usize,
    /// The number of steps of the run.
    pub n_steps: usize,
    /// Seconds of training: whitening, compilation of the step, and all steps; not the evaluation.
    pub train_seconds: f64,
    /// Seconds of the final evaluation with the recipe's views.
    pub test_seconds: f64,
    /// Images per second in training.
    pub images_per_second: f64,
    /// Test accuracy with a single view, with mirrored views and with six views.
    pub accuracy: [f64; 3],
    /// Test accuracy with [six views](View::six_equal) of only the least confident images, and the number of these images.
    pub selective: Option<(f64, usize)>,
    /// Test accuracy by the views of the recipe.
    pub by_recipe: f64,
    /// The loss of each step.
    pub losses: Vec<f32>,
}

/// The result of an epoch.
#[derive(Debug, Clone, Copy)]
pub struct EpochEnd {
    /// Seconds of training until the end of the epoch: whitening, compilation of the step, and all steps so far; not the
    /// evaluations.
    pub train_seconds: f64,
    /// Test accuracy by the views of the recipe.
    pub accuracy: f64,
}

/// Trains once, and evaluates with all views at the end.
///
/// # Errors
/// If the recipe does not fit the images, or the device is out of memory.
pub fn run(device: &Device, data: &Cifar10, settings: &Settings) -> Result<Outcome> {
    let recipe = &settings.recipe;
    let run = Run::new(data, settings)?;
    let costs = settings.measures_costs.then(|| run.costs(device)).transpose()?;
    let clock = Clock::started();
    let (mut model, scale) = run.model(device)?;
    let network = model.module().clone();
    let mut trainer = run.trainer(device, &network, scale, run.n_epochs(), &clock);
    if settings.has_progress {
        trainer = trainer.progress();
    }
    if let Some(path) = &settings.report {
        let settings = settings.report_settings.clone();
        trainer = trainer.report(path).class_names(data.test.classes()).report_settings(settings).report_panels(|scored| {
            let wrong = ImageGrid::wrong_predictions(&run.test, recipe.image(), scored, data.test.classes(), N_WRONG)?;
            Ok(if wrong.is_empty() { vec![] } else { vec![wrong.into()] })
        });
    }
    let fitted = trainer.fit(&mut model, &run.task(), &run.train, &run.test)?;
    drop(trainer);
    let n_parameters = model.params().n_trained();

    let (image, judge) = (recipe.image(), Classification::of(N_CLASSES));
    let mut selective = None;
    if let Some(share) = settings.selective_share {
        let six = WithViews { model: network.clone(), image, views: View::six_equal() };
        let Selective { result, careful_rows } = model.evaluate_selectively(&judge, &run.test, &six, share)?;
        selective = Some((result.get("accuracy").unwrap_or(f64::NAN), careful_rows.len()));
    }
    let mut model = model.map(|network| WithViews { model: network, image, views: View::plain() });
    let mut accuracy = [0.0; 3];
    let mut by_recipe = 0.0;
    let mut test_seconds = 0.0;
    for (i, views) in [View::plain(), View::mirrored(), View::six()].into_iter().enumerate() {
        let is_of_recipe = views == recipe.views;
        model = model.map(|with_views| WithViews { views, ..with_views });
        let start = Instant::now();
        let scores = model.evaluate(&judge, &run.test)?;
        let loss = scores.get("loss").unwrap_or(f64::NAN);
        ensure!(loss.is_finite(), "the training diverged: the test loss is {loss}; try another seed, or larger batches");
        accuracy[i] = scores.get("accuracy").unwrap_or(f64::NAN);
        if is_of_recipe {
            (by_recipe, test_seconds) = (accuracy[i], start.elapsed().as_secs_f64());
        }
    }
    let (n_steps, train_seconds, losses) = (run.n_steps, clock.seconds(), clock.0.take().losses);
    let images_per_second = (n_steps * recipe.batch_rows) as f64 / train_seconds;
    let (n_images, n_epochs) = (run.train.n_rows(), run.n_epochs());
    Ok(Outcome {
        model: model.map(|with_views| with_views.model),
        warnings: fitted.warnings,
        costs,
        n_images,
        n_epochs,
        n_parameters,
        n_steps,
        train_seconds,
        test_seconds,
        images_per_second,
        accuracy,
        selective,
        by_recipe,
        losses,
    })
}

/// Trains once, and evaluates with the recipe's views after each epoch.
///
/// # Errors
/// Those of [`run`].
pub fn run_by_epochs(device: &Device, data: &Cifar10, settings: &Settings) -> Result<Vec<EpochEnd>> {
    let Recipe { views, .. } = &settings.recipe;
    let run = Run::new(data, settings)?;
    let clock = Clock::started();
    let (model, scale) = run.model(device)?;
    let network = model.module().clone();
    let image = settings.recipe.image();
    let mut model = model.map(|network| WithViews { model: network, image, views: views.clone() });
    let mut trainer = run.trainer(device, &network, scale, 1, &clock);
    if settings.has_progress {
        trainer = trainer.progress();
    }
    trainer.fit(&mut model, &run.task(), &run.train, &run.test)?;
    drop(trainer);
    Ok(clock.0.take().epochs)
}

/// The images and the number of steps of a run.
struct Run<'r> {
    settings: &'r Settings,
    train: Subset<Images<'r>>,
    test: Subset<Images<'r>>,
    epoch_steps: usize,
    n_steps: usize,
}

impl<'r> Run<'r> {
    fn new(data: &'r Cifar10, settings: &'r Settings) -> Result<Self> {
        let recipe = &settings.recipe;
        let train = some_of(&data.train, settings.n_train)?;
        let test = some_of(&data.test, settings.n_test)?;
        let n_rows = train.n_rows();
        let epoch_steps = recipe.epoch_steps(n_rows);
        if epoch_steps == 0 {
            bail!(
                "batches of {} images do not fit into {n_rows} images; use more images (`--images`) or smaller batches (`--batch-rows`)",
                recipe.batch_rows
            );
        }
        let n_steps = settings.max_steps.unwrap_or(usize::MAX).min(recipe.n_steps(n_rows));
        Ok(Self { settings, train, test, epoch_steps, n_steps })
    }

    fn n_epochs(&self) -> usize {
        self.n_steps.div_ceil(self.epoch_steps)
    }

    fn task(&self) -> Classification {
        Classification::of(N_CLASSES).label_smoothing(self.settings.recipe.label_smoothing)
    }

    /// The network with its initial values, and how images are standardised for it.
    fn model(&self, device: &Device) -> Result<(Model<Network>, Standardisation)> {
        let recipe = &self.settings.recipe;
        let [height, width, _] = recipe.image();
        let bytes = |values: [f32; 3]| values.map(|value| 255.0 * value);
        let scale = Standardisation::of_channels(&bytes(MEAN), &bytes(STD), height * width);
        let mut model = Model::new(self.settings.seed, |params| recipe.build(params));
        let n_whitened = recipe.whitening.n_images.min(self.train.n_rows());
        let images = scale.rows("train", &self.train, 0..n_whitened)?;
        let network = model.module().clone();
        recipe.initialise(&network, model.params_mut(), device, &images)?;
        Ok((model, scale))
    }

    /// What the run takes, measured with a model of its own.
    fn costs(&self, device: &Device) -> Result<Costs> {
        let (model, scale) = self.model(device)?;
        let (network, params) = (model.module(), model.params());
        let trainer = self.trainer(device, network, scale, self.n_epochs(), &Clock::started());
        let optimizer = self.settings.recipe.optimizer(network, params, self.train.n_rows())?;
        Costs::of(device, &trainer, Trainable::new(network, params, &*optimizer), &self.task(), &self.train, &self.test)
    }

    /// A trainer for `network` with the recipe's settings, which evaluates it every `validate_every` epochs and at the end.
    fn trainer<'t>(
        &'t self,
        device: &Device,
        network: &'t Network,
        scale: Standardisation,
        validate_every: usize,
        clock: &Clock,
    ) -> Trainer<'t> {
        let Settings { recipe, seed, precision, .. } = self.settings;
        let n_rows = self.train.n_rows();
        let trainer = Trainer::new(device)
            .batch_rows(recipe.batch_rows)
            .max_epochs(self.n_epochs())
            .max_steps(self.n_steps)
            .configure(|config| config.limit_train_batches = Some(Limit::Batches(self.epoch_steps)))
            .configure(|config| config.validate_every = validate_every)
            .precision(*precision)
            .seed(*seed)
            .schedule(recipe.schedule(n_rows))
            .try_optimizer(move |params| recipe.optimizer(network, params, n_rows))
            .standardisation(scale)
            .feed(&FeedConfig { choice: FeedChoice::Resident, ..FeedConfig::default() })
            .augment(recipe.augment(*seed))
            .stop_on(&self.settings.stop)
            .callback(clock.clone());
        match recipe.ema(n_rows) {
            Some(ema) => trainer.ema(ema),
            None => trainer,
        }
    }
}

/// What a [`Clock`] has recorded.
#[derive(Debug)]
struct Seen {
    started: Instant,
    /// The time since then during which training was paused.
    paused: Duration,
    /// When the losses of the last steps were read.
    last_step: Instant,
    losses: Vec<f32>,
    epochs: Vec<EpochEnd>,
}

impl Default for Seen {
    fn default() -> Self {
        let now = Instant::now();
        Self { started: now, paused: Duration::ZERO, last_step: now, losses: vec![], epochs: vec![] }
    }
}

/// Measures the training time, which excludes evaluations of the model, and collects losses and accuracies.
#[derive(Debug, Default, Clone)]
struct Clock(Rc<RefCell<Seen>>);

impl Clock {
    fn started() -> Self {
        Self::default()
    }

    /// The training time until the last step.
    fn seconds(&self) -> f64 {
        let seen = self.0.borrow();
        (seen.last_step - seen.started).saturating_sub(seen.paused).as_secs_f64()
    }
}

impl Callback for Clock {
    fn on_epoch_start(&mut self, run: &RunView<'_>) -> Result<(), Error> {
        if run.epoch > 1 {
            let mut seen = self.0.borrow_mut();
            let pause = seen.last_step.elapsed();
            seen.paused += pause;
        }
        Ok(())
    }

    fn on_batches_end(&mut self, _: &RunView<'_>, batches: &BatchesEnd<'_>) -> Result<(), Error> {
        let mut seen = self.0.borrow_mut();
        seen.losses.extend(batches.losses);
        seen.last_step = Instant::now();
        Ok(())
    }

    fn on_validation_end(&mut self, _: &RunView<'_>, validation: &ValidationEnd<'_>) -> Result<ControlFlow<()>, Error> {
        let accuracy = validation.metrics.get("valid_accuracy").unwrap_or(f64::NAN);
        let end = EpochEnd { train_seconds: self.seconds(), accuracy };
        self.0.borrow_mut().epochs.push(end);
        Ok(ControlFlow::Continue(()))
    }
}

/// The images of a table, as bytes.
type Images<'t> = Typed<'t, Table, u8>;

/// Some of a table's images, the same for every run.
fn some_of(table: &Table, n: Option<usize>) -> Result<Subset<Images<'_>>> {
    let table: Images<'_> = table.typed()?;
    let n_rows = table.n_rows();
    let n = n.unwrap_or(n_rows).min(n_rows);
    let share = n as f64 / n_rows as f64;
    let [some, _] = split(table, 0, [share, 1.0 - share])?;
    Ok(some)
}
