//! The two tables of a run: simulated here, imported from text, or brisk tables as they are.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use brisk_replicate::Error::Disagreement;
use brisk_table::{BadRows, ColumnOptions, ColumnRef, CsvOptions, Error, Imported, LabelKind, Table, import_csv_if_changed};
use brisk_train::binary_labels;
use brisk_train::metrics::roc_auc;

use super::Options;
use super::simulate;

/// The rows to train on and those to test on, and the files that they came from.
#[derive(Debug)]
pub struct Data {
    /// The rows to train on.
    pub train: Table,
    /// Those to test on.
    pub test: Table,
    train_path: PathBuf,
    test_path: PathBuf,
}

impl Data {
    /// Opens the files that the options name, or those of simulated collisions, which are made where they are not there. `note` is told what is done.
    ///
    /// # Errors
    /// If a file cannot be read or written, or the two differ in their columns.
    pub fn open(options: &Options, note: &dyn Fn(&str)) -> Result<Self> {
        let (train_path, test_path) = match (&options.train, &options.test) {
            (Some(train), Some(test)) => (train.clone(), test.clone()),
            _ => simulated_files(options, note)?,
        };
        let (train, test) = (open(&train_path, options, note)?, open(&test_path, options, note)?);
        if train.column_names() != test.column_names() {
            let (a, b) = (train.column_names(), test.column_names());
            let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
            let name = |names: &[String]| names.get(at).map_or("nothing".to_owned(), |name| format!("`{name}`"));
            bail!(
                "{} has {} columns and {} has {}; they differ first at index {at}: {} and {}",
                train_path.display(),
                a.len(),
                test_path.display(),
                b.len(),
                name(a),
                name(b)
            );
        }
        Ok(Self { train, test, train_path, test_path })
    }

    /// The labels of the rows to test on, which must be 0 or 1, and some of each: found out before anything is trained.
    ///
    /// # Errors
    /// If they are not.
    pub fn test_labels(&self) -> Result<Vec<f32>> {
        let labels = self.of_test(binary_labels("test", &self.test))?;
        self.of_test(roc_auc(&labels, &labels))?;
        Ok(labels)
    }

    /// What is wrong with rows to train on, told with the file that they came from.
    ///
    /// # Errors
    /// That of `result`.
    pub fn of_train<T>(&self, result: Result<T, brisk_train::Error>) -> Result<T> {
        of_file(&self.train_path, result)
    }

    /// The same for rows to test on.
    ///
    /// # Errors
    /// That of `result`.
    pub fn of_test<T>(&self, result: Result<T, brisk_train::Error>) -> Result<T> {
        of_file(&self.test_path, result)
    }
}

/// The files of this many simulated collisions, made unless they are there from a run before.
fn simulated_files(options: &Options, note: &dyn Fn(&str)) -> Result<(PathBuf, PathBuf)> {
    let dir = &options.data_dir;
    std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot make the folder", dir.display()))?;
    let (n_train, n_test) = (options.rows, (options.rows / 5).max(20));
    let file = |part: &str, n: u64| dir.join(format!("simulated-{part}-{n}-seed{}.csv", options.seed));
    let parts = [(file("train", n_train), n_train, 0), (file("test", n_test), n_test, n_train)];
    for (path, n_rows, first_row) in &parts {
        if path.exists() {
            note(&format!("simulated collisions of an earlier run: {}", path.display()));
            continue;
        }
        note(&format!("simulating {n_rows} collisions: {}", path.display()));
        simulate::write_csv(path, *n_rows, options.seed, *first_row)?;
    }
    let [(train, ..), (test, ..)] = parts;
    Ok((train, test))
}

/// Opens a brisk table, or imports a text file into one that is kept for the next run.
fn open(path: &Path, options: &Options, note: &dyn Fn(&str)) -> Result<Table> {
    if path.extension().is_some_and(|extension| extension == "safetensors") {
        return Ok(Table::open(path)?);
    }
    let label = match &options.label {
        None => ColumnRef::Index(0),
        Some(word) => word.parse().map_or_else(|_| ColumnRef::Name(word.clone()), ColumnRef::Index),
    };
    let columns = ColumnOptions { label, label_kind: LabelKind::Binary, bad_rows: options.bad_rows, ..ColumnOptions::default() };
    let csv = CsvOptions { columns, ..CsvOptions::default() };
    std::fs::create_dir_all(&options.data_dir)
        .with_context(|| format!("{}: cannot make the folder", options.data_dir.display()))?;
    let dest = options.data_dir.join(table_name(path));
    match import_csv_if_changed(path, &dest, &csv).map_err(|error| anyhow!(in_words_of_options(&error)))? {
        Imported::Written(report) => {
            note(&format!("imported {} rows of {}", report.n_rows, path.display()));
            if options.bad_rows == BadRows::Skip && report.n_skipped > 0 {
                let first = report.first_skipped.first().map_or(String::new(), in_words_of_options);
                note(&format!("left out {} rows that could not be read; the first: {first}", report.n_skipped));
            }
        }
        Imported::Unchanged => note(&format!("imported before, unchanged: {}", path.display())),
    }
    Ok(Table::open(&dest)?)
}

/// The importer's ways out are Rust; on a command line they are called otherwise.
fn in_words_of_options(error: &Error) -> String {
    const SKIP: &str = "mend it, or pass `--on-bad-row skip`";
    match error {
        Error::Cell { path, line, col, name, found, expected, .. } => {
            // What was expected, and behind a semicolon what to do in Rust.
            let what = expected.split("; ").next().unwrap_or(expected);
            let way_out = if what.starts_with("a label") { "name another column with `--label`, " } else { "" };
            let path = path.display();
            format!("{path}, line {line}, column {col} (`{name}`): found {found:?}, expected {what}; {way_out}{SKIP}")
        }
        Error::Ragged { path, line, expected, found, .. } => {
            let path = path.display();
            format!("{path}, line {line}: found {found} columns, expected {expected} as in the first line; {SKIP}")
        }
        Error::HeaderOrRow { path, line, number, text } => {
            let path = path.display();
            format!(
                "{path}, line {line}: {number:?} is a number and {text:?} is none, so this may be a header or a row; name all columns, or none"
            )
        }
        Error::HeaderNotUtf8 { path, line, col, found } => {
            format!("{}, line {line}, column {col}: the name {found:?} is not UTF-8; convert the file", path.display())
        }
        Error::DuplicateColumn { path, name, first, second } => {
            format!("{}: columns {first} and {second} are both named `{name}`; rename one", path.display())
        }
        other => other.to_string(),
    }
}

/// A name for the table made of the file at `path`, its own even among files of the same name.
fn table_name(path: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).hash(&mut hasher);
    let stem = path.file_name().unwrap_or_default().to_string_lossy();
    format!("{}-{:08x}.safetensors", stem.split('.').next().unwrap_or("table"), hasher.finish() as u32)
}

/// The option that sets what replicas disagree on, if one does.
fn option_of(setting: &str) -> Option<&'static str> {
    Some(match setting.trim_matches('`') {
        "batch_rows" => "--batch",
        "accumulate" => "--accumulate",
        "precision" => "--precision",
        "clip" => "--clip",
        "max_epochs" => "--epochs",
        "patience" => "--patience",
        "seed" => "--seed",
        "lr" => "--lr",
        "checkpoint_every" => "--checkpoint-every",
        "wire" => "--wire",
        "zero" => "--zero",
        "buckets" => "--bucket-mb",
        _ => return None,
    })
}

fn of_file<T>(path: &Path, result: Result<T, brisk_train::Error>) -> Result<T> {
    use brisk_train::Error::{BatchPerReplica, Memory, Replica, Tensor};
    result.map_err(|error| match error {
        Replica(Disagreement { what, rank, mine, other, theirs }) => {
            let what = option_of(&what).map_or(what, str::to_owned);
            Replica(Disagreement { what, rank, mine, other, theirs }).into()
        }
        // These are not about rows.
        error @ (Tensor(_) | Replica(_) | BatchPerReplica { .. } | Memory { .. }) => error.into(),
        error => anyhow::Error::new(error).context(path.display().to_string()),
    })
}
