use std::path::Path;

use anyhow::{Result, bail, ensure};
use brisk_examples::print;
use brisk_loader::{RowSource, Subset, split, stratified_split};
use brisk_table::{DType, ImagesOptions, Table, Typed, printable};
use brisk_train::{Standardisation, StopFlag};

use super::KeepTables;
use super::same::{NamedRows, same_images};
use super::source::{self, Sets, Tables};

/// A subset of the images of a table, as bytes.
pub type ImageRows<'t> = Subset<Typed<'t, Table, u8>>;

/// The images of a run.
#[derive(Debug)]
pub struct Split<'t> {
    /// To train on.
    pub train: ImageRows<'t>,
    /// To choose the best epoch with.
    pub valid: ImageRows<'t>,
    /// To score that epoch with once, if the data set has such images.
    pub test: Option<ImageRows<'t>>,
}

/// A data set of images, each of one class.
#[derive(Debug)]
pub struct ImageSet {
    tables: Tables,
    image: [usize; 3],
    classes: Vec<String>,
    labels: Vec<f32>,
}

/// The fraction of the training images that is held out for validation if the data set has no images for that.
const HELD_OUT: f64 = 0.1;

impl ImageSet {
    /// Opens the table at `data`, or imports the images there: a folder of classes, an archive of such folders, or the files of
    /// MNIST, Fashion-MNIST, EMNIST, CIFAR-10 or CIFAR-100, which are recognised by their names. `images` says how images of
    /// folders and archives are decoded.
    ///
    /// # Errors
    /// If they cannot be read, with a remedy in terms of the examples' options; if rows are not images of bytes, if there are
    /// fewer than two classes, or if another set has images of another shape or other classes; if a stop was requested.
    pub fn open(data: &Path, images: ImagesOptions, keep: KeepTables<'_>, stop: &StopFlag) -> Result<Self> {
        Self::of(source::open(data, &images, keep, stop)?)
    }

    /// A data set made of a single table.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_table(table: Table) -> Result<Self> {
        Self::of(Tables { data: table.path().to_owned(), sets: Sets::of_train(table), names: Default::default() })
    }

    fn of(tables: Tables) -> Result<Self> {
        let data = printable(&tables.data).to_string();
        let Sets { train, valid, test } = &tables.sets;
        let image = image_of(&data, train)?;
        let labels = labels_of(&data, train)?;
        let n_found = labels.iter().fold(0.0_f32, |n, label| n.max(label + 1.0)) as usize;
        let named = train.classes();
        let classes: Vec<String> =
            if named.is_empty() { (0..n_found).map(|class| class.to_string()).collect() } else { named.to_vec() };
        let one = classes.first().map(|name| format!(" (`{}`)", printable(name))).unwrap_or_default();
        ensure!(
            classes.len() >= 2,
            "{data}: found one class{one}, expected at least 2; put the images of each class into a separate folder"
        );
        check_labels(&data, &labels, classes.len())?;
        // Of classes with names, the import has told.
        if named.is_empty() {
            let n_images = counts(&labels, classes.len());
            if let Some(class) = n_images.iter().position(|&n| n == 0) {
                let n_empty = n_images.iter().filter(|n| **n == 0).count();
                print::note(format_args!(
                    "warning: {data}: {n_empty} of {} classes have no image, the first is class {class}; labels are numbered from 0, and `import --first-label` makes a table of others",
                    classes.len()
                ));
            }
        }
        let [train_names, other_names @ ..] = &tables.names;
        let mut rows = vec![NamedRows { set: "training", table: train, labels: labels.clone(), names: train_names }];
        for ((set, table), image_names) in [("validation", valid), ("test", test)].into_iter().zip(other_names) {
            let Some(table) = table else { continue };
            let data = format!("the {set} set of {data}");
            let found = image_of(&data, table)?;
            ensure!(
                found == image,
                "{data}: images have shape {found:?}, expected {image:?} as in the training set; pass `--size` and `--channels`"
            );
            let names = table.classes();
            if !names.is_empty() && !named.is_empty() && names != named {
                let others: Vec<&String> = names.iter().filter(|name| !named.contains(name)).collect();
                let others = if others.is_empty() { names.iter().collect() } else { others };
                bail!("{data}: classes are {}, expected {} as in the training set", listed(others), listed(named));
            }
            let labels = labels_of(&data, table)?;
            check_labels(&data, &labels, classes.len())?;
            rows.push(NamedRows { set, table, labels, names: image_names });
        }
        for said in same_images(&rows)? {
            print::note(format_args!("warning: {data}: {said}"));
        }
        Ok(Self { tables, image, classes, labels })
    }

    /// Height, width and channels of an image.
    pub fn image(&self) -> [usize; 3] {
        self.image
    }

    /// The names of the classes, or their numbers if they have no names.
    pub fn classes(&self) -> &[String] {
        &self.classes
    }

    /// Whether the images to validate with were held out of the training set.
    pub fn is_held_out(&self) -> bool {
        self.tables.sets.valid.is_none()
    }

    /// The images to train on, to validate with and to test with. If the data set has none to validate with, these are a tenth of
    /// the training images of each class. Warns of classes that are not in all of them.
    ///
    /// # Errors
    /// If there are too few images to hold some out.
    pub fn split(&self, seed: u64) -> Result<Split<'_>> {
        let Sets { train, valid, test } = &self.tables.sets;
        let [train, valid] = match valid {
            Some(valid) => [all(train, seed)?, all(valid, seed)?],
            None => stratified_split(train.typed()?, &self.labels, seed, [1.0 - HELD_OUT, HELD_OUT])?,
        };
        ensure!(
            train.n_rows() > 0 && valid.n_rows() > 0,
            "{}: found {} images, expected at least 20, of which a tenth is held out for validation",
            printable(&self.tables.data),
            self.labels.len()
        );
        let split = Split { train, valid, test: test.as_ref().map(|test| all(test, seed)).transpose()? };
        self.warn_of_classes(&split)?;
        Ok(split)
    }

    fn warn_of_classes(&self, Split { train, valid, test }: &Split<'_>) -> Result<()> {
        let counted = |rows: &ImageRows<'_>| -> Result<_> { Ok(counts(&brisk_loader::labels_of(rows)?, self.classes.len())) };
        let (n_train, n_valid) = (counted(train)?, counted(valid)?);
        let n_test = test.as_ref().map(counted).transpose()?;
        let n_other = |class: usize| n_valid[class] + n_test.as_ref().map_or(0, |n_test| n_test[class]);
        let data = printable(&self.tables.data);
        let warn = |is_meant: &dyn Fn(usize) -> bool, words: &str| {
            let named: Vec<&String> =
                (0..self.classes.len()).filter(|&class| is_meant(class)).map(|class| &self.classes[class]).collect();
            if !named.is_empty() {
                print::note(format_args!("warning: {data}: {words}: {}", listed(named)));
            }
        };
        warn(
            &|class| n_train[class] == 0 && n_other(class) > 0,
            "classes without an image to train on, which are always predicted wrongly",
        );
        let held_out = if self.is_held_out() { ", too few for a tenth to be held out" } else { "" };
        let not_validated =
            format!("classes without an image to validate with{held_out}, of which the validation accuracy says nothing");
        warn(&|class| n_train[class] > 0 && n_valid[class] == 0, &not_validated);
        if let Some(n_test) = &n_test {
            let words = "classes without an image to test with, of which the test accuracy says nothing";
            warn(&|class| n_train[class] > 0 && n_test[class] == 0, words);
        }
        Ok(())
    }
}

/// All images of a table.
fn all(table: &Table, seed: u64) -> Result<ImageRows<'_>> {
    let [all, _] = split(table.typed()?, seed, [1.0, 0.0])?;
    Ok(all)
}

/// The number of images of each class.
fn counts(labels: &[f32], n_classes: usize) -> Vec<usize> {
    let mut counts = vec![0; n_classes];
    labels.iter().for_each(|&label| counts[label as usize] += 1);
    counts
}

/// `n` of the images at random, or all if there are fewer, standardised as in training.
///
/// # Errors
/// If they cannot be read.
pub fn standardised(rows: &ImageRows<'_>, n: usize, scale: &Standardisation) -> Result<Vec<f32>> {
    let n_rows = rows.n_rows();
    let share = n.min(n_rows) as f64 / n_rows.max(1) as f64;
    let [some, _] = split(rows.clone(), 0, [share, 1.0 - share])?;
    Ok(scale.rows("train", &some, 0..some.n_rows())?)
}

/// Height, width and channels of a table's rows.
fn image_of(data: &str, table: &Table) -> Result<[usize; 3]> {
    let shape = table.row_shape();
    ensure!(table.dtype() == DType::U8, "{data}: values are {}, expected images of bytes (u8)", table.dtype());
    match *shape {
        [height, width] => Ok([height, width, 1]),
        [height, width, n_channels] => Ok([height, width, n_channels]),
        _ => bail!("{data}: rows have shape {shape:?}, expected images [height, width, channels]"),
    }
}

/// The labels, which must be integers.
fn labels_of(data: &str, table: &Table) -> Result<Vec<f32>> {
    let labels = brisk_loader::labels_of(&table.typed::<u8>()?)?;
    match labels.iter().position(|label| label.fract() != 0.0 || !(0.0..65_536.0).contains(label)) {
        None => Ok(labels),
        Some(row) => bail!("{data}: image {row} has label {}, expected the number of a class, 0 to 65535", labels[row]),
    }
}

fn check_labels(data: &str, labels: &[f32], n_classes: usize) -> Result<()> {
    match labels.iter().position(|&label| label as usize >= n_classes) {
        None => Ok(()),
        Some(row) => {
            bail!("{data}: image {row} has label {}, expected a class of the training set, 0 to {}", labels[row], n_classes - 1)
        }
    }
}

/// At most ten names.
fn listed<'a>(names: impl IntoIterator<Item = &'a String>) -> String {
    const SHOWN: usize = 10;
    let names: Vec<String> = names.into_iter().map(|name| format!("`{}`", printable(name))).collect();
    let more = names.len().saturating_sub(SHOWN);
    let shown = names[..names.len() - more].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}
