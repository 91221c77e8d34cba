use std::time::Instant;

use anyhow::Result;

use crate::options::{Options, Scale};

/// How the sides of a comparison alternate, so that disturbances of the machine affect all of them.
#[derive(Clone, Copy)]
pub(super) struct Turns {
    n_rounds: usize,
    /// The approximate duration of a turn of one side.
    turn_s: f64,
}

impl Turns {
    pub(super) fn of(options: &Options) -> Self {
        let turn_s = if options.scale == Scale::Smoke { 0.0 } else { 0.05 };
        Self { n_rounds: options.n_rounds, turn_s }
    }

    /// The figures of each side, one per round; a preceding round warms up.
    pub(super) fn take<const N: usize>(&self, mut sides: [&mut dyn FnMut() -> Result<f64>; N]) -> Result<[Vec<f64>; N]> {
        let mut figures = [(); N].map(|()| Vec::with_capacity(self.n_rounds));
        for round in 0..=self.n_rounds {
            for (side, figures) in sides.iter_mut().zip(&mut figures) {
                let figure = side()?;
                if round > 0 {
                    figures.push(figure);
                }
            }
        }
        Ok(figures)
    }

    /// How many repetitions make a turn, if one takes this many seconds.
    pub(super) fn n_runs(&self, seconds: f64) -> usize {
        ((self.turn_s / seconds) as usize).clamp(1, 10_000)
    }
}

/// Seconds per repetition, for `n` repetitions in one call.
pub(super) fn seconds(n: usize, runs: impl FnOnce() -> Result<()>) -> Result<f64> {
    let started = Instant::now();
    runs()?;
    Ok(started.elapsed().as_secs_f64() / n as f64)
}
