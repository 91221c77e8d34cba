use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::SourceError;

/// Runs a reader of a third-party crate and turns its panics into errors, since the readers of Arrow and of images panic on some
/// damaged files. After a panic, what `read` borrows must not be used any more.
///
/// The panic hook still prints its message, unless the program has installed another hook.
pub(crate) fn guarded<T>(part: &str, read: impl FnOnce() -> T) -> Result<T, SourceError> {
    catch_unwind(AssertUnwindSafe(read)).map_err(|panic| {
        let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        SourceError::unexpected(
            part.to_owned(),
            format!("data on which the reader panicked ({})", text.unwrap_or("no message")),
            "a sound file; it is damaged, write it again",
            &[],
        )
    })
}
