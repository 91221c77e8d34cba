//! What a source is told of the windows to come, and of those that are done with.

use std::ops::Range;

use crate::RowSource;
use crate::plan::Plan;

/// How far the hints of an epoch have got. Each window is announced once, one ahead of the one in use, and released once.
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
    pub(crate) release: Range<u32>,
}

impl Hints {
    /// What is due when batch `nth` is about to be gathered and the first `n_done` are done with.
    pub(crate) fn advance(&mut self, plan: &Plan, nth: usize, n_done: usize) -> Due {
        let Some(windows) = plan.windows(nth) else { return Due::default() };
        let first = self.first(windows.start);
        // The window after the last one of this batch, so that it is there when its turn comes.
        let announce = first..(windows.end + 1).max(first);
        self.announced = Some(announce.end);
        let in_use = plan.windows(n_done.min(nth)).map_or(0, |windows| windows.start);
        let release = self.released..in_use.max(self.released);
        self.released = release.end;
        Due { announce, release }
    }

    /// The windows still held, when the epoch is over or broken off.
    pub(crate) fn finish(&mut self) -> Due {
        let announced = std::mem::take(self);
        Due { announce: 0..0, release: announced.released..announced.announced.unwrap_or(announced.released) }
    }

    /// The first window that is not announced. An epoch that goes on in the middle never held those before `start`.
    fn first(&mut self, start: u32) -> u32 {
        *self.announced.get_or_insert_with(|| {
            self.released = start;
            start
        })
    }
}

impl Due {
    /// What is done with first, so that a source has room for what comes.
    pub(crate) fn tell<S: RowSource>(self, source: &S, plan: &Plan) {
        plan.for_each_range(self.release, |rows| source.release_range(rows));
        plan.for_each_range(self.announce, |rows| source.prefetch_range(rows));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.announce.is_empty() && self.release.is_empty()
    }
}
