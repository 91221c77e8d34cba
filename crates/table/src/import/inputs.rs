use std::path::Path;

use brisk_atomic_file::FileId;

use crate::error::Error;

/// Refuses to write to a file that the import reads, also through links.
pub(crate) fn check_dest<'a>(dest: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Error> {
    // A file that does not exist yet is not one of the inputs.
    let Ok(id) = FileId::of(dest) else { return Ok(()) };
    match inputs.into_iter().find(|input| FileId::of(input).is_ok_and(|input| input == id)) {
        Some(input) => Err(Error::SameFile { path: dest.to_owned(), input: input.to_owned() }),
        None => Ok(()),
    }
}
