//! The two tables of a run: simulated, imported from text, or brisk tables.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use brisk_atomic_file::is_same_file;
use brisk_loader::RowSource as _;
use brisk_table::{BadRows, ColumnOptions, ColumnRef, CsvOptions, Imported, LabelKind, import_if_changed};
use brisk_train::metrics::roc_auc;
use brisk_train::{Labels, StopFlag};

use super::Options;
use super::simulate::simulated;
use crate::elsewhere::{Held, TableRows, is_table, is_url, open_rows, shown};
use crate::import_error::{in_words_of, training};
use crate::interruptible::{self, StoppedImport, interruptible};

/// The rows to train on, the rows to test on, and their files.
pub struct Data {
    /// The rows to train on.
    pub train: TableRows,
    /// The rows to test on.
    pub test: TableRows,
    train_path: PathBuf,
    test_path: PathBuf,
}

/// The rows cannot be printed.
impl std::fmt::Debug for Data {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Data").field("train", &shown(&self.train_path)).field("test", &shown(&self.test_path)).finish()
    }
}

impl Data {
    /// Opens the files in the options, or files of simulated collisions, which are created if they do not exist. `note` is called
    /// with progress messages.
    ///
    /// # Errors
    /// If a file cannot be read or written, or the columns of the two differ.
    /// If a stop is requested during an import, it removes what it has written and returns
    /// [`StoppedImport`](crate::interruptible::StoppedImport).
    pub fn open(options: &Options, stop: &StopFlag, note: &dyn Fn(&str)) -> Result<Self> {
        Self::open_held(options, &Held::InMemory, stop, note)
    }

    /// Like [`open`](Self::open); `held` says where the rows are.
    ///
    /// # Errors
    /// As for [`open`](Self::open).
    pub fn open_held(options: &Options, held: &Held, stop: &StopFlag, note: &dyn Fn(&str)) -> Result<Self> {
        let (train_path, test_path) = match (&options.train, &options.test) {
            (Some(train), Some(test)) => (train.clone(), test.clone()),
            _ => simulated_files(options, note)?,
        };
        if train_path == test_path || is_same_file(&train_path, &test_path) {
            note(&format!("warning: {} is trained on and tested, so that the test score says little", shown(&test_path)));
        }
        let (train, test) = (open(&train_path, options, held, stop, note)?, open(&test_path, options, held, stop, note)?);
        if train.names().columns != test.names().columns {
            let (a, b) = (train.names().columns, test.names().columns);
            let at = a.iter().zip(b).position(|(a, b)| a != b).unwrap_or(a.len().min(b.len()));
            let name = |names: &[String]| names.get(at).map_or("nothing".to_owned(), |name| format!("`{name}`"));
            bail!(
                "{} has {} columns and {} has {}; the first difference is at index {at}: {} and {}",
                shown(&train_path),
                a.len(),
                shown(&test_path),
                b.len(),
                name(a),
                name(b)
            );
        }
        Ok(Self { train, test, train_path, test_path })
    }

    /// The labels of the test rows, which must be 0 and 1 with some of each. Checked before anything is trained.
    ///
    /// # Errors
    /// If there are other labels, or only one of the two.
    pub fn test_labels(&self) -> Result<Vec<f32>> {
        let intact =
            self.test.check_intact().map_err(|cause| brisk_train::Error::Rows { set: "test", reason: cause.to_string() });
        self.of_test(intact)?;
        let labels = self.of_test(Labels::Binary.read("test", &self.test))?;
        self.of_test(roc_auc(&labels, &labels).map_err(Into::into))?;
        Ok(labels)
    }

    /// Adds the file of the training rows to an error about them.
    ///
    /// # Errors
    /// The error of `result`.
    pub fn of_train<T>(&self, result: Result<T, brisk_train::Error>) -> Result<T> {
        of_file(&self.train_path, result)
    }

    /// Adds the file of the test rows to an error about them.
    ///
    /// # Errors
    /// The error of `result`.
    pub fn of_test<T>(&self, result: Result<T, brisk_train::Error>) -> Result<T> {
        of_file(&self.test_path, result)
    }
}

/// The files of this many simulated collisions, which are created unless an earlier run left them.
fn simulated_files(options: &Options, note: &dyn Fn(&str)) -> Result<(PathBuf, PathBuf)> {
    let dir = &options.data_dir;
    std::fs::create_dir_all(dir).with_context(|| format!("{}: cannot create the folder", dir.display()))?;
    // The test rows follow the training rows, so that no row is in both.
    let (n_train, n_test) = (options.rows, (options.rows / 5).max(20));
    let file = |rows| simulated(dir, options.seed, rows, note);
    Ok((file(0..n_train)?, file(n_train..n_train + n_test)?))
}

/// Opens a brisk table, or imports a text file into one that later runs reuse.
fn open(path: &Path, options: &Options, held: &Held, stop: &StopFlag, note: &dyn Fn(&str)) -> Result<TableRows> {
    if is_table(path) {
        return open_rows(path, held);
    }
    if is_url(path) {
        bail!("{}: only tables are read from a URL; import the rows first, or download the file", shown(path));
    }
    let label = match &options.label {
        None => ColumnRef::Index(0),
        Some(word) => ColumnRef::Word(word.clone()),
    };
    let columns = ColumnOptions {
        labels: vec![label],
        label_kind: LabelKind::Binary,
        bad_rows: options.bad_rows,
        ..ColumnOptions::default()
    };
    let csv = CsvOptions { columns, ..CsvOptions::default() };
    std::fs::create_dir_all(&options.data_dir)
        .with_context(|| format!("{}: cannot create the folder", options.data_dir.display()))?;
    let dest = options.data_dir.join(table_name(path));
    let imported = interruptible(|| import_if_changed(path, &dest, &csv, |_| interruptible::check(stop)));
    let imported = imported.ok_or_else(|| StoppedImport::new(path, stop))?;
    match imported.map_err(|error| anyhow!(in_words_of(&error, training)))? {
        Imported::Written(report) => {
            note(&format!("imported {} rows of {}", report.n_rows, path.display()));
            if options.bad_rows == BadRows::Skip && report.n_skipped > 0 {
                let first = report.first_skipped.first().map_or(String::new(), brisk_table::Error::problem);
                note(&format!("skipped {} rows that could not be parsed; the first: {first}", report.n_skipped));
            }
        }
        Imported::Unchanged => note(&format!("imported before, unchanged: {}", path.display())),
    }
    open_rows(&dest, held)
}

/// A name for the table that is imported from `path`; it differs for files of the same name in different folders.
fn table_name(path: &Path) -> String {
    let mut hasher = DefaultHasher::new();
    path.canonicalize().unwrap_or_else(|_| path.to_owned()).hash(&mut hasher);
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let stem = name.split('.').next().unwrap_or("table");
    // File systems allow names of 255 bytes, including what temporary files and locks append.
    let stem = &stem[..stem.floor_char_boundary(100)];
    format!("{stem}-{:08x}.safetensors", hasher.finish() as u32)
}

fn of_file<T>(path: &Path, result: Result<T, brisk_train::Error>) -> Result<T> {
    use brisk_train::Error::{Memory, Replica, Setting, Tensor};
    result.map_err(|error| match error {
        // These errors are not about rows.
        error @ (Tensor(_) | Replica(_) | Setting { .. } | Memory { .. }) => error.into(),
        error => anyhow::Error::new(error).context(shown(path)),
    })
}
