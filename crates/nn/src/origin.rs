use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use brisk_tensor::Error;

/// Identifies the model that parameters belong to: copies of [`Parameters`](crate::Parameters), including sharded ones, have the
/// same origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    id: u64,
    built_at: &'static Location<'static>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Origin {
    #[track_caller]
    pub(crate) fn new() -> Self {
        Self { id: NEXT_ID.fetch_add(1, Ordering::Relaxed), built_at: Location::caller() }
    }

    /// Returns an error for an optimizer that was made for `other` parameters.
    pub(crate) fn check(self, op: &'static str, other: Self) -> Result<(), Error> {
        if self.id == other.id {
            return Ok(());
        }
        let found = format!(
            "an optimizer made for the parameters built at {}, and parameters built at {}",
            other.built_at, self.built_at
        );
        Err(Error::Refused { op, found, expected: "an optimizer for each model" })
    }

    pub(crate) fn is(self, other: Self) -> bool {
        self.id == other.id
    }

    pub(crate) fn built_at(self) -> &'static Location<'static> {
        self.built_at
    }
}
