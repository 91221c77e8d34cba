use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::source::{Archive, Source, file_name};
use super::{ArrayRef, NpyLabels, NpyOptions};
use crate::error::Error;
use crate::import::{Array, Arrays, ImportReport, LabelArray, LabelMap, Like, Origin, Progress, SourceError, check_dest};
use crate::printable::listed;
use crate::remedy::Remedy;

/// Imports numpy arrays into a table at `dest`: a .npy of features with a .npy of labels, or a .npz of both.
///
/// Features `[n, …]` keep their shape. `u8` stays `u8`; other integers, booleans and floats become the nearest `f32`. Labels that are bytes
/// or booleans become `u8`, other integers `i64`, floats `f32`. Arrays may have either byte order and be in C or Fortran order; files may be
/// compressed as for [`import_csv`](crate::import_csv). Memory use is a few megabytes; a compressed array in Fortran order temporarily takes
/// its decompressed size on the disk of `dest`.
///
/// # Errors
/// [`Error::Source`] for structured arrays, text, objects and single numbers; for arrays that do not fit together, are truncated or have no
/// rows; for NaN and infinities, unless [`NotFinite::Keep`](crate::NotFinite::Keep), with row and column. [`Error::Io`], [`Error::Write`]. On
/// `Err`, `dest` is unchanged.
/// # Examples
/// ```no_run
/// use brisk_table::{ArrayRef, NpyLabels, NpyOptions, import_npy};
///
/// let options = NpyOptions { labels: NpyLabels::Array(ArrayRef::File("y.npy".into())), ..NpyOptions::default() };
/// let report = import_npy("X.npy", "train.safetensors", &options)?;
/// println!("{} rows", report.n_rows);
/// import_npy("train.npz", "train.safetensors", &NpyOptions::default())?;
/// # Ok::<(), brisk_table::Error>(())
/// ```
pub fn import_npy(source: impl AsRef<Path>, dest: impl AsRef<Path>, options: &NpyOptions) -> Result<ImportReport, Error> {
    import_npy_with_progress(source, dest, options, |_| ())
}

/// Like [`import_npy`]; `progress` is called on this thread after about every megabyte of features.
///
/// # Errors
/// As for [`import_npy`].
pub fn import_npy_with_progress(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &NpyOptions,
    mut progress: impl FnMut(Progress),
) -> Result<ImportReport, Error> {
    import(source.as_ref(), dest.as_ref(), options, &mut progress)
}

fn import(path: &Path, dest: &Path, options: &NpyOptions, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
    let (n_read, elsewhere) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let source = Source::open(path, dest, &n_read)?;
    let (features, labels) = names(&source, path, options)?;

    // Each member is read through a separate handle, in parallel with the others.
    let mut archives: [Option<Archive>; 3] = [None, None, None];
    if source.members.is_some() {
        for archive in &mut archives {
            *archive = Some(source.archive()?);
        }
    }
    let [of_features, of_labels, of_weights] = &mut archives;
    let mut others = Vec::new();
    let mut find = |asked: &ArrayRef, archive| match asked {
        ArrayRef::File(path) => {
            let other = Source::open(path, dest, &elsewhere)?;
            others.push(other.identity()?);
            other.array()
        }
        ArrayRef::Member(name) => member(&source, archive, name),
    };
    let labels = match &labels {
        FoundLabels::Column(column) => LabelArray::Column(*column),
        FoundLabels::Array(asked) => LabelArray::Own(find(asked, of_labels)?),
    };
    let weights = options.weights.as_ref().map(|asked| find(asked, of_weights)).transpose()?;
    let features = match &features {
        Some(name) => member(&source, of_features, name)?,
        None => source.array()?,
    };
    check_dest(dest, options.like.as_deref())?;
    let like = options.like.as_deref().map(Like::read).transpose()?;
    let label_map = LabelMap::of(options.first_label, like.as_ref())?;
    let arrays = Arrays { features, labels, weights, not_finite: options.not_finite, label_map, like };
    let origin = Origin {
        path,
        identity: source.identity()?,
        options: format!("npy {options:?} {others:?}"),
        n_read: &|| n_read.load(Ordering::Relaxed),
    };
    arrays.write(dest, &origin, progress)
}

fn member<'a>(source: &Source, archive: &'a mut Option<Archive>, name: &str) -> Result<Array<'a>, Error> {
    match archive {
        Some(archive) => source.member(archive, name),
        None => source.fail(SourceError::Unexpected {
            part: "the file".to_owned(),
            found: "a single array".to_owned(),
            expected: format!("an archive, .npz, with the member `{name}`"),
            remedies: &[Remedy::NameLabels],
        }),
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
                return source.fail(SourceError::Unexpected {
                    part: format!("`{}`", file_name(path)),
                    found: "a single array".to_owned(),
                    expected: "features and labels".to_owned(),
                    remedies: &[Remedy::NameLabels],
                });
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
        source.fail(SourceError::Unexpected {
            part: "the archive".to_owned(),
            found: format!("the arrays {}", listed(members)),
            expected: format!("one that is named as {what} are"),
            remedies,
        })
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
