use super::MAX_REPORTS;

/// The bad rows of a chunk.
#[derive(Debug)]
pub(crate) struct Rejected<P> {
    pub(crate) n: u64,
    /// Why, for the first few of them.
    pub(crate) first: Vec<P>,
    /// Whether the chunk ends at a bad row that is not skipped, which is the only one then.
    pub(crate) is_cut: bool,
}

impl<P> Default for Rejected<P> {
    fn default() -> Self {
        Self { n: 0, first: Vec::new(), is_cut: false }
    }
}

impl<P> Rejected<P> {
    /// Adds a bad row. Returns whether the chunk is cut there, since the row is not skipped.
    pub(crate) fn add(&mut self, is_skipped: bool, reason: impl FnOnce() -> P) -> bool {
        self.is_cut = !is_skipped;
        if self.is_cut {
            self.first.clear();
        }
        if self.first.len() < MAX_REPORTS {
            self.first.push(reason());
        }
        self.n += 1;
        self.is_cut
    }

    pub(crate) fn clear(&mut self) {
        self.first.clear();
        (self.n, self.is_cut) = (0, false);
    }
}
