use anyhow::Result;
use brisk_tensor::Precision;

use super::task::{Run, large_batches, tab_m, tasks};
use crate::options::{Options, Scale};

/// Prints where the time of a training step goes, by kernel, in each precision.
#[expect(clippy::print_stdout, reason = "the tables are the result")]
pub(crate) fn profile(options: &Options) -> Result<()> {
    let n_steps = if options.scale == Scale::Smoke { 1 } else { 30 };
    let [mlp, convnet] = tasks(options);
    for task in [mlp, large_batches(options), tab_m(options), convnet] {
        for precision in Precision::ALL {
            let run = Run::new(&task, &options.device, precision, 1)?;
            println!("{}, batch {}, {precision}", task.name, task.batch);
            println!("{}", run.profile(n_steps)?);
        }
    }
    Ok(())
}
