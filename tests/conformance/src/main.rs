//! Runs conformance cases, whose expected results were computed by PyTorch, on the executors.

mod algebra;
mod case;
mod command_line;
mod convnet;
mod form;
mod fuzz;
mod operators;
mod optimizers;
#[cfg(feature = "mpi")]
mod ranks;
mod replicas;
mod runs;
mod scores;
mod tab_m;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brisk_program::{Device, Selection};
use brisk_tensor::Precision;
use clap::Parser;

use case::{Case, Outcome, Outputs, rounding_error};
use command_line::{CasePrecision, CommandLine};
use form::Form;

#[expect(clippy::print_stderr, reason = "an error goes to standard error")]
fn main() -> ExitCode {
    // `cargo xtask fuzz-tensors` starts it with this word.
    let args: Vec<_> = std::env::args_os().collect();
    let ended = match args.get(1) {
        Some(word) if word == "fuzz-tensors" => fuzz::run(&fuzz::command_line::CommandLine::parse_from(&args[1..])),
        _ => run(),
    };
    match ended {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[derive(Clone)]
struct Options {
    dir: PathBuf,
    devices: Vec<Device>,
    precisions: Vec<Precision>,
    ops: Vec<String>,
    only_built: bool,
    /// Numbers of threads to split training runs across.
    replicas: Vec<usize>,
}

impl Options {
    fn new(line: CommandLine) -> Result<Self> {
        let fixtures = || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/fixtures"));
        let mut devices = line.devices.iter().map(|name| open(name)).collect::<Result<Vec<_>>>()?;
        if devices.is_empty() {
            devices.push(Device::cpu()?);
            if !Device::list().is_empty() {
                devices.push(open("0")?);
            }
        }
        let mut precisions: Vec<Precision> = line.precisions.into_iter().map(Precision::from).collect();
        if precisions.is_empty() {
            precisions.push(Precision::F32);
        }
        let training = || ["train_mlp", "train_convnet"].map(str::to_owned).into();
        Ok(Self {
            dir: line.dir.unwrap_or_else(fixtures),
            devices,
            precisions,
            ops: if line.replicas.is_empty() { line.ops } else { training() },
            only_built: line.built,
            replicas: line.replicas,
        })
    }
}

impl From<CasePrecision> for Precision {
    fn from(precision: CasePrecision) -> Self {
        match precision {
            CasePrecision::F32 => Self::F32,
            CasePrecision::F16 => Self::F16,
            CasePrecision::Bf16 => Self::Bf16,
        }
    }
}

/// Runs the cases; returns the number that failed.
#[expect(clippy::print_stdout, reason = "its report is its result")]
fn run() -> Result<usize> {
    let options = Options::new(CommandLine::parse())?;
    #[cfg(feature = "mpi")]
    if let Some(n_failed) = ranks::run(&options)? {
        return Ok(n_failed);
    }
    let cases = read_cases(&options)?;
    let (mut n_passed, mut n_failed, mut missing) = (0, 0, std::collections::BTreeMap::<String, usize>::new());
    for (device, &precision) in options.devices.iter().flat_map(|device| options.precisions.iter().map(move |p| (device, p))) {
        println!("in {precision} on {}", device.info());
        let all = || cases.iter().map(|case| (case, None));
        let split = || cases.iter().flat_map(|case| options.replicas.iter().map(move |&n| (case, Some(n))));
        let tasks: Vec<_> = if options.replicas.is_empty() { all().collect() } else { split().collect() };
        for (case, replicas) in tasks {
            match run_case(case, device, precision, replicas) {
                Outcome::Passed => n_passed += 1,
                Outcome::Failed(why) => {
                    n_failed += 1;
                    let on = replicas.map_or(String::new(), |n| format!(" on {n} replicas"));
                    println!("FAILED {}{on} {}: {why}", case.file, case.params);
                }
                Outcome::Unknown if options.only_built => *missing.entry(case.op.clone()).or_default() += 1,
                Outcome::Unknown => {
                    n_failed += 1;
                    println!("FAILED {}: brisk has no operator `{}`", case.file, case.op);
                }
            }
        }
    }
    if !missing.is_empty() {
        let names = missing.iter().map(|(op, n)| format!("{op} ({n})")).collect::<Vec<_>>().join(", ");
        println!("not built, so not run: {names}");
    }
    println!("{n_passed} passed, {n_failed} failed");
    Ok(n_failed)
}

fn run_case(case: &Case, device: &Device, precision: Precision, replicas: Option<usize>) -> Outcome {
    let stored = match replicas {
        None => outputs(case, device, Form::Stored(precision)),
        Some(n) => replicas::by_threads(case, device, Form::Stored(precision), n),
    };
    let outputs = match stored {
        Ok(Some(outputs)) => outputs,
        Ok(None) => return Outcome::Unknown,
        Err(error) => return Outcome::Failed(format!("{error:#}")),
    };
    let outcome = case.judge(&outputs, precision, None);
    if precision == Precision::F32 || matches!(outcome, Outcome::Passed) {
        return outcome;
    }
    // Beyond the format's tolerance, which can still be the effect of rounded operands.
    let of_rounded = match self::outputs(case, device, Form::Rounded(precision)) {
        Ok(None) if case.op.starts_with("train_") || tab_m::is_ensemble(case) => of_perturbed(case, device, precision),
        of_rounded => of_rounded,
    };
    match of_rounded {
        Ok(of_rounded) => case.judge(&outputs, precision, of_rounded.as_ref()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// The results of networks in f32 whose inputs are off by a rounding error of the format, of each value the one that is farthest
/// from the expected one: a rounding error that makes another of two pixels the maximum sends the gradients of the following
/// steps elsewhere.
fn of_perturbed(case: &Case, device: &Device, precision: Precision) -> Result<Option<Outputs>> {
    const N_RUNS: u64 = 16;
    let mut farthest: Option<Outputs> = None;
    for run in 0..N_RUNS {
        let perturbed = case.perturbed(rounding_error(precision), run);
        let Some(found) = outputs(&perturbed, device, Form::Stored(Precision::F32))? else { return Ok(None) };
        match &mut farthest {
            None => farthest = Some(found),
            Some(farthest) => case.keep_farthest(farthest, found),
        }
    }
    Ok(farthest)
}

/// Runs the case; `None` if its operator is unknown.
fn outputs(case: &Case, device: &Device, form: Form) -> Result<Option<Outputs>> {
    let runners = [algebra::run, operators::run, optimizers::run, runs::run, convnet::run, scores::run, tab_m::run];
    runners.into_iter().find_map(|runner| runner(case, device, form).transpose()).transpose()
}

fn read_cases(options: &Options) -> Result<Vec<Case>> {
    let dir = options.dir.display();
    let entries = std::fs::read_dir(&options.dir).with_context(|| format!("{dir}: cannot list the folder of cases"))?;
    let mut files: Vec<_> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    files.sort();
    let mut cases = files.iter().map(|path| Case::read(path)).collect::<Result<Vec<_>>>()?;
    if !options.ops.is_empty() {
        cases.retain(|case| options.ops.contains(&case.op));
    }
    if cases.is_empty() {
        bail!("{dir}: no cases (*.safetensors) to run");
    }
    Ok(cases)
}

fn open(name: &str) -> Result<Device> {
    let selection: Selection = name.parse()?;
    Ok(Device::builder().selection(selection).open()?)
}
