use std::path::Path;

use super::line::{LineParser, Problem};
use super::rows::{IndexRange, Scanned, Shape, parse};
use super::{FirstIndex, SvmlightOptions};
use crate::csv::{ChunkEnds, Position, Text, what_else};
use crate::destination::Progress;
use crate::error::{Error, SourceError};
use crate::import::{ColumnOptions, Dest, ImportReport, LabelKind, Labels, Like, Missing, Origin, ReadSource, Roles, Sink};
use crate::schema::Weights;
use crate::source_identity::SourceIdentity;

impl ReadSource for SvmlightOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        Origin::new(SourceIdentity::of(path)?, &Self { n_threads: 0, ..self.clone() }, self.like())
    }

    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        let origin = self.origin(path)?;
        let like = self.like().map(Like::with_columns).transpose()?;
        let options = &match &like {
            Some(like) => matched(self, like)?,
            None => self.clone(),
        };
        let labels = Labels::of(&options.label_kind).map_err(|problem| SourceError::roles(problem, &[]).at(path))?;
        if labels == Labels::Absent {
            return Err(SourceError::roles("rows of svmlight begin with a label; choose another kind of labels", &[]).at(path));
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
        let roles = Roles::find(&names, &columns, like.as_ref(), &[], &|_| false).map_err(|reason| reason.at(path))?;
        parser.labels = roles.labels.clone();

        let text = open(path, shape.rows_at_once())?;
        let sink = Sink::create(dest, &roles, like.as_ref(), origin)?;
        let parse = |chunk: &_, dense: &mut _| parse(chunk, dense, &parser, options.bad_rows, shape, &roles.rules);
        let error_of = |at, problem: &Problem| problem.at(at, path);
        text.write(sink, options.n_threads, parse, error_of, "no rows", progress)
    }

    fn like(&self) -> Option<&Path> {
        self.like.as_deref()
    }
}

/// The options with those that the table to match determines.
fn matched(options: &SvmlightOptions, like: &Like) -> Result<SvmlightOptions, Error> {
    let names = like.features();
    let first = names.first().and_then(|name| name.strip_prefix("feature_")?.parse().ok());
    let is_of_svmlight = |&first: &usize| {
        let expected = names.iter().zip(first..).all(|(name, index)| *name == format!("feature_{index}"));
        expected && first <= 1 && like.metadata.dictionaries.is_empty() && like.metadata.indicators.is_empty()
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
    let label_kind = match (&like.metadata.classes[..], &options.label_kind) {
        ([], kind) => kind.clone(),
        // Text for which the roles then give the numbers of the table's classes.
        (names, LabelKind::Number) => LabelKind::Given(names.iter().map(|name| name.as_str().into()).collect()),
        (_, kind) => kind.clone(),
    };
    let missing = if like.metadata.imputed.is_some() { Missing::Mean } else { options.missing };
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
        let problem = format!("`n_features` is {n_features}, expected 1 to {limit}, since rows become dense");
        return Err(SourceError::roles(problem, &[]).at(path));
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
        return Err(SourceError::roles("no row has a feature, so their number is unknown; pass `n_features`", &[]).at(path));
    };
    Ok(Shape { first_index, n_features })
}

/// The first pass over the file.
fn scan(path: &Path, options: &SvmlightOptions, parser: &LineParser) -> Result<IndexRange, Error> {
    let (mut indices, mut n_rows, mut n_bad) = (IndexRange::default(), 0, 0);
    let scan = |chunk: &_, scanned: &mut _| Scanned::scan(chunk, scanned, parser, options.bad_rows);
    let scanned = open(path, usize::MAX)?.parse(options.n_threads, Scanned::default, scan, |scanned, start, _| {
        if let Some((at, problem)) = scanned.rejected.first.first().filter(|_| scanned.rejected.is_cut) {
            return Err(problem.at(start + *at, path));
        }
        indices.add(scanned.rows.indices);
        n_rows += scanned.rows.n_rows;
        n_bad += scanned.rejected.n;
        Ok(())
    });
    scanned?;
    if n_rows == 0 {
        let found = if n_bad > 0 { "only rows that were skipped" } else { "no rows" };
        return Err(SourceError::NoRows { found }.at(path));
    }
    Ok(indices)
}

/// Opens the file after checking its format, to be cut into chunks of at most that many lines.
fn open(path: &Path, rows_at_once: usize) -> Result<Text<'_>, Error> {
    let mut text = Text::open(path)?;
    let start = text.peek()?;
    let found = if start.is_empty() { Some("an empty file") } else { what_else(start) };
    if let Some(found) = found {
        return Err(SourceError::NoRows { found }.at(path));
    }
    let byte = if start.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
    text.start_at(Position { line: 1, byte }, ChunkEnds::Lines { at_most: rows_at_once });
    Ok(text)
}
