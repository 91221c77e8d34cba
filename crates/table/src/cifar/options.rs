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

impl CifarLabels {
    /// The number of label bytes at the start of a record.
    pub(super) fn n_bytes(self) -> usize {
        if self == Self::Ten { 1 } else { 2 }
    }

    /// The index of the label among them.
    pub(super) fn index(self) -> usize {
        usize::from(self == Self::Fine)
    }

    pub(super) fn n_classes(self) -> u8 {
        match self {
            Self::Ten => 10,
            Self::Fine => 100,
            Self::Coarse => 20,
        }
    }

    /// The error text for a label beyond the classes.
    pub(super) fn expected(self) -> &'static Expected {
        match self {
            Self::Ten => &Expected { what: "a label of 0 to 9", remedies: &[Remedy::ReadAsCifar100] },
            Self::Fine => &Expected { what: "a label of 0 to 99", remedies: &[Remedy::ReadAsCifar10] },
            Self::Coarse => &Expected { what: "a label of 0 to 19", remedies: &[Remedy::ReadAsCifar10] },
        }
    }

    /// The file with the names of the classes, one per line.
    pub(super) fn names_file(self) -> &'static str {
        match self {
            Self::Ten => "batches.meta.txt",
            Self::Fine => "fine_label_names.txt",
            Self::Coarse => "coarse_label_names.txt",
        }
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
