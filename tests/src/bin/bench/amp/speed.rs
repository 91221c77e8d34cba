use std::time::Instant;

use anyhow::Result;
use brisk_program::DeviceKind;
use brisk_tensor::Precision;

use super::SUITE;
use super::task::{Run, tasks, wide};
use crate::options::{Options, Scale};
use crate::row::{Better, Row};

/// Rows a second of an epoch, each precision in its turn.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let is_hardware = options.device.info().kind == DeviceKind::Gpu;
    // Elsewhere the wide one would take minutes to say what the others do; a smoke run sees that it runs.
    let wide = (is_hardware || options.scale == Scale::Smoke).then(|| (wide(options), 1.5));
    let mut rows = Vec::new();
    for (task, target) in tasks(options).into_iter().map(|task| (task, 0.8)).chain(wide) {
        let runs = Precision::ALL.map(|precision| Run::new(&task, &options.device, precision, 1));
        let mut figures: [Vec<f64>; 3] = Default::default();
        for round in 0..=options.n_rounds {
            for (run, figures) in runs.iter().zip(&mut figures) {
                let run = run.as_ref().map_err(|error| anyhow::anyhow!("{error:#}"))?;
                run.start()?;
                let started = Instant::now();
                run.epoch(0, 0)?;
                // The first round warms up.
                if round > 0 {
                    figures.push(run.n_rows() as f64 / started.elapsed().as_secs_f64());
                }
            }
        }
        let [in_f32, in_f16, in_bf16] = figures;
        for (precision, ours) in [(Precision::F16, in_f16), (Precision::Bf16, in_bf16)] {
            rows.push(Row {
                suite: SUITE,
                case: format!("{}, training in {precision}, batch {}", task.name, task.batch),
                ours,
                unit: "rows/s",
                reference: Some(("in f32".to_owned(), in_f32.clone())),
                target: Some(target),
                better: Better::More,
            });
        }
    }
    Ok(rows)
}
