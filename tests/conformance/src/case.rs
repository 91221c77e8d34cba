use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, bail};
use brisk_tensor::Precision;
use fastrand::Rng;
use safetensors::{Dtype, SafeTensors};
use serde_json::Value;

/// One fixture that has been read.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) file: String,
    pub(crate) op: String,
    pub(crate) params: Value,
    rtol: f64,
    atol: f64,
    tensors: BTreeMap<String, Values>,
}

/// A tensor of a fixture. Whole numbers are converted to f32 on request.
#[derive(Clone)]
pub(crate) struct Values {
    pub(crate) shape: Vec<usize>,
    pub(crate) floats: Vec<f32>,
}

/// The result of a case.
pub(crate) enum Outcome {
    Passed,
    Failed(String),
    Unknown,
}

/// The results of a runner, by their names in the fixture: `out.y`, `grad.x`.
pub(crate) type Outputs = Vec<(String, Vec<f32>)>;

impl Case {
    pub(crate) fn read(path: &Path) -> Result<Self> {
        let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let bytes = std::fs::read(path).with_context(|| format!("{}: cannot read the case", path.display()))?;
        let (_, header) = SafeTensors::read_metadata(&bytes).with_context(|| format!("{file}: not a safetensors file"))?;
        let meta = header.metadata().clone().with_context(|| format!("{file}: no metadata"))?;
        let field = |name: &str| meta.get(name).with_context(|| format!("{file}: no `{name}` in the metadata"));
        let mut tensors = BTreeMap::new();
        for (name, view) in SafeTensors::deserialize(&bytes)?.tensors() {
            let floats = floats(view.dtype(), view.data()).with_context(|| format!("{file}: `{name}`"))?;
            tensors.insert(name, Values { shape: view.shape().to_vec(), floats });
        }
        Ok(Self {
            op: field("op")?.clone(),
            params: serde_json::from_str(field("params")?)?,
            rtol: field("rtol")?.parse()?,
            atol: field("atol")?.parse()?,
            tensors,
            file,
        })
    }

    /// A case without tensors, which [`insert`](Self::insert) adds.
    pub(crate) fn new(op: &str, params: Value) -> Self {
        Self { file: op.to_owned(), op: op.to_owned(), params, rtol: 0.0, atol: 0.0, tensors: BTreeMap::new() }
    }

    pub(crate) fn insert(&mut self, name: String, shape: &[usize], floats: Vec<f32>) {
        self.tensors.insert(name, Values { shape: shape.to_vec(), floats });
    }

    pub(crate) fn tensor(&self, name: &str) -> Result<&Values> {
        self.tensors.get(name).with_context(|| format!("{}: no tensor `{name}`", self.file))
    }

    /// The same case with inputs that are off by a relative error of at most `u`, drawn with `seed`. Those that are whole
    /// numbers, labels and indices, stay.
    pub(crate) fn perturbed(&self, u: f32, seed: u64) -> Self {
        let (mut rng, mut case) = (Rng::with_seed(seed), self.clone());
        let inputs = case.tensors.iter_mut().filter(|(name, _)| name.starts_with("in.")).map(|(_, values)| &mut values.floats);
        for floats in inputs.filter(|floats| floats.iter().any(|value| value.fract() != 0.0)) {
            floats.iter_mut().for_each(|value| *value *= 1.0 + u * (2.0 * rng.f32() - 1.0));
        }
        case
    }

    /// For each value of `outputs`, whichever of it and of `farthest` is farther from the expected one.
    pub(crate) fn keep_farthest(&self, farthest: &mut Outputs, outputs: Outputs) {
        for ((name, values), (_, found)) in farthest.iter_mut().zip(outputs) {
            let Some(want) = self.tensors.get(name) else { continue };
            for ((value, found), want) in values.iter_mut().zip(found).zip(&want.floats) {
                if (found - want).abs() > (*value - want).abs() {
                    *value = found;
                }
            }
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.tensors.contains_key(name)
    }

    pub(crate) fn number(&self, name: &str) -> Result<f64> {
        self.params[name].as_f64().with_context(|| format!("{}: no number `{name}`", self.file))
    }

    /// A whole number for both axes of an image, or one for each; `default` if there is none.
    pub(crate) fn pair(&self, name: &str, default: Option<u64>) -> Result<[usize; 2]> {
        let along = |axis: usize| {
            let number = self.params[name].get(axis).unwrap_or(&self.params[name]).as_u64().or(default);
            number.map(|number| number as usize).with_context(|| format!("{}: no whole number `{name}`", self.file))
        };
        Ok([along(0)?, along(1)?])
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.params[name].as_bool().unwrap_or(false)
    }

    pub(crate) fn word(&self, name: &str) -> Result<&str> {
        self.params[name].as_str().with_context(|| format!("{}: no word `{name}`", self.file))
    }

    /// Compares the results with every `out.` and `grad.` tensor of the case. If the results of f32 on rounded operands are
    /// given, an element may be off by their error in addition: rounding may move a unit near 0 across the kink of ReLU, make a
    /// different one of two pixels the maximum, and change the values of a row by more than their differences.
    pub(crate) fn judge(&self, outputs: &Outputs, precision: Precision, of_rounded: Option<&Outputs>) -> Outcome {
        for (name, want) in self.tensors.iter().filter(|(name, _)| name.starts_with("out.") || name.starts_with("grad.")) {
            let Some((_, got)) = outputs.iter().find(|(output, _)| output == name) else {
                return Outcome::Failed(format!("`{name}` was not computed"));
            };
            if got.len() != want.floats.len() {
                return Outcome::Failed(format!("`{name}` has {} elements, expected {}", got.len(), want.floats.len()));
            }
            let of_rounded = of_rounded.and_then(|outputs| outputs.iter().find(|(output, _)| output == name));
            let moved = of_rounded.map_or(&want.floats, |(_, values)| values);
            if let Some(why) = self.worst(name, got, &want.floats, moved, precision) {
                return Outcome::Failed(why);
            }
        }
        Outcome::Passed
    }

    /// The element that exceeds its tolerance by the most, if any does.
    fn worst(&self, name: &str, got: &[f32], want: &[f32], moved: &[f32], precision: Precision) -> Option<String> {
        let (relative, absolute) = self.tolerance(name, want, precision);
        let excess = |((got, want), moved): ((&f32, &f32), &f32)| {
            let [got, want, moved] = [got, want, moved].map(|value| f64::from(*value));
            let by_rounding = if moved.is_finite() { (moved - want).abs() } else { 0.0 };
            let off = (got - want).abs() / (absolute + relative * want.abs() + by_rounding);
            if off.is_nan() { f64::INFINITY } else { off }
        };
        let (at, off) = got.iter().zip(want).zip(moved).map(excess).enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        (off > 1.0).then(|| format!("`{name}`[{at}] is {}, expected {}: {off:.2} times the tolerance", got[at], want[at]))
    }

    /// The largest magnitude in a tensor of the case.
    fn largest(&self, name: &str) -> f64 {
        let values = self.tensors.iter().filter(|(tensor, _)| *tensor == name).flat_map(|(_, tensor)| &tensor.floats);
        values.fold(0.0, |largest, value| f64::from(value.abs()).max(largest))
    }

    /// The tolerance of an element, relative and absolute. That of f32 is defined by the case.
    ///
    /// With `u` the rounding error of the format, an operand with a relative error of at most `u` and a result rounded once more
    /// give a relative error. A sum of `k` products, each with a relative error of about `u`, is off by about `u √k` times one
    /// product, which is `u` times the root mean square of such sums; the largest error of thousands is a few times that. The
    /// error of f32 on rounded operands is added.
    fn tolerance(&self, name: &str, want: &[f32], precision: Precision) -> (f64, f64) {
        if precision == Precision::F32 {
            return (self.rtol, self.atol);
        }
        let u = f64::from(rounding_error(precision));
        // Training adds the same error in each step, and a network in each layer.
        let n_layers = || self.params["hidden"].as_array().map_or(1.0, |hidden| (hidden.len() + 1) as f64);
        let u = match self.op.as_str() {
            "tab_m" | "real_mlp" => u * n_layers(),
            op if op.starts_with("train_") => u * self.params["steps"].as_f64().unwrap_or(1.0),
            _ => u,
        };
        let squares: f64 = want.iter().map(|&want| f64::from(want).powi(2)).sum();
        let root_mean_square = (squares / want.len().max(1) as f64).sqrt();
        // Adam divides a gradient by its size: if rounding decides whether a unit near 0 is active, its weights make a full step
        // or none. The losses show whether it matters.
        let lr = self.params["lr"].as_f64().unwrap_or(0.0);
        let steps_apart = match (name, self.params["optimizer"].as_str()) {
            ("out.loss", _) | (_, None) => 0.0,
            (_, Some(name)) if name.starts_with("adam") => lr * self.params["steps"].as_f64().unwrap_or(1.0),
            _ => 0.0,
        };
        // Their slopes are those of the output as it is stored, as in PyTorch: near 1, they are off by the rounding of the
        // output.
        let of_slopes = match (name, self.op.as_str()) {
            ("grad.x", "sigmoid" | "tanh") => u * self.largest("grad_out.y"),
            _ => 0.0,
        };
        (self.rtol + 4.0 * u, self.atol + 8.0 * u * root_mean_square + steps_apart + of_slopes)
    }
}

/// The largest relative rounding error of a format.
pub(crate) fn rounding_error(precision: Precision) -> f32 {
    match precision {
        Precision::F32 => f32::EPSILON / 2.0,
        Precision::F16 => 2.0_f32.powi(-11),
        Precision::Bf16 => 2.0_f32.powi(-8),
    }
}

fn floats(dtype: Dtype, bytes: &[u8]) -> Result<Vec<f32>> {
    Ok(match dtype {
        Dtype::F32 => bytes.chunks_exact(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect(),
        // Labels and indices of the fixtures are small whole numbers.
        Dtype::U32 => bytes.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]) as f32).collect(),
        Dtype::U8 => bytes.iter().map(|&b| f32::from(b)).collect(),
        other => bail!("unexpected type {other:?}"),
    })
}
