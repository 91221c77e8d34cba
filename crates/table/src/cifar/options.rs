use crate::remedy::{Expected, Remedy};

/// How to read the binary version of CIFAR-10 or CIFAR-100. The default is CIFAR-10 and, for a folder or archive, its training
/// set.
///
/// `source` is a single file of records, a folder of such files, or the archive in which they are published (`.tar`, `.tar.gz`);
/// files may be compressed. Rows have the order of the records, and the shape `[32, 32, 3]`, channels last, while records store
/// one channel after the other. Pixels and labels are `u8`. The names of the classes come from the text file next to the batches
/// of a folder or archive, if there is one.
///
/// # Errors
/// [`Error::Source`](crate::Error::Source) if a file or member is missing, ends within a record, or has labels beyond the
/// classes; [`Error::Io`](crate::Error::Io), [`Error::FeatureOff`](crate::Error::FeatureOff),
/// [`Error::Write`](crate::Error::Write). On `Err`, `dest` is unchanged.
/// # Examples
/// ```no_run
/// use brisk_table::{CifarOptions, CifarSet, import};
///
/// import("cifar-10-binary.tar.gz", "train.safetensors", &CifarOptions::default())?;
/// let test = CifarOptions { set: CifarSet::Test, ..CifarOptions::default() };
/// import("cifar-10-binary.tar.gz", "test.safetensors", &test)?;
/// # Ok::<(), brisk_table::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct CifarOptions {
    /// Which of the two data sets to read, and which of its labels.
    pub labels: CifarLabels,
    /// Which part of a folder or an archive to read. A single file is always read.
    pub set: CifarSet,
}

/// The labels at the start of each record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CifarLabels {
    /// CIFAR-10: one of 10 classes.
    #[default]
    Ten,
    /// CIFAR-100: the second of its two labels, one of 100 classes.
    Fine,
    /// CIFAR-100: the first of its two labels, one of 20 superclasses.
    Coarse,
}

/// A part of a data set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum CifarSet {
    /// `data_batch_1.bin` to `data_batch_5.bin`, in this order, or `train.bin`.
    #[default]
    Train,
    /// `test_batch.bin`, or `test.bin`.
    Test,
}

/// What differs between the data sets, and between the labels of CIFAR-100.
pub(super) struct Facts {
    /// The number of label bytes at the start of a record, and the index of the label among them.
    pub(super) n_bytes: usize,
    pub(super) index: usize,
    pub(super) n_classes: u8,
    /// The error text for a label beyond the classes.
    pub(super) expected: &'static Expected,
    /// The file with the names of the classes, one per line.
    pub(super) names_file: &'static str,
}

impl CifarLabels {
    pub(super) fn facts(self) -> Facts {
        const TEN: Expected = Expected { what: "a label of 0 to 9", remedies: &[Remedy::ReadAsCifar100] };
        const FINE: Expected = Expected { what: "a label of 0 to 99", remedies: &[Remedy::ReadAsCifar10] };
        const COARSE: Expected = Expected { what: "a label of 0 to 19", remedies: &[Remedy::ReadAsCifar10] };
        let (n_bytes, index, n_classes, expected, names_file) = match self {
            Self::Ten => (1, 0, 10, &TEN, "batches.meta.txt"),
            Self::Fine => (2, 1, 100, &FINE, "fine_label_names.txt"),
            Self::Coarse => (2, 0, 20, &COARSE, "coarse_label_names.txt"),
        };
        Facts { n_bytes, index, n_classes, expected, names_file }
    }

    /// The files of that part, in order.
    pub(super) fn files(self, set: CifarSet) -> &'static [&'static str] {
        match (self, set) {
            (Self::Ten, CifarSet::Train) => {
                &["data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin", "data_batch_5.bin"]
            }
            (Self::Ten, CifarSet::Test) => &["test_batch.bin"],
            (_, CifarSet::Train) => &["train.bin"],
            (_, CifarSet::Test) => &["test.bin"],
        }
    }
}
