//! Which options each format uses.

use std::fmt;

use super::Format;

/// An option of an import. Each format uses some of them: see [`Format::uses`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ImportSetting {
    /// Which columns are labels.
    Labels,
    /// What values labels may have.
    LabelKind,
    /// The number of the first class, if labels are integers.
    FirstLabel,
    /// The column or array with the weights of rows.
    Weight,
    /// Columns to drop.
    Drop,
    /// Which columns are categories.
    Categorical,
    /// Whether missing values, or values that are not finite, are kept.
    KeepMissing,
    /// A number, or the mean, in place of missing values.
    FillMissing,
    /// Words that stand for missing values.
    MissingValues,
    /// Features that have an indicator.
    Indicators,
    /// The type in which features are stored.
    DType,
    /// Numbers to subtract from columns.
    Offsets,
    /// Whether the index of a data frame is kept.
    KeepIndex,
    /// A table to match.
    Like,
    /// The array with the features.
    FeatureArray,
    /// The array with the labels.
    LabelArray,
    /// Which labels of CIFAR are read.
    CifarLabels,
    /// Which part of CIFAR is read.
    CifarSet,
    /// The channels of images.
    Channels,
    /// The size of images.
    Size,
    /// Whether images are turned as their EXIF data says.
    Orientation,
    /// Whether an archive may lack its end.
    ArchiveEnd,
    /// The character between cells.
    Delimiter,
    /// The decimal mark.
    Decimal,
    /// Whether the first line names the columns.
    Header,
    /// Lines to skip at the start.
    SkipLines,
    /// How rows that cannot be read are treated.
    BadRows,
    /// The number of threads.
    Threads,
}

use ImportSetting::*;

const COLUMNS: &[ImportSetting] = &[
    Labels,
    LabelKind,
    Weight,
    Drop,
    Categorical,
    KeepMissing,
    FillMissing,
    MissingValues,
    Indicators,
    DType,
    Offsets,
    KeepIndex,
    Like,
    BadRows,
    Threads,
];
const TEXT: &[ImportSetting] = &[Delimiter, Decimal, Header, SkipLines];
const SVMLIGHT: &[ImportSetting] = &[LabelKind, KeepMissing, FillMissing, DType, Like, BadRows, Threads];
const NPY: &[ImportSetting] = &[FeatureArray, LabelArray, FirstLabel, Weight, KeepMissing, Like];
const IDX: &[ImportSetting] = &[LabelArray, FirstLabel, KeepMissing, Like];
const CIFAR: &[ImportSetting] = &[CifarLabels, CifarSet];
const IMAGES: &[ImportSetting] = &[Channels, Size, Orientation, ArchiveEnd, Like, BadRows, Threads];

impl Format {
    /// Every format.
    pub const ALL: [Self; 8] =
        [Self::Csv, Self::Svmlight, Self::Npy, Self::Idx, Self::Cifar, Self::Images, Self::Arrow, Self::Parquet];

    /// Whether an import of this format uses an option. [`import`](crate::import) refuses the [`explicit`](crate::ImportOptions::explicit) options that it does not.
    ///
    /// # Examples
    /// ```
    /// use brisk_table::{Format, ImportSetting};
    ///
    /// assert!(Format::Csv.uses(ImportSetting::Drop));
    /// assert!(!Format::Images.uses(ImportSetting::Drop));
    /// ```
    pub fn uses(self, setting: ImportSetting) -> bool {
        let used: &[&[ImportSetting]] = match self {
            Self::Csv => &[COLUMNS, TEXT],
            Self::Arrow | Self::Parquet => &[COLUMNS],
            Self::Svmlight => &[SVMLIGHT],
            Self::Npy => &[NPY],
            Self::Idx => &[IDX],
            Self::Cifar => &[CIFAR],
            Self::Images => &[IMAGES],
        };
        used.iter().any(|settings| settings.contains(&setting))
    }
}

impl ImportSetting {
    /// Every option.
    pub const ALL: [Self; 28] = [
        Labels,
        LabelKind,
        FirstLabel,
        Weight,
        Drop,
        Categorical,
        KeepMissing,
        FillMissing,
        MissingValues,
        Indicators,
        DType,
        Offsets,
        KeepIndex,
        Like,
        FeatureArray,
        LabelArray,
        CifarLabels,
        CifarSet,
        Channels,
        Size,
        Orientation,
        ArchiveEnd,
        Delimiter,
        Decimal,
        Header,
        SkipLines,
        BadRows,
        Threads,
    ];
}

impl fmt::Display for ImportSetting {
    /// The field of the options of this crate.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Labels => "ColumnOptions::labels",
            LabelKind => "ColumnOptions::label_kind",
            FirstLabel => "first_label",
            Weight => "weight",
            Drop => "ColumnOptions::drop",
            Categorical => "ColumnOptions::categorical",
            KeepMissing => "Missing::Keep",
            FillMissing => "Missing::Mean` or `Missing::Value",
            MissingValues => "ColumnOptions::missing_values",
            Indicators => "ColumnOptions::indicators",
            DType => "FeatureDType",
            Offsets => "ColumnOptions::offsets",
            KeepIndex => "ColumnOptions::keep_index",
            Like => "like",
            FeatureArray => "NpyOptions::features",
            LabelArray => "labels",
            CifarLabels => "CifarOptions::labels",
            CifarSet => "CifarOptions::set",
            Channels => "ImagesOptions::channels",
            Size => "ImagesOptions::size",
            Orientation => "ImagesOptions::orientation",
            ArchiveEnd => "ImagesOptions::archive_end",
            Delimiter => "CsvOptions::delimiter",
            Decimal => "CsvOptions::decimal",
            Header => "CsvOptions::header",
            SkipLines => "CsvOptions::skip_lines",
            BadRows => "BadRows",
            Threads => "n_threads",
        })
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
}

impl fmt::Display for Unused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Format(format) => write!(f, "has no effect on {format}"),
            Self::Like => f.write_str("has no effect, since the table to match determines it"),
            Self::SingleFile => f.write_str("has no effect on a single file, which is always read"),
        }
    }
}
