use std::path::Path;
use std::sync::atomic::Ordering;

use super::CsvOptions;
use super::chunks::{ChunkEnds, ChunkError, Chunks, MAX_ROW_BYTES};
use super::head::Head;
use super::options::Header;
use super::pipeline::parse_in_order;
use super::rows::{ParsedRows, Problem, RowParser, What};
use crate::error::Error;
use crate::import::{
    ImportReport, ImportWarning, Input, Like, Origin, Progress, ReadSource, RowChunk, Sink, n_threads, read_error,
};
use crate::source_identity::SourceIdentity;

impl ReadSource for CsvOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        Origin::new(SourceIdentity::of(path)?, &Self { n_threads: 0, ..self.clone() }, self.like())
    }

    fn read(&self, path: &Path, dest: &Path, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        read(path, dest, self, progress)
    }

    fn like(&self) -> Option<&Path> {
        self.columns.like.as_deref()
    }
}

fn read(path: &Path, dest: &Path, options: &CsvOptions, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
    // Before the source is opened: if it is replaced meanwhile, the table is not taken for one of the new source.
    let origin = options.origin(path)?;
    let columns = &options.columns;
    let like = columns.like.as_deref().map(Like::with_columns).transpose()?;
    let input = Input::open(path)?;
    let unreadable = read_error(path, input.action);
    let mut chunks = Chunks::new(input.bytes);
    let head = Head::find(path, chunks.peek().map_err(&unreadable)?, options, like.as_ref())?;
    chunks.start_at(head.start, ChunkEnds::Rows { delimiter: head.marks.delimiter });

    let mut sink = Sink::create(dest, &head.roles, like.as_ref(), origin)?;
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
        sink.skip(parsed.n_bad, parsed.is_cut, parsed.problems.iter().map(|problem| place.error_of(problem, path, &head)))?;
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
    let names = || head.roles.names.join(",");
    let is_row = head.has_header && options.header == Header::Auto && has_names_as_values(&report, &head.roles.label_names());
    let is_row = is_row.then(|| ImportWarning::ValuesAsNames { cells: names() });
    report.warnings.splice(0..0, head.warning.into_iter().chain(is_row));
    Ok(report)
}

/// Whether there are no numbers, and the name of each column is one of its values.
fn has_names_as_values(report: &ImportReport, label_names: &[String]) -> bool {
    let ImportReport { column_names, dictionaries, classes, .. } = report;
    let label = label_names.first().filter(|_| !classes.is_empty());
    let is_value = |(name, values): (&str, &[String])| values.iter().any(|value| value == name);
    let of_features = dictionaries.iter().map(|column| (column.name(), column.values()));
    let mut columns = of_features.chain(label.map(|name| (name.as_str(), &classes[..]))).peekable();
    column_names.is_empty() && columns.peek().is_some() && columns.all(is_value)
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
