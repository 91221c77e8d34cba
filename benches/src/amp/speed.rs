use std::time::Instant;

use anyhow::{Result, bail, ensure};
use brisk_program::{Device, DeviceKind};
use brisk_tensor::Precision;

use super::SUITE;
use super::task::{Run, large_batches, tab_m, tasks, wide};
use crate::options::{Options, Scale};
use crate::peer::Peer;
use crate::row::{Better, Row};

/// The script that trains in PyTorch.
const PEER: &str = "benches/peers/amp.py";

/// Rows per second of an epoch, with the precisions in alternation; the wide network also with products added in f16, if the
/// device supports that.
#[expect(clippy::print_stdout, reason = "why something is not measured belongs to the report")]
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let is_hardware = options.device.info().kind == DeviceKind::Gpu;
    let place = if is_hardware { "gpu" } else { "cpu" };
    // On software, the wide network would take minutes without new information; a smoke run checks that it runs.
    let wide = (is_hardware || options.scale == Scale::Smoke).then(|| (wide(options), 1.5, true));
    let mut peer = options
        .peers
        .as_ref()
        .map(|python| Peer::python(python, PEER, &[place.to_owned(), rayon::current_num_threads().to_string()]))
        .transpose()?;
    let mut rows = Vec::new();
    let [mlp, convnet] = tasks(options);
    for (task, target, is_wide) in
        [mlp, large_batches(options), tab_m(options), convnet].into_iter().map(|task| (task, 0.8, false)).chain(wide)
    {
        let adding_in_f16 = || Device::builder().selection(options.selection.clone()).allow_f16_accumulation().open();
        let adding_in_f16 = is_wide.then(adding_in_f16).transpose()?;
        let mut cases = Precision::ALL.map(|precision| (precision.to_string(), precision, &options.device)).to_vec();
        if let Some(device) = &adding_in_f16 {
            let resolved = Precision::F16.resolved(device);
            match resolved.f16_sum_len {
                Some(_) => cases.push(("f16 with f16 accumulation".to_owned(), Precision::F16, device)),
                None => println!("{}: no case with f16 accumulation, since f16 here is {resolved}", task.name),
            }
        }
        let open = |&(_, precision, device): &(String, Precision, &Device)| Run::new(&task, device, precision, 1);
        let runs = cases.iter().map(open).collect::<Result<Vec<_>>>()?;
        let mut figures = vec![Vec::new(); runs.len()];
        let mut theirs = vec![Vec::new(); runs.len()];
        for round in 0..=options.n_rounds {
            for (i, (run, figures)) in runs.iter().zip(&mut figures).enumerate() {
                run.start()?;
                let started = Instant::now();
                run.epoch(0, 0)?;
                // The first round warms up.
                if round > 0 {
                    figures.push(run.n_rows() as f64 / started.elapsed().as_secs_f64());
                }
                let Some((peer, name)) = peer.as_mut().zip(task.peer) else { continue };
                let [figure, loss] = peer.ask(&format!("{name} {} {} {}", cases[i].1, task.batch, run.n_rows()))?[..] else {
                    bail!("{PEER} answered with other than two figures");
                };
                ensure!(loss.is_finite(), "{PEER}: the loss of {name} in {} is {loss}, so there is nothing to time", cases[i].1);
                if round > 0 {
                    theirs[i].push(figure);
                }
            }
        }
        let named = |name: &str| format!("{}, training in {name}, batch {}", task.name, task.batch);
        for ((name, ours), theirs) in
            cases.iter().map(|case| &case.0).zip(&figures).zip(theirs).filter(|(_, theirs)| !theirs.is_empty())
        {
            rows.push(Row {
                suite: SUITE,
                case: named(name),
                ours: ours.clone(),
                unit: "rows/s",
                reference: Some((format!("PyTorch in {name}"), theirs)),
                target: Some(1.0),
                better: Better::More,
            });
        }
        let in_f32 = figures.remove(0);
        for ((name, precision, _), ours) in cases.iter().skip(1).zip(figures) {
            // wgpu has no arithmetic in bf16, which therefore only saves memory.
            let target = (!is_wide || *precision == Precision::F16).then_some(target);
            rows.push(Row {
                suite: SUITE,
                case: named(name),
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
