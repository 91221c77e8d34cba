use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail, ensure};
use brisk_examples::command_line::value::{MAX_COUNT, list, one_of, positive, precision, whole};
use brisk_examples::command_line::{DeviceOption, ServerOption};
use brisk_examples::tabular::TextArguments;
use brisk_loader::{RowSource, Rows};
use brisk_nn::Adapters;
use brisk_nn::tensor::Precision;
use brisk_nn::tensor::program::Device;
use brisk_report::seconds;
use brisk_table::printable;
use brisk_tabular::{
    ClassWeights, DateOrder, Effort, Network, Recipe, Scaling, Target, TargetKind, TargetScale, ThresholdMetric,
};
use clap::Parser;

use crate::scale::Asked;

/// Trains a network on a table and writes a folder from which `predict` makes predictions
#[derive(Debug, Clone, Parser)]
#[command(name = "tabular", after_help = EXAMPLES)]
pub(crate) struct Options {
    /// Table to train on: CSV, TSV, Parquet and other formats, plain or compressed, or a brisk table (.safetensors); or the URL
    /// of such a file
    pub(crate) data: PathBuf,
    /// Column to predict, by name or by index from 0; of several, A,B, each has a model, without the others as features
    /// [default: one called target, label, class or y, else the last; of a brisk table its label]
    #[arg(long, value_name = "COLUMN", help_heading = "Data", value_parser = list(|word| Ok(word.to_owned())))]
    pub(crate) target: Option<std::vec::Vec<String>>,
    /// Those of other models, which are no features.
    #[arg(skip)]
    pub(crate) other_targets: Vec<String>,
    /// The folder that the one of `--out` is moved to at last, if it is another.
    #[arg(skip)]
    pub(crate) moved_to: Option<PathBuf>,
    /// What the target is [default: classes if it is text, or if it has few different whole numbers with five rows of each, else
    /// number]
    #[arg(long, value_name = "KIND", help_heading = "Data", value_parser = one_of([
        ("binary", TargetKind::Binary), ("classes", TargetKind::Classes), ("number", TargetKind::Number)]))]
    pub(crate) task: Option<TargetKind>,
    /// Columns to leave out, by name or by index
    #[arg(long, value_name = "A,B", help_heading = "Data", value_parser = list(|word| Ok(word.to_owned())))]
    pub(crate) drop: Option<std::vec::Vec<String>>,
    /// Columns whose values are categories, whatever they look like: codes, dates, identifiers
    #[arg(long, value_name = "A,B", help_heading = "Data", value_parser = list(|word| Ok(word.to_owned())))]
    pub(crate) categorical: Option<std::vec::Vec<String>>,
    /// Whether the day or the month is first in dates such as 03/04/2024, where no cell of the column says it: day-first or
    /// month-first [default: as in other columns; else the day before a point, the month before other marks, with a warning]
    #[arg(long, value_name = "ORDER", help_heading = "Data", value_parser = one_of([
        ("day-first", DateOrder::DayFirst), ("month-first", DateOrder::MonthFirst)]))]
    pub(crate) date_order: Option<DateOrder>,
    /// Column of the groups of rows, such as patients: all rows of a group are trained on, validated or tested. It is no feature
    #[arg(long, value_name = "COLUMN", help_heading = "Data", conflicts_with = "time")]
    pub(crate) group: Option<String>,
    /// Train on, validate or test all rows that are equal in all columns but the target, such as copies of a row
    #[arg(long, help_heading = "Data", conflicts_with_all = ["time", "group"])]
    pub(crate) group_equal: bool,
    /// Column of the times of rows, numbers or dates: the latest are tested, those before them validated. It remains a feature
    /// unless --drop names it, too
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    pub(crate) time: Option<String>,
    /// Column of the weights of rows, numbers of at least 0: how much each counts in training and in scores. It is no feature
    #[arg(long, value_name = "COLUMN", help_heading = "Data")]
    pub(crate) weight: Option<String>,
    /// Keep the index of a data frame as a column
    #[arg(long, help_heading = "Data")]
    pub(crate) keep_index: bool,
    #[command(flatten)]
    pub(crate) text: TextArguments,
    /// How columns of numbers are scaled: standard (mean 0, deviation 1) or quantile (normal distribution by ranks)
    #[arg(long, value_name = "HOW", help_heading = "Data", default_value = "standard",
        value_parser = one_of([("standard", Scaling::Standard), ("quantile", Scaling::Quantile)]))]
    pub(crate) scaling: Scaling,
    /// How a target that is a number is scaled for training: standard, log (its logarithm: for positive numbers with a long tail,
    /// such as prices), or auto, the one that predicts validation rows better after a short training; log is tried if the numbers
    /// are above 0 and have such a tail [default: auto]
    #[arg(long, value_name = "HOW", help_heading = "Training", value_parser = one_of([("auto", Asked::Auto),
        ("standard", Asked::For(TargetScale::Standard)), ("log", Asked::For(TargetScale::Log))]))]
    pub(crate) target_scale: Option<Asked>,
    /// Fewest training rows of a value of a category: values in fewer rows become one with those that are missing or unknown
    #[arg(long, value_name = "N", help_heading = "Data", default_value = "1", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) min_category_rows: usize,

    /// What is trained: quick, an ensemble of networks, in half a minute for 20,000 rows; good, four of them that differ in
    /// widths and embeddings, and a linear model, in minutes; best, also several with drawn settings. Those are kept that are
    /// best together
    #[arg(long, value_name = "HOW", help_heading = "Training", default_value = "good", conflicts_with = "model",
        value_parser = one_of([("quick", Effort::Quick), ("good", Effort::Good), ("best", Effort::Best)]))]
    pub(crate) effort: Effort,
    /// Time for all of it, counted from the start of the program. What follows the networks is a part of it: choosing those to
    /// keep, the importance of columns, the scores, the page, and the linear model that they are compared with. Its time is
    /// estimated from a pass over the validation rows and set aside; importance is measured on fewer rows, or not at all, rather
    /// than late [default: no limit]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = positive(1e6))]
    pub(crate) minutes: Option<f64>,
    /// How much the classes count in training: observed, by their rows, or balanced, all alike; predicted probabilities are those
    /// of the observed frequencies in any case
    #[arg(long, value_name = "HOW", help_heading = "Training", default_value = "observed",
        value_parser = one_of([("observed", ClassWeights::Observed), ("balanced", ClassWeights::Balanced)]))]
    pub(crate) class_weights: ClassWeights,
    /// What the probability is chosen for, on the validation rows, above which the second of two classes is predicted: f1,
    /// accuracy or balanced-accuracy [default: 0.5]
    #[arg(long, value_name = "METRIC", help_heading = "Training", value_parser = one_of([("f1", ThresholdMetric::F1),
        ("accuracy", ThresholdMetric::Accuracy), ("balanced-accuracy", ThresholdMetric::BalancedAccuracy)]))]
    pub(crate) threshold: Option<ThresholdMetric>,
    /// Share of the numbers that intervals of predictions are to hold, such as 0.9: predict then writes their lower and upper
    /// bounds. They are as wide as the errors on the validation rows are
    #[arg(long, value_name = "SHARE", help_heading = "Training", value_parser = coverage)]
    pub(crate) intervals: Option<f64>,
    /// Trains the networks for each of K folds of the rows that are not tested, validates them by the fold, and predicts the mean
    /// over the folds; 1 trains them once, validated by a tenth of the rows [default: 5 for fewer than 4000 rows, else 1; 1
    /// with --model]
    #[arg(long, value_name = "K", help_heading = "Training", value_parser = whole::<usize>(1..=100), conflicts_with = "time")]
    pub(crate) folds: Option<usize>,
    /// Network, instead of those of --effort: mlp; resnet, a residual network; tabm, an ensemble of networks that share most
    /// weights; tabm-mini, whose hidden layers are the same; realmlp, an ensemble that shares only the embeddings
    #[arg(long, value_name = "KIND", help_heading = "Training", value_parser = one_of([
        ("mlp", Kind::Mlp), ("resnet", Kind::ResidualMlp), ("tabm", Kind::TabM(Adapters::All)),
        ("tabm-mini", Kind::TabM(Adapters::First)), ("realmlp", Kind::RealMlp)]))]
    pub(crate) model: Option<Kind>,
    /// Units of each hidden layer, except of a resnet [default: of an mlp 256,128; of an ensemble 256,256; of a realmlp
    /// 256,256,256]
    #[arg(long, value_name = "A,B", help_heading = "Training", value_parser = list(whole::<usize>(1..=1 << 16)))]
    pub(crate) hidden: Option<std::vec::Vec<usize>>,
    /// Members of an ensemble [default: 16; of a realmlp 4]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = whole::<usize>(1..=1024))]
    pub(crate) members: Option<usize>,
    /// Maximum number of epochs; with --minutes those that fit, if they are fewer
    /// [default: 1600 to 4500 steps, but 6 to 100 epochs; of an mlp or a resnet 100; of a
    /// realmlp 100, but at most 20000 steps]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) epochs: Option<usize>,
    /// Rows per batch [default: a 128th of the training rows, of an mlp or a resnet a 400th, from 32 to 1024; of a realmlp 256]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) batch: Option<usize>,
    /// Epochs without a better validation score after which the run ends
    /// [default: half of the maximum number of epochs; of an mlp or a resnet 10; of a realmlp all]
    #[arg(long, value_name = "N", help_heading = "Training", value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) patience: Option<usize>,
    /// Validation score that decides when training ends and which epoch is kept, such as valid_auc
    /// [default: valid_rmse; of classes valid_log_loss; of an mlp or a resnet valid_auc or valid_accuracy]
    #[arg(long, value_name = "NAME", help_heading = "Training")]
    pub(crate) monitor: Option<String>,
    /// Learning rate of AdamW, which falls to 0 in the maximum number of epochs, that of a realmlp in four cycles, except for an
    /// mlp or a resnet; that of Muon, which trains the matrices that members of a tabm share, is a multiple of it; among the
    /// networks of --effort, a realmlp keeps its own
    /// [default: 0.01; of an mlp or a resnet 0.001; of a realmlp 0.2, of classes 0.04]
    #[arg(long, value_name = "RATE", help_heading = "Training", value_parser = positive(f64::MAX))]
    pub(crate) lr: Option<f64>,
    /// Weight decay of AdamW, likewise [default: 0.0003; of an mlp or a resnet 0.01; of a realmlp 0.02]
    #[arg(long, value_name = "RATE", help_heading = "Training", value_parser = positive(1e6))]
    pub(crate) weight_decay: Option<f64>,
    /// Seed of the initial weights, the order of rows and the split into 70 % training, 10 % validation and 20 % test rows,
    /// unless it is one by --time
    #[arg(long, value_name = "N", help_heading = "Training", default_value = "0", value_parser = whole::<u64>(0..=MAX_COUNT))]
    pub(crate) seed: u64,
    /// Precision of matrix products in training; parameters and predictions are f32 in each
    /// [default: bf16 on a CPU with fast instructions for it, AMX or AVX512_BF16, else f32]
    #[arg(long, value_name = "TYPE", help_heading = "Running", value_parser = precision())]
    pub(crate) precision: Option<Precision>,
    #[command(flatten)]
    pub(crate) device: DeviceOption,
    #[command(flatten)]
    pub(crate) server: ServerOption,

    /// Folder to write the model to; those of several targets are written to the folders 0, 1 and so on in it
    #[arg(long, value_name = "DIR", help_heading = "Results", default_value = "target/tabular/model")]
    pub(crate) out: PathBuf,
    /// Write the preprocessed rows to DIR, too: train.safetensors, valid.safetensors and test.safetensors
    #[arg(long, value_name = "DIR", help_heading = "Results")]
    pub(crate) save_rows: Option<PathBuf>,
    /// Write the HTML page to FILE, or to none: scores and errors of the test rows, the rows that are predicted worst, and the
    /// columns with their kinds and importance [default: report.html in the folder of --out]
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) report: Option<PathBuf>,
    /// Write the results to FILE as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) json: Option<PathBuf>,
}

/// A kind of network.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Mlp,
    ResidualMlp,
    TabM(Adapters),
    RealMlp,
}

/// The page in the folder of a model.
pub(crate) const PAGE: &str = "report.html";

/// Whether the word is that for no file.
pub(crate) fn is_none(path: &Path) -> bool {
    path == Path::new("none")
}

impl Options {
    /// The columns to predict; none if it is to be found out.
    pub(crate) fn targets(&self) -> &[String] {
        self.target.as_deref().unwrap_or_default()
    }

    /// Checks that targets are different, and that no option is for one only.
    pub(crate) fn check_targets(&self) -> Result<()> {
        let targets = self.targets();
        let twice = (1..targets.len()).find(|&i| targets[..i].contains(&targets[i]));
        if let Some(i) = twice {
            bail!("`--target` names `{}` twice; name each column once", printable(&targets[i]));
        }
        ensure!(
            targets.len() < 2 || self.report.as_deref().is_none_or(is_none),
            "`--report` names one page, but each of {} targets has its own, report.html in its folder; leave it out, or pass `--report none`",
            targets.len()
        );
        Ok(())
    }

    /// Those for one of several targets, which has a folder of its own and may take this time.
    pub(crate) fn of_target(&self, i: usize, time: Option<Duration>) -> Self {
        let mut own = self.clone();
        let mut others = self.targets().to_vec();
        own.target = Some(vec![others.remove(i)]);
        own.other_targets = others;
        own.out = self.out.join(i.to_string());
        own.moved_to = self.moved_to.as_ref().map(|folder| folder.join(i.to_string()));
        own.save_rows = self.save_rows.as_ref().map(|folder| folder.join(i.to_string()));
        own.minutes = time.map(|time| time.as_secs_f64() / 60.0);
        own.json = None;
        own
    }

    /// The same, but with a folder next to that of `--out`, if that one has a model already, which is then kept.
    pub(crate) fn beside_former(&self, suffix: &str) -> Option<Self> {
        let has_model = ["model.json", "targets.json"].iter().any(|name| self.out.join(name).exists());
        let name = self.out.file_name().filter(|_| has_model)?;
        let out = self.out.with_file_name(format!("{}-{suffix}", name.to_string_lossy()));
        Some(Self { out, ..self.clone() })
    }

    /// Where a file in the folder of `--out` is at last.
    pub(crate) fn at_last(&self, path: &Path) -> PathBuf {
        match (&self.moved_to, path.strip_prefix(&self.out)) {
            // Joined to nothing, a path would end with a separator.
            (Some(folder), Ok(rest)) if rest.as_os_str().is_empty() => folder.clone(),
            (Some(folder), Ok(rest)) => folder.join(rest),
            _ => path.to_owned(),
        }
    }

    /// Where the page is written, if it is.
    pub(crate) fn report_path(&self) -> Option<PathBuf> {
        match &self.report {
            None => Some(self.out.join(PAGE)),
            Some(path) => Some(path.clone()).filter(|path| !is_none(path)),
        }
    }

    /// The files that are written to the folders of `--out` and `--save-rows`, apart from the page.
    pub(crate) fn files_in_folders(&self) -> Vec<(&'static str, PathBuf)> {
        let n_targets = self.targets().len();
        if n_targets > 1 {
            let of_all = ("--out", self.out.join("targets.json"));
            return (0..n_targets).flat_map(|i| self.of_target(i, None).files_in_folders()).chain([of_all]).collect();
        }
        let of_model = ["model.json", "parameters.safetensors"].map(|name| ("--out", self.out.join(name)));
        let rows = ["train", "valid", "test"].map(|set| format!("{set}.safetensors"));
        let rows = self.save_rows.iter().flat_map(|folder| rows.iter().map(|name| ("--save-rows", folder.join(name))));
        of_model.into_iter().chain(rows).collect()
    }

    /// Removes the page of the model that is in the folder, before it is replaced; of several, those beyond the first `n_models`.
    pub(crate) fn remove_former_pages(&self, n_models: usize) -> std::io::Result<()> {
        let has_several = self.out.join("targets.json").exists();
        let numbered = (n_models..).map(|i| self.out.join(i.to_string())).take_while(|folder| has_several && folder.is_dir());
        for folder in [self.out.clone()].into_iter().chain(numbered) {
            match std::fs::remove_file(folder.join(PAGE)) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        Ok(())
    }

    /// The precision of training on this device.
    pub(crate) fn precision_on(&self, device: &Device) -> Precision {
        self.precision.unwrap_or_else(|| Precision::fastest(device))
    }

    /// The networks to train for these preprocessed training rows, and how.
    pub(crate) fn recipes(&self, rows: &Rows, target: &Target) -> Vec<Recipe> {
        let of_one = |network: Network| vec![Recipe::of_one(network, rows.n_rows())];
        let mut recipes = match self.model {
            None => self.effort.recipes(rows, target, self.seed),
            Some(Kind::Mlp) => of_one(Network::Mlp { hidden: vec![256, 128] }),
            Some(Kind::ResidualMlp) => of_one(Network::ResidualMlp { width: 128, hidden: 256, n_blocks: 2 }),
            Some(Kind::TabM(_)) => vec![Recipe::quick(rows, target)],
            Some(Kind::RealMlp) => vec![Recipe::real_mlp(rows, target)],
        };
        for recipe in &mut recipes {
            recipe.monitor = self.monitor.clone().or(recipe.monitor.take());
            // The linear model among the networks of an effort has settings of its own.
            if recipe.is_linear() {
                continue;
            }
            match &mut recipe.network {
                Network::Mlp { hidden } => *hidden = self.hidden.clone().unwrap_or_else(|| hidden.clone()),
                Network::TabM { n_members, adapters, hidden, .. } => {
                    *n_members = self.members.unwrap_or(*n_members);
                    *hidden = self.hidden.clone().unwrap_or_else(|| hidden.clone());
                    if let Some(Kind::TabM(of_kind)) = self.model {
                        *adapters = of_kind;
                    }
                }
                Network::RealMlp { n_members, hidden, .. } => {
                    *n_members = self.members.unwrap_or(*n_members);
                    *hidden = self.hidden.clone().unwrap_or_else(|| hidden.clone());
                }
                _ => {}
            }
            recipe.max_epochs = self.epochs.unwrap_or(recipe.max_epochs);
            recipe.batch_rows = self.batch.unwrap_or(recipe.batch_rows);
            let patience = if recipe.is_annealed { recipe.max_epochs.div_ceil(2) } else { recipe.patience };
            recipe.patience = self.patience.unwrap_or(patience);
            if self.model.is_none() && matches!(recipe.network, Network::RealMlp { .. }) {
                continue;
            }
            recipe.lr = self.lr.unwrap_or(recipe.lr);
            recipe.weight_decay = self.weight_decay.map_or(recipe.weight_decay, |decay| decay as f32);
        }
        recipes
    }

    /// The time that `--minutes` leaves.
    ///
    /// # Errors
    /// If it leaves none.
    pub(crate) fn time_left(&self, started: Instant) -> Result<Option<Duration>> {
        let elapsed = started.elapsed();
        let left = self.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes).saturating_sub(elapsed));
        ensure!(
            left.is_none_or(|left| !left.is_zero()),
            "`--minutes {}` was over after {}, before training began; allow more time",
            self.minutes.unwrap_or_default(),
            seconds(elapsed.as_secs_f64())
        );
        Ok(left)
    }

    /// Whether the networks are ensembles.
    pub(crate) fn has_members(&self) -> bool {
        matches!(self.model, None | Some(Kind::TabM(_) | Kind::RealMlp))
    }
}

/// A share that neither none nor all of the numbers are.
fn coverage(word: &str) -> Result<f64, String> {
    let share = word.parse().ok().filter(|share| *share > 0.0 && *share < 1.0);
    share.ok_or_else(|| "expected a number between 0 and 1, such as 0.9".to_owned())
}

const EXAMPLES: &str = "\
Columns are numbers, categories (text, and numbers with leading zeros) or dates in one format, such as 2024-03-17, 03/17/2024 or 17-Mar-2024, which become year, month, weekday, hour
(of times) and days. Other dates and identifiers are left out with a warning; numbers among which there is other text are an error. The model folder keeps all that predict needs.

Examples:
  cargo run --release --example tabular -- houses.csv --target price
  cargo run --release --example predict -- target/tabular/model new_houses.csv --out prices.csv";
