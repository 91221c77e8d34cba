use std::path::Path;

use super::ArrowOptions;
use crate::destination::Progress;
use crate::error::Error;
use crate::import::{Dest, ImportReport, Origin, ReadSource};
#[cfg(not(feature = "parquet"))]
use crate::import_format::Format;
use crate::parts::first_bytes;
use crate::source_identity::SourceIdentity;

impl ReadSource for ArrowOptions {
    fn origin(&self, path: &Path) -> Result<Origin, Error> {
        Origin::new(SourceIdentity::of(path)?, &Self { n_threads: 0, ..self.clone() }, self.like())
    }

    fn read(&self, path: &Path, dest: &Dest<'_>, progress: &mut dyn FnMut(Progress)) -> Result<ImportReport, Error> {
        // Before the source is opened: if it is replaced meanwhile, the table is not taken for one of the new source.
        let origin = self.origin(path)?;
        if !is_parquet(path)? {
            return super::ipc::read(path, dest, self, origin, progress);
        }
        #[cfg(feature = "parquet")]
        return super::parquet::read(path, dest, self, origin, progress);
        #[cfg(not(feature = "parquet"))]
        Err(Format::Parquet.not_enabled(path))
    }

    fn like(&self) -> Option<&Path> {
        self.columns.like.as_deref()
    }
}

/// Whether a file is Parquet, or should be by its name.
fn is_parquet(path: &Path) -> Result<bool, Error> {
    let (magic, _) = first_bytes(path, 4)?;
    Ok(magic == *b"PAR1" || path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet")))
}
