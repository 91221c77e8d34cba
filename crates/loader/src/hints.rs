//! Hints to a source about the next windows and about those that are no longer needed.

use std::ops::Range;

use crate::gather::RowSelection;
use crate::plan::Plan;
use crate::source::{Hint, RowSource};

/// How many windows are announced for later, after the next one. A source takes as many as it has room for.
const N_LATER: u32 = 4;

/// The progress of the hints of an epoch. Each window is announced once, one before the one in use, and released once; before
/// that it may be announced for later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Hints {
    /// Windows below this have been announced.
    announced: Option<u32>,
    /// Windows below this have been released.
    released: u32,
}

/// Windows to announce, and windows to release.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Due {
    pub(crate) announce: Range<u32>,
    pub(crate) later: Range<u32>,
    pub(crate) release: Range<u32>,
}

impl Hints {
    /// The hints to give when batch `nth` is about to be gathered and the first `n_done` batches are finished.
    pub(crate) fn advance(&mut self, plan: &Plan, nth: usize, n_done: usize) -> Due {
        let Some(windows) = plan.windows(nth) else { return Due::default() };
        let first = self.first(windows.start);
        // Includes the window after the last one of this batch, so that it is ready when it is needed.
        let announce = first..(windows.end + 1).max(first);
        self.announced = Some(announce.end);
        let in_use = plan.windows(n_done.min(nth)).map_or(0, |windows| windows.start);
        let release = self.released..in_use.max(self.released);
        self.released = release.end;
        // There is room for more of them now and then.
        let n_later = if announce.is_empty() && release.is_empty() { 0 } else { N_LATER };
        let later = announce.end..announce.end.saturating_add(n_later);
        Due { announce, later, release }
    }

    /// Releases the windows that are still held when the epoch is over or abandoned.
    pub(crate) fn finish(&mut self) -> Due {
        let announced = std::mem::take(self);
        let end = announced.announced.map_or(announced.released, |end| end.saturating_add(N_LATER));
        Due { release: announced.released..end, ..Due::default() }
    }

    /// The first window that has not been announced. An epoch that resumes in the middle never holds the windows before `start`.
    fn first(&mut self, start: u32) -> u32 {
        *self.announced.get_or_insert_with(|| {
            self.released = start;
            start
        })
    }
}

impl Due {
    /// Releases first, so that the source has room for the announced rows.
    pub(crate) fn tell<S: RowSource>(self, source: &S, plan: &Plan) {
        plan.for_each_range(self.release, |rows| source.hint(RowSelection::Range(rows), Hint::DontNeed));
        plan.for_each_range(self.announce, |rows| source.hint(RowSelection::Range(rows), Hint::WillNeed));
        plan.for_each_range(self.later, |rows| source.hint(RowSelection::Range(rows), Hint::WillNeedLater));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.announce.is_empty() && self.release.is_empty()
    }
}
