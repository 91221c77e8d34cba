use std::ops::RangeInclusive;
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brisk_examples::print;
use brisk_table::{
    ArrayRef, BadRows, Categorical, CifarLabels, CifarOptions, CifarSet, ColumnOptions, ColumnRef, CsvOptions, Decimal,
    Delimiter, FeatureDType, Format, Header, IdxOptions, ImportOptions, Indicators, LabelKind, Missing, NotFinite, NpyLabels,
    NpyOptions, SvmlightOptions,
};

/// What `--help` prints, and the documentation of the options.
const HELP: &str = "\
Makes rows into a table, a safetensors file whose rows are mapped.

    cargo run --release --example import -- IN OUT [OPTIONS]

IN is CSV or TSV, svmlight, numpy's .npy or .npz, IDX as MNIST's, or CIFAR's binary files; plain, .gz, .zst or .xz, whatever its name. With
`--features all-formats` before `--example`, also a folder or .tar of images, Arrow or Parquet.
OUT is replaced once all went well, and untouched until then.

Format
    --format F           csv, svmlight, npy, idx, cifar, images, arrow or parquet [found out]

Columns of text, Arrow and Parquet, by name or by index from 0
    --label COLUMN       the column to predict                                    [the first]
    --label-kind KIND    number; binary: 0 or 1; classes: text or whole numbers   [number]
    --weight COLUMN      the column that weighs the rows                          [none]
    --drop A,B,C         columns to leave out                                     [none]
    --categorical A,B,C  columns of text, stored as codes; auto finds them        [none]
    --missing WHAT       error; keep: becomes NaN; mean; or a number              [error]
    --missing-value V    what else is missing, such as -999.0; again for more     [empty, NA, NaN, null, ?]
    --indicators A,B,C   columns beside which another says what was missing; all  [none]
    --dtype D            f32, f16, or u8: whole numbers 0 to 255                  [f32]
    --like TABLE         the columns, categories, classes and means of that table

Options that take several columns may be given several times.

Arrays
    --features NAME      the member of an .npz that has the features              [features, X, x, data or images]
    --labels WHAT        npy, idx: a file of labels; npz: a member; a number:     [found by its name]
                         that column of the features
    --cifar-labels L     ten, or of CIFAR-100 fine or coarse                      [ten]
    --cifar-set S        train or test, of a folder or an archive                 [train]

Text
    --delimiter C        one character, or tab                                    [found out]
    --decimal MARK       point or comma                                           [point]
    --header H           auto, present or absent                                  [auto]
    --skip-lines N       lines at the start that are neither header nor rows      [0]

Running
    --on-bad-row WHAT    fail, or skip and count rows that cannot be read         [fail]
    --threads N          threads that parse; the table is the same for any        [a core each]

Results
    --stats              a line a column: missing values, mean, deviation, extremes
    --json FILE          what was imported, as one JSON object";

/// The command line, read.
#[derive(Debug)]
pub(crate) struct Options {
    pub(crate) source: PathBuf,
    pub(crate) dest: PathBuf,
    pub(crate) import: ImportOptions,
    pub(crate) statistics: bool,
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    /// Reads the command line; `None` if help was asked for and printed.
    pub(crate) fn read(args: impl IntoIterator<Item = String>) -> Result<Option<Self>> {
        let (mut csv, mut columns) = (CsvOptions::default(), ColumnOptions::default());
        let (mut format, mut npy, mut idx, mut cifar) =
            (None, NpyOptions::default(), IdxOptions::default(), CifarOptions::default());
        let (mut paths, mut statistics, mut json) = (Vec::new(), false, None);
        let mut args = args.into_iter();
        while let Some(name) = args.next() {
            if name == "--help" || name == "-h" {
                return print::result(HELP).map(|()| None);
            }
            let mut value = || args.next().with_context(|| format!("{name} wants a value; see --help"));
            match name.as_str() {
                "--format" => format = Some(word(&name, &value()?, &FORMATS)?),
                "--features" => npy.features = Some(value()?),
                "--labels" => {
                    let labels = value()?;
                    npy.labels = array_of_labels(&labels);
                    idx.labels = Some(PathBuf::from(labels));
                }
                "--cifar-labels" => {
                    let words = [("ten", CifarLabels::Ten), ("fine", CifarLabels::Fine), ("coarse", CifarLabels::Coarse)];
                    cifar.labels = word(&name, &value()?, &words)?;
                }
                "--cifar-set" => cifar.set = word(&name, &value()?, &[("train", CifarSet::Train), ("test", CifarSet::Test)])?,
                "--label" => columns.label = column(&value()?),
                "--label-kind" => {
                    let words = [("number", LabelKind::Number), ("binary", LabelKind::Binary), ("classes", LabelKind::Classes)];
                    columns.label_kind = word(&name, &value()?, &words)?;
                }
                "--weight" => columns.weight = Some(column(&value()?)),
                "--drop" => columns.drop.extend(several(&value()?)),
                "--categorical" => match (value()?.as_str(), &mut columns.categorical) {
                    ("auto", chosen) => *chosen = Categorical::Auto,
                    (words, Categorical::Columns(chosen)) => chosen.extend(several(words)),
                    (words, chosen) => *chosen = Categorical::Columns(several(words)),
                },
                "--missing" => columns.missing = missing(&value()?)?,
                "--missing-value" => columns.missing_values.push(value()?),
                "--indicators" => match (value()?.as_str(), &mut columns.indicators) {
                    ("all", chosen) => *chosen = Indicators::All,
                    (words, Indicators::Columns(chosen)) => chosen.extend(several(words)),
                    (words, chosen) => *chosen = Indicators::Columns(several(words)),
                },
                "--dtype" => {
                    let words = [("f32", FeatureDType::F32), ("f16", FeatureDType::F16), ("u8", FeatureDType::U8)];
                    columns.dtype = word(&name, &value()?, &words)?;
                }
                "--like" => columns.like = Some(PathBuf::from(value()?)),
                "--on-bad-row" => {
                    columns.bad_rows = word(&name, &value()?, &[("fail", BadRows::Error), ("skip", BadRows::Skip)])?
                }
                "--delimiter" => csv.delimiter = delimiter(&value()?)?,
                "--decimal" => csv.decimal = word(&name, &value()?, &[("point", Decimal::Point), ("comma", Decimal::Comma)])?,
                "--header" => {
                    let words = [("auto", Header::Auto), ("present", Header::Present), ("absent", Header::Absent)];
                    csv.header = word(&name, &value()?, &words)?;
                }
                "--skip-lines" => csv.skip_lines = whole(&name, &value()?, 0..=1 << 40)?,
                "--threads" => csv.n_threads = whole(&name, &value()?, 1..=1024)?,
                "--stats" => statistics = true,
                "--json" => json = Some(PathBuf::from(value()?)),
                option if option.starts_with('-') => bail!("unknown option `{name}`; see --help"),
                _ => paths.push(PathBuf::from(name)),
            }
        }
        let [source, dest] = <[PathBuf; 2]>::try_from(paths).map_err(|paths| {
            let found: Vec<_> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
            let found = if found.is_empty() { "neither".to_owned() } else { found.join(", ") };
            anyhow::anyhow!("wants two files, IN and OUT, got {found}; see --help")
        })?;
        if columns.missing == Missing::Keep {
            (npy.not_finite, idx.not_finite) = (NotFinite::Keep, NotFinite::Keep);
        }
        csv.columns = columns;
        let import = ImportOptions {
            format,
            #[cfg(feature = "all-formats")]
            images: brisk_table::ImagesOptions {
                bad_files: csv.columns.bad_rows,
                n_threads: csv.n_threads,
                ..brisk_table::ImagesOptions::default()
            },
            #[cfg(feature = "all-formats")]
            arrow: brisk_table::ArrowOptions { columns: csv.columns.clone(), n_threads: csv.n_threads },
            svmlight: SvmlightOptions {
                label_kind: csv.columns.label_kind.clone(),
                missing: csv.columns.missing,
                dtype: csv.columns.dtype,
                bad_rows: csv.columns.bad_rows,
                n_threads: csv.n_threads,
                ..SvmlightOptions::default()
            },
            csv,
            npy,
            idx,
            cifar,
        };
        Ok(Some(Self { source, dest, import, statistics, json }))
    }
}

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

/// `0` is a column of the features, what is a file that, and anything else a member of the archive.
fn array_of_labels(word: &str) -> NpyLabels {
    if let Ok(col) = word.parse() {
        return NpyLabels::Column(col);
    }
    let path = PathBuf::from(word);
    NpyLabels::Array(if path.exists() { ArrayRef::File(path) } else { ArrayRef::Member(word.to_owned()) })
}

/// `3` is an index and anything else a name; a name that is a number is told from it in no way but by the header.
fn column(word: &str) -> ColumnRef {
    word.parse().map_or_else(|_| ColumnRef::Name(word.to_owned()), ColumnRef::Index)
}

fn word<T: Clone>(option: &str, found: &str, words: &[(&str, T)]) -> Result<T> {
    match words.iter().find(|(word, _)| *word == found) {
        Some((_, value)) => Ok(value.clone()),
        None => {
            let words: Vec<_> = words.iter().map(|(word, _)| format!("`{word}`")).collect();
            bail!("{option} wants {}, got `{found}`", words.join(" or "))
        }
    }
}

fn delimiter(word: &str) -> Result<Delimiter> {
    match word.as_bytes() {
        b"tab" | b"\\t" => Ok(Delimiter::Byte(b'\t')),
        [byte] if byte.is_ascii() => Ok(Delimiter::Byte(*byte)),
        _ => bail!("--delimiter wants one ASCII character or `tab`, got `{word}`"),
    }
}

fn whole(option: &str, word: &str, range: RangeInclusive<usize>) -> Result<usize> {
    match word.parse() {
        Ok(n) if range.contains(&n) => Ok(n),
        _ => bail!("{option} wants a whole number from {} to {}, got `{word}`", range.start(), range.end()),
    }
}

fn several(words: &str) -> Vec<ColumnRef> {
    words.split(',').map(|name| column(name.trim())).collect()
}

fn missing(word: &str) -> Result<Missing> {
    match (word, word.parse::<f32>()) {
        ("error", _) => Ok(Missing::Error),
        ("keep", _) => Ok(Missing::Keep),
        ("mean", _) => Ok(Missing::Mean),
        (_, Ok(value)) if value.is_finite() => Ok(Missing::Value(value)),
        _ => bail!("--missing wants `error`, `keep`, `mean` or a finite number, got `{word}`"),
    }
}

/// The importer's ways out are Rust, `Missing::Keep`; on a command line they are options, `--missing keep`.
pub(crate) fn in_words_of_options(error: &str) -> String {
    const WHOLE: [(&str, &str); 8] = [
        ("ImportOptions::format", "--format"),
        ("NpyOptions::features", "--features"),
        ("NpyOptions::labels", "--labels"),
        ("NpyLabels::Array", "--labels FILE"),
        ("NpyLabels::Column", "--labels NUMBER"),
        ("CifarOptions", "--cifar-labels"),
        ("IdxOptions::labels", "--labels FILE"),
        ("NotFinite::Keep", "--missing keep"),
    ];
    let options = [
        ("CifarLabels", "--cifar-labels"),
        ("BadRows", "--on-bad-row"),
        ("Missing", "--missing"),
        ("Categorical", "--categorical"),
        ("Indicators", "--indicators"),
        ("FeatureDType", "--dtype"),
        ("LabelKind", "--label-kind"),
        ("Header", "--header"),
        ("Delimiter", "--delimiter"),
        ("Decimal", "--decimal"),
    ];
    // Every second part stands between backticks.
    let parts = error.split('`').enumerate().map(|(i, part)| {
        if let Some((_, option)) = WHOLE.iter().find(|(whole, _)| i % 2 == 1 && *whole == part) {
            return (*option).to_owned();
        }
        let of_option = options.iter().find_map(|(kind, option)| Some((option, part.strip_prefix(kind)?.strip_prefix("::")?)));
        match of_option {
            Some((option, value)) if i % 2 == 1 => format!("{option} {}", value.to_lowercase()),
            _ => part.to_owned(),
        }
    });
    parts.collect::<Vec<_>>().join("`")
}
