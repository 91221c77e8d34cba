use std::path::Path;

use crate::destination::Progress;
use crate::error::{Error, SourceError};
use crate::import::{Dest, ImportReport, Like, Origin, ReadSource, run};
use crate::import_format::{Format, ImportSetting, Unused};

/// How to read a source of any format. By default, the format is detected, and read with the default options of that format.
///
/// # Examples
/// ```
/// use brisk_table::{ColumnOptions, CsvOptions, ImportOptions};
///
/// let columns = ColumnOptions { labels: vec!["signal".into()], ..ColumnOptions::default() };
/// let csv = CsvOptions { columns, ..CsvOptions::default() };
/// let options = ImportOptions { csv, ..ImportOptions::default() };
/// ```
#[derive(Clone, Debug, PartialEq, Default)]
pub struct ImportOptions {
    /// The format; detected by default, see [`Format::detect`].
    pub format: Option<Format>,
    /// The options that were chosen deliberately, as on a command line. If the format has no use for one of them, or the table to
    /// match determines it, the import is refused. By default, options of other formats have no effect.
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
    fn check_explicit(&self, path: &Path, format: Format, like: Option<&Path>) -> Result<(), Error> {
        let refuse = |setting, reason| Err(SourceError::UnusedSetting { setting, reason }.at(path));
        let like = like.map(Like::read).transpose()?;
        for &setting in &self.explicit {
            if !format.uses(setting) {
                return refuse(setting, Unused::Format(format));
            }
            if like.as_ref().is_some_and(|like| like.determines(setting)) {
                return refuse(setting, Unused::Like);
            }
            #[cfg(feature = "images")]
            if let Some(like) = like.as_ref().filter(|_| setting == ImportSetting::Orientation) {
                self.images.check_orientation(like)?;
            }
            #[cfg(feature = "cifar")]
            if setting == ImportSetting::CifarSet && crate::cifar::is_single_file(path)? {
                return refuse(setting, Unused::SingleFile);
            }
        }
        Ok(())
    }

    /// The format of the source at `path`, and its options.
    fn importer(&self, path: &Path) -> Result<(Format, &dyn ReadSource), Error> {
        let format = self.format.map_or_else(|| Format::detect(path), Ok)?;
        let importer: &dyn ReadSource = match format {
            #[cfg(feature = "csv")]
            Format::Csv => &self.csv,
            #[cfg(feature = "csv")]
            Format::Svmlight => &self.svmlight,
            #[cfg(feature = "npy")]
            Format::Npy => &self.npy,
            #[cfg(feature = "idx")]
            Format::Idx => &self.idx,
            #[cfg(feature = "cifar")]
            Format::Cifar => &self.cifar,
            #[cfg(feature = "images")]
            Format::Images => &self.images,
            #[cfg(feature = "arrow")]
            Format::Arrow | Format::Parquet => &self.arrow,
            #[cfg(not(all(
                feature = "csv",
                feature = "npy",
                feature = "idx",
                feature = "cifar",
                feature = "images",
                feature = "arrow"
            )))]
            _ => Err(format.not_enabled(path))?,
        };
        Ok((format, importer))
    }
}

impl ReadSource for ImportOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        self.importer(path)?.1.origin(path)
    }

    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        let (format, importer) = self.importer(path)?;
        self.check_explicit(path, format, importer.like())?;
        run(importer, path, dest.destination(), progress)
    }
}
