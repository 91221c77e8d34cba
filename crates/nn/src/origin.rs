use std::panic::Location;
use std::sync::atomic::{AtomicU64, Ordering};

use brisk_tensor::Error;

/// Identifies the model that parameters belong to: copies of [`Parameters`](crate::Parameters), including sharded ones, have the
/// same origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Origin {
    model: Model,
    pub(crate) built_at: &'static Location<'static>,
}

/// A number for each builder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Model(u64);

/// The place of a parameter or buffer in its model, and the line that added it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Id {
    pub(crate) model: Model,
    pub(crate) index: usize,
    pub(crate) made_at: &'static Location<'static>,
}

static NEXT_ID: AtomicU64 = AtomicU64::new(0);

impl Default for Model {
    fn default() -> Self {
        Self(NEXT_ID.fetch_add(1, Ordering::Relaxed))
    }
}

impl Origin {
    #[track_caller]
    pub(crate) fn new(model: Model) -> Self {
        Self { model, built_at: Location::caller() }
    }

    /// Returns an error for an optimizer, or what else keeps state of parameters, that was made for `other` parameters.
    pub(crate) fn check(self, op: &'static str, other: Self) -> Result<(), Error> {
        if self.is(other) {
            return Ok(());
        }
        let found = format!("one made for the parameters built at {}, and parameters built at {}", other.built_at, self.built_at);
        Err(Error::Refused { op, found, expected: "one for each model" })
    }

    /// Returns an error for the id of a parameter or buffer of another model.
    pub(crate) fn check_id(self, op: &'static str, id: Id) -> Result<(), Error> {
        if self.model == id.model {
            return Ok(());
        }
        let found = format!("a tensor of another model, added at {}, and the parameters built at {}", id.made_at, self.built_at);
        Err(Error::Refused { op, found, expected: "layers, groups and ids with the parameters that they were made for" })
    }

    pub(crate) fn id(self, index: usize, made_at: &'static Location<'static>) -> Id {
        Id { model: self.model, index, made_at }
    }

    pub(crate) fn is(self, other: Self) -> bool {
        self.model == other.model
    }
}
