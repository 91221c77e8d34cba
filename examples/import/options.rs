use std::ffi::OsString;
use std::path::PathBuf;

use brisk_examples::command_line::value::{self, MAX_COUNT, one_of, whole};
use brisk_examples::command_line::{Given, ServerOption};
use brisk_table::{
    ArchiveEnd, ArrayRef, BadRows, Categorical, Channels, CifarLabels, CifarOptions, CifarSet, ColumnOptions, ColumnRef,
    CsvOptions, Decimal, Delimiter, FeatureDType, Format, Header, IdxOptions, ImagesOptions, ImportOptions, ImportSetting,
    Indicators, LabelKind, Missing, NotFinite, NpyLabels, NpyOptions, Orientation, SvmlightOptions,
};
use clap::{Args, Parser};

/// Imports rows into a table: a safetensors file that training maps into memory
#[derive(Debug, Parser)]
#[command(name = "import", after_help = NOTES)]
pub(crate) struct Options {
    /// Rows to import: CSV or TSV, svmlight, numpy's .npy or .npz, IDX as of MNIST, CIFAR's binary files, or a folder or .tar of
    /// images; plain, .gz, .zst or .xz; or the URL of such a file, which is copied to this machine first. A table, or a folder of
    /// shards, at a path or URL is copied as it is
    #[arg(value_name = "IN")]
    pub(crate) source: PathBuf,
    /// Table to write, which replaces a file of this name once the import has succeeded; through a symbolic link, the file that
    /// it points to; or a URL of s3:, gs: or az:, to which it is sent from a temporary file when it is complete
    #[arg(value_name = "OUT")]
    pub(crate) dest: PathBuf,
    #[command(flatten)]
    pub(crate) server: ServerOption,

    /// Format of IN [default: found from its contents]
    #[arg(long, value_name = "FORMAT", help_heading = "Format", value_parser = one_of(FORMATS))]
    format: Option<Format>,

    #[command(flatten, next_help_heading = "Columns, by name or by index from 0; `name:3` and `index:3` are never mistaken")]
    columns: Columns,
    #[command(flatten, next_help_heading = "Arrays and images")]
    arrays: Arrays,
    #[command(flatten, next_help_heading = "Text")]
    text: Text,

    /// What to do with a row that cannot be parsed: end with an error, skip and count it, or skip only those without a label
    #[arg(long = "on-bad-row", value_name = "ACTION", help_heading = "Running", default_value = "fail",
        value_parser = one_of([("fail", BadRows::Error), ("skip", BadRows::Skip), ("skip-unlabelled", BadRows::SkipUnlabelled)]))]
    bad_rows: BadRows,
    /// Threads that parse, which do not change the table [default: one for each core]
    #[arg(long, value_name = "N", help_heading = "Running", allow_negative_numbers = true, value_parser = whole::<usize>(1..=1024))]
    threads: Option<usize>,

    /// Write a folder of shards of N rows each, with an index, instead of one file; OUT is the folder, or its URL, to which
    /// shards are sent one by one. IN is read twice if classes, categories or means are found in its rows
    #[arg(long, value_name = "N", help_heading = "Results", allow_negative_numbers = true, value_parser = whole::<usize>(1..=MAX_COUNT))]
    pub(crate) shard_rows: Option<usize>,
    /// Print statistics of each column: missing values, mean, standard deviation, minimum and maximum
    #[arg(long = "stats", help_heading = "Results")]
    pub(crate) statistics: bool,
    /// Write a report of the import to FILE as one JSON object
    #[arg(long, value_name = "FILE", help_heading = "Results")]
    pub(crate) json: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Columns {
    /// Column to predict; given several times, the columns to predict together, which are numbers or 0 and 1
    #[arg(long, value_name = "COLUMN", default_value = "0", allow_negative_numbers = true)]
    label: Vec<String>,
    /// What the labels are: numbers; binary, which is 0 or 1; or classes, which are text or whole numbers
    #[arg(long, value_name = "KIND", default_value = "number", value_parser = one_of([
        ("number", LabelKind::Number), ("binary", LabelKind::Binary), ("classes", LabelKind::Classes)
    ]))]
    label_kind: LabelKind,
    /// Column with the weights of rows; of npy a file, of npz a member
    #[arg(long, value_name = "COLUMN")]
    weight: Option<String>,
    /// Columns to leave out
    #[arg(long, value_name = "A,B,C")]
    drop: Vec<String>,
    /// Columns of text to store as codes; `auto` finds them
    #[arg(long, value_name = "A,B,C")]
    categorical: Vec<String>,
    /// How to treat missing values: an error; `keep`, which stores NaN; `mean`, the mean of the column; or a number
    #[arg(long, value_name = "ACTION", default_value = "error", allow_negative_numbers = true, value_parser = missing)]
    missing: Missing,
    /// Another word that stands for a missing value, such as -999.0, in addition to an empty cell, NA, NaN, null and ?
    #[arg(long, value_name = "WORD", allow_hyphen_values = true)]
    missing_value: Vec<String>,
    /// Columns for which another column says which values were missing; `all` for each column that misses some
    #[arg(long, value_name = "A,B,C")]
    indicators: Vec<String>,
    /// Type in which features are stored; u8 is for whole numbers from 0 to 255
    #[arg(long, value_name = "TYPE", default_value = "f32", value_parser = one_of([
        ("f32", FeatureDType::F32), ("f16", FeatureDType::F16), ("u8", FeatureDType::U8)
    ]))]
    dtype: FeatureDType,
    /// Subtract a number from a column before it is rounded to 32 bits, so that time stamps and other large numbers keep their
    /// last digits
    #[arg(long, value_name = "COLUMN=NUMBER", value_parser = offset)]
    offset: Vec<(ColumnRef, f64)>,
    /// Keep the index of a data frame as a column: what pandas writes in a column without a name, or as `__index_level_0__`
    #[arg(long)]
    keep_index: bool,
    /// Match this table, as a test set matches its training set: its columns, categories, classes and means, and the offsets,
    /// weights and words for missing values that it was imported with; of images the classes, size, channels and orientation
    #[arg(long, value_name = "TABLE")]
    like: Option<PathBuf>,
}

#[derive(Debug, Args)]
struct Arrays {
    /// Member of an .npz with the features [default: features, X, x, data or images]
    #[arg(long, value_name = "NAME")]
    features: Option<String>,
    /// Labels of npy and idx: a file; of npz: a member; or a number, that of a column of the features [default: found by name]
    #[arg(long, value_name = "LABELS")]
    labels: Option<OsString>,
    /// Label of the first class of npy and idx, such as 1 for the letters of EMNIST; it is subtracted from all labels
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true)]
    first_label: i64,
    /// Labels of CIFAR: those of CIFAR-10, or the fine or coarse ones of CIFAR-100
    #[arg(long, value_name = "LABELS", default_value = "ten", value_parser = one_of([
        ("ten", CifarLabels::Ten), ("fine", CifarLabels::Fine), ("coarse", CifarLabels::Coarse)
    ]))]
    cifar_labels: CifarLabels,
    /// Part of a folder or an archive of CIFAR
    #[arg(long, value_name = "SET", default_value = "train", value_parser = one_of([("train", CifarSet::Train), ("test", CifarSet::Test)]))]
    cifar_set: CifarSet,
    /// Channels of images; `first` for those of the first image, which all others must have
    #[arg(long, value_name = "CHANNELS", default_value = "first", value_parser = value::channels())]
    channels: Channels,
    /// Resize images to SIZE, a side or HEIGHTxWIDTH; the longer side of an image of another aspect ratio is cropped
    /// [default: all images have one size]
    #[arg(long, value_name = "SIZE", value_parser = value::image_size())]
    size: Option<[usize; 2]>,
    /// How photos are turned: upright, as the EXIF data of a JPEG file says, or as they are stored
    #[arg(long, value_name = "HOW", default_value = "upright", value_parser = one_of([
        ("upright", Orientation::Upright), ("stored", Orientation::AsStored)
    ]))]
    orientation: Orientation,
    /// Whether a .tar of images must end as archives do; one that does not may have been cut off between two files
    #[arg(long, value_name = "END", default_value = "required", value_parser = one_of([
        ("required", ArchiveEnd::Required), ("optional", ArchiveEnd::Optional)
    ]))]
    archive_end: ArchiveEnd,
}

#[derive(Debug, Args)]
struct Text {
    /// Character between cells, or `tab` [default: found from the first lines]
    #[arg(long, value_name = "CHARACTER", value_parser = value::delimiter)]
    delimiter: Option<Delimiter>,
    /// Decimal mark of numbers
    #[arg(long, value_name = "MARK", default_value = ".", value_parser = value::decimal())]
    decimal: Decimal,
    /// Whether the first line names the columns
    #[arg(long, value_name = "HEADER", default_value = "auto", value_parser = one_of([
        ("auto", Header::Auto), ("present", Header::Present), ("absent", Header::Absent)
    ]))]
    header: Header,
    /// Lines at the start that are neither header nor rows
    #[arg(long, value_name = "N", default_value = "0", allow_negative_numbers = true, value_parser = whole::<usize>(0..=MAX_COUNT))]
    skip_lines: usize,
}

const NOTES: &str = "\
An option that has no effect on the format of IN is an error.
Options that take several columns may be given several times.
With `--features all-formats` before `--example`, IN can also be an Arrow or Parquet file.

Examples:
  cargo run --release --example import -- rows.csv rows.safetensors --label signal --label-kind binary
  cargo run --release --example import -- houses.csv houses.safetensors --label price --label rent
  cargo run --release --example import -- test.csv test.safetensors --like rows.safetensors
  cargo run --release --example import -- images/ images.safetensors --size 64
  cargo run --release --features remote --example import -- rows.csv s3://BUCKET/rows.safetensors
  cargo run --release --features remote --example import -- rows.csv s3://BUCKET/rows --shard-rows 1000000
  cargo run --release --features remote --example import -- rows.safetensors s3://BUCKET/rows --shard-rows 1000000";

const FORMATS: [(&str, Format); 8] = [
    ("csv", Format::Csv),
    ("svmlight", Format::Svmlight),
    ("npy", Format::Npy),
    ("idx", Format::Idx),
    ("cifar", Format::Cifar),
    ("images", Format::Images),
    ("arrow", Format::Arrow),
    ("parquet", Format::Parquet),
];

/// The options that some formats use and others do not, by name.
pub(crate) const SETTINGS: [(&str, ImportSetting); 27] = [
    ("label", ImportSetting::Labels),
    ("label-kind", ImportSetting::LabelKind),
    ("weight", ImportSetting::Weight),
    ("drop", ImportSetting::Drop),
    ("categorical", ImportSetting::Categorical),
    ("missing", ImportSetting::KeepMissing),
    ("missing-value", ImportSetting::MissingValues),
    ("indicators", ImportSetting::Indicators),
    ("dtype", ImportSetting::DType),
    ("offset", ImportSetting::Offsets),
    ("keep-index", ImportSetting::KeepIndex),
    ("like", ImportSetting::Like),
    ("features", ImportSetting::FeatureArray),
    ("labels", ImportSetting::LabelArray),
    ("first-label", ImportSetting::FirstLabel),
    ("cifar-labels", ImportSetting::CifarLabels),
    ("cifar-set", ImportSetting::CifarSet),
    ("channels", ImportSetting::Channels),
    ("size", ImportSetting::Size),
    ("orientation", ImportSetting::Orientation),
    ("archive-end", ImportSetting::ArchiveEnd),
    ("delimiter", ImportSetting::Delimiter),
    ("decimal", ImportSetting::Decimal),
    ("header", ImportSetting::Header),
    ("skip-lines", ImportSetting::SkipLines),
    ("on-bad-row", ImportSetting::BadRows),
    ("threads", ImportSetting::Threads),
];

impl Options {
    /// The table to match, if there is one.
    pub(crate) fn like(&mut self) -> Option<&mut PathBuf> {
        self.columns.like.as_mut()
    }

    /// The settings of the importer that the command line gives.
    fn explicit(&self, given: &[Given]) -> Vec<ImportSetting> {
        let given = SETTINGS.iter().filter(|(name, _)| given.iter().any(|given| given == name)).map(|(_, setting)| *setting);
        let fills = matches!(self.columns.missing, Missing::Mean | Missing::Value(_));
        given.chain(fills.then_some(ImportSetting::FillMissing)).collect()
    }

    /// The importer's options; `given` are the names of those on the command line.
    pub(crate) fn import_options(&self, given: &[Given]) -> ImportOptions {
        let (columns, arrays) = (self.columns.column_options(self.bad_rows), &self.arrays);
        let like = columns.like.clone();
        let n_threads = self.threads.unwrap_or(CsvOptions::default().n_threads);
        let not_finite = if columns.missing == Missing::Keep { NotFinite::Keep } else { NotFinite::default() };
        ImportOptions {
            format: self.format,
            explicit: self.explicit(given),
            images: ImagesOptions {
                channels: arrays.channels,
                size: arrays.size,
                orientation: arrays.orientation,
                archive_end: arrays.archive_end,
                like: like.clone(),
                bad_files: self.bad_rows,
                n_threads,
            },
            #[cfg(feature = "all-formats")]
            arrow: brisk_table::ArrowOptions { columns: columns.clone(), n_threads },
            svmlight: SvmlightOptions {
                label_kind: columns.label_kind.clone(),
                missing: columns.missing,
                dtype: columns.dtype,
                bad_rows: self.bad_rows,
                like: like.clone(),
                n_threads,
                ..SvmlightOptions::default()
            },
            npy: NpyOptions {
                features: arrays.features.clone(),
                labels: arrays.labels.clone().map_or(NpyOptions::default().labels, array_of_labels),
                weights: self.columns.weight.clone().map(|word| array(word.into())),
                first_label: arrays.first_label,
                like: like.clone(),
                not_finite,
            },
            idx: IdxOptions {
                labels: arrays.labels.clone().map(PathBuf::from),
                first_label: arrays.first_label,
                like,
                not_finite,
            },
            cifar: CifarOptions { labels: arrays.cifar_labels, set: arrays.cifar_set },
            csv: self.text.csv_options(columns, n_threads),
        }
    }
}

impl Columns {
    fn column_options(&self, bad_rows: BadRows) -> ColumnOptions {
        let mut columns = ColumnOptions {
            labels: self.label.iter().map(|name| ColumnRef::Word(name.clone())).collect(),
            label_kind: self.label_kind.clone(),
            weight: self.weight.clone().map(ColumnRef::Word),
            missing: self.missing,
            dtype: self.dtype,
            offsets: self.offset.clone(),
            keep_index: self.keep_index,
            like: self.like.clone(),
            bad_rows,
            ..ColumnOptions::default()
        };
        columns.drop.extend(self.drop.iter().flat_map(|names| several(names)));
        columns.missing_values.extend(self.missing_value.iter().cloned());
        for names in &self.categorical {
            match (names.as_str(), &mut columns.categorical) {
                ("auto", chosen) => *chosen = Categorical::Auto,
                (names, Categorical::Columns(chosen)) => chosen.extend(several(names)),
                (names, chosen) => *chosen = Categorical::Columns(several(names)),
            }
        }
        for names in &self.indicators {
            match (names.as_str(), &mut columns.indicators) {
                ("all", chosen) => *chosen = Indicators::All,
                (names, Indicators::Columns(chosen)) => chosen.extend(several(names)),
                (names, chosen) => *chosen = Indicators::Columns(several(names)),
            }
        }
        columns
    }
}

impl Text {
    fn csv_options(&self, columns: ColumnOptions, n_threads: usize) -> CsvOptions {
        let mut csv = CsvOptions {
            columns,
            n_threads,
            decimal: self.decimal,
            header: self.header,
            skip_lines: self.skip_lines,
            ..CsvOptions::default()
        };
        if let Some(delimiter) = self.delimiter {
            csv.delimiter = delimiter;
        }
        csv
    }
}

/// A number is the index of a feature column, the name of an existing file that file, and any other word a member of the archive.
fn array_of_labels(word: OsString) -> NpyLabels {
    if let Some(col) = word.to_str().and_then(|word| word.parse().ok()) {
        return NpyLabels::Column(col);
    }
    NpyLabels::Array(array(word))
}

/// The name of an existing file that file, and any other word a member of the archive.
fn array(word: OsString) -> ArrayRef {
    let path = PathBuf::from(word);
    if path.exists() { ArrayRef::File(path) } else { ArrayRef::Member(path.to_string_lossy().into_owned()) }
}

fn offset(word: &str) -> Result<(ColumnRef, f64), String> {
    let offset =
        word.rsplit_once('=').and_then(|(column, number)| Some((ColumnRef::Word(column.to_owned()), number.parse().ok()?)));
    offset.filter(|(_, number): &(_, f64)| number.is_finite()).ok_or_else(|| "expected COLUMN=NUMBER".to_owned())
}

fn several(words: &str) -> Vec<ColumnRef> {
    words.split(',').map(|name| ColumnRef::Word(name.trim().to_owned())).collect()
}

fn missing(word: &str) -> Result<Missing, String> {
    match (word, word.parse::<f32>()) {
        ("error", _) => Ok(Missing::Error),
        ("keep", _) => Ok(Missing::Keep),
        ("mean", _) => Ok(Missing::Mean),
        (_, Ok(value)) if value.is_finite() => Ok(Missing::Value(value)),
        _ => Err("expected `error`, `keep`, `mean` or a finite number".to_owned()),
    }
}
