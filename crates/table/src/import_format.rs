//! The formats that can be imported, and the options that each uses.

use std::fmt;

use Format::*;

/// Each with the feature that enables reading it, and a description of a source.
macro_rules! formats {
    ($($(#[$doc:meta])* $name:ident $feature:literal $description:literal;)*) => {
        /// A format that can be imported.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum Format {
            $($(#[$doc])* $name,)*
        }

        impl Format {
            /// Every format.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The feature of this crate that enables reading it.
            pub fn feature(self) -> &'static str {
                match self {
                    $(Self::$name => $feature,)*
                }
            }

            /// Describes a source of this format in words.
            pub fn description(self) -> &'static str {
                match self {
                    $(Self::$name => $description,)*
                }
            }
        }
    };
}

formats! {
    /// Text of rows: CSV or TSV.
    Csv "csv" "text of rows";
    /// Text of svmlight or libsvm.
    Svmlight "csv" "text of svmlight";
    /// A numpy array, .npy, or an archive of arrays, .npz.
    Npy "npy" "a numpy array or archive";
    /// The files of MNIST.
    Idx "idx" "an IDX file";
    /// The binary files of CIFAR.
    Cifar "cifar" "CIFAR's binary version";
    /// PNG and JPEG files, with one folder per class.
    Images "images" "a folder or archive of images";
    /// An Arrow IPC file or stream.
    Arrow "arrow" "Arrow data";
    /// Parquet.
    Parquet "parquet" "a Parquet file";
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.description())
    }
}

/// The options: each with the field of the options of this crate, for messages, and the formats that use it.
macro_rules! settings {
    ($($(#[$doc:meta])* $name:ident $field:literal [$($format:ident),*];)*) => {
        /// An option of an import. Each format uses some of them: see [`Format::uses`].
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ImportSetting {
            $($(#[$doc])* $name,)*
        }

        impl ImportSetting {
            /// Every option.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            fn formats(self) -> &'static [Format] {
                match self {
                    $(Self::$name => &[$($format),*],)*
                }
            }
        }

        impl fmt::Display for ImportSetting {
            /// The field of the options of this crate.
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self {
                    $(Self::$name => $field,)*
                })
            }
        }
    };
}

settings! {
    /// Which columns are labels.
    Labels "ColumnOptions::labels" [Csv, Arrow, Parquet];
    /// What values labels may have.
    LabelKind "ColumnOptions::label_kind" [Csv, Svmlight, Arrow, Parquet];
    /// The number of the first class, if labels are integers.
    FirstLabel "first_label" [Npy, Idx];
    /// The column or array with the weights of rows.
    Weight "weight" [Csv, Npy, Arrow, Parquet];
    /// Columns to drop.
    Drop "ColumnOptions::drop" [Csv, Arrow, Parquet];
    /// Which columns are categories.
    Categorical "ColumnOptions::categorical" [Csv, Arrow, Parquet];
    /// Whether missing values, or values that are not finite, are kept.
    KeepMissing "Missing::Keep" [Csv, Svmlight, Npy, Idx, Arrow, Parquet];
    /// A number, or the mean, in place of missing values.
    FillMissing "Missing::Mean` or `Missing::Value" [Csv, Svmlight, Arrow, Parquet];
    /// Words that stand for missing values.
    MissingValues "ColumnOptions::missing_values" [Csv, Arrow, Parquet];
    /// Features that have an indicator.
    Indicators "ColumnOptions::indicators" [Csv, Arrow, Parquet];
    /// The type in which features are stored.
    DType "FeatureDType" [Csv, Svmlight, Arrow, Parquet];
    /// Numbers to subtract from columns.
    Offsets "ColumnOptions::offsets" [Csv, Arrow, Parquet];
    /// Whether the index of a data frame is kept.
    KeepIndex "ColumnOptions::keep_index" [Csv, Arrow, Parquet];
    /// A table to match.
    Like "like" [Csv, Svmlight, Npy, Idx, Images, Arrow, Parquet];
    /// The array with the features.
    FeatureArray "NpyOptions::features" [Npy];
    /// The array with the labels.
    LabelArray "labels" [Npy, Idx];
    /// Which labels of CIFAR are read.
    CifarLabels "CifarOptions::labels" [Cifar];
    /// Which part of CIFAR is read.
    CifarSet "CifarOptions::set" [Cifar];
    /// The channels of images.
    Channels "ImagesOptions::channels" [Images];
    /// The size of images.
    Size "ImagesOptions::size" [Images];
    /// Whether images are turned as their EXIF data says.
    Orientation "ImagesOptions::orientation" [Images];
    /// Whether an archive may lack its end.
    ArchiveEnd "ImagesOptions::archive_end" [Images];
    /// The character between cells.
    Delimiter "CsvOptions::delimiter" [Csv];
    /// The decimal mark.
    Decimal "CsvOptions::decimal" [Csv];
    /// Whether the first line names the columns.
    Header "CsvOptions::header" [Csv];
    /// Lines to skip at the start.
    SkipLines "CsvOptions::skip_lines" [Csv];
    /// How rows that cannot be read are treated.
    BadRows "BadRows" [Csv, Svmlight, Images, Arrow, Parquet];
    /// The number of threads.
    Threads "n_threads" [Csv, Svmlight, Images, Arrow, Parquet];
}

impl Format {
    /// Whether an import of this format uses an option. [`import`](crate::import) refuses the
    /// [`explicit`](crate::ImportOptions::explicit) options that it does not.
    ///
    /// # Examples
    /// ```
    /// use brisk_table::{Format, ImportSetting};
    ///
    /// assert!(Format::Csv.uses(ImportSetting::Drop));
    /// assert!(!Format::Images.uses(ImportSetting::Drop));
    /// ```
    pub fn uses(self, setting: ImportSetting) -> bool {
        setting.formats().contains(&self)
    }
}

/// Why an option has no effect on an import.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unused {
    /// The format does not use it.
    Format(Format),
    /// The table to match determines it.
    Like,
    /// The source is a single file of CIFAR, which is always read.
    SingleFile,
    /// The source has no index of a data frame.
    NoIndex,
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(f, "has no effect on {format}"),
            Self::Like => f.write_str("has no effect, since the table to match determines it"),
            Self::SingleFile => f.write_str("has no effect on a single file, which is always read"),
            Self::NoIndex => f.write_str("has no effect, since no column is the index of a data frame"),
        }
    }
}
