use std::cell::Cell;
use std::io::Write as _;

use crate::error::Error;

/// The first error of a graph, which is written to standard error if it is dropped without having been returned.
#[derive(Debug)]
pub(crate) struct FirstError {
    graph: String,
    pub(super) error: Option<Error>,
    is_returned: Cell<bool>,
}

impl FirstError {
    pub(crate) fn none(graph: &str) -> Self {
        Self { graph: graph.to_owned(), error: None, is_returned: Cell::new(false) }
    }

    /// The error, which from now on counts as returned.
    pub(super) fn get(&self) -> Option<Error> {
        self.is_returned.set(true);
        self.error.clone()
    }
}

impl Drop for FirstError {
    fn drop(&mut self) {
        let Self { graph, error: Some(error), is_returned } = self else { return };
        if !is_returned.get() {
            // An error of this write cannot be reported, and a panic could abort the process.
            let _ = writeln!(
                std::io::stderr(),
                "error: the graph `{graph}` was dropped with an error that was never checked: {error}; call `Graph::check`"
            );
        }
    }
}
