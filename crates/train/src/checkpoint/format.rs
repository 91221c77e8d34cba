//! The version of the format, and how much of a file can be trusted.

use std::path::Path;

use super::checksum::{self, Content, Found};
use crate::error::Error;

/// The version that this crate writes, and the newest that it reads.
///
/// 1: safetensors whose metadata has `brisk.format_version` and `brisk.crc32`. Older files have neither.
pub(crate) const FORMAT_VERSION: u32 = 1;

/// The name of the string that holds the version.
pub(super) const KEY: &str = "brisk.format_version";

/// The version of a file, `None` for one from before the format had versions; or why the file is refused.
///
/// `json` is the part of the file that has the checksum, `rest` the bytes after it.
pub(super) fn check(path: &Path, version: Option<&str>, json: &[u8], rest: &Content) -> Result<Option<u32>, Error> {
    let damaged =
        |reason: String| Error::Damaged { path: path.to_owned(), len_bytes: Some(json.len() as u64 + rest.len_bytes), reason };
    let version = match version.map(|version| (version.parse(), version)) {
        None => None,
        Some((Ok(found), _)) if found > FORMAT_VERSION => {
            let found = format!("format version {found}, written by a newer brisk");
            let expected = format!("at most {FORMAT_VERSION}, which this program reads; update the program").into();
            return Err(Error::WrongFile { path: path.to_owned(), found, expected });
        }
        Some((Ok(found @ 1..), _)) => Some(found),
        Some((_, found)) => return Err(damaged(format!("its format version is {found:?}, expected a number from 1"))),
    };
    match (version, checksum::check(json, rest).map_err(damaged)?) {
        (Some(_), Found::Nothing) => Err(damaged("its checksum is missing".to_owned())),
        (None, Found::Correct) => Err(damaged("its format version is missing".to_owned())),
        (version, _) => Ok(version),
    }
}
