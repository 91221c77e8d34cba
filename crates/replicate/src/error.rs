use std::time::Duration;

use crate::element::ElementType;
use crate::reduce_op::ReduceOp;

/// What can go wrong between replicas, with the rank and the operation.
///
/// [`Length`](Error::Length), [`Root`](Error::Root) and [`Unsupported`](Error::Unsupported) are found before anything is sent,
/// and the group can continue. After any other error the group is dead: every later call of every rank returns the same error.
///
/// An `op` is the operation, a `rank` without another one the rank that called it.
#[non_exhaustive]
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[expect(missing_docs, reason = "a field is described with its variant, unless its name says what it is")]
pub enum Error {
    /// Two buffers whose lengths cannot both be right: `rule` says what the expected length of `arg` follows from.
    #[error("{op} on rank {rank}: `{arg}` has {found} elements, expected {expected}: {rule}")]
    Length { op: &'static str, rank: usize, arg: &'static str, expected: usize, found: usize, rule: &'static str },
    /// A root that is not a rank of the group.
    #[error("{op} on rank {rank}: root {root} of a world of {world_size}; ranks count from 0 to world_size - 1")]
    Root { op: &'static str, rank: usize, root: usize, world_size: usize },
    /// A reduction that is not defined for the element type.
    #[error("{op} on rank {rank}: {reduce:?} of {element:?} is not defined; reduce floats, or use a sum")]
    Unsupported { op: &'static str, rank: usize, reduce: ReduceOp, element: ElementType },
    /// Ranks made different calls: `rank` the one in `mine`, `other` the one in `theirs`. No buffer was changed.
    #[error(
        "rank {rank} {} where rank {other} {}: every rank must make the same calls, in the same order, with the same lengths and \
         types; look for a branch that depends on the rank",
        did(mine),
        did(theirs)
    )]
    Mismatch { rank: usize, mine: String, other: usize, theirs: String },
    /// Ranks hold different models, or run different programs: `what`, such as a parameter, is `mine` on `rank` and `theirs` on
    /// `other`.
    #[error(
        "{what} differs between rank {rank} and rank {other}: {mine} against {theirs}; start all ranks with the same program, settings and data"
    )]
    Disagreement { what: String, rank: usize, mine: String, other: usize, theirs: String },
    /// Some replicas have run out of batches and others have not: how many of all replicas have one, and how many have none.
    #[error("{has} have a batch, {lacks} have none left; give each the same number of batches, or let those that are done join")]
    Uneven { has: String, lacks: String },
    /// Another rank has failed or left: `rank` was the first, and `why` is its error or panic.
    #[error("rank {rank} failed: {why}; the run ends, start again from the last checkpoint")]
    PeerFailed { rank: usize, why: String },
    /// The ranks in `missing` did not call an operation within the time limit, which the others have `waited`.
    #[error(
        "{op}: waited {waited:?} for {}, which did not respond in time; restart the run from the last checkpoint",
        ranks(missing)
    )]
    Timeout { op: &'static str, missing: Vec<usize>, waited: Duration },
    /// An operation of a communication thread that has ended.
    #[error("{op}: the communication thread has ended, because `finish` was called before")]
    Closed { op: &'static str },
    /// An error of the communication library: its code and its message.
    #[error("{op}: {text} (code {code})")]
    Engine { op: &'static str, code: i32, text: String },
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
