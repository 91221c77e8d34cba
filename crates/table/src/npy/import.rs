use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brisk_atomic_file::listed;

use super::source::{Archive, Source};
use super::{ArrayRef, NpyLabels, NpyOptions};
use crate::destination::Progress;
use crate::error::{Error, SourceError};
use crate::import::{Array, Arrays, Dest, ImportReport, LabelArray, LabelMap, Like, Origin, ReadSource};
use crate::remedy::Remedy;
use crate::source_identity::{SourceIdentity, file_name};

impl ReadSource for NpyOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        let labels = if let NpyLabels::Array(array) = &self.labels { Some(array) } else { None };
        let files = labels.into_iter().chain(&self.weights).filter_map(|array| match array {
            ArrayRef::File(path) => Some(path.as_path()),
            ArrayRef::Member(_) => None,
        });
        Origin::new(SourceIdentity::of(path)?, self, files.chain(self.like()))
    }

    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        // Before the source is opened: if it is replaced meanwhile, the table is not taken for one of the new source.
        let origin = self.origin(path)?;
        let (n_read, elsewhere) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let source = Source::open(path, dest, &n_read)?;
        let (features, labels) = names(&source, path, self)?;

        // Each member is read through a separate handle, in parallel with the others.
        let mut archives: [Option<Archive>; 3] = [None, None, None];
        if source.members.is_some() {
            for archive in &mut archives {
                *archive = Some(source.archive()?);
            }
        }
        let [of_features, of_labels, of_weights] = &mut archives;
        let find = |asked: &ArrayRef, archive| match asked {
            ArrayRef::File(path) => Source::open(path, dest, &elsewhere)?.array(),
            ArrayRef::Member(name) => member(&source, archive, name),
        };
        let labels = match &labels {
            FoundLabels::Column(column) => LabelArray::Column(*column),
            FoundLabels::Array(asked) => LabelArray::Own(find(asked, of_labels)?),
        };
        let weights = self.weights.as_ref().map(|asked| find(asked, of_weights)).transpose()?;
        let features = match &features {
            Some(name) => member(&source, of_features, name)?,
            None => source.array()?,
        };
        let like = self.like.as_deref().map(Like::read).transpose()?;
        let label_map = LabelMap::of(self.first_label, like.as_ref())?;
        let arrays = Arrays { features, labels, weights, not_finite: self.not_finite, label_map, like };
        arrays.write(path, dest, origin, &|| n_read.load(Ordering::Relaxed), progress)
    }

    fn like(&self) -> Option<&Path> {
        self.like.as_deref()
    }
}

fn member<'a>(source: &Source, archive: &'a mut Option<Archive>, name: &str) -> Result<Array<'a>, Error> {
    match archive {
        Some(archive) => source.member(archive, name),
        None => source.fail(SourceError::unexpected(
            "the file",
            "a single array",
            format!("an archive, .npz, with the member `{name}`"),
            &[Remedy::NameLabels],
        )),
    }
}

enum FoundLabels {
    Array(ArrayRef),
    Column(usize),
}

/// Which member has the features, if there are members, and where the labels are.
fn names(source: &Source, path: &Path, options: &NpyOptions) -> Result<(Option<String>, FoundLabels), Error> {
    const PAIRS: [(&str, &str); 6] =
        [("features", "labels"), ("X", "y"), ("x", "y"), ("data", "labels"), ("images", "labels"), ("arr_0", "arr_1")];
    let Some(members) = &source.members else {
        let labels = match &options.labels {
            NpyLabels::Array(array) => FoundLabels::Array(array.clone()),
            NpyLabels::Column(column) => FoundLabels::Column(*column),
            NpyLabels::Auto => {
                return source.fail(SourceError::unexpected(
                    format!("`{}`", file_name(path)),
                    "a single array",
                    "features and labels",
                    &[Remedy::NameLabels],
                ));
            }
        };
        return match &options.features {
            Some(name) => member(source, &mut None, name).map(|_| (None, labels)),
            None => Ok((None, labels)),
        };
    };
    let has = |name: &str| members.iter().any(|member| member == name);
    let pair = PAIRS.iter().find(|(features, labels)| {
        let features_fit = options.features.as_ref().map_or(has(features), |asked| asked == features);
        features_fit && (options.labels != NpyLabels::Auto || has(labels))
    });
    let none = |what: &str, remedies| {
        source.fail(SourceError::unexpected(
            "the archive",
            format!("the arrays {}", listed(members)),
            format!("one that is named as {what} are"),
            remedies,
        ))
    };
    let features = match (&options.features, pair) {
        (Some(name), _) => name.clone(),
        (None, Some((features, _))) => (*features).to_owned(),
        (None, None) => return none("features", &[Remedy::NameFeatures]),
    };
    let labels = match (&options.labels, pair) {
        (NpyLabels::Array(array), _) => FoundLabels::Array(array.clone()),
        (NpyLabels::Column(column), _) => FoundLabels::Column(*column),
        (NpyLabels::Auto, Some((_, labels))) => FoundLabels::Array(ArrayRef::Member((*labels).to_owned())),
        (NpyLabels::Auto, None) => return none("labels", &[Remedy::NameLabels]),
    };
    Ok((Some(features), labels))
}
