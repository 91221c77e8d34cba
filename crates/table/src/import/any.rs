use std::path::Path;

use super::{Format, ImportReport, ImportSetting, Like, Progress, Unused};
use crate::error::Error;

/// How to read a source of any format. By default, the format is detected, and read with the default options of that format.
///
/// # Examples
/// ```
/// use brisk_table::{ColumnOptions, CsvOptions, ImportOptions};
///
/// let csv = CsvOptions { columns: ColumnOptions { labels: vec!["signal".into()], ..ColumnOptions::default() }, ..CsvOptions::default() };
/// let options = ImportOptions { csv, ..ImportOptions::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ImportOptions {
    /// The format; detected by default, see [`Format::detect`].
    pub format: Option<Format>,
    /// The options that were chosen deliberately, as on a command line. If the format has no use for one of them, or the table to match determines it, the import
    /// is refused. By default, options of other formats have no effect.
    pub explicit: Vec<ImportSetting>,
    /// How to read text.
    #[cfg(feature = "csv")]
    pub csv: crate::csv::CsvOptions,
    /// How to read svmlight.
    #[cfg(feature = "csv")]
    pub svmlight: crate::svmlight::SvmlightOptions,
    /// How to read numpy's arrays.
    #[cfg(feature = "npy")]
    pub npy: crate::npy::NpyOptions,
    /// How to read IDX files.
    #[cfg(feature = "idx")]
    pub idx: crate::idx::IdxOptions,
    /// How to read CIFAR.
    #[cfg(feature = "cifar")]
    pub cifar: crate::cifar::CifarOptions,
    /// How to read images.
    #[cfg(feature = "images")]
    pub images: crate::images::ImagesOptions,
    /// How to read Arrow and Parquet files.
    #[cfg(feature = "arrow")]
    pub arrow: crate::arrow::ArrowOptions,
}

impl ImportOptions {
    /// These columns, for the formats whose columns have names: text, Arrow and Parquet. All else is as by default.
    #[cfg(any(feature = "csv", feature = "arrow"))]
    pub fn with_columns(columns: &crate::import::ColumnOptions) -> Self {
        Self {
            #[cfg(feature = "csv")]
            csv: crate::csv::CsvOptions { columns: columns.clone(), ..crate::csv::CsvOptions::default() },
            #[cfg(feature = "arrow")]
            arrow: crate::arrow::ArrowOptions { columns: columns.clone(), ..crate::arrow::ArrowOptions::default() },
            ..Self::default()
        }
    }

    /// Refuses options that would have no effect.
    fn check_explicit(&self, path: &Path, format: Format) -> Result<(), Error> {
        let refuse = |setting, reason| Err(Error::UnusedSetting { path: path.to_owned(), setting, reason });
        let like = self.like(format).map(Like::read).transpose()?;
        for &setting in &self.explicit {
            if !format.uses(setting) {
                return refuse(setting, Unused::Format(format));
            }
            if like.as_ref().is_some_and(|like| like.determines(setting)) {
                return refuse(setting, Unused::Like);
            }
            #[cfg(feature = "cifar")]
            if setting == ImportSetting::CifarSet && crate::cifar::is_single_file(path)? {
                return refuse(setting, Unused::SingleFile);
            }
        }
        Ok(())
    }

    /// The table to match, for a format.
    fn like(&self, format: Format) -> Option<&Path> {
        match format {
            #[cfg(feature = "csv")]
            Format::Csv => self.csv.columns.like.as_deref(),
            #[cfg(feature = "csv")]
            Format::Svmlight => self.svmlight.like.as_deref(),
            #[cfg(feature = "npy")]
            Format::Npy => self.npy.like.as_deref(),
            #[cfg(feature = "idx")]
            Format::Idx => self.idx.like.as_deref(),
            #[cfg(feature = "images")]
            Format::Images => self.images.like.as_deref(),
            #[cfg(feature = "arrow")]
            Format::Arrow | Format::Parquet => self.arrow.columns.like.as_deref(),
            _ => None,
        }
    }
}

/// Imports a source of any format into a table at `dest`: text, svmlight, numpy's arrays, IDX, CIFAR, images, Arrow, Parquet.
///
/// # Errors
/// As for [`Format::detect`] and the function of the format; [`Error::UnusedSetting`]; [`Error::FeatureOff`] for a format whose feature is not enabled, with its
/// name. On `Err`, `dest` is unchanged.
/// # Examples
/// ```
/// # let folder = tempfile::tempdir()?;
/// # let (source, dest) = (folder.path().join("rows.csv"), folder.path().join("rows.safetensors"));
/// use brisk_table::{ImportOptions, import};
///
/// std::fs::write(&source, "1,0.5\n0,1.5\n")?;
/// let report = import(&source, &dest, &ImportOptions::default())?;
/// assert_eq!(report.n_rows, 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn import(source: impl AsRef<Path>, dest: impl AsRef<Path>, options: &ImportOptions) -> Result<ImportReport, Error> {
    import_with_progress(source, dest, options, |_| ())
}

/// Like [`import`]; `progress` is called on this thread from time to time.
///
/// # Errors
/// As for [`import`].
pub fn import_with_progress(
    source: impl AsRef<Path>,
    dest: impl AsRef<Path>,
    options: &ImportOptions,
    progress: impl FnMut(Progress),
) -> Result<ImportReport, Error> {
    let (source, dest) = (source.as_ref(), dest.as_ref());
    let format = options.format.map_or_else(|| Format::detect(source), Ok)?;
    options.check_explicit(source, format)?;
    match format {
        #[cfg(feature = "csv")]
        Format::Csv => crate::csv::import_csv_with_progress(source, dest, &options.csv, progress),
        #[cfg(feature = "csv")]
        Format::Svmlight => crate::svmlight::import_svmlight_with_progress(source, dest, &options.svmlight, progress),
        #[cfg(feature = "npy")]
        Format::Npy => crate::npy::import_npy_with_progress(source, dest, &options.npy, progress),
        #[cfg(feature = "idx")]
        Format::Idx => crate::idx::import_idx_with_progress(source, dest, &options.idx, progress),
        #[cfg(feature = "cifar")]
        Format::Cifar => crate::cifar::import_cifar_with_progress(source, dest, &options.cifar, progress),
        #[cfg(feature = "images")]
        Format::Images => crate::images::import_images_with_progress(source, dest, &options.images, progress),
        #[cfg(feature = "arrow")]
        Format::Arrow => crate::arrow::import_arrow_with_progress(source, dest, &options.arrow, progress),
        #[cfg(feature = "parquet")]
        Format::Parquet => crate::arrow::import_parquet_with_progress(source, dest, &options.arrow, progress),
        #[cfg(not(all(
            feature = "csv",
            feature = "npy",
            feature = "idx",
            feature = "cifar",
            feature = "images",
            feature = "parquet"
        )))]
        format => {
            // Not used, since the importer of this format is not enabled.
            drop((dest, progress));
            let (found, feature) = (format.description(), format.feature());
            let instead = "convert the source to a format that is enabled";
            Err(Error::FeatureOff { path: source.to_owned(), found, feature, instead })
        }
    }
}
