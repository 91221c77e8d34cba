//! Predictions as CSV, Parquet or a brisk table.

use std::fmt::Write as _;
use std::io::Write;
use std::path::Path;

use anyhow::{Result, bail, ensure};
use brisk_atomic_file::write_atomically;
use brisk_table::{DType, Schema, TableWriter, printable};
use brisk_tabular::{Predictions, TabularModels};

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

    /// Checks that the format has a place for the classes of all targets.
    ///
    /// # Errors
    /// For a brisk table, which has those of one.
    pub(crate) fn check(self, path: &Path, models: &TabularModels) -> Result<()> {
        let [has_several, have_classes] =
            [models.models().len() > 1, models.models().iter().any(|model| !model.target().classes().is_empty())];
        ensure!(
            self != Self::Table || !has_several || !have_classes,
            "{}: a brisk table has the classes of one target, these are {}; write .csv or .parquet",
            printable(path),
            models.models().len()
        );
        Ok(())
    }

    /// Writes the columns that are kept and the predictions of all targets, completely or not at all.
    pub(crate) fn write(self, path: &Path, kept: &[Kept], targets: &[Predicted], cells: Cells) -> Result<()> {
        match self {
            Self::Csv => write_whole(path, csv(kept, targets, cells).as_bytes()),
            Self::Table => table(path, targets),
            #[cfg(feature = "all-formats")]
            Self::Parquet => write_whole(path, &super::parquet::encode(kept, targets)?),
            #[cfg(not(feature = "all-formats"))]
            Self::Parquet => unreachable!("the name of the file was refused"),
        }
    }
}

/// A column of the rows that is written as it is: its name, and its cells.
pub(crate) type Kept = (String, Vec<String>);

/// The predictions of a target.
pub(crate) struct Predicted {
    pub(crate) name: String,
    pub(crate) predictions: Predictions,
    /// What the names of the columns of its probabilities begin with: its own name, if there are several targets.
    pub(crate) prefix: String,
}

impl Predicted {
    /// All columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = String> {
        std::iter::once(self.name.clone()).chain(self.probability_names()).chain(self.bound_names())
    }

    /// The columns of the probabilities of the classes.
    pub(crate) fn probability_names(&self) -> impl Iterator<Item = String> {
        self.predictions.classes().iter().map(|class| format!("{}probability_{class}", self.prefix))
    }

    /// The columns of the bounds of intervals, if there are any.
    pub(crate) fn bound_names(&self) -> impl Iterator<Item = String> {
        let bounds = self.predictions.intervals().iter().take(1).flat_map(|_| ["lower", "upper"]);
        bounds.map(|bound| format!("{}_{bound}", self.name))
    }

    /// Adds the cells of a row.
    fn push_row(&self, text: &mut String, row: usize, cells: Cells) {
        let (predictions, n_classes) = (&self.predictions, self.predictions.classes().len());
        match predictions.class(row) {
            Some(class) => *text += &cells.cell(class),
            None => *text += &predictions.number_text(row),
        }
        for probability in &predictions.probabilities()[row * n_classes..][..n_classes] {
            write!(text, ",{probability}").expect("a string takes any text");
        }
        for bound in predictions.intervals().get(row).into_iter().flatten() {
            // The prediction itself has the digits of an f32.
            let digits = if predictions.are_f32() { (*bound as f32).to_string() } else { bound.to_string() };
            write!(text, ",{digits}").expect("a string takes any text");
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

fn csv(kept: &[Kept], targets: &[Predicted], cells: Cells) -> String {
    let names = kept.iter().map(|(name, _)| name.clone()).chain(targets.iter().flat_map(Predicted::names));
    let mut text = names.map(|cell| cells.cell(&cell)).collect::<Vec<_>>().join(",") + "\n";
    for row in 0..n_rows(targets) {
        for (_, column) in kept {
            text += &cells.cell(&column[row]);
            text.push(',');
        }
        for (i, target) in targets.iter().enumerate() {
            if i > 0 {
                text.push(',');
            }
            target.push_row(&mut text, row, cells);
        }
        text.push('\n');
    }
    text
}

/// How many rows were predicted, for each target.
fn n_rows(targets: &[Predicted]) -> usize {
    targets.first().map_or(0, |target| target.predictions.n_rows())
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
fn table(path: &Path, targets: &[Predicted]) -> Result<()> {
    let label_names: Vec<String> = targets.iter().map(|target| target.name.clone()).collect();
    let schema = |names: Vec<String>| Schema { n_labels: targets.len(), label_names, ..Schema::named(names) };
    if let [Predicted { predictions, .. }] = targets
        && !predictions.classes().is_empty()
    {
        let names = targets[0].probability_names().collect();
        let mut writer = TableWriter::create(path, Schema { label_dtype: DType::U32, ..schema(names) })?;
        let labels: Vec<u32> = predictions.numbers().iter().map(|&class| class as u32).collect();
        writer.push(predictions.probabilities(), &labels)?;
        writer.set_classes(predictions.classes().to_vec())?;
        writer.finish()?;
        return Ok(());
    }
    let of_target = |target: &Predicted| -> Vec<String> {
        std::iter::once(format!("{}_predicted", target.name)).chain(target.bound_names()).collect()
    };
    let schema = schema(targets.iter().flat_map(of_target).collect());
    let (mut features, mut labels) = (Vec::new(), Vec::new());
    for row in 0..n_rows(targets) {
        for Predicted { predictions, .. } in targets {
            let number = predictions.numbers()[row];
            labels.push(number);
            features.push(number);
            features.extend(predictions.intervals().get(row).into_iter().flatten());
        }
    }
    if targets.iter().all(|target| target.predictions.are_f32()) {
        let [features, labels] = [features, labels].map(|numbers| numbers.iter().map(|&x| x as f32).collect::<Vec<_>>());
        let mut writer = TableWriter::create(path, schema)?;
        writer.push(&features, &labels)?;
        writer.finish()?;
    } else {
        let mut writer = TableWriter::create(path, Schema { dtype: DType::F64, label_dtype: DType::F64, ..schema })?;
        writer.push(&features, &labels)?;
        writer.finish()?;
    }
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
