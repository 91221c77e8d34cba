//! Runs conformance cases, whose truth is PyTorch, on the executors.

mod case;
mod convnet;
mod form;
mod operators;
mod optimizers;
#[cfg(feature = "mpi")]
mod ranks;
mod replicas;
mod runs;
mod scores;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result, bail, ensure};
use brisk_program::{Device, Selection};

use brisk_tensor::Precision;
use case::{Case, Outcome, Outputs};
use form::Form;

const HELP: &str = "\
conformance [DIR] [--device cpu|software|gpu|NAME]... [--precision f32|f16|bf16]... [--op OP]... [--built] [--replicas N]...

Runs every case of DIR (default: the project's own fixtures) on each device (default: cpu, and whatever adapter there is), in each precision
(default: f32). In f16 and bf16 operators are recorded under autocast with their input stored so, and tolerances are those of the format;
what is beyond them may be off by as much more as the same in f32 is, of operands rounded alike.
A case whose operator brisk does not have fails; --built leaves those out, and names them.
With --replicas the training runs alone are run, each split over N replicas that are threads; started by mpirun, with the feature mpi, over
its ranks. All replicas must come to the same bits, and twice.";

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

#[derive(Clone)]
struct Options {
    dir: PathBuf,
    devices: Vec<Device>,
    precisions: Vec<Precision>,
    ops: Vec<String>,
    only_built: bool,
    /// How many threads to split training runs over.
    replicas: Vec<usize>,
}

/// How many cases failed.
#[expect(clippy::print_stdout, reason = "its report is its result")]
fn run() -> Result<usize> {
    let Some(options) = options()? else {
        println!("{HELP}");
        return Ok(0);
    };
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
    // Not by the format alone; perhaps it is what rounding does to the function.
    match self::outputs(case, device, Form::Rounded(precision)) {
        Ok(of_rounded) => case.judge(&outputs, precision, of_rounded.as_ref()),
        Err(error) => Outcome::Failed(format!("{error:#}")),
    }
}

/// What the case comes to; `None` if its operator is not known.
fn outputs(case: &Case, device: &Device, form: Form) -> Result<Option<Outputs>> {
    let runners = [operators::run, optimizers::run, runs::run, convnet::run, scores::run];
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

fn options() -> Result<Option<Options>> {
    let mut dir = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/conformance/fixtures"));
    let (mut devices, mut precisions, mut ops, mut replicas, mut only_built) = (vec![], vec![], vec![], vec![], false);
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        match arg.as_str() {
            "--help" | "-h" => return Ok(None),
            "--built" => only_built = true,
            "--device" => devices.push(open(&args.next().context("--device wants a name, such as cpu")?)?),
            "--precision" => precisions.push(args.next().context("--precision wants f32, f16 or bf16")?.parse()?),
            "--replicas" => replicas.push(args.next().context("--replicas wants a number")?.parse()?),
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
    if precisions.is_empty() {
        precisions.push(Precision::F32);
    }
    if !replicas.is_empty() {
        ensure!(!replicas.contains(&0), "--replicas 0: take at least 1");
        ensure!(ops.is_empty(), "--replicas runs the training runs; leave --op out");
        ops = ["train_mlp", "train_convnet"].map(str::to_owned).into();
    }
    Ok(Some(Options { dir, devices, precisions, ops, only_built, replicas }))
}

fn open(name: &str) -> Result<Device> {
    let selection: Selection = name.parse()?;
    Ok(Device::builder().selection(selection).open()?)
}
