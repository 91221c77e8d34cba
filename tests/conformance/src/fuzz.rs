//! Random programs of tensor operations: every way to run one gives the same results, and PyTorch gives them too.

pub(crate) mod command_line;
mod execute;
mod generate;
mod peer;
mod program;
mod shrink;
mod tolerance;

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use brisk_program::{Device, Rewrite};
use brisk_tensor::Precision;
use serde_json::{Value, json};

use crate::command_line::CasePrecision;
use command_line::CommandLine;
use execute::Way;
use peer::Peer;
use program::Program;
use tolerance::{by_perturbed_inputs, worst};

/// How often PyTorch evaluates a program with random rounding, and how often before a failure is reported.
const N_DRAWS: usize = 5;
const N_DRAWS_OF_FAILURES: usize = 60;

/// Runs the programs; returns the number that failed.
#[expect(clippy::print_stdout, reason = "its report is its result")]
pub(crate) fn run(line: &CommandLine) -> Result<usize> {
    let mut precisions: Vec<Precision> = line.precisions.iter().map(|&precision| precision.into()).collect();
    if precisions.is_empty() {
        precisions.extend(Precision::ALL);
    }
    let fuzz = Fuzz::new(line)?;
    let begin = Instant::now();
    let mut rows = Vec::new();
    for (i, &precision) in precisions.iter().enumerate() {
        let until = line
            .minutes
            .map(|minutes| begin + Duration::from_secs_f64(60.0 * minutes).mul_f64((i + 1) as f64 / precisions.len() as f64));
        let (mut n_programs, mut failures) = (0, Vec::new());
        while until.map_or(n_programs < line.programs, |until| Instant::now() < until) {
            let seed = line.seed + n_programs;
            n_programs += 1;
            if let Some(failure) = fuzz.failure(seed, precision)? {
                println!("{failure}");
                failures.push(failure);
            }
        }
        println!("{precision}: {} of {n_programs} programs failed", failures.len());
        rows.push((precision, n_programs, failures));
    }
    if let Some(path) = &line.json {
        let row = |(precision, n_programs, failures): &(Precision, u64, Vec<String>)| json!({ "precision": precision.to_string(), "programs": n_programs, "failures": failures });
        let report =
            json!({ "seed": line.seed, "peers": line.peers, "precisions": rows.iter().map(row).collect::<Vec<Value>>() });
        std::fs::write(path, format!("{report:#}\n")).with_context(|| format!("{}: cannot write the report", path.display()))?;
    }
    Ok(rows.iter().map(|(_, _, failures)| failures.len()).sum())
}

struct Fuzz<'a> {
    line: &'a CommandLine,
    /// On the CPU: the first with one thread and every fusion.
    ways: Vec<Way>,
    others: Vec<Way>,
    peer: Option<RefCell<Peer>>,
}

impl<'a> Fuzz<'a> {
    fn new(line: &'a CommandLine) -> Result<Self> {
        let cpu = |n_threads: usize| Device::builder().selection(brisk_program::Selection::Cpu).threads(n_threads).open();
        let (one, two) = (cpu(1)?, cpu(2)?);
        let way = |name: &str, device: &Device, rewrites: &'static [Rewrite]| Way {
            name: name.to_owned(),
            device: device.clone(),
            rewrites,
        };
        let ways = vec![
            way("fused", &one, &Rewrite::ALL),
            way("without fusion", &one, &[]),
            way("with two threads", &two, &Rewrite::ALL),
        ];
        let open = |name: &String| -> Result<[Way; 2]> {
            let device = crate::open(name)?;
            Ok([way(&format!("on {name}"), &device, &Rewrite::ALL), way(&format!("on {name} without fusion"), &device, &[])])
        };
        let others = line.devices.iter().map(open).collect::<Result<Vec<_>>>()?.into_iter().flatten().collect();
        let python = || std::env::var_os("BRISK_PYTHON").map_or_else(|| PathBuf::from("python3"), PathBuf::from);
        let peer = line.peers.then(|| Peer::start(&python())).transpose()?.map(RefCell::new);
        Ok(Self { line, ways, others, peer })
    }

    /// What is wrong with the program of a seed, with a smaller program of the same kind and the command that repeats it.
    fn failure(&self, seed: u64, precision: Precision) -> Result<Option<String>> {
        let program = generate::program(seed);
        let runs_on_others = seed.is_multiple_of(self.line.device_every);
        let problem = |program: &Program| self.problem(program, precision, runs_on_others);
        let Some(first) = problem(&program)? else { return Ok(None) };
        let smallest = shrink::shrunk(&program, |program| matches!(problem(program), Ok(Some(_))));
        let what = problem(&smallest)?.unwrap_or(first);
        let steps = smallest.params()["steps"].as_array().cloned().unwrap_or_default();
        let steps: Vec<String> = steps.iter().enumerate().map(|(i, step)| format!("  {i}: {step}")).collect();
        let inputs = smallest.inputs.iter().enumerate().map(|(i, input)| {
            let shown: Vec<String> = input.values.iter().take(8).map(ToString::to_string).collect();
            let more = if input.values.len() > shown.len() { ", ..." } else { "" };
            format!("  {}: {:?} {}{more}", program::name(i), input.shape, shown.join(", "))
        });
        let peers = if self.line.peers { " --peers" } else { "" };
        let devices: String = self.line.devices.iter().map(|name| format!(" --device {name} --device-every 1")).collect();
        let repeat = format!("cargo xtask fuzz-tensors --programs 1 --seed {seed} --precision {precision}{peers}{devices}");
        let inputs: Vec<String> = inputs.collect();
        Ok(Some(format!(
            "FAILED {precision}, seed {seed}: {what}\n{}\n{}\n  repeat: {repeat}",
            inputs.join("\n"),
            steps.join("\n")
        )))
    }

    fn problem(&self, program: &Program, precision: Precision, runs_on_others: bool) -> Result<Option<String>> {
        let (first, rest) = self.ways.split_first().context("there is a first way")?;
        let outputs = match first.run(program, precision) {
            Ok(outputs) => outputs,
            Err(error) => return Ok(Some(format!("brisk refuses it: {error:#}"))),
        };
        for way in rest {
            let found = match way.run(program, precision) {
                Ok(found) => found,
                Err(error) => return Ok(Some(format!("{}, brisk refuses it: {error:#}", way.name))),
            };
            let bits = |values: &[f32]| {
                values.iter().map(|value| if value.is_nan() { u32::MAX } else { value.to_bits() }).collect::<Vec<_>>()
            };
            if let Some(((name, _), _)) = found.iter().zip(&outputs).find(|((_, a), (_, b))| bits(a) != bits(b)) {
                return Ok(Some(format!("`{name}` {} is not bit-identical", way.name)));
            }
        }
        let expected = match &self.peer {
            None => None,
            Some(peer) => {
                let expected = peer.borrow_mut().expected(program, precision, N_DRAWS)?;
                match worst(&outputs, &expected) {
                    None => Some(expected),
                    Some(_) => {
                        let expected = peer.borrow_mut().expected(program, precision, N_DRAWS_OF_FAILURES)?;
                        if let Some(what) = worst(&outputs, &expected) {
                            return Ok(Some(format!("unlike PyTorch, {what}")));
                        }
                        Some(expected)
                    }
                }
            }
        };
        if !runs_on_others || self.others.is_empty() {
            return Ok(None);
        }
        let expected = expected.map_or_else(|| by_perturbed_inputs(first, program, precision, &outputs), Ok)?;
        for way in &self.others {
            if let Some(what) = worst(&way.run(program, precision)?, &expected) {
                return Ok(Some(format!("{}, {what}", way.name)));
            }
        }
        Ok(None)
    }
}
