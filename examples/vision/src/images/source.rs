//! Detects the format of the images at a path, and imports them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use brisk_table::{
    CifarLabels, CifarOptions, CifarSet, DType, Format, ImagesOptions, ImportOptions, Remedy, Table, import_with_progress,
    printable,
};
use brisk_train::StopFlag;

use brisk_examples::import_error::{import as words_of_import, in_words_of, warning_in_words_of};
use brisk_examples::interruptible::{self, StoppedImport, interruptible};
use brisk_examples::print;

/// Where the tables of imported images are kept.
#[derive(Debug, Clone, Copy)]
pub enum KeepTables<'a> {
    /// In a temporary folder, for this run only.
    No,
    /// As `train.safetensors`, `valid.safetensors` and `test.safetensors` in this folder, which later runs can open instead.
    In(&'a Path),
}

/// A training set, and sets to validate and to test with if there are any.
#[derive(Debug)]
pub(super) struct Tables {
    /// What the tables were made from, for messages.
    pub(super) data: PathBuf,
    pub(super) sets: Sets<Table>,
    /// The names of the images to train, to validate and to test with, if they are known.
    pub(super) names: [ImageNames; 3],
}

/// The names of the images of a table, if they are known.
#[derive(Debug, Default)]
pub(super) struct ImageNames {
    /// The folder or archive that the table was made of.
    source: PathBuf,
    /// The file of each row in it.
    files: Vec<String>,
}

impl ImageNames {
    /// The path of the image in a row, or its number.
    pub(super) fn of(&self, row: usize) -> String {
        match self.files.get(row) {
            Some(file) => format!("`{}`", printable(&self.source.join(file))),
            None => format!("image {row}"),
        }
    }
}

/// The images of each part of a data set.
#[derive(Debug, PartialEq)]
pub(super) struct Sets<T> {
    pub(super) train: T,
    pub(super) valid: Option<T>,
    pub(super) test: Option<T>,
}

impl<T> Sets<T> {
    /// Only a training set.
    pub(super) fn of_train(train: T) -> Self {
        Self { train, valid: None, test: None }
    }

    /// The result of `make` for each part, which gets the name of its table and, after the first, the result for the training
    /// set.
    fn try_map<U>(self, mut make: impl FnMut(T, &str, Option<&U>) -> Result<U>) -> Result<Sets<U>> {
        let train = make(self.train, TRAIN, None)?;
        let valid = self.valid.map(|valid| make(valid, VALID, Some(&train))).transpose()?;
        let test = self.test.map(|test| make(test, TEST, Some(&train))).transpose()?;
        Ok(Sets { train, valid, test })
    }
}

/// What was found at a path.
#[derive(Debug, PartialEq)]
enum Source {
    /// Tables.
    Tables(Sets<PathBuf>),
    /// Files to import.
    Files(Sets<Files>),
}

/// Files from which one table is made.
#[derive(Debug, PartialEq)]
struct Files {
    path: PathBuf,
    format: Format,
    cifar: CifarOptions,
}

/// The names of tables in a folder.
const TRAIN: &str = "train.safetensors";
const VALID: &str = "valid.safetensors";
const TEST: &str = "test.safetensors";

/// The tables of [`KeepTables::In`].
pub const KEPT_TABLES: [&str; 3] = [TRAIN, VALID, TEST];

/// Names for the folders of the other sets next to a folder `train`.
const VALID_FOLDERS: [&str; 3] = ["val", "valid", "validation"];
const TEST_FOLDERS: [&str; 1] = ["test"];

/// Opens the tables at `data`, or imports the files there.
pub(super) fn open(data: &Path, images: &ImagesOptions, keep: KeepTables<'_>, stop: &StopFlag) -> Result<Tables> {
    let source = find(data)?;
    let is_images = matches!(&source, Source::Files(Sets { train: Files { format: Format::Images, .. }, .. }));
    if *images != ImagesOptions::default() && !is_images {
        bail!(
            "{}: `--size`, `--channels` and `--on-bad-file` are for folders and archives of images, and this is another format",
            printable(data)
        );
    }
    let files = match (source, keep) {
        (Source::Tables(_), KeepTables::In(_)) => {
            bail!("{}: found tables, which `--save-tables` would only copy; leave it out", printable(data));
        }
        (Source::Tables(sets), KeepTables::No) => {
            let sets = sets.try_map(|path, _, _| Ok(Table::open(path)?))?;
            return Ok(Tables { data: data.to_owned(), sets, names: Default::default() });
        }
        (Source::Files(files), _) => files,
    };
    let scratch = match keep {
        KeepTables::No => tempfile::tempdir().context("cannot create a temporary folder")?,
        KeepTables::In(folder) => {
            let io = || format!("{}: cannot create the tables there", printable(folder));
            fs::create_dir_all(folder).with_context(io)?;
            tempfile::tempdir_in(folder).with_context(io)?
        }
    };
    let mut names: [ImageNames; 3] = Default::default();
    let sets = files.try_map(|files, name, train: Option<&Table>| {
        let dest = scratch.path().join(name);
        let set = KEPT_TABLES.iter().position(|kept| *kept == name).context("each set has a table")?;
        let mut import = |images: &ImagesOptions| {
            let (table, found) = import(&files, images, &dest, stop)?;
            names[set] = ImageNames { source: files.path.clone(), files: found };
            Ok::<_, anyhow::Error>(table)
        };
        let table = import(images)?;
        // Folders of some of the classes: their labels are to be the numbers of these classes in the training set.
        let is_of_some = |train: &&Table| {
            let names = table.classes();
            files.format == Format::Images
                && table.row_shape() == train.row_shape()
                && names != train.classes()
                && names.iter().all(|name| train.classes().contains(name))
        };
        match train.filter(is_of_some) {
            None => Ok(table),
            Some(train) => {
                drop(table);
                let like = Some(train.path().to_owned());
                import(&ImagesOptions { like, ..images.clone() })
            }
        }
    })?;
    if let KeepTables::In(folder) = keep {
        // All are complete. The training set is moved last, because later runs check for it.
        let stale = folder.join(TRAIN);
        let kept = |name: &str, table: &Option<Table>| match table {
            Some(_) => fs::rename(scratch.path().join(name), folder.join(name)),
            None => remove(&folder.join(name)),
        };
        let moved = remove(&stale).and_then(|()| kept(VALID, &sets.valid)).and_then(|()| kept(TEST, &sets.test));
        let moved = moved.and_then(|()| fs::rename(scratch.path().join(TRAIN), &stale));
        moved.with_context(|| format!("{}: cannot move the tables there", printable(folder)))?;
    }
    Ok(Tables { data: data.to_owned(), sets, names })
}

/// Checks that `folder` has no files, by the names of tables to keep, that are not tables of images.
///
/// # Errors
/// If it has one.
pub fn check_kept(folder: &Path) -> Result<()> {
    for path in KEPT_TABLES.map(|name| folder.join(name)).iter().filter(|path| path.symlink_metadata().is_ok()) {
        let is_images = |table: Table| table.dtype() == DType::U8 && matches!(table.row_shape(), [_, _] | [_, _, _]);
        if !Table::open(path).is_ok_and(is_images) {
            bail!(
                "{}: --save-tables would replace this file, which is not a table of images; choose another folder",
                printable(path)
            );
        }
    }
    Ok(())
}

/// Removes a file that may not exist.
fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

/// The table, and the files of its rows.
fn import(files: &Files, images: &ImagesOptions, dest: &Path, stop: &StopFlag) -> Result<(Table, Vec<String>)> {
    let options =
        ImportOptions { format: Some(files.format), images: images.clone(), cifar: files.cifar, ..ImportOptions::default() };
    let imported = interruptible(|| import_with_progress(&files.path, dest, &options, |_| interruptible::check(stop)));
    match imported {
        None => Err(StoppedImport::new(&files.path, stop).into()),
        Some(Err(error)) => Err(anyhow!(in_words_of(&error, remedy))),
        Some(Ok(report)) => {
            for warning in &report.warnings {
                print::note(format_args!("warning: {}", warning_in_words_of(warning, remedy)));
            }
            if report.n_skipped > 0 {
                let first =
                    report.first_skipped.first().map_or(String::new(), |error| format!("; the first: {}", error.problem()));
                print::note(format_args!("warning: skipped {} files that are not images{first}", report.n_skipped));
            }
            Ok((Table::open(dest)?, report.files))
        }
    }
}

/// Remedies in terms of these examples' options.
fn remedy(remedy: Remedy) -> Option<&'static str> {
    Some(match remedy {
        Remedy::SkipRows => "pass `--on-bad-file skip`",
        Remedy::ConvertChannels | Remedy::ScaleImages | Remedy::Correct | Remedy::RemoveFile | Remedy::MoveToClass => {
            return words_of_import(remedy);
        }
        Remedy::NameFormat => "pass a folder or archive of images, files of MNIST or CIFAR, or a table",
        _ => "import it with the example import",
    })
}

fn find(data: &Path) -> Result<Source> {
    if !data.exists() {
        bail!("{}: cannot open the images: there is no such file or folder", printable(data));
    }
    if data.is_dir() {
        return find_in_folder(data);
    }
    if data.extension().is_some_and(|extension| extension == "safetensors") {
        return Ok(Source::Tables(Sets::of_train(data.to_owned())));
    }
    let format = detected(data)?;
    match format {
        Format::Images => Ok(files(data, [None, None], format)),
        Format::Idx => Ok(files(data, [None, test_images_of(data)], format)),
        Format::Cifar => {
            let name = data.file_name().unwrap_or_default().to_string_lossy();
            let labels = if name.contains("100") || name.starts_with("train.bin") { CifarLabels::Fine } else { CifarLabels::Ten };
            Ok(cifar(data, labels, name.contains(".tar") || name.ends_with(".tgz")))
        }
        other => bail!(
            "{}: found {other}, expected images: a folder, an archive, files of MNIST or CIFAR, or a table",
            printable(data)
        ),
    }
}

fn find_in_folder(folder: &Path) -> Result<Source> {
    let io = || format!("{}: cannot list the folder", printable(folder));
    let entries: Vec<_> = fs::read_dir(folder).with_context(io)?.collect::<Result<_, _>>().with_context(io)?;
    let mut names: Vec<String> = entries.iter().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    names.sort_unstable();
    let has = |name: &str| names.iter().any(|found| found == name);
    if has(TRAIN) {
        let other = |name| has(name).then(|| folder.join(name));
        return Ok(Source::Tables(Sets { train: folder.join(TRAIN), valid: other(VALID), test: other(TEST) }));
    }
    let training: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| name.contains("train-images") && name.contains("idx3")).collect();
    match training.as_slice() {
        [] => {}
        [train] => return Ok(files(&folder.join(train), [None, test_images_of(&folder.join(train))], Format::Idx)),
        several => {
            bail!("{}: found several training sets: {}; name the file of one of them", printable(folder), several.join(", "))
        }
    }
    if detected(folder)? == Format::Cifar {
        let labels = if names.iter().any(|name| name.starts_with("train.bin")) { CifarLabels::Fine } else { CifarLabels::Ten };
        let has_test = names.iter().any(|name| name.starts_with("test"));
        return Ok(cifar(folder, labels, has_test));
    }
    if folder.join("train").is_dir() {
        let other = |names: &[&str]| names.iter().map(|name| folder.join(name)).find(|path| path.is_dir());
        return Ok(files(&folder.join("train"), [other(&VALID_FOLDERS), other(&TEST_FOLDERS)], Format::Images));
    }
    Ok(files(folder, [None, None], Format::Images))
}

/// The format of a source.
fn detected(path: &Path) -> Result<Format> {
    Format::detect(path).map_err(|error| anyhow!(in_words_of(&error, remedy)))
}

fn files(train: &Path, [valid, test]: [Option<PathBuf>; 2], format: Format) -> Source {
    let of = |path: PathBuf| Files { path, format, cifar: CifarOptions::default() };
    Source::Files(Sets { train: of(train.to_owned()), valid: valid.map(of), test: test.map(of) })
}

fn cifar(path: &Path, labels: CifarLabels, has_test: bool) -> Source {
    let of = |set| Files { path: path.to_owned(), format: Format::Cifar, cifar: CifarOptions { labels, set } };
    Source::Files(Sets { test: has_test.then(|| of(CifarSet::Test)), ..Sets::of_train(of(CifarSet::Train)) })
}

/// The test images that belong to a training set: `t10k-images…` for MNIST, `…-test-images…` for EMNIST.
fn test_images_of(train: &Path) -> Option<PathBuf> {
    let name = train.file_name()?.to_str()?;
    let candidates = ["t10k-images", "test-images"].map(|word| train.with_file_name(name.replace("train-images", word)));
    candidates.into_iter().find(|path| path != train && path.is_file())
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    /// A folder with these entries: empty files, and folders if the name ends in `/`.
    fn folder(names: &[&str]) -> TempDir {
        let dir = tempfile::tempdir().expect("a temporary folder");
        for name in names {
            match name.strip_suffix('/') {
                Some(name) => fs::create_dir_all(dir.path().join(name)).expect("it can be created"),
                None => fs::write(dir.path().join(name), "").expect("it can be written"),
            }
        }
        dir
    }

    /// What is found in a folder with these entries: the names of the training, the validation and the test set, and the format.
    #[track_caller]
    fn check(names: &[&str], train: &str, others: [Option<&str>; 2], format: Option<Format>) {
        let dir = folder(names);
        let path = |name: &str| if name.is_empty() { dir.path().to_owned() } else { dir.path().join(name) };
        let found = match find(dir.path()).expect("it is known") {
            Source::Tables(Sets { train, valid, test }) => (train, [valid, test], None),
            Source::Files(Sets { train, valid, test }) => {
                (train.path, [valid, test].map(|set| set.map(|files| files.path)), Some(train.format))
            }
        };
        assert_eq!(found, (path(train), others.map(|name| name.map(path)), format));
    }

    #[test]
    fn data_sets_are_known_by_the_names_of_their_files() {
        let mnist = ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"];
        check(&mnist, mnist[0], [None, Some(mnist[2])], Some(Format::Idx));
        check(&mnist[..1], mnist[0], [None; 2], Some(Format::Idx));
        let emnist = ["emnist-letters-train-images-idx3-ubyte", "emnist-letters-test-images-idx3-ubyte"];
        check(&emnist, emnist[0], [None, Some(emnist[1])], Some(Format::Idx));
        check(&["data_batch_1.bin.xz", "test_batch.bin.xz"], "", [None, Some("")], Some(Format::Cifar));
        check(&["data_batch_1.bin"], "", [None; 2], Some(Format::Cifar));
        check(&["train.bin", "test.bin"], "", [None, Some("")], Some(Format::Cifar));
        check(&["cats/", "dogs/"], "", [None; 2], Some(Format::Images));
        check(&["train/", "val/"], "train", [Some("val"), None], Some(Format::Images));
        check(&["train/", "validation/", "test/"], "train", [Some("validation"), Some("test")], Some(Format::Images));
        check(&[TRAIN, VALID, TEST], TRAIN, [Some(VALID), Some(TEST)], None);
        check(&[TRAIN], TRAIN, [None; 2], None);
    }

    #[test]
    fn the_files_say_which_cifar_it_is() {
        let labels = |name: &str| {
            let dir = folder(&[name]);
            match find(dir.path()).expect("it is known") {
                Source::Files(Sets { train, .. }) => train.cifar.labels,
                tables @ Source::Tables(_) => panic!("{name}: {tables:?}"),
            }
        };
        assert_eq!((labels("data_batch_1.bin"), labels("train.bin.xz")), (CifarLabels::Ten, CifarLabels::Fine));
    }

    #[test]
    fn several_training_sets_are_listed() {
        let dir = folder(&["emnist-digits-train-images-idx3-ubyte", "emnist-letters-train-images-idx3-ubyte"]);
        let error = find(dir.path()).expect_err("which one?").to_string();
        assert!(error.contains("emnist-digits-train-images-idx3-ubyte, emnist-letters-train"), "{error}");
    }

    #[test]
    fn a_file_that_is_not_images_is_named() {
        let dir = folder(&[]);
        let path = dir.path().join("rows.csv");
        fs::write(&path, "1,2\n3,4\n").expect("it can be written");
        let error = find(&path).expect_err("text").to_string();
        assert!(error.contains("rows.csv: found text of rows, expected images"), "{error}");
    }
}
