//! Models of tables at each effort, beside gradient boosting: the test metric, seconds and peak memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use brisk_loader::{Chunk, RowMemory, RowSource, Rows, Subset, labels_of, split, stratified_split};
use brisk_table::{Header, Table as Rowed};
use brisk_tabular::{
    Columns, DetectOptions, Effort, Fitting, Preprocessing, Scaling, TabularModel, Target, TargetKind, TextOptions,
};
use brisk_tensor::Precision;
use flate2::read::GzDecoder;
use tempfile::TempDir;

use crate::command_line::{BenchedEffort, Tabular, selected};
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row, Table};

const SUITE: &str = "tabular";

/// The peers that `benches/peers/boosting.py` knows.
const PEERS: [&str; 4] = ["HistGradientBoosting", "LightGBM", "XGBoost", "CatBoost"];

/// A table of the data folder.
struct Known {
    name: &'static str,
    file: &'static str,
    /// A second file whose rows are the test rows.
    test_file: Option<&'static str>,
    target: Option<&'static str>,
    header: Header,
    skip_lines: usize,
    /// Columns that are no features.
    drop: &'static [&'static str],
    /// The word for a missing value.
    missing: Option<&'static str>,
}

const TABLES: [Known; 7] = [
    Known {
        target: Some("median_house_value"),
        header: Header::Present,
        ..known("california_housing", "tabular/california_housing.csv.gz")
    },
    Known { test_file: Some("tabular/adult.test.gz"), ..known("adult", "tabular/adult.data.gz") },
    Known {
        test_file: Some("higgs/higgs_test.csv.gz"),
        target: Some("label"),
        header: Header::Present,
        ..known("higgs", "higgs/higgs_train.csv.gz")
    },
    Known {
        target: Some("Label"),
        header: Header::Present,
        // The weight tells the label.
        drop: &["EventId", "Weight", "KaggleSet", "KaggleWeight"],
        missing: Some("-999.0"),
        ..known("atlas", "higgs/atlas_higgs_10k.csv.gz")
    },
    known("kddcup", "tabular/kddcup.data_10_percent.gz"),
    known("digits", "tabular/digits.csv.gz"),
    Known { skip_lines: 1, ..known("breast_cancer", "tabular/breast_cancer.csv.gz") },
];

const fn known(name: &'static str, file: &'static str) -> Known {
    Known { name, file, test_file: None, target: None, header: Header::Absent, skip_lines: 0, drop: &[], missing: None }
}

/// The metrics of a kind of target. The first one is that by which peers choose their settings and models are ranked.
fn metrics(kind: TargetKind) -> &'static [&'static str] {
    match kind {
        TargetKind::Binary => &["auc", "accuracy", "log_loss"],
        TargetKind::Classes => &["accuracy", "log_loss"],
        TargetKind::Number => &["rmse", "mae"],
    }
}

/// A file to measure.
struct Case {
    name: String,
    path: PathBuf,
    how: DetectOptions,
    /// Rows at the end that are the test rows; `None` for a fifth of all, drawn by the seed.
    n_test: Option<usize>,
}

pub(crate) fn run(options: &Options, suite: &Tabular) -> Result<Vec<Table>> {
    let scratch = tempfile::tempdir()?;
    let n_seeds = if options.scale == Scale::Smoke { 1 } else { suite.seeds };
    let (mut rows, mut ranks) = (Vec::new(), Vec::new());
    for case in cases(options, suite, &scratch)? {
        let measured = measured(options, suite, &case, n_seeds, scratch.path())?;
        ranks.push(measured.ranks());
        rows.extend(measured.rows(&case.name));
    }
    if ranks.len() > 1 && suite.peers {
        rows.extend(mean_ranks(suite, &ranks));
    }
    Ok(vec![Table { device: options.device.info().clone(), rows }])
}

fn cases(options: &Options, suite: &Tabular, scratch: &TempDir) -> Result<Vec<Case>> {
    if options.scale == Scale::Smoke {
        let path = scratch.path().join("generated.csv");
        let x = |row: usize, col: usize| ((row * 3 + col) as f64 * 0.754_877_666).fract();
        let line = |row: usize| format!("{},{},{:.3}\n", x(row, 0), x(row, 1), x(row, 0) * x(row, 1) + 0.1 * x(row, 2));
        fs::write(&path, (0..300).fold("a,b,y\n".to_owned(), |text, row| text + &line(row)))?;
        let how = DetectOptions { target: Some("y".to_owned()), ..DetectOptions::default() };
        return Ok(vec![Case { name: "generated".to_owned(), path, how, n_test: None }]);
    }
    let of_file = |path: &PathBuf| Case {
        name: path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        path: path.clone(),
        how: DetectOptions { target: suite.target.clone(), ..DetectOptions::default() },
        n_test: None,
    };
    let mut cases: Vec<Case> = suite.file.iter().map(of_file).collect();
    if let Some(data) = std::env::var_os("BRISK_DATA").map(PathBuf::from) {
        let wanted = |known: &&Known| suite.only.is_empty() || suite.only.iter().any(|name| name == known.name);
        for known in TABLES.iter().filter(wanted) {
            cases.push(known.case(&data, scratch)?);
        }
    } else if cases.is_empty() {
        bail!("there is no table to measure; name the data folder in BRISK_DATA, or a table with --file");
    }
    let names: Vec<&str> = TABLES.iter().map(|known| known.name).collect();
    let unknown = suite.only.iter().find(|name| !names.contains(&name.as_str()));
    ensure!(unknown.is_none(), "--only {}: the tables are {}", unknown.map_or("", String::as_str), names.join(", "));
    Ok(cases)
}

impl Known {
    fn case(&self, data: &Path, scratch: &TempDir) -> Result<Case> {
        let read = |file: &str| -> Result<String> {
            let path = data.join(file);
            let opened = fs::File::open(&path).with_context(|| format!("{}: cannot open the table", path.display()))?;
            Ok(std::io::read_to_string(GzDecoder::new(opened))?)
        };
        let (mut path, mut n_test) = (data.join(self.file), None);
        if let Some(file) = self.test_file {
            // The rows of both files, so that columns are found in all of them.
            let test = read(file)?;
            let is_row = |line: &&str| !line.is_empty() && !line.starts_with('|');
            let rows: Vec<&str> = test.lines().filter(is_row).skip(usize::from(self.header == Header::Present)).collect();
            n_test = Some(rows.len());
            path = scratch.path().join(format!("{}.csv", self.name));
            // The labels of adult's test file end in a full stop.
            let rows = rows.iter().map(|row| row.trim_end_matches('.')).collect::<Vec<_>>().join("\n");
            fs::write(&path, format!("{}\n{rows}\n", read(self.file)?.trim_end()))?;
        }
        let missing_values = self.missing.iter().map(|&word| word.to_owned()).collect();
        let text = TextOptions { header: self.header, skip_lines: self.skip_lines, missing_values, ..TextOptions::default() };
        let drop = self.drop.iter().map(|&column| column.to_owned()).collect();
        let how = DetectOptions { target: self.target.map(str::to_owned), drop, text, ..DetectOptions::default() };
        Ok(Case { name: self.name.to_owned(), path, how, n_test })
    }
}

/// What a model came to in one run.
struct Figures {
    /// Of the test rows. Shares of what is right are close to 1 for all models, so these are shares of what is wrong.
    errors: Vec<f64>,
    seconds: f64,
    peak_bytes: f64,
}

/// The figures of a table, of each effort and of each peer, by seed.
struct Measured {
    metrics: &'static [&'static str],
    efforts: Vec<BenchedEffort>,
    ours: Vec<Vec<Figures>>,
    peers: Vec<Competitor>,
    theirs: Vec<Vec<Figures>>,
}

/// A peer, and whether its settings are searched.
type Competitor = (&'static str, bool);

fn competitors(suite: &Tabular) -> Vec<Competitor> {
    let of_peer = |peer: &&'static str| std::iter::once((*peer, false)).chain(suite.tuned.then_some((*peer, true)));
    PEERS.iter().filter(|_| suite.peers).flat_map(of_peer).collect()
}

/// The share of what is wrong.
fn error_of(metric: &str, found: f64) -> f64 {
    if matches!(metric, "auc" | "accuracy") { 1.0 - found } else { found }
}

fn measured(options: &Options, suite: &Tabular, case: &Case, n_seeds: usize, scratch: &Path) -> Result<Measured> {
    let detected = TabularModel::detect(&case.path, &case.how)?;
    let metrics = metrics(detected.target.kind());
    let efforts: Vec<BenchedEffort> = selected(&suite.effort).collect();
    let mut ours: Vec<Vec<Figures>> = efforts.iter().map(|_| Vec::new()).collect();
    let peers = competitors(suite);
    let mut theirs: Vec<Vec<Figures>> = peers.iter().map(|_| Vec::new()).collect();
    for seed in 0..n_seeds as u64 {
        let [train, valid, test] = split_rows(&detected.table, &detected.target, case.n_test, seed)?;
        for (effort, figures) in efforts.iter().zip(&mut ours) {
            figures.push(trained(
                options,
                suite,
                effort.effort(),
                metrics,
                &detected.columns,
                &detected.target,
                seed,
                [&train, &valid, &test],
            )?);
        }
        if peers.is_empty() {
            continue;
        }
        let folder = scratch.join(format!("{}-{seed}", case.name));
        write_cells(&folder, &detected.target, &[("train", &train), ("valid", &valid), ("test", &test)])?;
        let python = options.peers.as_ref().context("--peers has a Python")?;
        let longest = ours.iter().filter_map(|figures| Some(figures.last()?.seconds)).fold(0.0, f64::max);
        for ((peer, is_tuned), figures) in peers.iter().zip(&mut theirs) {
            // A process each, whose peak memory is that of one model.
            let arguments = [folder.display().to_string(), (*peer).to_owned(), metrics.join(","), seed.to_string()];
            let arguments: Vec<String> = arguments.into_iter().chain(is_tuned.then(|| longest.to_string())).collect();
            let answer = Peer::python(python, "benches/peers/boosting.py", &arguments)?.line()?;
            let numbers: Vec<f64> = answer.split(' ').filter_map(|word| word.parse().ok()).collect();
            let (found, rest) = numbers.split_at(metrics.len().min(numbers.len()));
            let &[seconds, peak_bytes] = rest else { bail!("{peer} answered `{answer}`") };
            let errors = metrics.iter().zip(found).map(|(metric, &found)| error_of(metric, found)).collect();
            figures.push(Figures { errors, seconds, peak_bytes });
        }
        fs::remove_dir_all(&folder)?;
    }
    Ok(Measured { metrics, efforts, ours, peers, theirs })
}

impl Measured {
    fn rows(&self, table: &str) -> Vec<Row> {
        let of_metric = |(i, metric): (usize, &&str)| {
            let is_share = error_of(metric, 0.0) != 0.0;
            (if is_share { format!("1 - {metric}") } else { (*metric).to_owned() }, "", Some(i))
        };
        let others = [("time".to_owned(), "s", None), ("peak memory".to_owned(), "B", None)];
        let kinds: Vec<(String, &'static str, Option<usize>)> =
            self.metrics.iter().enumerate().map(of_metric).chain(others).collect();
        let mut rows = Vec::new();
        for (what, unit, at) in kinds {
            let of = |figures: &Figures| match at {
                Some(at) => figures.errors[at],
                None if unit == "s" => figures.seconds,
                None => figures.peak_bytes,
            };
            for (effort, ours) in self.efforts.iter().zip(&self.ours) {
                let ours: Vec<f64> = ours.iter().map(of).collect();
                if ours.iter().any(|figure| figure.is_nan()) {
                    continue;
                }
                let case = format!("{table}, {}, {what}", effort.name());
                let peers = self.peers.iter().zip(&self.theirs);
                let references = peers.map(|(peer, theirs)| Some((described(*peer), theirs.iter().map(of).collect())));
                let references: Vec<_> = if self.peers.is_empty() { vec![None] } else { references.collect() };
                rows.extend(references.into_iter().map(|reference| {
                    let (case, ours) = (case.clone(), ours.clone());
                    let target = at.filter(|_| reference.is_some()).map(|_| 1.0);
                    Row { suite: SUITE, case, ours, unit, reference, target, better: Better::Less }
                }));
            }
        }
        rows
    }

    /// The rank of each effort and then of each peer, by the mean of the first metric over the seeds; 1 for the best one.
    fn ranks(&self) -> Vec<f64> {
        let mean = |figures: &Vec<Figures>| figures.iter().map(|figures| figures.errors[0]).sum::<f64>() / figures.len() as f64;
        let means: Vec<f64> = self.ours.iter().chain(&self.theirs).map(mean).collect();
        means.iter().map(|of| 1.0 + means.iter().filter(|other| *other < of).count() as f64).collect()
    }
}

/// The mean rank over the tables of each effort beside that of each peer.
fn mean_ranks(suite: &Tabular, ranks: &[Vec<f64>]) -> Vec<Row> {
    let efforts: Vec<BenchedEffort> = selected(&suite.effort).collect();
    let mean = |i: usize| vec![ranks.iter().map(|ranks| ranks[i]).sum::<f64>() / ranks.len() as f64];
    let mut rows = Vec::new();
    for (i, effort) in efforts.iter().enumerate() {
        for (j, peer) in competitors(suite).into_iter().enumerate() {
            rows.push(Row {
                suite: SUITE,
                case: format!("mean rank over {} tables, {}", ranks.len(), effort.name()),
                ours: mean(i),
                unit: "",
                reference: Some((described(peer), mean(efforts.len() + j))),
                target: Some(1.0),
                better: Better::Less,
            });
        }
    }
    rows
}

fn described((peer, is_tuned): (&str, bool)) -> String {
    if is_tuned { format!("{peer}, tuned") } else { peer.to_owned() }
}

/// 70 % of the rows to train on, 10 % to validate, 20 % to test; of each class, if there are classes. Test rows of their own are the same for each seed.
fn split_rows<'a>(table: &'a Rowed, target: &Target, n_test: Option<usize>, seed: u64) -> Result<[Subset<&'a Rowed>; 3]> {
    let n_rows = table.n_rows();
    let n_own = n_rows - n_test.unwrap_or(0);
    let own = Subset::of_rows(table, (0..n_own as u32).collect::<Vec<_>>())?;
    let fractions = if n_test.is_some() { [0.875, 0.125, 0.0] } else { [0.7, 0.1, 0.2] };
    let parts = match target {
        Target::Classes { .. } => stratified_split(&own, &labels_of(&own)?, seed, fractions)?,
        Target::Number { .. } => split(&own, seed, fractions)?,
    };
    let rows = |part: &Subset<&Subset<&'a Rowed>>| -> Result<Subset<&'a Rowed>> {
        Ok(Subset::of_rows(table, (0..part.n_rows() as u32).map(|row| own.row(part.row(row))).collect::<Vec<_>>())?)
    };
    let [train, valid, test] = &parts;
    let test = match n_test {
        Some(_) => Subset::of_rows(table, (n_own as u32..n_rows as u32).collect::<Vec<_>>())?,
        None => rows(test)?,
    };
    Ok([rows(train)?, rows(valid)?, test])
}

#[expect(clippy::too_many_arguments, reason = "a run consists of all of them, each of another type")]
fn trained(
    options: &Options,
    suite: &Tabular,
    effort: Effort,
    metrics: &[&str],
    columns: &Columns,
    target: &Target,
    seed: u64,
    [train, valid, test]: [&Subset<&Rowed>; 3],
) -> Result<Figures> {
    let started = Instant::now();
    reset_peak();
    let preprocessing = Preprocessing::fit(columns, train, Scaling::Standard)?;
    let target = target.clone().fitted_to("train", train)?;
    let preprocessed = |rows: &Subset<&Rowed>, set: &'static str| -> Result<Rows> {
        Ok(preprocessing.over(columns, rows)?.with_target(&target).to_rows(set)?)
    };
    let (train, valid, test) = (preprocessed(train, "train")?, preprocessed(valid, "valid")?, preprocessed(test, "test")?);
    let mut recipes = effort.recipes(&train, &target, seed);
    if options.scale == Scale::Smoke {
        recipes.truncate(2);
        recipes.iter_mut().for_each(|recipe| recipe.max_epochs = 1);
    }
    let max_time = suite.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes));
    let precision = suite.precision.unwrap_or_else(|| Precision::fastest(&options.device));
    let fitting = Fitting { max_time, precision, ..Fitting::new(recipes, seed) };
    let fitted = fitting.fit(&options.device, preprocessing.clone(), target.clone(), &train, &valid)?;
    let seconds = started.elapsed().as_secs_f64();
    let scores = fitted.model.evaluate(&test)?;
    let error = |metric: &&str| -> Result<f64> {
        Ok(error_of(metric, scores.get(metric).with_context(|| format!("{metric} of the test rows"))?))
    };
    Ok(Figures { errors: metrics.iter().map(error).collect::<Result<_>>()?, seconds, peak_bytes: peak_bytes() })
}

/// Writes what boosting trains on: numbers with NaN where they are missing, the codes of categories, and labels, as raw numbers.
fn write_cells(folder: &Path, target: &Target, sets: &[(&str, &Subset<&Rowed>)]) -> Result<()> {
    fs::create_dir_all(folder)?;
    for (set, rows) in sets {
        let n = rows.n_rows();
        let mut memory = RowMemory::new(rows.layout(), n);
        let Chunk { features, labels, categories, .. } = memory.read(rows, 0..n)?;
        let mut y = labels.to_vec();
        if !target.classes().is_empty() {
            y.iter_mut().for_each(|label| *label = target.label(*label));
        }
        let write = |name: &str, bytes: &[u8]| fs::write(folder.join(format!("{set}.{name}")), bytes);
        write("numbers", bytemuck::cast_slice(features))?;
        write("categories", bytemuck::cast_slice(categories))?;
        write("labels", bytemuck::cast_slice(&y))?;
    }
    Ok(())
}

/// Starts measuring the peak anew, on Linux.
fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory of this process since then; NaN where the system does not tell.
fn peak_bytes() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<f64>().ok());
    kib.map_or(f64::NAN, |kib| kib * 1024.0)
}

impl BenchedEffort {
    fn effort(self) -> Effort {
        match self {
            Self::Quick => Effort::Quick,
            Self::Good => Effort::Good,
            Self::Best => Effort::Best,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Quick => "quick",
            Self::Good => "good",
            Self::Best => "best",
        }
    }
}
