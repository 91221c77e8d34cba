//! How the CPU computes an epilogue.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, OnceLock};

use crate::expr::Evaluator;
use crate::map::form::Form;

/// The form of an epilogue, which is found when the kernel first runs, since that may take longer than a small product. Epilogues
/// do not differ by it.
#[derive(Debug, Clone)]
pub(super) struct Prepared(pub(super) OnceLock<Arc<How>>);

impl Prepared {
    pub(super) const fn new() -> Self {
        Self(OnceLock::new())
    }
}

impl PartialEq for Prepared {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Prepared {}

impl Hash for Prepared {
    fn hash<H: Hasher>(&self, _: &mut H) {}
}

/// How an epilogue is computed.
#[derive(Debug)]
pub(super) enum How {
    ByForm(Form),
    ByEvaluator(Evaluator),
}
