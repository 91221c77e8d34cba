use super::MAX_REPORTS;

/// The bad rows of a chunk.
#[derive(Debug)]
pub(crate) struct Rejected<P> {
    pub(crate) n: u64,
    /// Why, for the first few of them.
    pub(crate) first: Vec<P>,
    /// Whether the chunk ends at a bad row that is not skipped, which is the only one then.
    pub(crate) is_cut: bool,
    /// Blank lines before rows.
    pub(crate) n_blank: u64,
    /// Blank lines after all rows of the chunk, or in a chunk without rows.
    pub(crate) n_blank_after: u64,
    pub(crate) has_rows: bool,
}

impl<P> Default for Rejected<P> {
    fn default() -> Self {
        Self { n: 0, first: Vec::new(), is_cut: false, n_blank: 0, n_blank_after: 0, has_rows: false }
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

    /// Counts a row, whether it is bad or not: blank lines before it are not at the end.
    pub(crate) fn row(&mut self) {
        self.has_rows = true;
        self.n_blank += std::mem::take(&mut self.n_blank_after);
    }

    pub(crate) fn clear(&mut self) {
        self.first.clear();
        (self.n, self.is_cut) = (0, false);
        (self.n_blank, self.n_blank_after, self.has_rows) = (0, 0, false);
    }
}
