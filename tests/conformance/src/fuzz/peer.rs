//! PyTorch, in a Python process that evaluates the same steps.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context, Result, bail};
use brisk_tensor::Precision;
use serde_json::{Value, json};

use super::execute::output_gradient;
use super::program::{Program, name};
use super::tolerance::Expected;

/// The script, beside this crate's sources.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/fuzz_tensors.py");

pub(crate) struct Peer {
    child: Child,
    requests: ChildStdin,
    replies: BufReader<ChildStdout>,
}

impl Peer {
    pub(crate) fn start(python: &Path) -> Result<Self> {
        let mut command = Command::new(python);
        command.arg(SCRIPT).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().with_context(|| format!("cannot start {}", python.display()))?;
        let (requests, replies) = (child.stdin.take(), child.stdout.take());
        let requests = requests.context("a pipe was asked for")?;
        let replies = BufReader::new(replies.context("a pipe was asked for")?);
        Ok(Self { child, requests, replies })
    }

    /// The results by PyTorch, with tolerances from `n_draws` evaluations that round at random.
    pub(crate) fn expected(&mut self, program: &Program, precision: Precision, n_draws: usize) -> Result<Vec<Expected>> {
        let inputs = program.inputs.iter().enumerate().map(|(i, input)| {
            json!({ "name": name(i), "shape": input.shape, "values": hex(&input.values), "has_gradient": input.has_gradient })
        });
        let shape = program.shapes().and_then(|mut shapes| shapes.pop()).unwrap_or_default();
        let request = json!({
            "steps": program.params()["steps"], "inputs": inputs.collect::<Vec<_>>(), "precision": precision.to_string(), "draws": n_draws,
            "output_gradient": hex(&output_gradient(&shape)),
        });
        writeln!(self.requests, "{request}").context("PyTorch's process has ended")?;
        let mut line = String::new();
        self.replies.read_line(&mut line).context("PyTorch's process has ended")?;
        let reply: Value = serde_json::from_str(&line).with_context(|| format!("PyTorch's process has ended after {request}"))?;
        if let Some(error) = reply["error"].as_str() {
            bail!("PyTorch refuses the program: {error}");
        }
        let outputs = reply.as_object().context("a reply that is no object")?;
        outputs
            .iter()
            .map(|(name, output)| {
                let floats = |key: &str| floats(output[key].as_str().unwrap_or_default());
                Ok(Expected { name: name.clone(), values: floats("values")?, tolerances: floats("tolerances")? })
            })
            .collect()
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It ends by itself when its input is closed; an error means that it has.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The bytes of numbers, little-endian, in hexadecimal.
fn hex(values: &[f32]) -> String {
    values.iter().map(|value| format!("{:08x}", value.to_bits().swap_bytes())).collect()
}

fn floats(hex: &str) -> Result<Vec<f32>> {
    let number = |digits: &[u8]| Ok(f32::from_bits(u32::from_str_radix(std::str::from_utf8(digits)?, 16)?.swap_bytes()));
    hex.as_bytes().chunks(8).map(number).collect()
}
