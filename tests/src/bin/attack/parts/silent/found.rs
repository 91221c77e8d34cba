use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use brisk_table::Table;
use serde_json::Value;

use crate::run::Ended;

/// A condition on what a command has left.
pub(super) type Check = Box<dyn Fn(&Found<'_>) -> Result<()>>;

/// What a command has printed and left in its folder.
pub(super) struct Found<'a> {
    pub(super) dir: &'a Path,
    pub(super) ended: &'a Ended,
}

impl Found<'_> {
    pub(super) fn was_refused(&self, statuses: &[i32]) -> bool {
        self.ended.code().is_some_and(|status| statuses.contains(&status))
    }

    pub(super) fn succeeded(&self) -> Result<()> {
        ensure!(self.ended.success(), "the program fails");
        Ok(())
    }

    /// The program fails with one of these statuses and a message that has all of these words.
    pub(super) fn refused(&self, statuses: &[i32], words: &[impl AsRef<str>]) -> Result<()> {
        ensure!(self.was_refused(statuses), "its status is not one of {statuses:?}");
        self.said(words)
    }

    /// All of these words are printed; `a|b` is either of two.
    pub(super) fn said(&self, words: &[impl AsRef<str>]) -> Result<()> {
        let printed = format!("{}\n{}", self.ended.stderr, self.ended.stdout);
        for word in words.iter().map(AsRef::as_ref) {
            ensure!(word.split('|').any(|word| printed.contains(word)), "`{word}` is not said");
        }
        Ok(())
    }

    /// A table that was written.
    pub(super) fn table(&self, name: &str) -> Result<Table> {
        Ok(Table::open(self.dir.join(name))?)
    }

    /// A file of JSON.
    pub(super) fn json(&self, name: &str) -> Result<Value> {
        let text = fs::read(self.dir.join(name)).with_context(|| format!("{name}: it cannot be read"))?;
        serde_json::from_slice(&text).with_context(|| format!("{name}: it is not JSON"))
    }

    /// A number of the file of results `name`.
    pub(super) fn result(&self, name: &str, member: &str) -> Result<f64> {
        let results = self.json(name)?;
        results[member].as_f64().with_context(|| format!("`{member}` of {name} is {}", results[member]))
    }

    /// The number of rows of the table `out.safetensors`.
    pub(super) fn n_rows(&self, expected: usize) -> Result<()> {
        let found = self.table("out.safetensors")?.n_rows();
        ensure!(found == expected, "there are {found} rows, expected {expected}");
        Ok(())
    }

    /// The names of the features of the table `out.safetensors`.
    pub(super) fn columns(&self, expected: &[&str]) -> Result<()> {
        let table = self.table("out.safetensors")?;
        ensure!(table.column_names() == expected, "the columns are {:?}, expected {expected:?}", table.column_names());
        Ok(())
    }

    /// The values of a column of features in the table `out.safetensors`.
    pub(super) fn values(&self, column: &str, expected: &[f32]) -> Result<()> {
        let table = self.table("out.safetensors")?;
        let at = table.column_names().iter().position(|name| name == column);
        let at = at.with_context(|| format!("there is no column `{column}`, only {:?}", table.column_names()))?;
        let n_cols = table.column_names().len();
        let rows: &[f32] = table.rows(0..table.n_rows())?;
        let found: Vec<f32> = rows.iter().skip(at).step_by(n_cols).copied().collect();
        let is_same = |(a, b): (&f32, &f32)| a == b || a.is_nan() && b.is_nan();
        let all_same = found.len() == expected.len() && found.iter().zip(expected).all(is_same);
        ensure!(all_same, "`{column}` is {found:?}, expected {expected:?}");
        Ok(())
    }

    /// The labels of the table `out.safetensors`.
    pub(super) fn labels(&self, expected: &[f32]) -> Result<()> {
        let table = self.table("out.safetensors")?;
        let labels = match table.labels::<u32>() {
            Ok(codes) => codes.iter().map(|&code| code as f32).collect(),
            Err(_) => table.labels::<f32>()?.to_vec(),
        };
        ensure!(labels == expected, "the labels are {labels:?}, expected {expected:?}");
        Ok(())
    }

    /// The names of the classes of the table `out.safetensors`.
    pub(super) fn classes(&self, expected: &[&str]) -> Result<()> {
        let table = self.table("out.safetensors")?;
        ensure!(table.classes() == expected, "the classes are {:?}, expected {expected:?}", table.classes());
        Ok(())
    }

    /// The names of the columns of numbers, or of categories, of the model in the folder `model`.
    pub(super) fn model_columns(&self, kind: &str) -> Result<Vec<String>> {
        let model = self.json("model/model.json")?;
        let Some(columns) = model["preprocessing"][kind].as_array() else { bail!("model.json has no list `{kind}`") };
        Ok(columns.iter().filter_map(|column| column["name"].as_str().map(str::to_owned)).collect())
    }

    /// The model in the folder `model` takes the column as a number.
    pub(super) fn is_number(&self, column: &str) -> Result<()> {
        let numbers = self.model_columns("numbers")?;
        ensure!(numbers.iter().any(|name| name == column), "the columns of numbers are {numbers:?}, without `{column}`");
        Ok(())
    }

    /// The model in the folder `model` does not take the column as categories.
    pub(super) fn is_no_category(&self, column: &str) -> Result<()> {
        let categories = self.model_columns("categories")?;
        ensure!(!categories.iter().any(|name| name == column), "`{column}` is a column of categories");
        Ok(())
    }

    /// The model in the folder `model` does not take the column.
    pub(super) fn is_left_out(&self, column: &str) -> Result<()> {
        let all = [self.model_columns("numbers")?, self.model_columns("categories")?].concat();
        ensure!(!all.iter().any(|name| name == column), "the model takes `{column}`");
        Ok(())
    }
}
