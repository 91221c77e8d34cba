use std::path::Path;
use std::sync::atomic::Ordering;

use super::CsvOptions;
use super::chunks::{ChunkEnds, ChunkError, Chunks, MAX_ROW_BYTES};
use super::head::Head;
use super::pipeline::parse_in_order;
use super::rows::{ParsedRows, Problem, RowParser, What};
use crate::error::Error;
use crate::import::{ImportReport, Imported, Input, Like, Progress, RowChunk, Sink, check_dest, n_threads, read_error};
use crate::parts;
use crate::source_identity::SourceIdentity;

/// Imports a CSV or TSV file, plain or compressed, into a table at `dest`.
///
/// Every cell becomes the `f32` nearest to the number in it, as with `str::parse`. Cells are parsed on all cores while the file is still
/// being read; memory use is a few megabytes per core, however large the file. Blank lines are not rows, blanks around cells are ignored,
/// and quotes follow RFC 4180. An existing file at `dest` is replaced only after the import has succeeded.
///
/// # Errors
/// [`Error::Cell`] and [`Error::Ragged`] with file, line, column, what was found and what was expected, always of the first bad row;
/// [`Error::NoRows`], [`Error::HeaderOrRow`], [`Error::NoColumn`] and similar for a file or options that make no table; [`Error::Io`] if the
/// file cannot be read or decompressed; [`Error::Write`]. On `Err`, `dest` is unchanged.
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (source, dest) = (folder.path().join("two.csv"), folder.path().join("two.safetensors"));
/// use brisk_table::{CsvOptions, Table, import_csv};
///
/// std::fs::write(&source, "y,a,b\n1,0.5,2\n0,1.5,-3e-2\n")?;
/// let report = import_csv(&source, &dest, &CsvOptions::default())?;
/// assert_eq!((report.n_rows, report.column_names), (2, vec!["a".into(), "b".into()]));
/// assert_eq!(Table::open(&dest)?.rows::<f32>(0..2)?, [0.5, 2.0, 1.5, -0.03]);
///
/// std::fs::write(&source, "y,a,b\n1,0.5,2\n0,1.5,two\n")?;
/// let error = import_csv(&source, &dest, &CsvOptions::default()).unwrap_err().to_string();
/// assert!(error.contains("line 3, column 3 (`b`): found \"two\", expected a number"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn import_csv(source: impl AsRef<Path>, dest: impl AsRef<Path>, options: &CsvOptions) -> Result<ImportReport, Error> {
    import_csv_with_progress(source, dest, options, |_| ())
}

/// Like [`import_csv`], unless the table at `dest` was made with these options from a file of this name, length and modification time.
///
/// # Errors
/// As for [`import_csv`].
/// # Cost
/// If nothing changed, reads the file's metadata and the table's header.
pub fn import_csv_if_changed(source: impl AsRef<Path>, dest: impl AsRef<Path>, options: &CsvOptions) -> Result<Imported, Error> {
    import_csv_if_changed_with_progress(source, dest, options, |_| {})
}

/// Like [`import_csv_if_changed`]; calls `progress` as [`import_csv_with_progress`] does if the file is imported.
///
/// # Errors
/// As for [`import_csv_if_changed`].
pub fn import_csv_if_changed_with_progress(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &CsvOptions,
    progress: impl FnMut(Progress),
) -> Result<Imported, Error> {
    let (source, dest) = (source.as_ref(), dest.as_ref());
    let io = |error| Error::Io { path: source.to_owned(), action: "open", cause: error };
    let identity = SourceIdentity::new(source, &std::fs::metadata(source).map_err(io)?);
    // Anything else at `dest` is replaced.
    if let Ok((found, ..)) = parts::read_metadata(dest)
        && found.source == Some(identity)
        && found.import == Some(options.fingerprint()?)
    {
        return Ok(Imported::Unchanged);
    }
    import_csv_with_progress(source, dest, options, progress).map(|report| Imported::Written(Box::new(report)))
}

/// Like [`import_csv`]; `progress` is called on this thread after about every megabyte of text.
///
/// # Errors
/// As for [`import_csv`].
pub fn import_csv_with_progress(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &CsvOptions,
    mut progress: impl FnMut(Progress),
) -> Result<ImportReport, Error> {
    import(source.as_ref(), dest.as_ref(), options, &mut progress)
}

fn import(path: &Path, dest: &Path, options: &CsvOptions, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
    let columns = &options.columns;
    check_dest(dest, [path].into_iter().chain(columns.like.as_deref()))?;
    let like = columns.like.as_deref().map(Like::with_columns).transpose()?;
    let input = Input::open(path)?;
    let unreadable = read_error(path, input.action);
    let mut chunks = Chunks::new(input.bytes);
    let head = Head::find(path, chunks.peek().map_err(&unreadable)?, options, like.as_ref())?;
    chunks.start_at(head.start, ChunkEnds::Rows { delimiter: head.marks.delimiter });

    let mut sink = Sink::create(dest, &head.roles, columns, like.as_ref(), input.source.clone(), options.fingerprint()?)?;
    let mut place = Place { line: head.line, byte: head.start as u64 };
    let mut take = |parsed: Result<&mut ParsedRows, ChunkError>| {
        let parsed = match parsed {
            Ok(parsed) => parsed,
            Err(ChunkError::Read(error)) => return Err(unreadable(error)),
            Err(ChunkError::RowTooLong) => {
                let Place { line, byte } = place;
                return Err(Error::RowTooLong { path: path.to_owned(), line, byte, limit_bytes: MAX_ROW_BYTES });
            }
        };
        sink.skip(parsed.n_bad, parsed.problems.iter().map(|problem| place.error_of(problem, path, &head)))?;
        place.line += parsed.n_lines;
        place.byte += parsed.n_bytes;
        sink.take(&mut parsed.rows)?;
        let bytes_read = input.n_read.load(Ordering::Relaxed);
        progress(Progress { bytes_read, total_bytes: input.source.n_bytes, n_rows: sink.n_rows() });
        Ok(())
    };
    let parser = RowParser::new(&head, options);
    let new = || ParsedRows::new(RowChunk::new(&head.roles));
    parse_in_order(chunks, n_threads(options.n_threads), new, |chunk, parsed| parser.parse(chunk, parsed), &mut take)?;

    if sink.n_rows() == 0 {
        let found = match (sink.n_skipped(), head.has_header) {
            (1.., _) => "only rows that were skipped",
            (0, true) => "a header and no rows",
            (0, false) => "no rows",
        };
        return Err(Error::NoRows { path: path.to_owned(), found });
    }
    let mut report = sink.finish()?;
    report.warnings.splice(0..0, head.warning);
    Ok(report)
}

/// A position in the decompressed file: lines are counted from 1, bytes from 0.
#[derive(Clone, Copy, Debug)]
struct Place {
    line: u64,
    byte: u64,
}

impl Place {
    /// The error for a problem in the chunk that starts here.
    fn error_of(self, problem: &Problem, path: &Path, head: &Head) -> Error {
        let (path, line, byte) = (path.to_owned(), self.line + problem.line, self.byte + problem.byte);
        match &problem.what {
            What::Cell { col, found, expected } => {
                let name = head.roles.names[*col].clone();
                Error::Cell { path, line, byte, col: col + 1, name, found: found.as_str().into(), expected }
            }
            What::Ragged { found } => {
                Error::Ragged { path, line, byte, has_header: head.has_header, expected: head.slots.len(), found: *found }
            }
            What::QuoteLeftOpen => Error::QuoteLeftOpen { path, line, byte },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Place, Problem, What};
    use crate::csv::CsvOptions;
    use crate::csv::head::Head;

    /// Positions in a file of terabytes, where 32-bit counters would overflow.
    #[test]
    fn places_beyond_32_bits() {
        let path = std::path::Path::new("rows.csv");
        let head = Head::find(path, b"y,a\n1,2\n", &CsvOptions::default(), None).unwrap();
        let place = Place { line: 5_000_000_000, byte: 9_000_000_000_000 };
        let what =
            What::Cell { col: 1, found: "x".to_owned(), expected: &crate::remedy::Expected { what: "a number", remedies: &[] } };
        let error = place.error_of(&Problem { line: 7, byte: 90, what }, path, &head);
        assert_eq!(error.to_string(), "rows.csv, line 5000000007, column 2 (`a`): found \"x\", expected a number");
        assert!(matches!(error, crate::error::Error::Cell { byte: 9_000_000_000_090, .. }), "{error:?}");
    }
}
