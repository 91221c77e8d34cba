//! The options of the suites: the command line with its defaults filled in, and the device opened.

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use brisk_program::{Device, Selection};

use crate::command_line::{Common, Suite};

/// How much is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scale {
    Full,
    /// Everything once with little data, to check that it works.
    Smoke,
}

/// The options that every suite needs.
pub(crate) struct Options {
    /// The value of the option that `device` was opened with.
    pub(crate) selection: Selection,
    pub(crate) device: Device,
    /// The Python for the peers, if they are requested.
    pub(crate) peers: Option<PathBuf>,
    /// The program that runs Burn, likewise.
    pub(crate) burn: Option<PathBuf>,
    /// Whether collectives between processes are measured too.
    pub(crate) with_mpi: bool,
    pub(crate) scale: Scale,
    pub(crate) n_rows: usize,
    pub(crate) n_rounds: usize,
    /// The approximate size of each imported text.
    pub(crate) text_bytes: usize,
    pub(crate) json: Option<PathBuf>,
}

impl Options {
    pub(crate) fn new(suite: &Suite) -> Result<Self> {
        let (common, device, rows, mb) = match suite {
            Suite::Higgs(suite) => (&suite.common, Some(&suite.device), suite.rows, None),
            Suite::Amp(suite) => (&suite.common, Some(&suite.device), None, None),
            Suite::Replicate(suite) => (&suite.common, None, None, None),
            Suite::Scaling(suite) => (&suite.common, Some(&suite.device), None, None),
            Suite::Speedups(suite) => (&suite.common, Some(&suite.device), suite.images, None),
            Suite::Overhead(suite) => (&suite.common, Some(&suite.device), suite.rows, None),
            Suite::Loader(suite) => (&suite.common, None, suite.rows, suite.mb),
            Suite::Kernels(suite) => (&suite.common, suite.device.as_ref(), suite.rows, None),
            Suite::Cifar10(suite) => (&suite.common, Some(&suite.device), None, None),
            Suite::Tabular(suite) => (&suite.common, Some(&suite.device), None, None),
        };
        let Common { rounds, smoke, json } = common;
        let scale = if *smoke { Scale::Smoke } else { Scale::Full };
        let default_rows = match (suite, scale) {
            (Suite::Kernels(_), Scale::Smoke) => 2048,
            (Suite::Kernels(_), Scale::Full) => 20_480,
            (Suite::Speedups(_), Scale::Smoke) => 100,
            (Suite::Speedups(_), Scale::Full) => 4000,
            (_, Scale::Smoke) => 10_000,
            (Suite::Loader(_), Scale::Full) => 1_000_000,
            (_, Scale::Full) => 200_000,
        };
        let (default_rounds, default_mb) = if *smoke { (1, 1) } else { (5, 256) };
        let with_mpi = suite.needs_mpi();
        if with_mpi && cfg!(not(feature = "mpi")) {
            bail!("--peers measures MPI, which this program was built without; `cargo xtask bench` builds it with");
        }
        let selection = device.map_or_else(|| Ok(default_device(suite)), |name| name.parse())?;
        Ok(Self {
            device: Device::builder().selection(selection.clone()).open()?,
            selection,
            peers: suite.python_packages().map(|_| named("BRISK_PYTHON", "a Python with the peers")).transpose()?,
            burn: suite.needs_burn().then(|| named("BRISK_BURN", "the program of benches/peers/burn")).transpose()?,
            with_mpi,
            scale,
            n_rows: rows.unwrap_or(default_rows),
            n_rounds: rounds.unwrap_or(default_rounds),
            text_bytes: mb.unwrap_or(default_mb) << 20,
            json: json.clone(),
        })
    }
}

/// The default device of a suite.
fn default_device(suite: &Suite) -> Selection {
    if matches!(suite, Suite::Kernels(_)) && !Device::list().is_empty() { Selection::Index(0) } else { Selection::Cpu }
}

/// The path in an environment variable that `--peers` needs.
fn named(variable: &str, what: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    path.with_context(|| format!("--peers needs {variable} to name {what}; `cargo xtask bench` sets it"))
}
