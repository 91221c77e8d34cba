use std::path::Path;

use crate::Error;
use crate::file_id::FileId;

/// Refuses to import onto a file that is read.
///
/// # Errors
/// [`Error::SameFile`] if `dest` is one of `inputs`, through links too.
pub(crate) fn check_dest<'a>(dest: &Path, inputs: impl IntoIterator<Item = &'a Path>) -> Result<(), Error> {
    // A file that does not exist yet is none of them.
    let Ok(id) = FileId::of(dest) else { return Ok(()) };
    match inputs.into_iter().find(|input| FileId::of(input).is_ok_and(|input| input == id)) {
        Some(input) => Err(Error::SameFile { path: dest.to_owned(), input: input.to_owned() }),
        None => Ok(()),
    }
}
