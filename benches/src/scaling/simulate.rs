use std::time::Duration;

use anyhow::Result;
use brisk_replicate::{Algorithm, Link, StepCost, ZeroStage};
use brisk_train::DataParallel;
use serde_json::{Value, json};

use super::SUITE;
use crate::options::{Options, Scale};
use crate::replicate::network::{HIGGS, Network, UpTo, WIDE};

const STAGES: [(ZeroStage, &str); 4] = [
    (ZeroStage::Replicated, "DDP"),
    (ZeroStage::Optimizer, "ZeRO 1"),
    (ZeroStage::Gradients, "ZeRO 2"),
    (ZeroStage::Parameters, "ZeRO 3"),
];
const ALGORITHMS: [(Algorithm, &str); 2] = [(Algorithm::Ring, "ring"), (Algorithm::Tree, "tree")];

/// Prints the efficiency on 1 to 4096 ranks, each with this device and its own batch, and returns the times too.
#[expect(clippy::print_stdout, reason = "its figures are its result")]
pub(super) fn run(options: &Options, links: Vec<(String, Link)>) -> Result<Vec<Value>> {
    let n_ranks: Vec<usize> = (0..=12).map(|power| 1 << power).collect();
    let mut predictions = Vec::new();
    for network in [HIGGS, WIDE] {
        let network = if options.scale == Scale::Smoke { network.tiny() } else { network };
        let step = measured(options, &network)?;
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        println!(
            "\n{}, batch {} a rank on {}: forward {:.2} ms, backward {:.2} ms, update {:.2} ms; {:.1} MB of gradients in {} buckets. Efficiency in %:\n",
            network.name,
            network.batch,
            options.device.info(),
            ms(step.forward),
            ms(step.backward),
            ms(step.update),
            step.bucket_bytes.iter().sum::<usize>() as f64 / 1e6,
            step.bucket_bytes.len(),
        );
        let heads: String = n_ranks.iter().map(|n| format!(" {n:>5} |")).collect();
        println!("| {:<36} | state  | by   |{heads}", "link");
        println!("| {0:<36} | ---    | ---  |{1}", "---", "  ---: |".repeat(n_ranks.len()));
        for (link_name, link) in &links {
            for (stage, stage_name) in STAGES {
                for (algorithm, algorithm_name) in ALGORITHMS {
                    let mut cells = String::new();
                    for &n in &n_ranks {
                        let efficiency = step.efficiency(n, stage, *link, algorithm);
                        cells += &format!(" {:>5.1} |", 100.0 * efficiency);
                        predictions.push(json!({
                            "suite": SUITE, "network": network.name, "batch": network.batch, "link": link_name,
                            "latency_s": link.latency.as_secs_f64(), "bytes_per_s": link.bytes_per_s,
                            "stage": stage_name, "algorithm": algorithm_name, "n_ranks": n,
                            "step_s": step.predicted(n, stage, *link, algorithm).as_secs_f64(), "efficiency": efficiency,
                        }));
                    }
                    println!("| {link_name:<36} | {stage_name:<6} | {algorithm_name:<4} |{cells}");
                }
            }
        }
    }
    println!(
        "\nThe gradients are assumed to be in the memory that the link reads. Above 100: sharding the update saves more time than ZeRO's communication takes."
    );
    Ok(predictions)
}

/// A step on one device: the minimum of each pass.
fn measured(options: &Options, network: &Network) -> Result<StepCost> {
    let device = &options.device;
    let passes =
        [UpTo::Forward, UpTo::Backward, UpTo::Update(DataParallel::single())].map(|up_to| network.record(device, &up_to));
    let [forward, backward, update] = passes;
    let passes = [forward?, backward?, update?];
    let mut least = [f64::MAX; 3];
    for _ in 0..10 * options.n_rounds {
        for (pass, least) in passes.iter().zip(&mut least) {
            *least = least.min(pass.seconds()?);
        }
    }
    Ok(step(least, network.bucket_bytes()))
}

/// The duration of each pass, from the times up to the end of each pass.
pub(super) fn step([forward, backward, update]: [f64; 3], bucket_bytes: Vec<usize>) -> StepCost {
    let between = |from: f64, to: f64| Duration::from_secs_f64((to - from).max(0.0));
    StepCost {
        forward: between(0.0, forward),
        backward: between(forward, backward),
        update: between(backward, update),
        bucket_bytes,
    }
}
