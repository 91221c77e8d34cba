//! Files of simulated rows, which later runs reuse.

use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::{Simulation, VERSION, columns, write_csv};

/// An upper limit for the bytes of a row.
const MAX_ROW_BYTES: u64 = 4096;

/// A range of the rows of a simulation, in a file whose name has everything that its content depends on.
///
/// Ranges that do not overlap have no row in common, which keeps training and test rows separate.
#[derive(Debug)]
pub(crate) struct SimulatedFile {
    path: PathBuf,
    seed: u64,
    rows: Range<u64>,
}

impl SimulatedFile {
    /// The file for `rows` of the simulation with this seed, in `folder`.
    pub(crate) fn new(folder: &Path, seed: u64, rows: Range<u64>) -> Self {
        let path = folder.join(format!("simulated-v{VERSION}-seed{seed}-rows{}-{}.csv", rows.start, rows.end));
        Self { path, seed, rows }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Number of rows.
    pub(crate) fn n_rows(&self) -> u64 {
        self.rows.end - self.rows.start
    }

    /// Whether the file exists and its header, first row and last row are those of the simulation.
    pub(crate) fn is_complete(&self) -> bool {
        let simulation = Simulation { seed: self.seed };
        let is_row = |line: &str, i: u64| {
            let (label, features) = simulation.event(i);
            let expected = std::iter::once(f32::from(label)).chain(features);
            line.split(',').count() == columns::NAMES.len()
                && line.split(',').zip(expected).all(|(cell, expected)| {
                    // Not exactly equal: the mathematical functions of another machine may round differently.
                    cell.parse::<f32>().is_ok_and(|found| (found - expected).abs() <= 1e-4 * (1.0 + expected.abs()))
                })
        };
        self.ends().is_ok_and(|[header, first, last]| {
            header == columns::NAMES.join(",") && is_row(&first, self.rows.start) && is_row(&last, self.rows.end - 1)
        })
    }

    /// Simulates the rows and writes the file.
    ///
    /// # Errors
    /// If it cannot be written; an existing file of this name is then unchanged.
    pub(crate) fn write(&self) -> anyhow::Result<()> {
        write_csv(&self.path, self.n_rows(), self.seed, self.rows.start)
    }

    /// The first, second and last line.
    fn ends(&self) -> io::Result<[String; 3]> {
        let mut file = BufReader::new(File::open(&self.path)?);
        let (mut header, mut first, mut tail) = (String::new(), String::new(), Vec::new());
        (&mut file).take(MAX_ROW_BYTES).read_line(&mut header)?;
        (&mut file).take(MAX_ROW_BYTES).read_line(&mut first)?;
        let n_bytes = file.seek(SeekFrom::End(0))?;
        file.seek(SeekFrom::Start(n_bytes.saturating_sub(MAX_ROW_BYTES)))?;
        file.read_to_end(&mut tail)?;
        let tail = String::from_utf8_lossy(&tail);
        // A complete file ends with a line end.
        let last = tail.strip_suffix('\n').and_then(|tail| tail.lines().next_back()).unwrap_or("");
        Ok([header.trim_end().to_owned(), first.trim_end().to_owned(), last.to_owned()])
    }
}
