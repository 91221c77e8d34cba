use std::path::Path;

use super::audit::Audit;
use super::dictionary::{GrowingDictionary, Unseen};
#[cfg(feature = "half")]
use super::digits::MAX_SHARE_OF_HALF;
use super::digits::{MAX_SHARE, TINY};
use super::features::OnMissing;
use super::roles::Labels;
use super::rows::ChunkLabels;
use super::similar::{lines_of_rows, similar};
use super::{
    ColumnRole, Dest, Digits, Found, ImportReport, ImportWarning, ImportWriter, Like, MAX_REPORTS, Names, Origin, Rejected,
    Roles, RowChunk,
};
use crate::dictionary::Dictionary;
use crate::dtype::DType;
use crate::error::{Error, SourceError};
use crate::format::TableMetadata;
use crate::schema::{Schema, Weights};
use crate::statistics::{ColumnStatistics, Moments};
use crate::writer::{Parts, Written};

/// Takes the rows of an import, chunk by chunk in the order of the source, and writes the table.
#[derive(Debug)]
pub(crate) struct Sink<'a> {
    roles: &'a Roles,
    writer: ImportWriter,
    /// What the first reading of the source has found, if this is the second.
    found: Option<&'a Found>,
    /// Whether only the values that it has found may follow.
    is_complete: bool,
    dictionaries: Vec<GrowingDictionary>,
    classes: Classes,
    n_skipped: u64,
    n_blank_lines: u64,
    /// Those after the last row until now.
    n_blank_after: u64,
    first_skipped: Vec<Error>,
    audit: Audit,
    /// What was lost in rounding: one for each number of a row, as in [`RowChunk::digits`].
    digits: Vec<Digits>,
    /// Those of labels that are numbers, and of weights.
    labels: Moments,
    weights: Moments,
}

#[derive(Debug)]
enum Classes {
    None,
    Found(GrowingDictionary),
    Known(Vec<String>),
}

impl<'a> Sink<'a> {
    /// Starts the table at `dest`, for a source with these roles.
    pub(crate) fn create(dest: &'a Dest<'_>, roles: &'a Roles, like: Option<&Like>, origin: Origin) -> Result<Self, Error> {
        let label_names = roles.label_names();
        let schema = Schema {
            dtype: roles.rules.dtype.dtype(),
            label_dtype: if roles.labels.are_classes() { DType::U32 } else { DType::F32 },
            categories: roles.category_names(),
            weights: if roles.weight.is_some() { Weights::Present } else { Weights::Absent },
            n_labels: roles.n_labels(),
            label_names: label_names.clone(),
            source: Some(origin.source),
            ..Schema::named(roles.feature_names())
        };
        let imputed = match &roles.rules.on_missing {
            OnMissing::Error | OnMissing::Keep => None,
            OnMissing::Fill(values) => Some(values.clone()),
            // The longest number, so that there is enough room for the means.
            OnMissing::Mean => Some(vec![-f32::MIN_POSITIVE; roles.features.len()]),
        };
        let found = dest.found();
        let classes = match &roles.labels {
            Labels::Known(known) => known.names.clone(),
            _ => Vec::new(),
        };
        let metadata = TableMetadata {
            import: Some(origin.options),
            indicators: roles.indicator_names().cloned().collect(),
            imputed,
            settings: roles.settings(),
            dictionaries: like.map(|like| like.metadata.dictionaries.clone()).unwrap_or_default(),
            classes,
            ..TableMetadata::default()
        };
        let has_new_categories = like.is_none() && !roles.categories.is_empty();
        let is_found = has_new_categories || roles.labels == Labels::Found || roles.rules.on_missing == OnMissing::Mean;
        let names = if is_found { Names::FoundInRows } else { Names::Known };
        let mut writer = ImportWriter::create(dest, schema, metadata, names)?;
        if roles.labels == Labels::Found {
            writer.leave_room_for_classes()?;
        }
        let known = like.map(|like| &like.metadata.dictionaries).or(found.map(|found| &found.dictionaries));
        let dictionaries = match known {
            Some(known) => known.iter().map(GrowingDictionary::closed).collect(),
            None => roles.category_names().iter().map(|name| GrowingDictionary::new(name)).collect(),
        };
        let classes = match &roles.labels {
            Labels::Number | Labels::Binary | Labels::Absent => Classes::None,
            Labels::Found => {
                let name = label_names.first().map_or("", String::as_str);
                let known = found.map(|found| Dictionary::new(name, found.classes.iter().cloned())).transpose()?;
                Classes::Found(known.as_ref().map_or_else(|| GrowingDictionary::new(name), GrowingDictionary::closed))
            }
            Labels::Known(known) => Classes::Known(known.names.clone()),
        };
        Ok(Self {
            roles,
            writer,
            found,
            is_complete: found.is_some() && like.is_none(),
            dictionaries,
            classes,
            n_skipped: 0,
            n_blank_lines: 0,
            n_blank_after: 0,
            first_skipped: Vec::new(),
            audit: Audit::new(roles),
            digits: vec![Digits::NONE; roles.n_numbers()],
            labels: Moments::new(roles.n_labels()),
            weights: Moments::new(1),
        })
    }

    pub(crate) fn roles(&self) -> &'a Roles {
        self.roles
    }

    /// Counts the bad rows of a chunk.
    ///
    /// # Errors
    /// That for the row where the chunk is cut, if it is.
    pub(crate) fn skip<P>(&mut self, rejected: &Rejected<P>, error_of: impl Fn(&P) -> Error) -> Result<(), Error> {
        let mut errors = rejected.first.iter().map(error_of);
        if rejected.is_cut
            && let Some(error) = errors.next()
        {
            return Err(error);
        }
        self.first_skipped.extend(errors.take(MAX_REPORTS - self.first_skipped.len()));
        self.n_skipped += rejected.n;
        if rejected.has_rows {
            self.n_blank_lines += std::mem::take(&mut self.n_blank_after) + rejected.n_blank;
        }
        self.n_blank_after += rejected.n_blank_after;
        Ok(())
    }

    /// Writes the rows of a chunk that was sealed; their codes are converted to those of the table.
    pub(crate) fn take(&mut self, rows: &mut RowChunk) -> Result<(), Error> {
        let n_categories = self.dictionaries.len();
        for (i, (dictionary, values)) in self.dictionaries.iter_mut().zip(&rows.values).enumerate() {
            dictionary.recode(rows.categories.iter_mut().skip(i).step_by(n_categories), values, self.writer.path())?;
        }
        if let (Classes::Found(classes), ChunkLabels::Found(labels, values)) = (&mut self.classes, &mut rows.labels) {
            classes.recode(labels.iter_mut(), values, self.writer.path())?;
            if self.found.is_some() {
                // The values of the dictionary are the classes, in their order.
                labels.iter_mut().for_each(|label| *label = label.saturating_sub(1));
            }
        }
        if let Some(means) = self.found.and_then(|found| found.imputed.as_ref()) {
            rows.fill(means);
        }
        self.audit.look_at(rows);
        self.digits.iter_mut().zip(&rows.digits).for_each(|(digits, of_chunk)| digits.merge(of_chunk));
        self.weights.add(&rows.weights);
        let labels: &[u8] = match &rows.labels {
            ChunkLabels::Numbers(labels) => {
                self.labels.add(labels);
                bytemuck::cast_slice(labels)
            }
            ChunkLabels::Found(labels, _) | ChunkLabels::Known(labels) => bytemuck::cast_slice(labels),
        };
        let parts = Parts { features: rows.stored(), categories: &rows.categories, labels, weights: &rows.weights };
        self.writer.push(parts, Some(&rows.moments))
    }

    pub(crate) fn n_rows(&self) -> usize {
        self.writer.n_rows()
    }

    /// Completes the table of the source at `path`.
    ///
    /// # Errors
    /// [`SourceError::NoRows`] if it is empty: `found` is what the source has if no row was skipped.
    pub(crate) fn finish(mut self, path: &Path, found: &'static str) -> Result<ImportReport, Error> {
        if self.n_rows() == 0 {
            let found = if self.n_skipped > 0 { "only rows that were skipped" } else { found };
            return Err(SourceError::NoRows { found }.at(path));
        }
        if let Some(found) = self.found {
            return self.finish_again(path, found);
        }
        let roles = self.roles;
        let n_columns = roles.features.len();
        let unseen = self.dictionaries.iter().filter_map(|dictionary| {
            let Unseen { n_values, example } = &dictionary.unseen;
            let (column, example) = (dictionary.name.clone(), example.clone()?);
            Some(ImportWarning::Unseen { column, n_values: *n_values, example })
        });
        let mut warnings: Vec<ImportWarning> = unseen.collect();
        let dictionaries =
            self.dictionaries.into_iter().map(GrowingDictionary::into_dictionary).collect::<Result<Vec<_>, _>>()?;
        if !dictionaries.is_empty() {
            self.writer.set_dictionaries(dictionaries.clone())?;
        }
        let classes = match self.classes {
            Classes::None => Vec::new(),
            Classes::Known(names) => names,
            Classes::Found(classes) => {
                let (names, numbers) = classes.into_classes();
                self.writer.renumber_labels(numbers);
                names
            }
        };
        self.writer.set_classes(classes.clone())?;
        if roles.rules.on_missing == OnMissing::Mean {
            self.writer.impute_means(n_columns)?;
        }
        let statistics = self.writer.statistics();
        let row_shape = self.writer.row_shape().to_vec();
        let (Written { n_rows, n_bytes }, found) = self.writer.finish()?;
        let (column_names, label_names) = (roles.feature_names(), roles.label_names());
        let offsets: Vec<f64> = (0..roles.n_numbers()).map(|place| roles.rules.offset(place)).collect();
        let mut label_digits = self.digits.split_off(column_names.len());
        let weight = roles.weight.and_then(|col| Some((&roles.names[col], label_digits.pop()?)));
        let mut digits = self.digits;
        digits.truncate(n_columns);
        for ((digits, stored), &offset) in digits.iter_mut().zip(&statistics).zip(&offsets) {
            digits.complete(stored, offset);
        }
        let named = &column_names[..n_columns];
        let dtype = roles.rules.dtype.dtype();
        for (((name, digits), stored), &offset) in named.iter().zip(&digits).zip(&statistics).zip(&offsets) {
            warnings.extend(digit_warnings(name, ColumnRole::Feature, dtype, digits, stored, offset));
        }
        let of_labels = label_names.iter().zip(&label_digits).zip(self.labels.statistics()).zip(&offsets[column_names.len()..]);
        for (((name, digits), stored), &offset) in of_labels {
            warnings.extend(digit_warnings(name, ColumnRole::Label, DType::F32, digits, &stored, offset));
        }
        if let Some((name, digits)) = weight {
            let weights = &self.weights.statistics()[0];
            warnings.extend(tiny(name, ColumnRole::Weight, &digits, weights));
            if weights.max == 0.0 {
                warnings.push(ImportWarning::ZeroWeights { column: name.clone() });
            }
        }
        warnings.extend(useless(named, &statistics, &digits));
        let label_name = label_names.first().map_or("label", String::as_str);
        let texts = dictionaries.iter().map(|dictionary| (dictionary.name(), dictionary.values()));
        for (column, texts) in texts.chain([(label_name, &classes[..])]) {
            let column = column.to_owned();
            let n_lines = lines_of_rows(texts, roles.names.len());
            warnings.extend(n_lines.map(|n_lines| ImportWarning::RowsInCell { column: column.clone(), n_lines }));
            warnings.extend(similar(texts).map(|texts| ImportWarning::Similar { column, texts }));
        }
        let categories: Vec<String> = dictionaries.iter().map(|dictionary| dictionary.name().to_owned()).collect();
        let n_values: Vec<usize> = dictionaries.iter().map(|dictionary| dictionary.values().len()).collect();
        warnings.extend(self.audit.warnings(named, &categories, &n_values));
        Ok(ImportReport {
            files: Vec::new(),
            n_rows,
            n_bytes,
            row_shape,
            found,
            column_names,
            label_names,
            statistics,
            dictionaries,
            classes,
            n_skipped: self.n_skipped,
            n_blank_lines: self.n_blank_lines,
            first_skipped: self.first_skipped,
            source_columns: roles.names.clone(),
            index_columns: roles.left_out.clone(),
            digits,
            label_digits,
            warnings,
        })
    }
}

impl Sink<'_> {
    /// Completes the table of a source that was read for the second time. The first reading has the rest of the report.
    fn finish_again(self, path: &Path, found: &Found) -> Result<ImportReport, Error> {
        let classes = if let Classes::Found(classes) = &self.classes { Some(classes) } else { None };
        let dictionaries = self.dictionaries.iter().filter(|_| self.is_complete);
        let has_others = dictionaries.chain(classes).any(|dictionary| dictionary.unseen.n_values > 0);
        if has_others || self.writer.n_rows() != found.n_rows {
            let expected = "the same, since shards record what all rows have in common; import it again";
            return Err(SourceError::unexpected("the source", "other rows when it was read again", expected, &[]).at(path));
        }
        let (Written { n_rows, n_bytes }, _) = self.writer.finish()?;
        Ok(ImportReport { n_rows, n_bytes, ..ImportReport::default() })
    }
}

/// The features that cannot say anything about the label.
fn useless(names: &[String], statistics: &[ColumnStatistics], digits: &[Digits]) -> impl Iterator<Item = ImportWarning> {
    let those = |are_wanted: fn(&ColumnStatistics, &Digits) -> bool| -> Vec<String> {
        let wanted = names.iter().zip(statistics).zip(digits).filter(|((_, column), digits)| are_wanted(column, digits));
        wanted.map(|((name, _), _)| name.clone()).collect()
    };
    // Numbers that became equal in f32 differ.
    let is_same = |column: &ColumnStatistics, digits: &Digits| {
        column.count > 1 && column.min == column.max && digits.first_rounding().is_none()
    };
    let same = ImportWarning::SameValue { columns: those(is_same) };
    let none = ImportWarning::NoValue { columns: those(|column, _| column.count == 0) };
    [same, none].into_iter().filter(|warning| {
        matches!(warning, ImportWarning::SameValue { columns } | ImportWarning::NoValue { columns } if !columns.is_empty())
    })
}

/// What a feature or a label lost in rounding.
fn digit_warnings(
    name: &str,
    role: ColumnRole,
    dtype: DType,
    digits: &Digits,
    stored: &ColumnStatistics,
    offset: f64,
) -> Vec<ImportWarning> {
    let mut warnings = Vec::new();
    let column = || name.to_owned();
    if offset == 0.0 && digits.first_half.is_none() && digits.first_rounded.is_none() {
        warnings.extend(imprecise(name, role, dtype, digits, stored));
    }
    warnings.extend(tiny(name, role, digits, stored));
    if let Some((first, stored)) = digits.first_rounding().filter(|_| offset == 0.0) {
        warnings.push(ImportWarning::Rounded { column: column(), role, n_values: digits.n_rounded, first, stored });
    }
    #[cfg(feature = "half")]
    if let Some(first) = digits.first_half {
        let stored = half::f16::from_f32(first).to_f32();
        warnings.push(ImportWarning::RoundedToHalf { column: column(), n_values: digits.n_half, first, stored });
    }
    if digits.n_leading_zeros > 0 && role == ColumnRole::Feature {
        warnings.push(ImportWarning::LeadingZeros { column: column(), n_values: digits.n_leading_zeros });
    }
    warnings
}

/// The warning for rounding errors that are a relevant share of the deviation of a column.
fn imprecise(
    column: &str,
    role: ColumnRole,
    dtype: DType,
    digits: &Digits,
    statistics: &ColumnStatistics,
) -> Option<ImportWarning> {
    let ColumnStatistics { count, std, .. } = *statistics;
    let (first, stored) = digits.first_error?;
    let error = (digits.squared_errors / count as f64).sqrt();
    let max_share = match dtype {
        #[cfg(feature = "half")]
        DType::F16 => MAX_SHARE_OF_HALF,
        _ => MAX_SHARE,
    };
    // A constant loses nothing, and what is too small has a warning of its own.
    let [min, max] = digits.looked_at;
    let is_relevant = min < max && error > max_share * std && first.abs() >= f64::from(f32::MIN_POSITIVE);
    is_relevant.then(|| ImportWarning::Imprecise { column: column.to_owned(), role, dtype, first, stored, error, std })
}

/// The warning for numbers that are too small for `f32`, in a column without much larger ones.
fn tiny(column: &str, role: ColumnRole, digits: &Digits, statistics: &ColumnStatistics) -> Option<ImportWarning> {
    let first = digits.first_tiny?;
    let is_relevant = statistics.min.abs().max(statistics.max.abs()) < TINY;
    is_relevant.then(|| ImportWarning::Tiny { column: column.to_owned(), role, n_values: digits.n_tiny, first })
}
