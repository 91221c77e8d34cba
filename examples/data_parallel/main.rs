//! The network of `higgs`, trained on several replicas: threads of one process, or processes started by `mpirun` or `srun`.
//!
//! `cargo run --release --example data_parallel -- --help`

mod launch;
mod options;
mod ranks;
mod replica_device;
mod run;
mod streamed;
mod texts;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use brisk_examples::higgs::stopped::StartedBy;
use brisk_examples::higgs::{Data, stopped};
use brisk_examples::{command_line, print, write_json};
use brisk_report::{closing_table, mebibytes, thousands};
use brisk_train::{StopFlag, ThreadsConfig, run_threads};
use serde_json::json;

use options::Options;
use run::Finished;

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(options: Options) -> Result<ExitCode> {
    let started = Instant::now();
    let (finished, started_by) = match launch::n_ranks(|name| std::env::var(name).ok())? {
        Some(n_ranks) => {
            launch::check_replicas(options.replicas, n_ranks)?;
            options.check(n_ranks)?;
            (ranks::run(&options, n_ranks, started), StartedBy::Launcher)
        }
        None => (threads(&options, started).map(Some), StartedBy::CommandLine),
    };
    match finished {
        Ok(None) => Ok(ExitCode::SUCCESS),
        Ok(Some(finished)) => {
            let status = stopped::finish(&finished.outcome.report, finished.stop.signal(), &finished.checkpoint, started_by);
            show(&options, &finished)?;
            Ok(status)
        }
        // The handlers are installed before the training, and every call returns the same flag.
        Err(error) => stopped::without_results(error, &StopFlag::on_signals()?, started_by),
    }
}

/// Trains with replicas that are threads and share the rows.
fn threads(options: &Options, started: Instant) -> Result<Finished> {
    let n_replicas = options.replicas.unwrap_or(2);
    // First: the check creates files for a moment.
    let stop = StopFlag::on_signals()?;
    options.check(n_replicas)?;
    let data = Data::open_held(&options.run, &options.held(), &stop, &|said| print::note(said))?;
    let threads = ThreadsConfig::new(n_replicas);
    let threads = ThreadsConfig { timeout: options.timeout().unwrap_or(threads.timeout), ..threads };
    let finished = run_threads(threads, &options.parallel(), |replica| run::train(replica, &data, options, &stop, started))?;
    Ok(finished.into_iter().next().expect("there is at least one replica"))
}

/// Shows the results.
fn show(options: &Options, finished: &Finished) -> Result<()> {
    let Finished { outcome, everybody, engine, .. } = finished;
    let mut lines = outcome.lines(&options.run);
    let reductions = format!("{} of {} together", thousands(finished.n_reductions), finished.reduced_mebibytes);
    let hidden = format!("{reductions}, {:.0} % of their time hidden", 100.0 * finished.hidden);
    let state = format!("{} on each", mebibytes(finished.state_bytes as u64));
    let replicas = format!("{} by {engine}", everybody.len());
    lines.splice(1..1, [("replicas", replicas), ("training state", state), ("reductions", hidden)]);
    let written = options.run.json.as_ref().map_or(Ok(()), |path| {
        let mut results = outcome.json(&options.run);
        results["n_replicas"] = json!(everybody.len());
        results["engine"] = json!(engine);
        results["replicas"] = json!(everybody);
        results["state_bytes"] = json!(finished.state_bytes);
        results["reductions"] = json!(finished.n_reductions);
        results["reduction_hidden"] = json!(finished.hidden);
        write_json(path, &results)
    });
    print::result(closing_table(&lines))?;
    written
}
