//! How many batches are submitted together, and what follows them.

/// What interrupts an epoch next, as the number of batches done then: more than are done now, and `usize::MAX` for never.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Next {
    pub(super) checkpoint: usize,
    pub(super) validation: usize,
    pub(super) callback: usize,
    /// The batches on the device, the epoch, or the run end.
    pub(super) end: usize,
}

/// The batches that are submitted together, and what follows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Due {
    pub(super) n_batches: usize,
    pub(super) checkpoint: bool,
    pub(super) validation: bool,
    pub(super) callback: bool,
}

impl Next {
    /// At most `most` batches after `n_done`.
    pub(super) fn due(self, n_done: usize, most: usize) -> Due {
        let Self { checkpoint, validation, callback, end } = self;
        let until = checkpoint.min(validation).min(callback).min(end).min(n_done.saturating_add(most));
        let is_due = |event: usize| event == until;
        Due {
            n_batches: until - n_done,
            // A validation writes a checkpoint as well.
            checkpoint: is_due(checkpoint) && !is_due(validation),
            validation: is_due(validation),
            callback: is_due(callback),
        }
    }
}

/// The next checkpoint within an epoch of `n_batches`: every `every` batches if that is not 0, or after the next complete step of
/// `accumulate` batches if the clock says so. The end of an epoch has its own.
pub(super) fn next_checkpoint(n_done: usize, every: usize, accumulate: usize, is_late: bool, n_batches: usize) -> usize {
    let after = |interval: usize| n_done.saturating_add(interval - n_done % interval);
    let planned = if every == 0 { usize::MAX } else { after(every) };
    let next = if is_late { planned.min(after(accumulate)) } else { planned };
    if next < n_batches { next } else { usize::MAX }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEVER: usize = usize::MAX;

    #[test]
    fn batches_end_at_the_next_event() {
        let due = |checkpoint, validation, callback, end, n_done, most| {
            let Due { n_batches, checkpoint, validation, callback } =
                Next { checkpoint, validation, callback, end }.due(n_done, most);
            (n_batches, [checkpoint, validation, callback])
        };
        for (found, expected, what) in [
            (due(NEVER, NEVER, NEVER, 100, 0, 64), (64, [false; 3]), "as many as may be submitted"),
            (due(NEVER, NEVER, NEVER, 100, 64, 64), (36, [false; 3]), "the rest of the epoch"),
            (due(NEVER, NEVER, NEVER, 100, 64, NEVER), (36, [false; 3]), "without a limit"),
            (due(10, 20, 30, 100, 5, 64), (5, [true, false, false]), "a checkpoint"),
            (due(20, 10, 30, 100, 5, 64), (5, [false, true, false]), "a validation"),
            (due(20, 30, 10, 100, 5, 64), (5, [false, false, true]), "a callback"),
            (due(10, 10, 10, 100, 9, 64), (1, [false, true, true]), "a validation, which writes a checkpoint"),
            (due(10, 20, 30, 100, 5, 2), (2, [false; 3]), "before any of them"),
            (due(NEVER, NEVER, 100, 100, 99, 64), (1, [false, false, true]), "a callback at the end"),
        ] {
            assert_eq!(found, expected, "{what}");
        }
    }

    #[test]
    fn checkpoints_are_after_complete_steps() {
        for (n_done, every, accumulate, is_late, expected) in [
            (0, 0, 1, false, NEVER),
            (0, 0, 1, true, 1),
            (0, 3, 1, false, 3),
            (3, 3, 1, false, 6),
            (4, 3, 1, true, 5),
            (4, 8, 4, true, 8),
            (6, 12, 4, true, 8),
            (7, 8, 1, false, 8),
            (8, 8, 1, false, NEVER),
            (9, 0, 1, true, NEVER),
        ] {
            let found = next_checkpoint(n_done, every, accumulate, is_late, 10);
            assert_eq!(found, expected, "{n_done} of 10 done, every {every}, {accumulate} batches per step, late: {is_late}");
        }
    }
}
