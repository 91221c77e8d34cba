//! Regions of a recording, which end however they are left.

use crate::Graph;
use crate::graph::Inner;

/// The rest of a region: when it is dropped, which is also when what is recorded panics, the region has ended.
pub(crate) struct Region<'a, F: FnOnce(&mut Inner)> {
    graph: &'a Graph,
    end: Option<F>,
}

impl Graph {
    /// Does `end` when what is given back is dropped.
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
