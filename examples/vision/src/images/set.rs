use std::path::Path;

use anyhow::{Result, bail, ensure};
use brisk_examples::print;
use brisk_loader::{RowSource, Subset, split, stratified_split};
use brisk_table::{DType, ImagesOptions, Table, Typed, printable};
use brisk_train::{Standardisation, StopFlag};

use super::KeepTables;
use super::source::{self, Tables};

/// A subset of the images of a table, as bytes.
pub type ImageRows<'t> = Subset<Typed<'t, Table, u8>>;

/// A data set of images, each of one class.
#[derive(Debug)]
pub struct ImageSet {
    tables: Tables,
    image: [usize; 3],
    classes: Vec<String>,
    labels: Vec<f32>,
}

/// The fraction of the training images that is held out for validation if there is no test set.
const HELD_OUT: f64 = 0.1;

impl ImageSet {
    /// Opens the table at `data`, or imports the images there: a folder of classes, an archive of such folders, or the files of
    /// MNIST, Fashion-MNIST, EMNIST, CIFAR-10 or CIFAR-100, which are recognised by their names. `images` says how images of
    /// folders and archives are decoded.
    ///
    /// # Errors
    /// If they cannot be read, with a remedy in terms of the examples' options; if rows are not images of bytes, if there are
    /// fewer than two classes, or if the test set has images of another shape or other classes; if a stop was requested.
    pub fn open(data: &Path, images: ImagesOptions, keep: KeepTables<'_>, stop: &StopFlag) -> Result<Self> {
        Self::of(source::open(data, &images, keep, stop)?)
    }

    /// A data set made of a single table.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn of_table(table: Table) -> Result<Self> {
        Self::of(Tables { data: table.path().to_owned(), train: table, test: None })
    }

    fn of(tables: Tables) -> Result<Self> {
        let data = printable(&tables.data).to_string();
        let image = image_of(&data, &tables.train)?;
        let labels = labels_of(&data, &tables.train)?;
        let n_found = labels.iter().fold(0.0_f32, |n, label| n.max(label + 1.0)) as usize;
        let named = tables.train.classes();
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
            let mut has_images = vec![false; classes.len()];
            labels.iter().for_each(|&label| has_images[label as usize] = true);
            if let Some(class) = has_images.iter().position(|has_images| !has_images) {
                let n_empty = has_images.iter().filter(|has_images| !**has_images).count();
                print::note(format_args!(
                    "warning: {data}: {n_empty} of {} classes have no image, the first is class {class}; labels are numbered from 0, and `import --first-label` makes a table of others",
                    classes.len()
                ));
            }
        }
        if let Some(test) = &tables.test {
            let data = format!("the test set of {data}");
            let found = image_of(&data, test)?;
            ensure!(
                found == image,
                "{data}: images have shape {found:?}, expected {image:?} as in the training set; pass `--size` and `--channels`"
            );
            let names = test.classes();
            ensure!(
                names.is_empty() || named.is_empty() || names == named,
                "{data}: classes are {}, expected {} as in the training set",
                listed(names),
                listed(named)
            );
            check_labels(&data, &labels_of(&data, test)?, classes.len())?;
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

    /// Whether there is a test set.
    pub fn has_test(&self) -> bool {
        self.tables.test.is_some()
    }

    /// The images to train on and the images to validate with, which are the test set if there is one, otherwise a tenth of the
    /// images of each class.
    ///
    /// # Errors
    /// If there are too few images to hold some out.
    pub fn split(&self, seed: u64) -> Result<[ImageRows<'_>; 2]> {
        let rows = self.tables.train.typed()?;
        let [train, valid] = match &self.tables.test {
            Some(test) => {
                let [[train, _], [valid, _]] = [split(rows, seed, [1.0, 0.0])?, split(test.typed()?, seed, [1.0, 0.0])?];
                [train, valid]
            }
            None => stratified_split(rows, &self.labels, seed, [1.0 - HELD_OUT, HELD_OUT])?,
        };
        ensure!(
            train.n_rows() > 0 && valid.n_rows() > 0,
            "{}: found {} images, expected at least 20, of which a tenth is held out for validation",
            printable(&self.tables.data),
            self.labels.len()
        );
        Ok([train, valid])
    }
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

fn listed(names: &[String]) -> String {
    names.iter().map(|name| format!("`{}`", printable(name))).collect::<Vec<_>>().join(", ")
}
