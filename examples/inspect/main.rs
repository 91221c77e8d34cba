//! Shows a table's schema, statistics and first rows, read in bounded memory and without mapping the file.
//!
//! `cargo run --release --example inspect -- --help`

mod foreign;
mod options;
mod rows;

use std::fmt::Write as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use brisk_examples::command_line::Given;
use brisk_examples::elsewhere::{Streamed, Use, is_url, open_streamed, shown};
use brisk_examples::{check_files_differ, check_output, command_line, print, statistics_table, write_json};
use brisk_loader::RowSource;
use brisk_report::{closing_table, mebibytes, thousands};
use brisk_table::{ColumnStatistics, DType, Dictionary, Error, ReadAhead, SourceIdentity, format::FormatError, printable};
use serde_json::json;

use options::Options;

/// The maximum number of classes or values that are listed; if there are more, their number is given as well.
const N_LISTED: usize = 12;

fn main() -> ExitCode {
    command_line::run_with_given(|options, given| run(&options, given).map(|()| ExitCode::SUCCESS))
}

/// The description of a table of either type, which have the same methods.
macro_rules! shown {
    ($kind:expr, $table:ident) => {
        Shown {
            kind: $kind,
            n_rows: $table.n_rows(),
            row_shape: $table.row_shape(),
            dtype: $table.dtype(),
            label_dtype: $table.label_dtype(),
            n_labels: $table.n_labels(),
            label_names: $table.label_names(),
            column_names: $table.column_names(),
            statistics: $table.statistics(),
            dictionaries: $table.dictionaries(),
            classes: $table.classes(),
            imputed: $table.imputed(),
            has_weights: $table.has_weights(),
            source: $table.source(),
        }
    };
}

fn run(options: &Options, given: &[Given]) -> Result<()> {
    let path = &options.table;
    options.server.apply([path.as_path()])?;
    if let Some(json) = options.json.as_ref().filter(|_| !is_url(path)) {
        let is_index = path.extension().is_some_and(|extension| extension == "json");
        // The shards of an index are in the same folder.
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let shards = (is_index && !path.is_dir()).then_some(folder);
        let inputs: Vec<_> = [Some(&**path), shards].into_iter().flatten().map(|path| ("TABLE", path)).collect();
        check_files_differ(&[("--json", json)], &inputs)?;
    }
    options.json.as_ref().map_or(Ok(()), |json| check_output("--json", json))?;
    let used = if options.verify { Use::Training } else { Use::Glance };
    // Rows are read in order, when they are needed.
    match open_streamed(path, &ReadAhead::new(0), used) {
        Ok(Streamed::Shards(table)) => {
            let shown = shown!(format!("{} shards", table.n_shards()), table);
            show(options, &shown, &table, |progress| table.verify_with_progress(progress))
        }
        Ok(Streamed::File(table)) => {
            let shown = shown!("one file".to_owned(), table);
            show(options, &shown, &table, |progress| table.verify_with_progress(progress))
        }
        Err(error) => match error.downcast() {
            Ok(error @ Error::Format { reason: FormatError::MissingTensor { .. }, .. }) if !is_url(path) => {
                foreign::show(options, given, error)
            }
            Ok(error) => Err(error.into()),
            Err(error) => Err(error),
        },
    }
}

/// The description of a table, whatever kind it is.
struct Shown<'a> {
    kind: String,
    n_rows: usize,
    row_shape: &'a [usize],
    dtype: DType,
    label_dtype: DType,
    n_labels: usize,
    label_names: &'a [String],
    column_names: &'a [String],
    statistics: Option<&'a [ColumnStatistics]>,
    dictionaries: &'a [Dictionary],
    classes: &'a [String],
    imputed: Option<&'a [f32]>,
    has_weights: bool,
    source: Option<&'a SourceIdentity>,
}

fn show<S: RowSource<Feature = f32, Error = Error>>(
    options: &Options,
    table: &Shown<'_>,
    source: &S,
    verify: impl FnOnce(fn(brisk_table::Verified)) -> Result<(), Error>,
) -> Result<()> {
    let verified = if options.verify {
        verify(|_| ())?;
        "every byte is as it was written"
    } else {
        "not checked; --verify does"
    };
    let name = |table: &Shown<'_>| table.label_names.iter().map(|name| format!("{}, ", printable(name))).collect::<String>();
    let several = |table: &Shown<'_>| if table.n_labels > 1 { format!(", {} a row", table.n_labels) } else { String::new() };
    let imported = table
        .source
        .map_or("unknown".to_owned(), |source| format!("{}, {}", printable(&source.file_name), mebibytes(source.n_bytes)));
    let dictionaries = table
        .dictionaries
        .iter()
        .map(|column| format!("{} ({} codes): {}", printable(column.name()), column.n_codes(), listed(column.values())));
    let dictionaries: Vec<String> = dictionaries.collect();

    let mut lines = vec![
        ("table", format!("{}, {}", printable(&shown(&options.table)), table.kind)),
        ("rows", thousands(table.n_rows as u64)),
        ("features", format!("{} {:?}", table.dtype, table.row_shape)),
        ("labels", format!("{}{}{}", name(table), table.label_dtype, several(table))),
        ("weights", if table.has_weights { "one a row" } else { "none" }.to_owned()),
        ("categories", if dictionaries.is_empty() { "none".to_owned() } else { dictionaries.len().to_string() }),
        ("classes", listed(table.classes)),
        ("filled in", table.imputed.map_or("nothing".to_owned(), |_| "missing values".to_owned())),
        ("imported from", imported),
        ("checksums", verified.to_owned()),
    ];
    lines.extend(dictionaries.into_iter().map(|line| ("category", line)));
    let mut text = closing_table(&lines);
    // One line per pixel column would not be useful.
    if let Some(statistics) = table.statistics.filter(|_| table.row_shape.len() == 1) {
        writeln!(text, "\n{}", statistics_table(table.column_names, statistics, table.n_rows))?;
    }
    let n_rows = options.n_rows.min(table.n_rows);
    if n_rows > 0 {
        writeln!(text, "\n{}", rows::first(source, n_rows, table.column_names, table.dictionaries, table.classes)?)?;
    }
    print::result(text.trim_end())?;

    if let Some(path) = &options.json {
        let statistics = table.statistics.map(|columns| {
            let column = |column: &ColumnStatistics| {
                json!({ "count": column.count, "mean": column.mean, "std": column.std, "min": column.min, "max": column.max })
            };
            columns.iter().map(column).collect::<Vec<_>>()
        });
        let dictionaries = table.dictionaries.iter().map(|column| json!({ "name": column.name(), "values": column.values() }));
        let results = json!({
            "table": shown(&options.table), "rows": table.n_rows, "row_shape": table.row_shape, "dtype": table.dtype.name(),
            "label_dtype": table.label_dtype.name(), "labels": table.label_names, "columns": table.column_names,
            "statistics": statistics, "categories": dictionaries.collect::<Vec<_>>(), "classes": table.classes,
            "weights": table.has_weights, "source": table.source.map(|source| &source.file_name),
            "verified": options.verify,
        });
        write_json(path, &results).context("what the table is")?;
    }
    Ok(())
}

/// The words if there are few of them, otherwise the first ones and their number.
fn listed(words: &[String]) -> String {
    let shown: Vec<String> = words.iter().take(N_LISTED).map(|word| printable(word).to_string()).collect();
    match words.len() {
        0 => "none".to_owned(),
        1..=N_LISTED => shown.join(", "),
        n => format!("{}, … ({n})", shown.join(", ")),
    }
}
