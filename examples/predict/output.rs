//! Predictions as CSV, Parquet or a brisk table.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail};
use brisk_atomic_file::write_atomically;
use brisk_table::{DType, Schema, TableWriter, printable};
use brisk_tabular::Predictions;

/// The formats of the output, by the name of the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Output {
    Csv,
    Parquet,
    Table,
}

impl Output {
    /// The format that the extension of the file determines.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("csv") => Ok(Self::Csv),
            Some("safetensors") => Ok(Self::Table),
            Some("parquet") if cfg!(feature = "all-formats") => Ok(Self::Parquet),
            Some("parquet") => bail!(
                "{}: Parquet needs a feature: cargo run --release --features all-formats --example predict",
                printable(path)
            ),
            _ => bail!("{}: --out needs a name that ends in .csv, .parquet or .safetensors", printable(path)),
        }
    }

    /// Writes the predictions of the target `name`, completely or not at all.
    pub(crate) fn write(self, path: &Path, name: &str, predictions: &Predictions, cells: Cells) -> Result<()> {
        match self {
            Self::Csv => write_whole(path, csv(name, predictions, cells).as_bytes()),
            Self::Table => table(path, name, predictions),
            #[cfg(feature = "all-formats")]
            Self::Parquet => write_whole(path, &super::parquet::encode(name, predictions)?),
            #[cfg(not(feature = "all-formats"))]
            Self::Parquet => unreachable!("the name of the file was refused"),
        }
    }
}

/// How names are written to CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cells {
    AsTheyAre,
    /// With a `'` before those that a spreadsheet would run as formulas.
    ForSpreadsheets,
}

/// The column of a class's probability.
pub(crate) fn probability_name(class: &str) -> String {
    format!("probability_{class}")
}

/// The columns of the bounds of intervals.
pub(crate) fn bound_names(name: &str) -> [String; 2] {
    ["lower", "upper"].map(|bound| format!("{name}_{bound}"))
}

fn csv(name: &str, predictions: &Predictions, cells: Cells) -> String {
    let classes = predictions.classes();
    let header = std::iter::once(name.to_owned()).chain(classes.iter().map(|class| probability_name(class)));
    let bounds = predictions.intervals().iter().take(1).flat_map(|_| bound_names(name));
    let mut text = header.chain(bounds).map(|cell| cells.cell(&cell)).collect::<Vec<_>>().join(",") + "\n";
    for row in 0..predictions.n_rows() {
        match predictions.class(row) {
            Some(class) => text += &cells.cell(class),
            None => text += &predictions.number_text(row),
        }
        for probability in &predictions.probabilities()[row * classes.len()..][..classes.len()] {
            write!(text, ",{probability}").expect("a string takes any text");
        }
        for bound in predictions.intervals().get(row).into_iter().flatten() {
            // The prediction itself has the digits of an f32.
            let digits = if predictions.are_f32() { (*bound as f32).to_string() } else { bound.to_string() };
            write!(text, ",{digits}").expect("a string takes any text");
        }
        text.push('\n');
    }
    text
}

impl Cells {
    fn cell(self, name: &str) -> String {
        let is_formula = self == Self::ForSpreadsheets && name.starts_with(['=', '+', '-', '@', '\t', '\r']);
        quoted(&if is_formula { format!("'{name}") } else { name.to_owned() })
    }
}

/// A CSV cell, in quotes if it needs them.
fn quoted(cell: &str) -> String {
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell.to_owned() }
}

/// Probabilities as features and class numbers as labels; numbers as features and labels, with the bounds of intervals among the
/// features.
fn table(path: &Path, name: &str, predictions: &Predictions) -> Result<()> {
    let classes = predictions.classes();
    let label_names = vec![name.to_owned()];
    if classes.is_empty() {
        let bounds = predictions.intervals();
        let names = std::iter::once(format!("{name}_predicted")).chain(bounds.iter().take(1).flat_map(|_| bound_names(name)));
        let schema = Schema { label_names, ..Schema::named(names) };
        let numbers = predictions.numbers();
        let of_row =
            |(row, &number): (usize, &f64)| std::iter::once(number).chain(bounds.get(row).into_iter().flatten().copied());
        let features: Vec<f64> = numbers.iter().enumerate().flat_map(of_row).collect();
        if predictions.are_f32() {
            let [features, numbers] = [&features, numbers].map(|numbers| numbers.iter().map(|&x| x as f32).collect::<Vec<_>>());
            let mut writer = TableWriter::create(path, schema)?;
            writer.push(&features, &numbers)?;
            writer.finish()?;
        } else {
            let mut writer = TableWriter::create(path, Schema { dtype: DType::F64, label_dtype: DType::F64, ..schema })?;
            writer.push(&features, numbers)?;
            writer.finish()?;
        }
        return Ok(());
    }
    let names = classes.iter().map(|class| probability_name(class));
    let schema = Schema { label_names, label_dtype: DType::U32, ..Schema::named(names) };
    let mut writer = TableWriter::create(path, schema)?;
    let labels: Vec<u32> = predictions.numbers().iter().map(|&class| class as u32).collect();
    writer.push(predictions.probabilities(), &labels)?;
    writer.set_classes(classes.to_vec())?;
    writer.finish()?;
    Ok(())
}

fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    Ok(write_atomically(path, |file| file.write_all(bytes))?)
}

#[cfg(test)]
mod tests {
    use super::{Cells, quoted};

    #[test]
    fn formulas_are_escaped_for_spreadsheets_only() {
        let names = ["=1+1", "+1", "-1", "@a", "a=b", "=a,b"];
        assert_eq!(names.map(|name| Cells::AsTheyAre.cell(name)), ["=1+1", "+1", "-1", "@a", "a=b", "\"=a,b\""]);
        assert_eq!(names.map(|name| Cells::ForSpreadsheets.cell(name)), ["'=1+1", "'+1", "'-1", "'@a", "a=b", "\"'=a,b\""]);
    }

    #[test]
    fn cells_are_quoted_if_needed() {
        assert_eq!([">50K", "a,b", "say \"hi\""].map(quoted), [">50K", "\"a,b\"", "\"say \"\"hi\"\"\""]);
    }
}
