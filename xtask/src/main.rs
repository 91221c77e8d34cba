//! All automation of the workspace. `cargo xtask --help` is the documentation.
#![forbid(unsafe_code)]
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "printing is what a command-line program does")]

mod bins;
mod check;
#[cfg_attr(not(unix), expect(dead_code, reason = "jobs of several processes are supervised on Unix alone"))]
mod mpi;
mod packages;
mod peers;
mod shell;
mod stages;
mod tidy;
mod vulkan;

use std::io::Write;
use std::process::ExitCode;

use anyhow::{Result, bail};

const HELP: &str = "\
usage: cargo xtask COMMAND [OPTIONS]

  test         everything that is checked before a change lands; what CI runs
  check        the same as test
  tidy         the workspace's own rules: arrows between crates, twins of kernels, leftovers
  conformance  runs the cases whose truth is PyTorch's
  bench        measures, against what bounds us and, with --peers, against others
  mpi          runs an example as processes, on one host or many, and starts it again where a rank is lost
  with-candle  builds and runs the example that is a package of its own

`cargo xtask COMMAND --help` says more.";

const TEST_HELP: &str = "\
usage: cargo xtask test [--only STAGE]... [--no-install]

Runs, in this order, and stops at the first that fails:

  adapter      there is a Vulkan adapter; on Linux without one, Mesa's software driver is installed
  mpi          there is an MPI, for the tests between processes; on Linux without one, Open MPI is installed, and iproute2
  fmt          cargo fmt --all --check
  clippy       cargo clippy --workspace --all-targets --all-features -- -D warnings
  features     cargo check of each crate without features, and with each of its own alone
  doc          cargo doc --workspace --all-features --no-deps, warnings denied
  tests        cargo nextest run --workspace --all-features (cargo test where there is no nextest)
  doctests     cargo test --workspace --all-features --doc
  tidy         cargo xtask tidy
  conformance  cargo xtask conformance, on the cpu executor and on an adapter, in f32, f16 and bf16

Tests run with BRISK_TEST_GPU=require and BRISK_TEST_MPI=require: what needs an adapter, ranks or two hosts fails without, it is not
skipped. Two hosts are namespaces, which some containers forbid: BRISK_TEST_MPI=auto leaves those tests out there, and says so.

  --only STAGE    that stage alone; may be given several times
  --no-install    never install anything: stop with the command that would";

const TIDY_HELP: &str = "\
usage: cargo xtask tidy

Checks rules that neither the compiler nor clippy know. Each line of output is a place and what is wrong there; what to do
about a rule that is itself wrong stands beside it, in xtask/src/tidy.";

const CONFORMANCE_HELP: &str = "\
usage: cargo xtask conformance [DIR] [--device cpu|software|gpu|NAME]... [--precision f32|f16|bf16]... [--op OP]... [--built] [--replicas N]...

Runs every case (a safetensors file) of DIR, or of the set that is kept with the tests, on each device given, or on all there are, in each
precision given, or in f32; in f16 and bf16 under autocast, within tolerances of the format.
Prints a line a case that fails, and last `N passed, N failed`. A case whose operator brisk does not have fails; --built leaves
those out and names them. With --replicas the training runs alone are run, each split over N threads; `cargo xtask mpi -n N -- program` runs the
same over processes. All replicas must come to the same bits, and twice.";

const BENCH_HELP: &str = "\
usage: cargo xtask bench SUITE [--peers] [--yes] [OPTIONS of the suite]

Builds for release, runs the suite and prints ours, the reference and their ratio.

  higgs        training 28-256-256-256-1: --device, --rows, --rounds, --smoke, --json FILE
  amp          mixed precision beside f32: memory, time, what training comes to: --device, --rounds, --only PART, --smoke, --json FILE
  replicate    all-reduce between threads against copies and, with --peers, between processes against MPI itself: --rounds,
               --only PART, --smoke, --json FILE
  scaling      what a training step takes on 1, 2 and 4 threads and, with --peers, processes, beside the prediction; with --simulate, predictions
               for up to 4096 ranks over typical links or one given by --latency-us and --gbit: --device, --rounds, --smoke, --json FILE
  loader       batches, memory, import, opening, tables larger than memory, cold files: --rows, --rounds, --mb, --only PART,
               --smoke, --json FILE
  kernels      the twins, the WGSL and the replay of kernels against what bounds them: --device, --rows, --rounds, --only PART,
               --smoke, --json FILE
  table, program, train
               the benches of that crate, `cargo bench -p brisk-SUITE`

  --peers      also runs PyTorch and, for loader and table, pandas, pyarrow and polars, in the same run: with the Python that
               BRISK_PYTHON names, else one in target/peers-venv; and, for kernels, Burn: the program that BRISK_BURN names, else
               xtask/peers/burn, built in target/burn-peer (the first time some forty minutes of one core); for replicate and scaling, MPI, which the
               program is then built with
  --yes        makes target/peers-venv, or installs Open MPI, without asking; the former downloads several GB (so does CI being set)";

const WITH_CANDLE_HELP: &str = "\
usage: cargo xtask with-candle [OPTIONS of the example]

Builds examples/with_candle, a package outside the workspace, for release in target/with_candle, tests it, and runs it: with --smoke, or with
the options given. The first build takes some six minutes of one core, and downloads candle; `cargo xtask test` leaves it out.";

/// The crates whose own benches are suites.
const BENCHED_CRATES: [&str; 3] = ["table", "program", "train"];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match run(&args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// What a command does with the arguments after its name.
type Act = fn(&[String]) -> Result<ExitCode>;

fn run(args: &[String]) -> Result<ExitCode> {
    let Some((command, args)) = args.split_first() else {
        eprintln!("{HELP}");
        return Ok(ExitCode::FAILURE);
    };
    let (help, act): (&str, Act) = match command.as_str() {
        "test" | "check" => (TEST_HELP, check::run),
        "tidy" => (TIDY_HELP, tidy::run),
        "conformance" => (CONFORMANCE_HELP, bins::conformance),
        "bench" => (BENCH_HELP, peers::bench),
        "mpi" => (mpi::HELP, mpi::run),
        "with-candle" => (WITH_CANDLE_HELP, bins::with_candle),
        "help" | "--help" | "-h" => {
            print_help(HELP);
            return Ok(ExitCode::SUCCESS);
        }
        other => bail!("there is no command `{other}`\n\n{HELP}"),
    };
    // Behind `--` stands what another program is asked.
    if args.iter().take_while(|arg| *arg != "--").any(|arg| arg == "--help" || arg == "-h") {
        print_help(help);
        return Ok(ExitCode::SUCCESS);
    }
    act(args)
}

/// To standard output, which may be closed before the end: `--help | head`.
fn print_help(help: &str) {
    let _ = writeln!(std::io::stdout(), "{help}");
}
