use std::time::Instant;

use anyhow::Result;
use brisk_program::{Device, DeviceKind};
use brisk_tensor::Precision;

use super::SUITE;
use super::task::{Run, tasks, wide};
use crate::options::{Options, Scale};
use crate::row::{Better, Row};

/// Rows per second of an epoch, with the precisions in alternation; the wide network also with products added in f16, if the device supports that.
#[expect(clippy::print_stdout, reason = "why something is not measured belongs to the report")]
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let is_hardware = options.device.info().kind == DeviceKind::Gpu;
    // On software, the wide network would take minutes without new information; a smoke run checks that it runs.
    let wide = (is_hardware || options.scale == Scale::Smoke).then(|| (wide(options), 1.5, true));
    let mut rows = Vec::new();
    for (task, target, is_wide) in tasks(options).into_iter().map(|task| (task, 0.8, false)).chain(wide) {
        let adding_in_f16 = || Device::builder().selection(options.selection.clone()).allow_f16_accumulation().open();
        let adding_in_f16 = is_wide.then(adding_in_f16).transpose()?;
        let mut cases = Precision::ALL.map(|precision| (precision.to_string(), precision, &options.device)).to_vec();
        if let Some(device) = &adding_in_f16 {
            let resolved = Precision::F16.resolved(device);
            match resolved.f16_places {
                Some(_) => cases.push(("f16 with f16 accumulation".to_owned(), Precision::F16, device)),
                None => println!("{}: no case with f16 accumulation, since f16 here is {resolved}", task.name),
            }
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
        for ((name, precision, _), ours) in cases.iter().skip(1).zip(figures) {
            // wgpu has no arithmetic in bf16, which therefore only saves memory.
            let target = (!is_wide || *precision == Precision::F16).then_some(target);
            rows.push(Row {
                suite: SUITE,
                case: format!("{}, training in {name}, batch {}", task.name, task.batch),
                ours,
                unit: "rows/s",
                reference: Some(("in f32".to_owned(), in_f32.clone())),
                target,
                better: Better::More,
            });
        }
    }
    Ok(rows)
}
