//! Runs conformance cases, whose truth is PyTorch, on the executors.

mod case;
mod convnet;
mod operators;
mod optimizers;
mod runs;
mod scores;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use brisk_program::{Device, Selection};

use case::{Case, Outcome};

const HELP: &str = "\
conformance [DIR] [--device cpu|software|gpu|NAME]... [--op OP]... [--built]

Runs every case of DIR (default: the project's own fixtures) on each device (default: cpu, and whatever adapter there is).
A case whose operator brisk does not have fails; --built leaves those out, and names them.";

#[expect(clippy::print_stderr, reason = "an error goes to standard error")]
fn main() -> ExitCode {
    match run() {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("conformance: {error:#}");
            ExitCode::FAILURE
        }
    }
}

struct Options {
    dir: PathBuf,
    devices: Vec<Device>,
    ops: Vec<String>,
    only_built: bool,
}

/// How many cases failed.
#[expect(clippy::print_stdout, reason = "its report is its result")]
fn run() -> Result<usize> {
    let Some(options) = options()? else {
        println!("{HELP}");
        return Ok(0);
    };
    let cases = read_cases(&options)?;
    let (mut n_passed, mut n_failed, mut missing) = (0, 0, std::collections::BTreeMap::<String, usize>::new());
    for device in &options.devices {
        println!("on {}", device.info());
        for case in &cases {
            match run_case(case, device) {
                Outcome::Passed => n_passed += 1,
                Outcome::Failed(why) => {
                    n_failed += 1;
                    println!("FAILED {} {}: {why}", case.file, case.params);
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

fn run_case(case: &Case, device: &Device) -> Outcome {
    let runners = [operators::run, optimizers::run, runs::run, convnet::run, scores::run];
    for runner in runners {
        match runner(case, device) {
            Ok(Some(outputs)) => return case.judge(&outputs),
            Ok(None) => {}
            Err(error) => return Outcome::Failed(format!("{error:#}")),
        }
    }
    Outcome::Unknown
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

fn options() -> Result<Option<Options>> {
    let mut dir = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/fixtures"));
    let (mut devices, mut ops, mut only_built) = (Vec::new(), Vec::new(), false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" | "-h" => return Ok(None),
            "--built" => only_built = true,
            "--device" => devices.push(open(&args.next().context("--device wants a name, such as cpu")?)?),
            "--op" => ops.push(args.next().context("--op wants the name of an operator")?),
            flag if flag.starts_with('-') => bail!("unknown option {flag}; see --help"),
            path => dir = PathBuf::from(path),
        }
    }
    if devices.is_empty() {
        devices.push(Device::cpu()?);
        if !Device::list().is_empty() {
            devices.push(open("0")?);
        }
    }
    Ok(Some(Options { dir, devices, ops, only_built }))
}

fn open(name: &str) -> Result<Device> {
    let selection: Selection = name.parse()?;
    Ok(Device::builder().selection(selection).open()?)
}
