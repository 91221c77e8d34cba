use std::io::Read;
use std::path::Path;
use std::sync::atomic::Ordering;

use super::line::LineParser;
use super::rows::{DenseRows, IndexRange, Lines, Problem, Scanned, Shape};
use super::{FirstIndex, SvmlightOptions};
use crate::csv::{ChunkEnds, ChunkError, Chunks, MAX_ROW_BYTES, parse_in_order, what_else};
use crate::error::{Error, SvmlightError};
use crate::import::{
    BadRows, ColumnOptions, ImportReport, Input, LabelKind, Labels, Like, Missing, Origin, Progress, ReadSource, Roles, RowChunk,
    Sink, n_threads, read_error,
};
use crate::schema::Weights;
use crate::source_identity::SourceIdentity;

impl ReadSource for SvmlightOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        Origin::new(SourceIdentity::of(path)?, &Self { n_threads: 0, ..self.clone() }, self.like())
    }

    fn read(&self, path: &Path, dest: &Path, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        read(path, dest, self, progress)
    }

    fn like(&self) -> Option<&Path> {
        self.like.as_deref()
    }
}

fn read(path: &Path, dest: &Path, options: &SvmlightOptions, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
    let origin = options.origin(path)?;
    let like = options.like.as_deref().map(Like::with_columns).transpose()?;
    let options = &match &like {
        Some(like) => matched(options, like)?,
        None => options.clone(),
    };
    let labels = Labels::of(&options.label_kind).map_err(|problem| wrong(path, problem))?;
    if labels == Labels::Absent {
        return Err(wrong(path, "rows of svmlight begin with a label; choose another kind of labels".to_owned()));
    }
    let mut parser = LineParser::new(labels, options);
    let shape = find_shape(path, options, &parser)?;
    let names = (0..shape.n_features).map(|place| format!("feature_{}", place + shape.first_index));
    let names: Vec<String> = std::iter::once("label".to_owned()).chain(names).collect();
    let columns = ColumnOptions {
        label_kind: options.label_kind.clone(),
        missing: options.missing,
        dtype: options.dtype,
        bad_rows: options.bad_rows,
        ..ColumnOptions::default()
    };
    let roles = Roles::find(path, &names, &columns, like.as_ref(), &[], &|_| false)?;
    parser.labels = roles.labels.clone();

    let input = Input::open(path)?;
    let unreadable = read_error(path, input.action);
    let mut chunks = Chunks::new(input.bytes);
    let mut place = start(path, &mut chunks, &unreadable, shape.rows_at_once())?;
    let mut sink = Sink::create(dest, &roles, like.as_ref(), origin)?;
    let new = || DenseRows::new(RowChunk::new(&roles));
    let parse = |chunk: &_, dense: &mut DenseRows| dense.parse(chunk, &parser, options.bad_rows, shape, &roles.rules);
    let mut take = |dense: Result<&mut DenseRows, ChunkError>| {
        let dense = dense.map_err(|error| place.of_chunk_error(error, path, &unreadable))?;
        let Lines { n_bad, problems, .. } = &dense.lines;
        sink.skip(
            *n_bad,
            options.bad_rows != BadRows::Skip && *n_bad > 0,
            problems.iter().map(|problem| place.error_of(problem, path)),
        )?;
        place.pass(&dense.lines);
        sink.take(&mut dense.rows)?;
        let bytes_read = input.n_read.load(Ordering::Relaxed);
        progress(Progress { bytes_read, total_bytes: input.source.n_bytes, n_rows: sink.n_rows() });
        Ok(())
    };
    parse_in_order(chunks, n_threads(options.n_threads), new, parse, &mut take)?;
    if sink.n_rows() == 0 {
        return Err(no_rows(path, sink.n_skipped()));
    }
    sink.finish()
}

/// The options with those that the table to match determines.
fn matched(options: &SvmlightOptions, like: &Like) -> Result<SvmlightOptions, Error> {
    let names = like.features();
    let first = names.first().and_then(|name| name.strip_prefix("feature_")?.parse().ok());
    let is_of_svmlight = |&first: &usize| {
        let expected = names.iter().zip(first..).all(|(name, index)| *name == format!("feature_{index}"));
        expected && first <= 1 && like.dictionaries.is_empty() && like.indicators.is_empty()
    };
    let Some(first) = first.filter(is_of_svmlight) else {
        return Err(like.wrong("its columns are not `feature_0` or `feature_1` and so on, as those of svmlight are"));
    };
    like.check_unnamed(Weights::Absent)?;
    let first_index = if first == 0 { FirstIndex::Zero } else { FirstIndex::One };
    let differs = options.n_features.is_some_and(|n| n != names.len())
        || options.first_index != FirstIndex::Auto && options.first_index != first_index;
    if differs {
        return Err(like.wrong(&format!("its {} features begin with {first}, other ones were given", names.len())));
    }
    let label_kind = match (&like.classes[..], &options.label_kind) {
        ([], kind) => kind.clone(),
        // Text for which the roles then give the numbers of the table's classes.
        (names, LabelKind::Number) => LabelKind::Given(names.iter().map(|name| name.as_str().into()).collect()),
        (_, kind) => kind.clone(),
    };
    let missing = if like.imputed.is_some() { Missing::Mean } else { options.missing };
    Ok(SvmlightOptions {
        first_index,
        n_features: Some(names.len()),
        label_kind,
        missing,
        dtype: like.dtype(),
        ..options.clone()
    })
}

/// The shape of rows: from the options, and otherwise from a first pass over the file.
fn find_shape(path: &Path, options: &SvmlightOptions, parser: &LineParser) -> Result<Shape, Error> {
    if let Some(n_features) = options.n_features
        && !(1..=Shape::MAX_FEATURES).contains(&n_features)
    {
        let limit = Shape::MAX_FEATURES;
        return Err(wrong(path, format!("`n_features` is {n_features}, expected 1 to {limit}, since rows become dense")));
    }
    match (options.first_index, options.n_features) {
        (FirstIndex::Zero, Some(n_features)) => return Ok(Shape { first_index: 0, n_features }),
        (FirstIndex::One, Some(n_features)) => return Ok(Shape { first_index: 1, n_features }),
        _ => {}
    }
    let indices = scan(path, options, parser)?;
    let first_index = match (options.first_index, indices.0) {
        (FirstIndex::Zero, _) | (FirstIndex::Auto, None | Some((0, _))) => 0,
        (FirstIndex::One, _) | (FirstIndex::Auto, Some(_)) => 1,
    };
    let found = indices.0.map(|(_, last)| last + 1 - first_index);
    let Some(n_features) = options.n_features.or(found) else {
        let problem = "no row has a feature, so their number is unknown; pass `n_features`";
        return Err(wrong(path, problem.to_owned()));
    };
    Ok(Shape { first_index, n_features })
}

/// The first pass over the file.
fn scan(path: &Path, options: &SvmlightOptions, parser: &LineParser) -> Result<IndexRange, Error> {
    let input = Input::open(path)?;
    let unreadable = read_error(path, input.action);
    let mut chunks = Chunks::new(input.bytes);
    let mut place = start(path, &mut chunks, &unreadable, usize::MAX)?;
    let (mut indices, mut n_rows, mut n_bad) = (IndexRange::default(), 0, 0);
    let parse = |chunk: &_, scanned: &mut Scanned| scanned.scan(chunk, parser, options.bad_rows);
    parse_in_order(chunks, n_threads(options.n_threads), Scanned::default, parse, |scanned| {
        let scanned = scanned.map_err(|error| place.of_chunk_error(error, path, &unreadable))?;
        if options.bad_rows != BadRows::Skip
            && let Some(problem) = scanned.lines.problems.first()
        {
            return Err(place.error_of(problem, path));
        }
        place.pass(&scanned.lines);
        indices.add(scanned.indices);
        n_rows += scanned.n_rows;
        n_bad += scanned.lines.n_bad;
        Ok(())
    })?;
    if n_rows == 0 { Err(no_rows(path, n_bad)) } else { Ok(indices) }
}

/// Checks the format of the file, and cuts it into chunks of at most that many lines.
fn start(
    path: &Path,
    chunks: &mut Chunks<impl Read>,
    unreadable: impl Fn(std::io::Error) -> Error,
    rows_at_once: usize,
) -> Result<Place, Error> {
    let text = chunks.peek().map_err(unreadable)?;
    let found = if text.is_empty() { Some("an empty file") } else { what_else(text) };
    if let Some(found) = found {
        return Err(Error::NoRows { path: path.to_owned(), found });
    }
    let mark = if text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    chunks.start_at(mark, ChunkEnds::Lines { at_most: rows_at_once });
    Ok(Place { line: 1, byte: mark as u64 })
}

fn no_rows(path: &Path, n_skipped: u64) -> Error {
    let found = if n_skipped > 0 { "only rows that were skipped" } else { "no rows" };
    Error::NoRows { path: path.to_owned(), found }
}

fn wrong(path: &Path, problem: String) -> Error {
    Error::ColumnRoles { path: path.to_owned(), problem }
}

/// A position in the decompressed file: lines are counted from 1, bytes from 0.
#[derive(Clone, Copy, Debug)]
struct Place {
    line: u64,
    byte: u64,
}

impl Place {
    fn pass(&mut self, lines: &Lines) {
        self.line += lines.n_lines;
        self.byte += lines.n_bytes;
    }

    /// The error for a problem in the chunk that starts here.
    fn error_of(self, problem: &Problem, path: &Path) -> Error {
        let reason = problem.reason.clone();
        Error::Svmlight { path: path.to_owned(), line: self.line + problem.line, byte: self.byte + problem.byte, reason }
    }

    fn of_chunk_error(self, error: ChunkError, path: &Path, unreadable: impl Fn(std::io::Error) -> Error) -> Error {
        match error {
            ChunkError::Read(error) => unreadable(error),
            ChunkError::RowTooLong => {
                let reason = SvmlightError::LineTooLong { limit_bytes: MAX_ROW_BYTES };
                Error::Svmlight { path: path.to_owned(), line: self.line, byte: self.byte, reason }
            }
        }
    }
}
