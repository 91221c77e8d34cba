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
    metric: &'static str,
}

const TABLES: [Known; 5] = [
    Known {
        target: Some("median_house_value"),
        header: Header::Present,
        ..known("california_housing", "tabular/california_housing.csv.gz", "rmse")
    },
    Known { test_file: Some("tabular/adult.test.gz"), ..known("adult", "tabular/adult.data.gz", "auc") },
    Known {
        test_file: Some("higgs/higgs_test.csv.gz"),
        target: Some("label"),
        header: Header::Present,
        ..known("higgs", "higgs/higgs_train.csv.gz", "auc")
    },
    known("digits", "tabular/digits.csv.gz", "accuracy"),
    Known { skip_lines: 1, ..known("breast_cancer", "tabular/breast_cancer.csv.gz", "auc") },
];

const fn known(name: &'static str, file: &'static str, metric: &'static str) -> Known {
    Known { name, file, test_file: None, target: None, header: Header::Absent, skip_lines: 0, metric }
}

/// A file to measure.
struct Case {
    name: String,
    path: PathBuf,
    how: DetectOptions,
    /// Rows at the end that are the test rows; `None` for a fifth of all, drawn by the seed.
    n_test: Option<usize>,
    metric: Option<&'static str>,
}

pub(crate) fn run(options: &Options, suite: &Tabular) -> Result<Vec<Table>> {
    let scratch = tempfile::tempdir()?;
    let n_seeds = if options.scale == Scale::Smoke { 1 } else { suite.seeds };
    let mut rows = Vec::new();
    for case in cases(options, suite, &scratch)? {
        rows.extend(measured(options, suite, &case, n_seeds, scratch.path())?);
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
        return Ok(vec![Case { name: "generated".to_owned(), path, how, n_test: None, metric: None }]);
    }
    let of_file = |path: &PathBuf| Case {
        name: path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        path: path.clone(),
        how: DetectOptions { target: suite.target.clone(), ..DetectOptions::default() },
        n_test: None,
        metric: None,
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
        let text = TextOptions { header: self.header, skip_lines: self.skip_lines, ..TextOptions::default() };
        let how = DetectOptions { target: self.target.map(str::to_owned), text, ..DetectOptions::default() };
        Ok(Case { name: self.name.to_owned(), path, how, n_test, metric: Some(self.metric) })
    }
}

/// What a model came to in one run.
struct Figures {
    metric: f64,
    seconds: f64,
    peak_bytes: f64,
}

/// One of them.
type Figure = fn(&Figures) -> f64;

fn measured(options: &Options, suite: &Tabular, case: &Case, n_seeds: usize, scratch: &Path) -> Result<Vec<Row>> {
    let detected = TabularModel::detect(&case.path, &case.how)?;
    let metric = case.metric.unwrap_or(match detected.target.kind() {
        TargetKind::Binary => "auc",
        TargetKind::Classes => "accuracy",
        TargetKind::Number => "rmse",
    });
    let efforts: Vec<BenchedEffort> = selected(&suite.effort).collect();
    let mut ours: Vec<Vec<Figures>> = efforts.iter().map(|_| Vec::new()).collect();
    let of_peer = |peer: &&'static str| std::iter::once((*peer, false)).chain(suite.tuned.then_some((*peer, true)));
    let peers: Vec<(&str, bool)> = PEERS.iter().filter(|_| suite.peers).flat_map(of_peer).collect();
    let mut theirs: Vec<Vec<Figures>> = peers.iter().map(|_| Vec::new()).collect();
    for seed in 0..n_seeds as u64 {
        let [train, valid, test] = split_rows(&detected.table, &detected.target, case.n_test, seed)?;
        for (effort, figures) in efforts.iter().zip(&mut ours) {
            figures.push(trained(
                options,
                suite,
                effort.effort(),
                metric,
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
            let arguments = [folder.display().to_string(), (*peer).to_owned(), metric.to_owned(), seed.to_string()];
            let arguments: Vec<String> = arguments.into_iter().chain(is_tuned.then(|| longest.to_string())).collect();
            let answer = Peer::python(python, "benches/peers/boosting.py", &arguments)?.line()?;
            let numbers: Vec<f64> = answer.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [metric, seconds, peak_bytes] = numbers[..] else { bail!("{peer} answered `{answer}`") };
            figures.push(Figures { metric, seconds, peak_bytes });
        }
        fs::remove_dir_all(&folder)?;
    }
    // Shares of what is right are close to 1 for all models: the ratio is that of what is wrong.
    let of_metric: (String, Figure) = match metric {
        "rmse" => (metric.to_owned(), |figures| figures.metric),
        _ => (format!("1 - {metric}"), |figures| 1.0 - figures.metric),
    };
    let kinds: [(&str, &'static str, Figure); 3] = [
        (&of_metric.0, "", of_metric.1),
        ("time", "s", |figures| figures.seconds),
        ("peak memory", "B", |figures| figures.peak_bytes),
    ];
    let mut rows = Vec::new();
    for (what, unit, of) in kinds {
        for (effort, ours) in efforts.iter().zip(&ours) {
            let ours: Vec<f64> = ours.iter().map(of).collect();
            if ours.iter().any(|figure| figure.is_nan()) {
                continue;
            }
            let case = format!("{}, {}, {what}", case.name, effort.name());
            let references =
                peers.iter().zip(&theirs).map(|(peer, theirs)| Some((described(*peer), theirs.iter().map(of).collect())));
            let references: Vec<_> = if peers.is_empty() { vec![None] } else { references.collect() };
            rows.extend(references.into_iter().map(|reference| {
                let (case, ours) = (case.clone(), ours.clone());
                Row { suite: SUITE, case, ours, unit, reference, target: None, better: Better::Less }
            }));
        }
    }
    Ok(rows)
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
    metric: &str,
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
    let metric = fitted.model.evaluate(&test)?.get(metric).with_context(|| format!("{metric} of the test rows"))?;
    Ok(Figures { metric, seconds, peak_bytes: peak_bytes() })
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
