//! Imports rows of any format into a table that training maps, with the importers of brisk-table and a progress bar.
//!
//! `cargo run --release --example import -- rows.csv rows.safetensors --label signal`; several `--label` make a table for a
//! regression with several targets, or for several labels of a row. `-- --help` lists all options.

mod bar;
mod copy;
mod files;
mod options;

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Result, anyhow};
use brisk_examples::command_line::Given;
use brisk_examples::elsewhere::{LocalFile, destination, shown};
use brisk_examples::import_error::{self, in_words_of, warning_in_words_of};
use brisk_examples::interruptible::{self, interruptible};
use brisk_examples::{command_line, print, statistics_table, write_json};
use brisk_report::{closing_table, mebibytes, rows_per_second, seconds, thousands};
use brisk_table::{Destination, Error, ImportOptions, ImportReport, ShardSize, import_with_progress, printable};
use brisk_train::StopFlag;
use serde_json::{Value, json};

use bar::Bar;
use options::{Options, SETTINGS};

fn main() -> ExitCode {
    command_line::run_with_given(run)
}

fn run(mut options: Options, given: &[Given]) -> Result<ExitCode> {
    // First: the check creates a file for a moment.
    let stop = StopFlag::on_signals()?;
    // Before anything is copied from a server.
    let like = options.like().map(|path| path.clone());
    let tables = [Some(&options.source), Some(&options.dest), like.as_ref()];
    options.server.apply(tables.into_iter().flatten().map(|path| path.as_path()))?;
    let dest = destination(&options.dest, options.shard_rows.map(ShardSize::Rows))?;
    let started = Instant::now();
    let imported = match copy::open(&options.source)? {
        Some(table) => {
            copy::check(&options, given)?;
            files::check(&options, &ImportOptions::default(), &options.source)?;
            copy::copy(&table, &dest, &stop)?
        }
        None => {
            let like = options.like().map(|path| LocalFile::of(path)).transpose()?;
            if let (Some(path), Some(copy)) = (options.like(), &like) {
                copy.path().clone_into(path);
            }
            let settings = options.import_options(given);
            let source = LocalFile::of(&options.source)?;
            files::check(&options, &settings, source.path())?;
            let report = import(source.path(), &dest, &settings, &stop)?;
            let n_bytes = bytes_of(source.path())?;
            report.map(|report| (report, n_bytes))
        }
    };
    let Some((report, n_source_bytes)) = imported else {
        print::note(format_args!("error: interrupted; {} is as it was", printable(&shown(&options.dest))));
        return Ok(stop.signal().map_or(ExitCode::FAILURE, |signal| ExitCode::from(signal.exit_status())));
    };
    let elapsed = started.elapsed().as_secs_f64();
    let shape: Vec<String> = report.row_shape.iter().map(ToString::to_string).collect();
    if let Some(first) = report.first_skipped.first() {
        print::note(format_args!("the first row left out: {}", first.problem()));
    }
    if !report.index_columns.is_empty() {
        let names: Vec<_> = report.index_columns.iter().map(|name| printable(name).to_string()).collect();
        print::note(format_args!("left out as the index of a data frame: {}; --keep-index keeps it", names.join(", ")));
    }
    let warnings: Vec<_> = report.warnings.iter().map(|warning| warning_in_words_of(warning, import_error::import)).collect();
    warnings.iter().for_each(|warning| print::note(format_args!("warning: {warning}")));

    if let Some(path) = &options.json {
        let columns = report.column_names.iter().zip(&report.statistics).map(|(name, column)| {
            json!({
                "name": name, "count": column.count, "mean": column.mean, "std": column.std, "min": column.min, "max": column.max,
            })
        });
        let results = json!({
            "source": shown(&options.source), "table": shown(&options.dest), "rows": report.n_rows, "skipped_rows": report.n_skipped,
            "first_skipped": report.first_skipped.iter().map(ToString::to_string).collect::<Vec<_>>(),
            "labels": report.label_names, "index_columns": report.index_columns, "warnings": warnings,
            "columns": columns.collect::<Vec<Value>>(), "classes": report.classes,
            "categories": report.dictionaries.iter().map(|column| json!({ "name": column.name(), "codes": column.n_codes() })).collect::<Vec<_>>(),
            "source_bytes": n_source_bytes, "table_bytes": report.n_bytes,
            "seconds": elapsed, "rows_per_s": report.n_rows as f64 / elapsed,
        });
        write_json(path, &results)?;
    }
    if options.statistics {
        print::result(format_args!("{}\n", statistics_table(&report.column_names, &report.statistics, report.n_rows)))?;
    }
    let categories: Vec<_> =
        report.dictionaries.iter().map(|column| format!("{} ({} codes)", printable(column.name()), column.n_codes())).collect();
    let labels: Vec<_> = report.label_names.iter().map(|name| printable(name).to_string()).collect();
    let classes: Vec<_> = report.classes.iter().map(|class| printable(class).to_string()).collect();
    let several = |words: &[String]| if words.is_empty() { "none".to_owned() } else { words.join(", ") };
    print::result(closing_table(&[
        ("table", printable(&shown(&options.dest)).to_string()),
        ("shards", options.shard_rows.map_or_else(|| "none".to_owned(), |rows| thousands(report.n_rows.div_ceil(rows) as u64))),
        ("rows", thousands(report.n_rows as u64)),
        ("left out", thousands(report.n_skipped)),
        ("columns", shape.join(" x ")),
        // Of images and the like, labels are classes without a name of their own.
        (
            "labels",
            if labels.is_empty() && !classes.is_empty() { format!("{} classes", classes.len()) } else { several(&labels) },
        ),
        ("categories", several(&categories)),
        ("classes", several(&classes)),
        ("size", format!("{}, of {}", mebibytes(report.n_bytes), mebibytes(n_source_bytes))),
        ("rows/s", rows_per_second(report.n_rows as f64 / elapsed)),
        ("time", seconds(elapsed)),
    ]))?;
    Ok(ExitCode::SUCCESS)
}

/// Imports with a bar; `None` if a signal stopped it.
fn import(source: &Path, dest: &Destination, settings: &ImportOptions, stop: &StopFlag) -> Result<Option<ImportReport>> {
    let mut bar = Bar::stderr();
    let imported = interruptible(|| {
        import_with_progress(source, dest, settings, |progress| {
            bar.show(&progress);
            interruptible::check(stop);
        })
    });
    drop(bar);
    match imported {
        None => Ok(None),
        Some(Ok(report)) => Ok(Some(report)),
        Some(Err(Error::FeatureOff { path, found, .. })) => Err(anyhow!(
            "{}: is {found}; run with it: cargo run --release --features all-formats --example import",
            printable(&path)
        )),
        Some(Err(error)) => Err(match import_error::unused_setting(&error) {
            Some((setting, reason, path)) => {
                let name = SETTINGS.iter().find(|(_, named)| *named == setting).map_or("missing", |(name, _)| name);
                anyhow!("{}: `--{name}` {reason}; leave it out", printable(path))
            }
            None => anyhow!(in_words_of(&error, import_error::import)),
        }),
    }
}

/// The total size of the files, if the input is a folder.
fn bytes_of(path: &Path) -> Result<u64> {
    if !path.is_dir() {
        return Ok(std::fs::metadata(path)?.len());
    }
    std::fs::read_dir(path)?.map(|entry| bytes_of(&entry?.path())).sum()
}
