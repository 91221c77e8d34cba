use std::time::Instant;

use anyhow::Result;
use brisk_program::{Device, DeviceKind};
use brisk_tensor::Precision;

use super::SUITE;
use super::task::{Run, tasks, wide};
use crate::options::{Options, Scale};
use crate::row::{Better, Row};

/// Rows a second of an epoch, each precision in its turn; the wide one also with products added in f16, where the device does that.
#[expect(clippy::print_stdout, reason = "why something is not measured belongs to the report")]
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let is_hardware = options.device.info().kind == DeviceKind::Gpu;
    // Elsewhere the wide one would take minutes to say what the others do; a smoke run sees that it runs.
    let wide = (is_hardware || options.scale == Scale::Smoke).then(|| (wide(options), 1.5, true));
    let adding_in_f16 = Device::builder().selection(options.selection.clone()).allow_f16_accumulation().open()?;
    let resolved = Precision::F16.resolved(&adding_in_f16);
    let mut rows = Vec::new();
    for (task, target, is_wide) in tasks(options).into_iter().map(|task| (task, 0.8, false)).chain(wide) {
        let mut cases = Precision::ALL.map(|precision| (precision.to_string(), precision, &options.device)).to_vec();
        if is_wide && resolved.f16_places.is_some() {
            cases.push(("f16 with f16 accumulation".to_owned(), Precision::F16, &adding_in_f16));
        } else if is_wide {
            println!("{}: no case with f16 accumulation, since f16 here is {resolved}", task.name);
        }
        let open = |&(_, precision, device): &(String, Precision, &Device)| Run::new(&task, device, precision, 1);
        let runs = cases.iter().map(open).collect::<Result<Vec<_>>>()?;
        let mut figures = vec![Vec::new(); runs.len()];
        for round in 0..=options.n_rounds {
            for (run, figures) in runs.iter().zip(&mut figures) {
                run.start()?;
                let started = Instant::now();
                run.epoch(0, 0)?;
                // The first round warms up.
                if round > 0 {
                    figures.push(run.n_rows() as f64 / started.elapsed().as_secs_f64());
                }
            }
        }
        let in_f32 = figures.remove(0);
        for ((name, ..), ours) in cases.iter().skip(1).zip(figures) {
            rows.push(Row {
                suite: SUITE,
                case: format!("{}, training in {name}, batch {}", task.name, task.batch),
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
