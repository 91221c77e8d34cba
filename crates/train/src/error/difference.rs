//! The differences that a run may have from the one whose checkpoint it resumes from.

use std::fmt;

/// A difference between a run and the checkpoint that it resumes from. Each is refused unless
/// [`Training::resume_with`](crate::Training::resume_with) allows it.
///
/// Their names, for options of programs, are `format`, `rows`, `precision`, `settings` and `computation`.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResumeMismatch {
    /// The checkpoint has no format version: an earlier version of brisk wrote it, or another program. It has no checksum and
    /// does not say what it was trained on.
    Format,
    /// The training or validation rows differ, by [`RowDigest`](crate::RowDigest), or their columns are standardised differently.
    Rows,
    /// The precision of the products is different.
    Precision,
    /// A setting that changes results is different: seed, order of rows, batch size, accumulation, learning rates, clipping, loss
    /// scaling, number of validation rows, type in which gradients are sent.
    Settings,
    /// What is computed is different, as it is recorded: the model, the loss, the optimizer, the augmentation or the evaluation.
    /// Versions of brisk may record them differently.
    Computation,
}

impl ResumeMismatch {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Format, Self::Rows, Self::Precision, Self::Settings, Self::Computation];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Format => "format",
            Self::Rows => "rows",
            Self::Precision => "precision",
            Self::Settings => "settings",
            Self::Computation => "computation",
        }
    }
}

impl fmt::Display for ResumeMismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A difference between a run and the checkpoint that it resumes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResumeDifference {
    /// The kind of difference.
    pub mismatch: ResumeMismatch,
    /// What differs: the name of a setting, such as `batch_rows`, or other words.
    pub what: String,
    /// The checkpoint's value.
    pub checkpoint: String,
    /// This run's value.
    pub run: String,
}

impl ResumeDifference {
    pub(crate) fn new(mismatch: ResumeMismatch, what: impl Into<String>, [checkpoint, run]: [String; 2]) -> Self {
        Self { mismatch, what: what.into(), checkpoint, run }
    }

    /// What differs if the schedule was planned for another number of steps, and its rates depend on that. A run that is
    /// [extended](crate::TrainerConfig::extend) keeps the planned rates.
    pub const SCHEDULE_LENGTH: &str = "steps of the schedule";
}

impl fmt::Display for ResumeDifference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { what, checkpoint, run, .. } = self;
        write!(f, "{what}: {checkpoint} in the checkpoint, {run} here")
    }
}
