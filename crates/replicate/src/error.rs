use std::time::Duration;

use crate::element::ElementType;
use crate::reduce_op::ReduceOp;

/// What can go wrong between replicas, with the rank and the operation.
///
/// [`Length`](Error::Length), [`Root`](Error::Root) and [`Unsupported`](Error::Unsupported) are found before anything is sent,
/// and the group can continue. After any other error the group is dead: every later call of every rank returns the same error.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Two buffers whose lengths cannot both be right.
    #[error("{op} on rank {rank}: `{arg}` has {found} elements, expected {expected}: {rule}")]
    Length {
        /// The operation.
        op: &'static str,
        /// The calling rank.
        rank: usize,
        /// Which of its arguments.
        arg: &'static str,
        /// How many elements it should have.
        expected: usize,
        /// How many it has.
        found: usize,
        /// What the expected length follows from.
        rule: &'static str,
    },
    /// A root that is not a rank of the group.
    #[error("{op} on rank {rank}: root {root} of a world of {world_size}; ranks count from 0 to world_size - 1")]
    Root {
        /// The operation.
        op: &'static str,
        /// The calling rank.
        rank: usize,
        /// The requested root.
        root: usize,
        /// How many ranks there are.
        world_size: usize,
    },
    /// A reduction that is not defined for the element type.
    #[error("{op} on rank {rank}: {reduce:?} of {element:?} is not defined; reduce floats, or use a sum")]
    Unsupported {
        /// The operation.
        op: &'static str,
        /// The calling rank.
        rank: usize,
        /// The reduction.
        reduce: ReduceOp,
        /// The element type.
        element: ElementType,
    },
    /// Ranks made different calls. No buffer was changed.
    #[error(
        "rank {rank} {} where rank {other} {}: every rank must make the same calls, in the same order, with the same lengths and \
         types; look for a branch that depends on the rank",
        did(mine),
        did(theirs)
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
        "{what} differs between rank {rank} and rank {other}: {mine} against {theirs}; start all ranks with the same program, settings and data"
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
    /// Some replicas have run out of batches and others have not.
    #[error("{has} have a batch, {lacks} have none left; give each the same number of batches, or let those that are done join")]
    Uneven {
        /// The number of replicas with a batch, and of all replicas.
        has: String,
        /// The number of replicas without.
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
    /// Some ranks did not call an operation within the time limit.
    #[error(
        "{op}: waited {waited:?} for {}, which did not respond in time; restart the run from the last checkpoint",
        ranks(missing)
    )]
    Timeout {
        /// The operation.
        op: &'static str,
        /// The ranks that did not call it.
        missing: Vec<usize>,
        /// How long the others waited.
        waited: Duration,
    },
    /// An operation of a communication thread that has ended.
    #[error("{op}: the communication thread has ended, because `finish` was called before")]
    Closed {
        /// The operation.
        op: &'static str,
    },
    /// An error of the communication library.
    #[error("{op}: {text} (code {code})")]
    Engine {
        /// The operation.
        op: &'static str,
        /// Its code.
        code: i32,
        /// Its message.
        text: String,
    },
}

/// `rank 1`, `ranks 0, 2`.
pub(crate) fn ranks(ranks: &[usize]) -> String {
    let numbers = ranks.iter().map(usize::to_string).collect::<Vec<_>>().join(", ");
    format!("rank{} {numbers}", if ranks.len() == 1 { "" } else { "s" })
}

/// What a rank did, given its call.
fn did(call: &str) -> String {
    if call == RETURN { "has returned".to_owned() } else { format!("called {call}") }
}

/// The call in which a replica of [`run_replicas`](crate::run_replicas) waits for the others once its function has returned.
pub(crate) const RETURN: &str = "return";

impl Error {
    /// Whether a run that ended with this error may succeed when it is restarted from its last checkpoint: a rank or its host was
    /// lost, and the ranks did not differ or misuse an operation.
    pub fn restart_helps(&self) -> bool {
        match self {
            Self::PeerFailed { .. } | Self::Timeout { .. } | Self::Engine { .. } => true,
            Self::Length { .. }
            | Self::Root { .. }
            | Self::Unsupported { .. }
            | Self::Mismatch { .. }
            | Self::Closed { .. }
            | Self::Uneven { .. }
            | Self::Disagreement { .. } => false,
        }
    }
}
