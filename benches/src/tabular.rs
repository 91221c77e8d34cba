//! Models of tables at each effort, beside gradient boosting: test metrics, seconds and peak memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use brisk_loader::{Chunk, RowMemory, RowSource, Rows, Subset, labels_of, split, stratified_split};
use brisk_table::{Header, Table as Rowed};
use brisk_tabular::{
    DetectOptions, Detected, Effort, Fitting, Preprocessing, Scaling, TabularModel, Target, TargetKind, TextOptions,
};
use brisk_tensor::Precision;
use flate2::read::GzDecoder;
use tempfile::TempDir;

use crate::command_line::{BenchedEffort, Tabular, selected};
use crate::loader::memory::status_bytes;
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row, Table};

const SUITE: &str = "tabular";

/// Gradient boosting that `benches/peers/table_models.py` knows.
const BOOSTING: [&str; 4] = ["HistGradientBoosting", "LightGBM", "XGBoost", "CatBoost"];
/// Networks that it knows.
const NETWORKS: [&str; 2] = ["RealMLP", "TabM"];

/// A table of the data folder.
struct Known {
    name: &'static str,
    file: &'static str,
    /// A second file whose rows are the test rows.
    test_file: Option<&'static str>,
    target: Option<&'static str>,
    header: Header,
    skip_lines: usize,
    /// Columns that are not known of new rows, or that only number them.
    drop: &'static [&'static str],
    /// What stands for a missing value, besides the usual words.
    missing: &'static [&'static str],
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
        // The weights of the simulation differ between signal and background.
        drop: &["EventId", "Weight", "KaggleSet", "KaggleWeight"],
        missing: &["-999.0"],
        ..known("atlas", "higgs/atlas_higgs_10k.csv.gz")
    },
    known("kddcup", "tabular/kddcup.data_10_percent.gz"),
    known("digits", "tabular/digits.csv.gz"),
    Known { skip_lines: 1, ..known("breast_cancer", "tabular/breast_cancer.csv.gz") },
];

const fn known(name: &'static str, file: &'static str) -> Known {
    Known { name, file, test_file: None, target: None, header: Header::Absent, skip_lines: 0, drop: &[], missing: &[] }
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
    let cases = cases(options, suite, &scratch)?;
    let measured = |case| measured(options, suite, case, n_seeds, scratch.path());
    let measured: Vec<Measured> = cases.iter().map(measured).collect::<Result<_>>()?;
    let rows = measured.iter().flat_map(Measured::rows).chain(mean_ranks(&measured)).collect();
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
        let [drop, missing_values] = [self.drop, self.missing].map(|words| words.iter().map(|&word| word.to_owned()).collect());
        let text = TextOptions { header: self.header, skip_lines: self.skip_lines, missing_values, ..TextOptions::default() };
        let how = DetectOptions { target: self.target.map(str::to_owned), drop, text, ..DetectOptions::default() };
        Ok(Case { name: self.name.to_owned(), path, how, n_test })
    }
}

/// The metrics of the test rows. Models of tuned peers are chosen, and all are ranked, by the first.
fn metrics_of(kind: TargetKind) -> &'static [&'static str] {
    match kind {
        TargetKind::Binary => &["auc", "accuracy", "log_loss"],
        TargetKind::Classes => &["accuracy", "log_loss"],
        TargetKind::Number => &["rmse"],
    }
}

/// Shares of what is right are close to 1 for all models: they are compared by what is wrong.
fn is_share(metric: &str) -> bool {
    matches!(metric, "auc" | "accuracy")
}

/// The figures of a model in one run.
struct Figures {
    /// One per metric, each the less the better.
    errors: Vec<f64>,
    seconds: f64,
    peak_bytes: f64,
}

impl Figures {
    fn new(metrics: &[&str], values: &[f64], seconds: f64, peak_bytes: f64) -> Self {
        let error = |(metric, &value): (&&str, &f64)| if is_share(metric) { 1.0 - value } else { value };
        Self { errors: metrics.iter().zip(values).map(error).collect(), seconds, peak_bytes }
    }
}

/// One of them.
type Figure = Box<dyn Fn(&Figures) -> f64>;

/// The models of a table.
struct Measured {
    name: String,
    metrics: &'static [&'static str],
    /// By the name of the effort; figures of each seed.
    ours: Vec<(&'static str, Vec<Figures>)>,
    /// By the name of the peer.
    theirs: Vec<(String, Vec<Figures>)>,
}

fn measured(options: &Options, suite: &Tabular, case: &Case, n_seeds: usize, scratch: &Path) -> Result<Measured> {
    let detected = TabularModel::detect(&case.path, &case.how)?;
    let metrics = metrics_of(detected.target.kind());
    let efforts: Vec<BenchedEffort> = selected(&suite.effort).collect();
    let mut ours: Vec<_> = efforts.iter().map(|effort| (effort.name(), Vec::new())).collect();
    let of_peer = |peer: &&'static str| std::iter::once((*peer, false)).chain(suite.tuned.then_some((*peer, true)));
    let networks = NETWORKS.iter().filter(|_| suite.networks).map(|peer| (*peer, false));
    let peers: Vec<(&str, bool)> = BOOSTING.iter().filter(|_| suite.peers).flat_map(of_peer).chain(networks).collect();
    let mut theirs: Vec<_> = peers.iter().map(|peer| (described(*peer), Vec::new())).collect();
    for seed in 0..n_seeds as u64 {
        let [train, valid, test] = split_rows(&detected.table, &detected.target, case.n_test, seed)?;
        for (effort, (_, figures)) in efforts.iter().zip(&mut ours) {
            figures.push(trained(options, suite, effort.effort(), &detected, seed, [&train, &valid, &test])?);
        }
        if peers.is_empty() {
            continue;
        }
        let folder = scratch.join(format!("{}-{seed}", case.name));
        write_cells(&folder, &detected, [("train", &train), ("valid", &valid), ("test", &test)])?;
        let python = options.peers.as_ref().context("--peers has a Python")?;
        let longest = ours.iter().filter_map(|(_, figures)| Some(figures.last()?.seconds)).fold(0.0, f64::max);
        for ((peer, is_tuned), (_, figures)) in peers.iter().zip(&mut theirs) {
            // A process each, whose peak memory is that of one model.
            let arguments = [folder.display().to_string(), (*peer).to_owned(), metrics.join(","), seed.to_string()];
            let arguments: Vec<String> = arguments.into_iter().chain(is_tuned.then(|| longest.to_string())).collect();
            let answer = Peer::python(python, "benches/peers/table_models.py", &arguments)?.line()?;
            let numbers: Vec<f64> = answer.split(' ').filter_map(|word| word.parse().ok()).collect();
            let [values @ .., seconds, peak_bytes] = &numbers[..] else { bail!("{peer} answered `{answer}`") };
            ensure!(values.len() == metrics.len(), "{peer} answered `{answer}` when asked for {}", metrics.join(", "));
            figures.push(Figures::new(metrics, values, *seconds, *peak_bytes));
        }
        fs::remove_dir_all(&folder)?;
    }
    Ok(Measured { name: case.name.clone(), metrics, ours, theirs })
}

impl Measured {
    /// A row for each effort and peer, of every metric, then of the time, then of the memory.
    fn rows(&self) -> Vec<Row> {
        let of_metric = |(i, metric): (usize, &&str)| {
            let name = metric.replace('_', " ");
            let name = if is_share(metric) { format!("1 - {name}") } else { name };
            let figure: Figure = Box::new(move |figures| figures.errors[i]);
            (name, "", figure)
        };
        let mut kinds: Vec<_> = self.metrics.iter().enumerate().map(of_metric).collect();
        kinds.push(("time".to_owned(), "s", Box::new(|figures| figures.seconds)));
        kinds.push(("peak memory".to_owned(), "B", Box::new(|figures| figures.peak_bytes)));
        let mut rows = Vec::new();
        for (what, unit, of) in kinds {
            for (effort, ours) in &self.ours {
                let ours: Vec<f64> = ours.iter().map(&of).collect();
                if ours.iter().any(|figure| figure.is_nan()) {
                    continue;
                }
                let case = format!("{}, {effort}, {what}", self.name);
                let theirs = self.theirs.iter().map(|(peer, theirs)| (peer.clone(), theirs.iter().map(&of).collect()));
                rows.extend(rows_beside(&case, &ours, unit, theirs.collect()));
            }
        }
        rows
    }

    /// The rank of an effort among the peers, then those of the peers, by the first metric for a seed: 1 for the best, and the
    /// mean of their ranks for equal ones.
    fn ranks(&self, effort: usize, seed: usize) -> Vec<f64> {
        let models = std::iter::once(&self.ours[effort].1).chain(self.theirs.iter().map(|(_, theirs)| theirs));
        let errors: Vec<f64> = models.map(|figures| figures[seed].errors[0]).collect();
        let rank = |error: &f64| {
            let n_better = errors.iter().filter(|other| *other < error).count();
            let n_equal = errors.iter().filter(|other| *other == error).count();
            n_better as f64 + (n_equal as f64 + 1.0) / 2.0
        };
        errors.iter().map(rank).collect()
    }
}

/// A row for each peer; one without a peer if there are none.
fn rows_beside(case: &str, ours: &[f64], unit: &'static str, peers: Vec<(String, Vec<f64>)>) -> Vec<Row> {
    let references = if peers.is_empty() { vec![None] } else { peers.into_iter().map(Some).collect() };
    let row = |reference| {
        let (case, ours) = (case.to_owned(), ours.to_vec());
        Row { suite: SUITE, case, ours, unit, reference, target: None, better: Better::Less }
    };
    references.into_iter().map(row).collect()
}

/// For each effort and peer, the mean of their ranks over the tables; none for a single table, or without peers.
fn mean_ranks(tables: &[Measured]) -> Vec<Row> {
    let [first, _, ..] = tables else { return Vec::new() };
    if first.theirs.is_empty() {
        return Vec::new();
    }
    let mut rows = Vec::new();
    for (effort, (name, figures)) in first.ours.iter().enumerate() {
        // By model, then by seed.
        let mut means = vec![vec![0.0; figures.len()]; 1 + first.theirs.len()];
        for seed in 0..figures.len() {
            for table in tables {
                let ranks = table.ranks(effort, seed);
                means.iter_mut().zip(ranks).for_each(|(mean, rank)| mean[seed] += rank / tables.len() as f64);
            }
        }
        let ours = means.remove(0);
        let case = format!("{} tables, {name}, mean rank", tables.len());
        let peers = first.theirs.iter().map(|(peer, _)| peer.clone()).zip(means);
        rows.extend(rows_beside(&case, &ours, "", peers.collect()));
    }
    rows
}

fn described((peer, is_tuned): (&str, bool)) -> String {
    if is_tuned { format!("{peer}, tuned") } else { peer.to_owned() }
}

/// 70 % of the rows to train on, 10 % to validate, 20 % to test; of each class, if there are classes. Test rows of their own are
/// the same for each seed.
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

fn trained(
    options: &Options,
    suite: &Tabular,
    effort: Effort,
    detected: &Detected,
    seed: u64,
    [train, valid, test]: [&Subset<&Rowed>; 3],
) -> Result<Figures> {
    let started = Instant::now();
    reset_peak();
    let rest = joined(&detected.table, [train, valid])?;
    let n_folds = Effort::n_folds(rest.n_rows());
    let in_folds = n_folds > 1;
    let train = if in_folds { &rest } else { train };
    let preprocessing = Preprocessing::fit(&detected.columns, train, Scaling::Standard)?;
    let target = detected.target.clone().fitted_to("train", train)?;
    let preprocessed = |rows: &Subset<&Rowed>, set: &'static str| -> Result<Rows> {
        Ok(preprocessing.over(&detected.columns, rows)?.with_target(&target).to_rows(set)?)
    };
    let (train_rows, test) = (preprocessed(train, "train")?, preprocessed(test, "test")?);
    let mut recipes = effort.recipes(&train_rows, &target, seed);
    if options.scale == Scale::Smoke {
        recipes.truncate(2);
        recipes.iter_mut().for_each(|recipe| recipe.max_epochs = 1);
    }
    let max_time = suite.minutes.map(|minutes| Duration::from_secs_f64(60.0 * minutes));
    let precision = suite.precision.unwrap_or_else(|| Precision::fastest(&options.device));
    let fitting = Fitting { max_time, precision, ..Fitting::new(recipes, seed) };
    let (device, preprocessing, target) = (&options.device, preprocessing.clone(), target.clone());
    let fitted = if in_folds {
        fitting.fit_folds(device, preprocessing, target, &detected.folds(&rest, &train_rows, seed, n_folds)?)?
    } else {
        fitting.fit(device, preprocessing, target, &train_rows, &preprocessed(valid, "valid")?)?
    };
    let seconds = started.elapsed().as_secs_f64();
    let (scores, metrics) = (fitted.model.evaluate(&test)?, metrics_of(fitted.model.target().kind()));
    let value = |metric: &&str| scores.get(metric).with_context(|| format!("{metric} of the test rows"));
    let values: Vec<f64> = metrics.iter().map(value).collect::<Result<_>>()?;
    Ok(Figures::new(metrics, &values, seconds, peak_bytes()))
}

/// Writes what boosting trains on, as raw numbers: numbers that the networks read, with those decoded from text such as dates,
/// and NaN where they are missing; the codes of categories; and labels.
fn write_cells(folder: &Path, detected: &Detected, sets: [(&str, &Subset<&Rowed>); 3]) -> Result<()> {
    fs::create_dir_all(folder)?;
    let [(_, train), (_, valid), _] = sets;
    let preprocessing = Preprocessing::fit(&detected.columns, &joined(&detected.table, [train, valid])?, Scaling::Standard)?;
    let (n_numbers, n_columns) = (preprocessing.numbers().len(), preprocessing.feature_names().len());
    // For each mark of a missing value, the column of numbers.
    let marked: Vec<usize> = (0..n_numbers).filter(|&col| preprocessing.numbers()[col].has_indicator).collect();
    for (set, rows) in sets {
        let n = rows.n_rows();
        let cells = preprocessing.over(&detected.columns, rows)?;
        let mut memory = RowMemory::new(cells.layout(), n);
        let Chunk { features, categories, .. } = memory.read(&cells, 0..n)?;
        let mut numbers = Vec::with_capacity(n * n_numbers);
        for row in features.chunks_exact(n_columns) {
            let start = numbers.len();
            numbers.extend_from_slice(&row[..n_numbers]);
            let missing = marked.iter().zip(&row[n_numbers..]).filter(|(_, mark)| **mark == 1.0);
            missing.for_each(|(col, _)| numbers[start + col] = f32::NAN);
        }
        let mut labels = labels_of(rows)?;
        if !detected.target.classes().is_empty() {
            labels.iter_mut().for_each(|label| *label = detected.target.label(*label));
        }
        let write = |name: &str, bytes: &[u8]| fs::write(folder.join(format!("{set}.{name}")), bytes);
        write("numbers", bytemuck::cast_slice(&numbers))?;
        write("categories", bytemuck::cast_slice(categories))?;
        write("labels", bytemuck::cast_slice(&labels))?;
    }
    Ok(())
}

/// The rows of both parts.
fn joined<'a>(table: &'a Rowed, parts: [&Subset<&'a Rowed>; 2]) -> Result<Subset<&'a Rowed>> {
    let rows = parts.map(|part| (0..part.n_rows() as u32).map(|row| part.row(row)).collect::<Vec<_>>()).concat();
    Ok(Subset::of_rows(table, rows)?)
}

/// Starts measuring the peak anew, on Linux.
fn reset_peak() {
    let _ = fs::write("/proc/self/clear_refs", "5");
}

/// The most memory of this process since then; NaN where the system does not tell.
fn peak_bytes() -> f64 {
    status_bytes("VmHWM:").map_or(f64::NAN, |bytes| bytes as f64)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn measured(ours: f64, theirs: [f64; 2]) -> Measured {
        let figures = |error| vec![Figures::new(&["rmse"], &[error], 1.0, 1.0)];
        let theirs = ["A", "B"].map(str::to_owned).into_iter().zip(theirs.map(figures)).collect();
        Measured {
            name: "table".to_owned(),
            metrics: metrics_of(TargetKind::Number),
            ours: vec![("quick", figures(ours))],
            theirs,
        }
    }

    #[test]
    fn ranks_are_averaged_over_tables() {
        // First and last; A is second, then shares the first two ranks with B.
        let tables = [measured(1.0, [2.0, 3.0]), measured(9.0, [5.0, 5.0])];
        let rows = mean_ranks(&tables);
        let of_row = |row: &Row| (row.case.clone(), row.ours[0], row.reference.clone().expect("there are peers"));
        let [case, of_a, of_b] = [("2 tables, quick, mean rank"), "A", "B"].map(str::to_owned);
        let expected = [(case.clone(), 2.0, (of_a, vec![1.75])), (case, 2.0, (of_b, vec![2.25]))];
        assert_eq!(rows.iter().map(of_row).collect::<Vec<_>>(), expected);
        assert!(mean_ranks(&tables[..1]).is_empty(), "a single table has a rank of its own");
    }

    #[test]
    fn shares_are_compared_by_what_is_wrong() {
        let metrics = metrics_of(TargetKind::Binary);
        assert_eq!(Figures::new(metrics, &[0.75, 0.5, 0.4], 1.0, 1.0).errors, [0.25, 0.5, 0.4]);
    }
}
