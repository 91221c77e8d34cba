//! The command line of the attack. `cargo xtask attack` includes this file, so that it documents and checks the same options.

use std::path::PathBuf;

use clap::{Args, ValueEnum};

/// The programs that are attacked.
pub(crate) const PROGRAMS: [&str; 10] =
    ["higgs", "data_parallel", "launch", "import", "inspect", "tabular", "predict", "first_network", "images", "cifar10"];

/// The options of the attack.
#[derive(Clone, Debug, Args)]
// A group would be named `Options`, as that of the options of `cargo xtask attack`.
#[group(skip)]
pub(crate) struct Options {
    /// How many minutes to attack. Listed cases all run, however long they take; the rest of the time is for random ones
    #[arg(long, value_name = "N", default_value_t = 10.0, value_parser = minutes, conflicts_with_all = ["cases", "case"])]
    pub(crate) minutes: f64,
    /// Runs N cases of each part instead
    #[arg(long, value_name = "N", conflicts_with = "case")]
    pub(crate) cases: Option<u64>,
    /// Runs this part only; may be given several times
    #[arg(long, value_name = "PART")]
    pub(crate) only: Vec<PartName>,
    /// Runs the case with this number only, as findings name it
    #[arg(long, value_name = "N", requires = "only")]
    pub(crate) case: Option<u64>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) seed: u64,
    /// Fails if this machine cannot run a part, instead of leaving it out
    #[arg(long)]
    pub(crate) require: bool,
    /// Keeps the folders of cases with findings in DIR
    #[arg(long, value_name = "DIR")]
    pub(crate) keep: Option<PathBuf>,
    /// Also writes the table and the findings to FILE, as one JSON object
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}

/// A part of the attack.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum PartName {
    /// Programs in the background of a script, and with signals ignored
    Background,
    /// Unusual file names: not UTF-8, very long, with line breaks and control characters
    Names,
    /// Outputs that are inputs, links, devices, pipes, sockets or folders
    Outputs,
    /// Every option with garbage, empty, huge, negative and non-UTF-8 values, and options that do not exist
    Options,
    /// Resuming without a checkpoint, from damaged ones, with other rows, labels and settings, and twice at once
    Resuming,
    /// Runs that train nothing, test on rows they trained on, or do not fit into memory
    WrongResults,
    /// Inputs that are easily read wrongly without a word: the right value, a warning or an error is expected
    Silent,
    /// Ranks of an MPI job whose rows or labels differ
    UnlikeRanks,
    /// SIGKILL at random moments of `import`
    ImportKills,
    /// SIGKILL at random moments of writing a sharded table
    ShardKills,
    /// SIGKILL at random moments of processes that read a table on a server and share a cache
    CacheKills,
    /// SIGKILL at random moments of `higgs` and of `data_parallel` with threads
    TrainingKills,
    /// SIGKILL to ranks of an MPI job that is restarted
    RankKills,
    /// SIGKILL to ranks of an MPI job that streams its rows from a server and is restarted
    UrlKills,
    /// SIGKILL to ranks of an MPI job with ZeRO 3 and a checkpoint of several files after every step; two kills a case
    ZeroKills,
    /// Kills and restarts in a PID namespace, where each process has the same PID as the one before
    SamePid,
    /// Crafted, mutated and truncated tables, indexes, checkpoints and sources of every format
    HostileFiles,
    /// Disks of random size that fill up, and limits on the size of files
    FullDisk,
    /// SIGINT, SIGTERM and SIGHUP at random moments, ignored or not, once or twice
    Signals,
}

fn minutes(word: &str) -> Result<f64, String> {
    match word.parse() {
        Ok(minutes) if minutes > 0.0 && minutes <= 10_000.0 => Ok(minutes),
        _ => Err("expected a number above 0 and at most 10000".to_owned()),
    }
}
