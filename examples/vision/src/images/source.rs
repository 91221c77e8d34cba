//! Detects the format of the images at a path, and imports them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use brisk_table::{
    CifarLabels, CifarOptions, CifarSet, Format, ImagesOptions, ImportOptions, Remedy, Table, import_with_progress, printable,
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
    /// As `train.safetensors` and `test.safetensors` in this folder, which later runs can open instead.
    In(&'a Path),
}

/// A training set, and a test set if there is one.
#[derive(Debug)]
pub(super) struct Tables {
    /// What the tables were made from, for messages.
    pub(super) data: PathBuf,
    pub(super) train: Table,
    pub(super) test: Option<Table>,
}

/// What was found at a path.
#[derive(Debug, PartialEq)]
enum Source {
    /// Tables.
    Tables { train: PathBuf, test: Option<PathBuf> },
    /// Files to import.
    Files { train: Files, test: Option<Files> },
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
const TEST: &str = "test.safetensors";

/// Names for the folder of a test set next to a folder `train`.
const TEST_FOLDERS: [&str; 4] = ["test", "val", "valid", "validation"];

/// Opens the tables at `data`, or imports the files there.
pub(super) fn open(data: &Path, images: &ImagesOptions, keep: KeepTables<'_>, stop: &StopFlag) -> Result<Tables> {
    let source = find(data)?;
    let is_images = matches!(&source, Source::Files { train: Files { format: Format::Images, .. }, .. });
    if *images != ImagesOptions::default() && !is_images {
        bail!(
            "{}: `--size`, `--channels` and `--on-bad-file` are for folders and archives of images, and this is another format",
            printable(data)
        );
    }
    let (train, test) = match source {
        Source::Tables { train, test } => {
            let test = test.map(Table::open).transpose()?;
            return Ok(Tables { data: data.to_owned(), train: Table::open(train)?, test });
        }
        Source::Files { train, test } => (train, test),
    };
    let scratch = match keep {
        KeepTables::No => tempfile::tempdir().context("cannot create a temporary folder")?,
        KeepTables::In(folder) => {
            let io = || format!("{}: cannot create the tables there", printable(folder));
            fs::create_dir_all(folder).with_context(io)?;
            tempfile::tempdir_in(folder).with_context(io)?
        }
    };
    let imported = |files: &Files, name: &str| import(files, images, &scratch.path().join(name), stop);
    let train = imported(&train, TRAIN)?;
    let test = test.map(|test| imported(&test, TEST)).transpose()?;
    if let KeepTables::In(folder) = keep {
        // Both are complete. The training set is moved last, because later runs check for it.
        let stale = folder.join(TRAIN);
        let moved = remove(&stale).and_then(|()| match &test {
            Some(_) => fs::rename(scratch.path().join(TEST), folder.join(TEST)),
            None => remove(&folder.join(TEST)),
        });
        let moved = moved.and_then(|()| fs::rename(scratch.path().join(TRAIN), &stale));
        moved.with_context(|| format!("{}: cannot move the tables there", printable(folder)))?;
    }
    Ok(Tables { data: data.to_owned(), train, test })
}

/// Removes a file that may not exist.
fn remove(path: &Path) -> std::io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn import(files: &Files, images: &ImagesOptions, dest: &Path, stop: &StopFlag) -> Result<Table> {
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
            Ok(Table::open(dest)?)
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
        return Ok(Source::Tables { train: data.to_owned(), test: None });
    }
    let format = Format::detect(data)?;
    match format {
        Format::Images => Ok(files(data, None, format)),
        Format::Idx => Ok(files(data, test_images_of(data), format)),
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
        let test = has(TEST).then(|| folder.join(TEST));
        return Ok(Source::Tables { train: folder.join(TRAIN), test });
    }
    let training: Vec<&str> =
        names.iter().map(String::as_str).filter(|name| name.contains("train-images") && name.contains("idx3")).collect();
    match training.as_slice() {
        [] => {}
        [train] => return Ok(files(&folder.join(train), test_images_of(&folder.join(train)), Format::Idx)),
        several => {
            bail!("{}: found several training sets: {}; name the file of one of them", printable(folder), several.join(", "))
        }
    }
    if Format::detect(folder)? == Format::Cifar {
        let labels = if names.iter().any(|name| name.starts_with("train.bin")) { CifarLabels::Fine } else { CifarLabels::Ten };
        let has_test = names.iter().any(|name| name.starts_with("test"));
        return Ok(cifar(folder, labels, has_test));
    }
    if folder.join("train").is_dir() {
        let test = TEST_FOLDERS.iter().map(|name| folder.join(name)).find(|path| path.is_dir());
        return Ok(files(&folder.join("train"), test, Format::Images));
    }
    Ok(files(folder, None, Format::Images))
}

fn files(train: &Path, test: Option<PathBuf>, format: Format) -> Source {
    let of = |path: PathBuf| Files { path, format, cifar: CifarOptions::default() };
    Source::Files { train: of(train.to_owned()), test: test.map(of) }
}

fn cifar(path: &Path, labels: CifarLabels, has_test: bool) -> Source {
    let of = |set| Files { path: path.to_owned(), format: Format::Cifar, cifar: CifarOptions { labels, set } };
    Source::Files { train: of(CifarSet::Train), test: has_test.then(|| of(CifarSet::Test)) }
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

    /// What is found in a folder with these entries: the names of the training and the test set, and the format.
    #[track_caller]
    fn check(names: &[&str], train: &str, test: Option<&str>, format: Option<Format>) {
        let dir = folder(names);
        let path = |name: &str| if name.is_empty() { dir.path().to_owned() } else { dir.path().join(name) };
        let found = match find(dir.path()).expect("it is known") {
            Source::Tables { train, test } => (train, test, None),
            Source::Files { train, test } => (train.path, test.map(|test| test.path), Some(train.format)),
        };
        assert_eq!(found, (path(train), test.map(path), format));
    }

    #[test]
    fn data_sets_are_known_by_the_names_of_their_files() {
        let mnist = ["train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz", "t10k-images-idx3-ubyte.gz"];
        check(&mnist, mnist[0], Some(mnist[2]), Some(Format::Idx));
        check(&mnist[..1], mnist[0], None, Some(Format::Idx));
        let emnist = ["emnist-letters-train-images-idx3-ubyte", "emnist-letters-test-images-idx3-ubyte"];
        check(&emnist, emnist[0], Some(emnist[1]), Some(Format::Idx));
        check(&["data_batch_1.bin.xz", "test_batch.bin.xz"], "", Some(""), Some(Format::Cifar));
        check(&["data_batch_1.bin"], "", None, Some(Format::Cifar));
        check(&["train.bin", "test.bin"], "", Some(""), Some(Format::Cifar));
        check(&["cats/", "dogs/"], "", None, Some(Format::Images));
        check(&["train/", "val/"], "train", Some("val"), Some(Format::Images));
        check(&[TRAIN, TEST], TRAIN, Some(TEST), None);
        check(&[TRAIN], TRAIN, None, None);
    }

    #[test]
    fn the_files_say_which_cifar_it_is() {
        let labels = |name: &str| {
            let dir = folder(&[name]);
            match find(dir.path()).expect("it is known") {
                Source::Files { train, .. } => train.cifar.labels,
                tables @ Source::Tables { .. } => panic!("{name}: {tables:?}"),
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
