//! The best model, and the checkpoints of the best ones.

use brisk_metrics::Direction;

use super::Training;
use super::fit::Fit;
use crate::error::Error;
use crate::run_folder::RunFolder;
use crate::run_state::{Best, Position};

impl Training<'_> {
    /// Keeps this model as the best, and writes its checkpoint.
    pub(super) fn keep_as_best(&self, fit: &mut Fit, value: f64) -> Result<(), Error> {
        let (at, values) = (fit.run.position(), self.evaluated_values(&mut fit.snapshot)?);
        fit.run.best = Some(Best::read(at, value, values, &self.evaluated, &self.device)?);
        match self.path(fit.outputs, RunFolder::best)? {
            Some(path) => self.save(self.checkpoint(fit, value)?, path, Vec::new(), fit),
            None => Ok(()),
        }
    }

    /// Writes a checkpoint of this model if it is one of the [best](crate::TrainerConfig::keep_best) so far, and then removes the
    /// one that no longer is.
    pub(super) fn keep_among_best(&self, fit: &mut Fit, value: f64) -> Result<(), Error> {
        let at = fit.run.position();
        let mut ranked = fit.run.kept.clone();
        ranked.push((at, value));
        let left_out = left_out(&mut ranked, self.config.keep_best, self.validation.direction);
        if left_out.iter().any(|&(left_out, _)| left_out == at) {
            return Ok(());
        }
        fit.run.kept = ranked;
        let watched = &self.validation.watched;
        let named = |folder: &RunFolder, (at, value): (Position, f64)| match at.batch() {
            None => folder.best_of(at.epoch(), watched, value),
            Some(batch) => folder.best_within(at.epoch(), batch, watched, value),
        };
        let Some(path) = self.path(fit.outputs, |folder| named(folder, (at, value)))? else { return Ok(()) };
        let folder = self.folder(fit.outputs);
        let replaced = left_out.into_iter().filter_map(|left_out| folder.map(|folder| named(folder, left_out))).collect();
        self.save(self.checkpoint(fit, value)?, path, replaced, fit)
    }
}

/// Removes and returns all but the `n` best, NaN first; of equal ones the earlier stay.
fn left_out(ranked: &mut Vec<(Position, f64)>, n: usize, direction: Direction) -> Vec<(Position, f64)> {
    let key = |value: f64| match direction {
        _ if value.is_nan() => f64::INFINITY,
        Direction::Minimize => value,
        Direction::Maximize => -value,
    };
    ranked.sort_by(|a, b| a.1.is_nan().cmp(&b.1.is_nan()).then(key(a.1).total_cmp(&key(b.1))).then(a.0.cmp(&b.0)));
    let n_numbers = ranked.iter().filter(|(_, value)| !value.is_nan()).count();
    ranked.split_off(n.min(n_numbers))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_best_stay_and_of_equal_ones_the_earlier() {
        let [first, second, within_third, third, fourth] =
            [(1, None), (2, None), (3, Some(7)), (3, None), (4, None)].map(|(epoch, batch)| Position::of(epoch, batch));
        let all = [(first, 0.5), (second, f64::NAN), (within_third, 0.7), (third, 0.5), (fourth, 0.6)];
        for (direction, n, expected) in [
            (Direction::Maximize, 2, vec![(within_third, 0.7), (fourth, 0.6)]),
            (Direction::Minimize, 1, vec![(first, 0.5)]),
            (Direction::Minimize, 9, vec![(first, 0.5), (third, 0.5), (fourth, 0.6), (within_third, 0.7)]),
            (Direction::Maximize, 0, vec![]),
        ] {
            let mut ranked = all.to_vec();
            let left_out = left_out(&mut ranked, n, direction);
            assert_eq!(ranked, expected, "{direction:?}, {n}");
            assert_eq!(left_out.len(), all.len() - expected.len(), "{direction:?}, {n}");
        }
    }
}
