//! Several processes on one device, each with a share of its memory: their throughput together, compared with a single one.
//!
//! `cargo run --release --example shared_device -- --help`

mod options;
mod together;
mod worker;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::Result;
use brisk_examples::higgs::Data;
use brisk_examples::{command_line, print, write_json};
use brisk_loader::RowSource as _;
use brisk_nn::tensor::program::Device;
use brisk_report::{mebibytes, rows_per_second, thousands};
use brisk_train::StopFlag;
use serde_json::{Value, json};

use options::Options;

fn main() -> ExitCode {
    command_line::run(run)
}

fn run(options: Options) -> Result<ExitCode> {
    if let Some(n) = options.worker_of {
        return worker::work(n, &options).map(|()| ExitCode::SUCCESS);
    }
    options.run.check(None)?;
    Device::builder().selection(options.device.clone()).check()?;
    let started = Instant::now();
    // The rows are simulated or imported once, before several processes need them.
    let rows = Data::open(&options.run, &StopFlag::new(), &|said| print::note(said))?.train.n_rows();

    // Each round measures every number of processes, so that other work on the machine affects all of them equally.
    let mut measured: Vec<Vec<Throughput>> = vec![Vec::new(); options.processes.len()];
    for round in 1..=options.rounds {
        for (&n, rounds) in options.processes.iter().zip(&mut measured) {
            print::note(format_args!("round {round} of {}: {n} at a time", options.rounds));
            rounds.push(Throughput::of(together::run(n)?));
        }
    }
    let measured: Vec<Throughput> = measured.into_iter().map(median).collect();
    if let Some(path) = &options.run.json {
        write_json(path, &results(&options, &measured, started.elapsed().as_secs_f64()))?;
    }
    let one = &measured[0].first;
    let sizes = options.run.hidden.iter().map(ToString::to_string).collect::<Vec<_>>().join("-");
    let hidden = if sizes.is_empty() { "no" } else { &sizes };
    let about = format!(
        "device   {}\nnetwork  {hidden} hidden units, batches of {}, {} rows\n",
        one["device"].as_str().unwrap_or_default(),
        options.run.batch,
        thousands(rows as u64)
    );
    print::result(about + &table(&options, &measured))?;
    Ok(ExitCode::SUCCESS)
}

/// The throughput of several processes together.
#[derive(Debug, Clone)]
struct Throughput {
    trained_per_s: f64,
    scored_per_s: f64,
    /// The results of the first of them.
    first: Value,
}

impl Throughput {
    fn of(results: Vec<Value>) -> Self {
        Self {
            trained_per_s: together::rate(&results, "n_trained", "trained"),
            scored_per_s: together::rate(&results, "n_scored", "scored"),
            first: results.into_iter().next().unwrap_or_default(),
        }
    }
}

fn median(mut rounds: Vec<Throughput>) -> Throughput {
    let middle = rounds.len() / 2;
    rounds.sort_by(|a, b| a.scored_per_s.total_cmp(&b.scored_per_s));
    let scored_per_s = rounds[middle].scored_per_s;
    rounds.sort_by(|a, b| a.trained_per_s.total_cmp(&b.trained_per_s));
    Throughput { scored_per_s, ..rounds.swap_remove(middle) }
}

fn table(options: &Options, measured: &[Throughput]) -> String {
    let heading = format!(
        "{:>9}  {:>20}  {:>8}  {:>19}  {:>8}  {:>11}",
        "processes", "trained rows/s, all", "of first", "scored rows/s, all", "of first", "memory each"
    );
    let first = &measured[0];
    let lines = options.processes.iter().zip(measured).map(|(n, together)| {
        format!(
            "{n:>9}  {:>20}  {:>8.2}  {:>19}  {:>8.2}  {:>11}",
            rows_per_second(together.trained_per_s),
            together.trained_per_s / first.trained_per_s,
            rows_per_second(together.scored_per_s),
            together.scored_per_s / first.scored_per_s,
            mebibytes(together.first["allocated_bytes"].as_u64().unwrap_or(0))
        )
    });
    std::iter::once(heading).chain(lines).collect::<Vec<_>>().join("\n")
}

/// The results for `--json`: those of the first process, and the throughput of all.
fn results(options: &Options, measured: &[Throughput], seconds: f64) -> Value {
    let mut results = measured[0].first.clone();
    results["seconds"] = json!(seconds);
    results["memory_limit_bytes"] = json!(options.memory_bytes());
    let processes = options.processes.iter().zip(measured).map(|(n, together)| {
        json!({
            "n": n, "train_rows_per_s": together.trained_per_s, "score_rows_per_s": together.scored_per_s,
            "device": together.first["device"], "allocated_bytes": together.first["allocated_bytes"], "test_auc": together.first["test_auc"],
        })
    });
    results["processes"] = processes.collect();
    results
}
