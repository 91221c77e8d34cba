//! The example `higgs`, run on this machine and on an emulated one.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::target;
use crate::programs::executable;
use crate::shell::{command, output, run as must};

/// Small enough for an emulator, large enough for an AUC that random weights do not have.
const OPTIONS: &str = "--device cpu --rows 10000 --epochs 2 --seed 0 --data-dir data --runs runs --json result.json";

/// The result of a run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) test_auc: f64,
    valid_auc: f64,
    /// The trained parameters, as bytes of tensors.
    parameters: Vec<u8>,
    seconds: f64,
}

/// Builds the example for a target, with these variables, or for this machine as the tests do.
pub(super) fn build(target: Option<&str>, variables: &[(&str, &str)]) -> Result<PathBuf> {
    let mut build = command("cargo build --package brisk-examples --example higgs --message-format json-render-diagnostics");
    if let Some(target) = target {
        build.args(["--target", target]).args(target::PROFILE).envs(variables.iter().copied());
    }
    executable(&output(&mut build)?, "example", "higgs").context("cargo built `higgs` but printed no path of its executable")
}

/// Runs `program`, which runs or emulates the example, in an empty folder.
pub(super) fn run(mut program: Command, folder: &Path) -> Result<Run> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(error).with_context(|| format!("could not empty {}", folder.display()));
        }
        _ => fs::create_dir_all(folder).with_context(|| format!("could not make the folder {}", folder.display()))?,
    }
    let begin = Instant::now();
    must(program.args(OPTIONS.split(' ')).current_dir(folder))?;
    let seconds = begin.elapsed().as_secs_f64();
    let text = fs::read_to_string(folder.join("result.json")).context("the example wrote no result.json")?;
    let result: Value = serde_json::from_str(&text).context("the example wrote a result.json that is not JSON")?;
    let figure = |key: &str| result[key].as_f64().with_context(|| format!("the example's result.json has no number `{key}`"));
    let mut runs = fs::read_dir(folder.join("runs")).context("the example made no folder of runs")?;
    let run = runs.next().context("the example made no run folder")??;
    let parameters = parameters(&run.path().join("best.safetensors"))?;
    Ok(Run { test_auc: figure("test_auc")?, valid_auc: figure("valid_auc")?, parameters, seconds })
}

/// The bytes after the header of a safetensors file: those of its tensors.
fn parameters(path: &Path) -> Result<Vec<u8>> {
    let bytes = fs::read(path).with_context(|| format!("could not read {}", path.display()))?;
    let header = bytes.first_chunk().and_then(|length| usize::try_from(u64::from_le_bytes(*length)).ok());
    let tensors = header.and_then(|length| bytes.get(length.checked_add(8)?..));
    Ok(tensors.with_context(|| format!("{} is not a safetensors file", path.display()))?.to_vec())
}

impl Run {
    /// # Errors
    /// The parameters or metrics of the two runs are not bit-identical.
    pub(super) fn check_identical(&self, other: &Self) -> Result<()> {
        let figures = |run: &Self| [run.test_auc, run.valid_auc];
        if figures(self) != figures(other) {
            bail!(
                "test and validation AUC are {:?} on this machine and {:?} there; they should be identical",
                figures(self),
                figures(other)
            );
        }
        if self.parameters != other.parameters {
            let n = self.parameters.iter().zip(&other.parameters).filter(|(a, b)| a != b).count();
            bail!("{n} of {} bytes of trained parameters differ; they should be identical", self.parameters.len());
        }
        Ok(())
    }

    pub(super) fn report(&self, name: &str) {
        let Self { test_auc, valid_auc, seconds, .. } = self;
        eprintln!("{name}: test AUC {test_auc:.6}, validation AUC {valid_auc:.6}, {seconds:.1} s");
    }
}
