use std::panic::{AssertUnwindSafe, catch_unwind};

use super::SourceError;

/// Runs a reader of somebody else's format, which may panic at a damaged file, as those of Arrow and of images do here and there; for us
/// that is an error like any other. What `read` borrows is not to be read from after that.
///
/// The panic hook still says its line, unless the program has a hook of its own.
pub(crate) fn guarded<T>(part: &str, read: impl FnOnce() -> T) -> Result<T, SourceError> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        SourceError::Malformed {
            part: part.to_owned(),
            found: format!("what its reader gave up on ({})", text.unwrap_or("it does not say why")),
            expected: "a sound file; it is damaged, write it again".to_owned(),
        }
    })
}
