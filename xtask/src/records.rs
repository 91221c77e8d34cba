//! `cargo xtask records`: the tables of `benches/README.md`, made of the records of all machines.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::shell::root;

/// The page that is written, relative to the root folder of the workspace.
pub(crate) const PAGE: &str = "benches/README.md";

/// The folder of records: one folder a machine, JSON files that `cargo xtask bench --json` wrote.
const RECORDS: &str = "benches/record";

/// Text before the tables.
const HEAD: &str = "# Measurements

What `cargo xtask bench` has measured. `cargo xtask records` writes this page from [record](record); do not edit it. [NOTES.md](NOTES.md) has the conditions, the explanations and the targets that are not met.

A column is a machine. A cell is how many times as fast (or as small) brisk is as what it is compared with, measured in the same run; above 1 is better. Rows without a comparison have the
value itself. Where a machine has several records of a case, the cell is their median, followed by the lowest and the highest.
";

/// The records of all machines, each in the order of their files' names, which begin with the date: folder of the machine and
/// content.
pub(crate) type Records = BTreeMap<String, Vec<String>>;

pub(crate) fn run() -> Result<ExitCode> {
    let mut records = Records::new();
    let folder = root().join(RECORDS);
    for machine in fs::read_dir(&folder).with_context(|| format!("{RECORDS}: cannot list the machines"))? {
        let machine = machine?;
        if !machine.file_type()?.is_dir() {
            continue;
        }
        let mut files = fs::read_dir(machine.path())?.map(|file| Ok(file?.path())).collect::<Result<Vec<_>>>()?;
        files.retain(|file| file.extension().is_some_and(|kind| kind == "json"));
        files.sort();
        let texts =
            files.iter().map(|file| fs::read_to_string(file).with_context(|| format!("{}: cannot be read", file.display())));
        records.insert(machine.file_name().to_string_lossy().into_owned(), texts.collect::<Result<_>>()?);
    }
    fs::write(root().join(PAGE), page(&records)?).with_context(|| format!("{PAGE}: cannot be written"))?;
    Ok(ExitCode::SUCCESS)
}

/// What one row of a table is about.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Subject {
    suite: String,
    case: String,
    reference: Option<String>,
}

/// The measurements of a subject on one machine.
#[derive(Debug, Default)]
struct Measured {
    values: Vec<f64>,
    unit: String,
}

/// The text of the page.
pub(crate) fn page(records: &Records) -> Result<String> {
    let mut subjects: BTreeMap<Subject, BTreeMap<&str, Measured>> = BTreeMap::new();
    for (machine, files) in records {
        for (i, text) in files.iter().enumerate() {
            let rows: Vec<Value> = serde_json::from_str(text)
                .with_context(|| format!("record {i} of {machine}: expected a JSON array that `bench --json` wrote"))?;
            for row in &rows {
                let text = |key: &str| row[key].as_str().unwrap_or_default().to_owned();
                let (value, unit) = match row["ratio"].as_f64() {
                    Some(ratio) => (Some(ratio), "×".to_owned()),
                    None => (row["ours"].as_f64(), text("unit")),
                };
                let Some(value) = value else { continue };
                let reference = row["reference"].as_str().map(|reference| reference.trim_start_matches("limit:").to_owned());
                let subject =
                    Subject { suite: text("suite"), case: text("case").trim_start_matches("twin, ").to_owned(), reference };
                let measured = subjects.entry(subject).or_default().entry(machine).or_default();
                measured.values.push(value);
                measured.unit = unit;
            }
        }
    }
    let mut page = HEAD.to_owned();
    let suites: std::collections::BTreeSet<&str> = subjects.keys().map(|subject| subject.suite.as_str()).collect();
    for suite in suites {
        let of_suite = || subjects.iter().filter(|(subject, _)| subject.suite == suite);
        let machines: Vec<&str> =
            records.keys().map(String::as_str).filter(|machine| of_suite().any(|(_, by)| by.contains_key(machine))).collect();
        write!(page, "\n## {suite}\n\n`cargo xtask bench {suite}`\n\n| case | compared with | {} |\n|", machines.join(" | "))?;
        writeln!(page, "{}", " --- |".repeat(2 + machines.len()))?;
        for (subject, by) in of_suite() {
            let cells: Vec<String> =
                machines.iter().map(|machine| by.get(machine).map_or_else(String::new, Measured::cell)).collect();
            let reference = subject.reference.as_deref().unwrap_or_default();
            writeln!(page, "| {} | {} | {} |", escaped(&subject.case), escaped(reference), cells.join(" | "))?;
        }
    }
    Ok(page)
}

impl Measured {
    fn cell(&self) -> String {
        let mut sorted = self.values.clone();
        sorted.sort_by(f64::total_cmp);
        let n = sorted.len();
        let median = (sorted[(n - 1) / 2] + sorted[n / 2]) / 2.0;
        let shown = |value: f64| scaled(value, &self.unit);
        match n {
            1 => shown(median),
            _ => format!("{} ({} to {})", shown(median), shown(sorted[0]), shown(sorted[n - 1])),
        }
    }
}

/// A value with three digits, in a multiple of its unit.
fn scaled(value: f64, unit: &str) -> String {
    let of_time = unit == "s";
    let scales: &[(f64, &str)] = match unit {
        "×" | "" => &[(1.0, "")],
        _ if of_time => &[(1.0, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")],
        _ => &[(1e9, "G"), (1e6, "M"), (1e3, "k"), (1.0, "")],
    };
    let (scale, prefix) = scales.iter().find(|(scale, _)| value.abs() >= *scale).or(scales.last()).copied().unwrap_or((1.0, ""));
    let value = value / scale;
    let digits = if value.abs() >= 100.0 {
        0
    } else if value.abs() >= 10.0 {
        1
    } else {
        2
    };
    let digits = if unit.is_empty() { 3 } else { digits };
    let space = if unit == "×" || unit.is_empty() { "" } else { " " };
    format!("{value:.digits$}{space}{prefix}{unit}")
}

fn escaped(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(of: &[(&str, &[&str])]) -> Records {
        of.iter().map(|(machine, files)| ((*machine).to_owned(), files.iter().map(|&file| file.to_owned()).collect())).collect()
    }

    #[test]
    fn a_machine_is_a_column_and_a_case_a_row() {
        let row = |ratio: f64| {
            format!(r#"[{{"suite": "s", "case": "add", "reference": "PyTorch", "ratio": {ratio}, "ours": 1.0, "unit": "s"}}]"#)
        };
        let plain = r#"[{"suite": "s", "case": "step", "reference": null, "ratio": null, "ours": 0.0021, "unit": "s"}]"#;
        let page = page(&records(&[("b", &[&row(1.0), &row(3.0), &row(1.5)]), ("a", &[plain]), ("c", &[])])).expect("records");
        let tables = page.strip_prefix(HEAD).expect("the head comes first");
        let expected = "\n## s\n\n`cargo xtask bench s`\n\n| case | compared with | a | b |\n| --- | --- | --- | --- |\n\
                        | add | PyTorch |  | 1.50× (1.00× to 3.00×) |\n| step |  | 2.10 ms |  |\n";
        assert_eq!(tables, expected);
    }

    #[test]
    fn values_have_three_digits() {
        for (value, unit, expected) in [
            (198_135.0, "rows/s", "198 krows/s"),
            (3.2e-7, "s", "320 ns"),
            (0.0, "s", "0.00 ns"),
            (0.7751, "", "0.775"),
            (61.44, "×", "61.4×"),
        ] {
            assert_eq!(scaled(value, unit), expected);
        }
    }

    #[test]
    fn what_is_not_a_record_is_an_error() {
        let error = page(&records(&[("a", &["{}"])])).expect_err("not an array");
        assert!(error.to_string().contains("record 0 of a"), "{error}");
    }
}
