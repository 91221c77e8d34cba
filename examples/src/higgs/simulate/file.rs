use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read as _, Result, Seek as _, SeekFrom, Write as _};
use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use brisk_table::AtomicFile;
use rayon::prelude::*;

use super::{HEADER, event};

/// Rows that are simulated and written at a time.
const CHUNK_ROWS: u64 = 1 << 16;

/// A CSV file in `folder` with the events `rows`, which is written unless an earlier run left it. `note` is called with which of
/// the two.
///
/// Ranges that do not overlap have no row in common, which keeps training and test rows separate.
///
/// # Errors
/// If the file cannot be written; an existing file of this name is then unchanged.
pub(crate) fn simulated(folder: &Path, seed: u64, rows: Range<u64>, note: &dyn Fn(&str)) -> anyhow::Result<PathBuf> {
    let path = folder.join(format!("simulated-seed{seed}-rows{}-{}.csv", rows.start, rows.end));
    let (shown, n_rows) = (path.display(), rows.end - rows.start);
    if is_complete(&path, seed, &rows).unwrap_or(false) {
        note(&format!("simulated collisions of an earlier run: {shown}"));
    } else {
        note(&format!("simulating {n_rows} collisions: {shown}"));
        write(&path, seed, &rows).with_context(|| format!("{shown}: could not write {n_rows} simulated rows"))?;
    }
    Ok(path)
}

/// Whether the file begins and ends as it would if it was written now.
fn is_complete(path: &Path, seed: u64, rows: &Range<u64>) -> Result<bool> {
    let (begin, end) = (format!("{HEADER}\n{}", line(seed, rows.start)), line(seed, rows.end - 1));
    let mut found = vec![0; begin.len() + end.len()];
    let mut file = File::open(path)?;
    file.read_exact(&mut found[..begin.len()])?;
    file.seek(SeekFrom::End(-(end.len() as i64)))?;
    file.read_exact(&mut found[begin.len()..])?;
    Ok(found == (begin + &end).into_bytes())
}

fn write(path: &Path, seed: u64, rows: &Range<u64>) -> Result<()> {
    let mut file = AtomicFile::create(path)?;
    writeln!(file, "{HEADER}")?;
    for first in rows.clone().step_by(CHUNK_ROWS as usize) {
        let chunk = (first..rows.end.min(first + CHUNK_ROWS)).into_par_iter();
        file.write_all(chunk.map(|i| line(seed, i)).collect::<String>().as_bytes())?;
    }
    Ok(file.publish()?)
}

/// Event `i` as a line of a file. Numbers are printed in the shortest form that reads back as the same `f32`.
fn line(seed: u64, i: u64) -> String {
    let (is_signal, features) = event(seed, i);
    let mut text = String::with_capacity(400);
    text.push(if is_signal { '1' } else { '0' });
    features.iter().for_each(|value| write!(text, ",{value}").expect("a String takes any text"));
    text.push('\n');
    text
}
