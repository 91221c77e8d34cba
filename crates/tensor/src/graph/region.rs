//! Regions of a recording, which end on every path, panics included.

use crate::graph::{Graph, Inner};

/// An open region, which ends when this is dropped.
pub(crate) struct Region<'a, F: FnOnce(&mut Inner)> {
    graph: &'a Graph,
    end: Option<F>,
}

impl Graph {
    /// Calls `end` when the result is dropped.
    pub(crate) fn at_end<F: FnOnce(&mut Inner)>(&self, end: F) -> Region<'_, F> {
        Region { graph: self, end: Some(end) }
    }
}

impl<F: FnOnce(&mut Inner)> Drop for Region<'_, F> {
    fn drop(&mut self) {
        if let Some(end) = self.end.take() {
            end(&mut self.graph.inner_mut());
        }
    }
}
