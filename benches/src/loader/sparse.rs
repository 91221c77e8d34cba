//! Tables of many gigabytes that take no disk space: a valid table header, and a hole in the file for the rows.

use std::fs::{self, File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use crate::higgs_table::{N_COLS, higgs_table};
use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::tables;

/// Bytes of a row of [`tables::schema`].
pub(crate) const ROW_BYTES: usize = (N_COLS + 1) * size_of::<f32>();
/// The number of bytes per checksum.
const BLOCK_BYTES: usize = 1 << 20;

/// A table that has been created.
pub(crate) struct Sparse {
    pub(crate) n_rows: usize,
    /// The offsets in the file of the features and of the labels.
    features: u64,
    labels: u64,
}

impl Sparse {
    /// Makes the first feature and the label of these rows 1.
    pub(crate) fn mark(&self, path: &Path, rows: impl Iterator<Item = usize>) -> Result<()> {
        let mut file = OpenOptions::new().write(true).open(path)?;
        let feature_bytes = N_COLS * size_of::<f32>();
        for row in rows {
            for at in [self.features + (row * feature_bytes) as u64, self.labels + (row * size_of::<f32>()) as u64] {
                file.seek(SeekFrom::Start(at))?;
                file.write_all(&1.0_f32.to_le_bytes())?;
            }
        }
        Ok(())
    }
}

/// Creates a table of about `n_bytes` at `path`, with values of 0 and invalid checksums.
pub(crate) fn table(path: &Path, n_bytes: usize) -> Result<Sparse> {
    let (features, labels) = higgs_table(1000, 1);
    let small = path.with_extension("small");
    tables::write(&small, &features, &labels)?;
    let bytes = fs::read(&small)?;
    fs::remove_file(&small)?;
    let data_start = 8 + u64::from_le_bytes(bytes[..8].try_into()?) as usize;
    let mut header: Value = serde_json::from_slice(&bytes[8..data_start]).context("the header of a table is JSON")?;

    let n_rows = n_bytes / ROW_BYTES;
    let (features, labels) = (n_rows * N_COLS * 4, n_rows * 4);
    let sums = 1 + (features + labels).div_ceil(BLOCK_BYTES);
    let end = features + labels + sums * 4;
    let layout = [
        ("features", json!([n_rows, N_COLS]), [0, features]),
        ("labels", json!([n_rows]), [features, features + labels]),
        ("checksums", json!([sums]), [features + labels, end]),
    ];
    for (name, shape, offsets) in layout {
        let tensor = header[name].as_object_mut().with_context(|| format!("a table has `{name}`"))?;
        tensor.insert("shape".to_owned(), shape);
        tensor.insert("data_offsets".to_owned(), json!(offsets));
    }
    let mut text = header.to_string();
    let room = (8 + text.len()).next_multiple_of(4096) - 8;
    text.extend(std::iter::repeat_n(' ', room - text.len()));

    let mut file = File::create(path)?;
    file.write_all(&(room as u64).to_le_bytes())?;
    file.write_all(text.as_bytes())?;
    file.set_len((8 + room + end) as u64).with_context(|| format!("{}: cannot be {n_bytes} bytes long", path.display()))?;
    let data_start = (8 + room) as u64;
    Ok(Sparse { n_rows, features: data_start, labels: data_start + features as u64 })
}
