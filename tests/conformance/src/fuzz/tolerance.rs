//! Expected results with the error that rounding may cause in each element.

use anyhow::Result;
use brisk_tensor::Precision;
use fastrand::Rng;

use super::execute::Way;
use super::program::Program;
use crate::case::{Outputs, rounding_error};

/// What is expected of one output.
#[derive(Clone, Debug)]
pub(crate) struct Expected {
    pub(crate) name: String,
    pub(crate) values: Vec<f32>,
    /// The largest difference of each element; NaN where anything is right.
    pub(crate) tolerances: Vec<f32>,
}

/// The worst element of the outputs beyond its tolerance.
pub(crate) fn worst(outputs: &Outputs, expected: &[Expected]) -> Option<String> {
    let mut worst: Option<(f64, String)> = None;
    for expected in expected {
        let Some((_, found)) = outputs.iter().find(|(name, _)| *name == expected.name) else {
            return Some(format!("`{}` was not computed", expected.name));
        };
        if found.len() != expected.values.len() {
            return Some(format!("`{}` has {} elements, expected {}", expected.name, found.len(), expected.values.len()));
        }
        for (i, ((&found, &want), &tolerance)) in found.iter().zip(&expected.values).zip(&expected.tolerances).enumerate() {
            let is_equal = found == want || found.is_nan() && want.is_nan();
            if is_equal || tolerance.is_nan() {
                continue;
            }
            let off = f64::from((found - want).abs()) / f64::from(tolerance);
            let off = if off.is_nan() { f64::INFINITY } else { off };
            if off > worst.as_ref().map_or(1.0, |(off, _)| *off) {
                let said =
                    format!("`{}`[{i}] is {found}, expected {want} within {tolerance:e}: {off:.2} times that", expected.name);
                worst = Some((off, said));
            }
        }
    }
    worst.map(|(_, said)| said)
}

/// The results of one way with tolerances from its own runs on inputs that differ by a rounding error.
pub(crate) fn by_perturbed_inputs(
    way: &Way,
    program: &Program,
    precision: Precision,
    outputs: &Outputs,
) -> Result<Vec<Expected>> {
    const N_RUNS: u64 = 4;
    let epsilon = rounding_error(precision);
    let mut spreads: Vec<Vec<f32>> = outputs.iter().map(|(_, values)| vec![0.0; values.len()]).collect();
    for run in 0..N_RUNS {
        let (mut rng, mut perturbed) = (Rng::with_seed(run), program.clone());
        let values = perturbed.inputs.iter_mut().flat_map(|input| &mut input.values);
        values.for_each(|value| *value *= 1.0 + epsilon * (2.0 * rng.f32() - 1.0));
        for (spread, ((_, values), (_, found))) in spreads.iter_mut().zip(outputs.iter().zip(way.run(&perturbed, precision)?)) {
            for ((spread, value), found) in spread.iter_mut().zip(values).zip(found) {
                let off = (found - value).abs();
                *spread = if off.is_nan() || found.is_infinite() { f32::NAN } else { off.max(*spread) };
            }
        }
    }
    let expected = outputs.iter().zip(spreads).map(|((name, values), spread)| {
        let is_finite = values.iter().all(|value| value.is_finite());
        let mean_square =
            |values: &[f32]| (values.iter().map(|value| value * value).sum::<f32>() / values.len().max(1) as f32).sqrt();
        let floor = 16.0 * mean_square(&spread) + 16.0 * epsilon * mean_square(values);
        let tolerance = |spread: f32| if is_finite { 16.0 * spread + floor } else { f32::NAN };
        Expected { name: name.clone(), values: values.clone(), tolerances: spread.into_iter().map(tolerance).collect() }
    });
    Ok(expected.collect())
}
