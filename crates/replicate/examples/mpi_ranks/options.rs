use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

/// Collectives over MPI ranks, and what happens when a rank fails or differs from the others
///
/// `launch -n 4 mpi_ranks CASE`, in the folder of the built examples
#[derive(Debug, Parser)]
pub(crate) struct Options {
    #[command(subcommand)]
    case: Option<Case>,
}

impl Options {
    /// The case to run; `sum` if none was given.
    pub(crate) fn case(self) -> Case {
        self.case.unwrap_or(Case::Sum)
    }
}

#[derive(Debug, Clone, Subcommand)]
pub(crate) enum Case {
    /// Every operation once, and a hash of the results; the default
    Sum,
    /// The same, with sums in the order that the MPI library chooses
    SumByEngine,
    /// Sixty steps of a run that can lose a rank and be started again
    Steps(Steps),
    /// The last rank panics while the others wait for it
    Panic,
    /// The last rank exits while the others wait for it
    Leave,
    /// The last rank sleeps while the others wait for it
    Hang,
    /// The last rank comes late, and the others know for how long
    Late,
    /// The last rank passes a buffer of another length
    Length,
    /// The last rank passes values of another type
    Type,
    /// The last rank calls another operation
    Order,
    /// The last rank differs in length, type and operation, where either it or the others send few values
    FewAndMany,
    /// The last rank has a parameter of another shape
    Shape,
    /// The last rank was built with another version
    Version,
}

#[derive(Debug, Clone, Args)]
pub(crate) struct Steps {
    /// Folder in which rank 0 keeps the result every ten steps
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Resume from the result kept in --out, if there is one
    #[arg(long, value_name = "auto", value_parser = ["auto"])]
    pub(crate) resume: Option<String>,
    /// Kill a rank at a step
    #[arg(long, value_name = "RANK@STEP", value_parser = rank_at_step, conflicts_with = "stop")]
    pub(crate) kill: Option<(usize, u64)>,
    /// Stop a rank at a step, so that it hangs
    #[arg(long, value_name = "RANK@STEP", value_parser = rank_at_step)]
    pub(crate) stop: Option<(usize, u64)>,
}

fn rank_at_step(word: &str) -> Result<(usize, u64), String> {
    let parsed = word.split_once('@').and_then(|(rank, step)| Some((rank.parse().ok()?, step.parse().ok()?)));
    parsed.ok_or_else(|| "expected a rank and a step, such as 1@25".to_owned())
}
