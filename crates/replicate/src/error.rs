use std::time::Duration;

use crate::{ElementType, ReduceOp};

/// What can go wrong between replicas, with rank and operation in it.
///
/// [`Length`](Error::Length), [`Root`](Error::Root) and [`Unsupported`](Error::Unsupported) are found before anything is sent, and the group goes on. After any
/// other the group is dead: every later call of every rank gives the same error.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two buffers whose lengths cannot both be right.
    #[error("{op} on rank {rank}: `{arg}` has {found} elements, expected {expected}: {rule}")]
    Length {
        /// The operation.
        op: &'static str,
        /// Who called it.
        rank: usize,
        /// Which of its arguments.
        arg: &'static str,
        /// How many elements it should have.
        expected: usize,
        /// How many it has.
        found: usize,
        /// Why.
        rule: &'static str,
    },
    /// A rank that the world does not have.
    #[error("{op} on rank {rank}: root {root} of a world of {world_size}; ranks count from 0 to world_size - 1")]
    Root {
        /// The operation.
        op: &'static str,
        /// Who called it.
        rank: usize,
        /// The root asked for.
        root: usize,
        /// How many ranks there are.
        world_size: usize,
    },
    /// A reduction that means nothing for the element type.
    #[error("{op} on rank {rank}: {reduce:?} of {element:?} is not defined; reduce floats, or take the sum")]
    Unsupported {
        /// The operation.
        op: &'static str,
        /// Who called it.
        rank: usize,
        /// The reduction.
        reduce: ReduceOp,
        /// The element type.
        element: ElementType,
    },
    /// Ranks made different calls. Nothing was changed.
    #[error(
        "rank {rank} called {mine} where rank {other} called {theirs}: every rank must make the same calls, in the same order, with the same \
         lengths and types; look for a branch that depends on the rank"
    )]
    Mismatch {
        /// A rank.
        rank: usize,
        /// What it called.
        mine: String,
        /// Another rank.
        other: usize,
        /// What that one called.
        theirs: String,
    },
    /// Ranks hold different models, or run different programs.
    #[error(
        "{what} differs between rank {rank} and rank {other}: {mine} against {theirs}; start all ranks with the same program and settings"
    )]
    Disagreement {
        /// Which parameter, or what else.
        what: String,
        /// A rank.
        rank: usize,
        /// What it has.
        mine: String,
        /// Another rank.
        other: usize,
        /// What that one has.
        theirs: String,
    },
    /// Some replicas have run out of batches while others go on.
    #[error("{has} have a batch, {lacks} have none left; give all as many, or let those that are done join")]
    Uneven {
        /// How many of how many have one.
        has: String,
        /// How many have not.
        lacks: String,
    },
    /// Another rank has failed or left.
    #[error("rank {rank} failed: {why}; the run ends, start again from the last checkpoint")]
    PeerFailed {
        /// The rank that failed first.
        rank: usize,
        /// Its error or panic.
        why: String,
    },
    /// Some rank did not come.
    #[error("{op}: ranks {missing:?} did not come within {waited:?}; they hang, are far behind, or ended without a word")]
    Timeout {
        /// The operation.
        op: &'static str,
        /// Who did not come.
        missing: Vec<usize>,
        /// How long the others waited.
        waited: Duration,
    },
    /// The communication thread has ended before.
    #[error("{op}: the communication thread has ended; what ended it was the error of an earlier operation")]
    Closed {
        /// The operation.
        op: &'static str,
    },
    /// What the library that carries the values says.
    #[error("{op}: {text} (code {code})")]
    Engine {
        /// The operation.
        op: &'static str,
        /// Its code.
        code: i32,
        /// Its words.
        text: String,
    },
}

impl Error {
    /// Whether a run that ended with this may get through when it is started again from its last checkpoint: a rank or its host was lost, rather than
    /// that the ranks were called wrongly, or not alike.
    pub fn restart_helps(&self) -> bool {
        match self {
            Self::PeerFailed { .. } | Self::Timeout { .. } | Self::Closed { .. } | Self::Engine { .. } => true,
            Self::Length { .. }
            | Self::Root { .. }
            | Self::Unsupported { .. }
            | Self::Mismatch { .. }
            | Self::Uneven { .. }
            | Self::Disagreement { .. } => false,
        }
    }
}
