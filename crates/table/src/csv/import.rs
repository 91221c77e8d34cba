use std::path::Path;

use super::CsvOptions;
use super::chunks::ChunkEnds;
use super::head::Head;
use super::options::Header;
use super::rows::{RowParser, What};
use super::text::{Position, Text};
use crate::destination::Progress;
use crate::error::{Error, SourceError};
use crate::import::{Dest, ImportReport, ImportWarning, Like, Origin, ReadSource, Sink};
use crate::source_identity::SourceIdentity;

impl ReadSource for CsvOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        Origin::new(SourceIdentity::of(path)?, &Self { n_threads: 0, ..self.clone() }, self.like())
    }

    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        // Before the source is opened: if it is replaced meanwhile, the table is not taken for one of the new source.
        let origin = self.origin(path)?;
        let like = self.like().map(Like::with_columns).transpose()?;
        let mut text = Text::open(path)?;
        let head = Head::find(text.peek()?, self, like.as_ref()).map_err(|reason| reason.at(path))?;
        text.start_at(head.start, ChunkEnds::Rows { delimiter: head.marks.delimiter });
        let sink = Sink::create(dest, &head.roles, like.as_ref(), origin)?;
        let parser = RowParser::new(&head, self);
        let parse = |chunk: &_, parsed: &mut _| parser.parse(chunk, parsed);
        let found_if_empty = if head.has_header { "a header and no rows" } else { "no rows" };
        let error_of = |at, what: &_| error_of(at, what, &head).at(path);
        let mut report = text.write(sink, self.n_threads, parse, error_of, found_if_empty, progress)?;
        let is_row = head.has_header && self.header == Header::Auto && has_names_as_values(&report, &head.roles.label_names());
        let is_row = is_row.then(|| ImportWarning::ValuesAsNames { cells: head.roles.names.join(",") });
        report.warnings.splice(0..0, head.warning.into_iter().chain(is_row));
        Ok(report)
    }

    fn like(&self) -> Option<&Path> {
        self.columns.like.as_deref()
    }
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

fn error_of(at: Position, what: &What, head: &Head) -> SourceError {
    let Position { line, byte } = at;
    match what {
        What::Cell { col, found, expected } => {
            let name = head.roles.names[*col].clone();
            SourceError::Cell { line, byte, col: col + 1, name, found: found.as_str().into(), expected }
        }
        What::Ragged { found } => {
            SourceError::Ragged { line, byte, has_header: head.has_header, expected: head.slots.len(), found: *found }
        }
        What::QuoteLeftOpen => at.line_error("a quote is opened in the row that starts here and never closed".to_owned(), &[]),
    }
}

#[cfg(test)]
mod tests {
    use super::{Position, What, error_of};
    use crate::csv::CsvOptions;
    use crate::csv::head::Head;

    /// Positions in a file of terabytes, where 32-bit counters would overflow.
    #[test]
    fn places_beyond_32_bits() {
        let head = Head::find(b"y,a\n1,2\n", &CsvOptions::default(), None).unwrap();
        let start = Position { line: 5_000_000_000, byte: 9_000_000_000_000 };
        let what =
            What::Cell { col: 1, found: "x".to_owned(), expected: &crate::remedy::Expected { what: "a number", remedies: &[] } };
        let error = error_of(start + Position { line: 7, byte: 90 }, &what, &head);
        assert_eq!(error.to_string(), "line 5000000007, column 2 (`a`): found \"x\", expected a number");
        assert!(matches!(error, crate::error::SourceError::Cell { byte: 9_000_000_000_090, .. }), "{error:?}");
    }
}
