use brisk_kernels::DType;
use brisk_tensor::Persistent;

use crate::parameters::len_of;

/// A tensor that belongs to a model and is not trained: running statistics, a frozen scale.
///
/// It is kept beside the flat parameters, in a separate buffer, so that no optimizer, norm or decay ever sees it. A checkpoint keeps it under its name,
/// as PyTorch's `state_dict` does.
#[derive(Debug, Clone)]
pub struct Buffer {
    name: String,
    shape: Vec<usize>,
    values: Persistent,
    initial: Initial,
}

/// What a buffer starts as.
#[derive(Debug, Clone)]
enum Initial {
    Constant(f32),
    Values(Vec<f32>),
}

/// Which buffer of a [`Parameters`](crate::Parameters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferId(pub(crate) usize);

impl Buffer {
    pub(crate) fn new(name: String, shape: &[usize], value: f32) -> Self {
        // One that is too large is refused before it is used: `Parameters::check`.
        let len = len_of(shape).unwrap_or(0);
        let values = Persistent::required(name.clone(), DType::F32, len);
        Self { values, name, shape: shape.to_vec(), initial: Initial::Constant(value) }
    }

    /// Dotted, as in PyTorch's `state_dict`: `norm.running_mean`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Lengths of its dimensions.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Its values on the device.
    pub fn values(&self) -> &Persistent {
        &self.values
    }

    /// What it starts as: `[len]`.
    pub fn initial(&self) -> Vec<f32> {
        match &self.initial {
            Initial::Constant(value) => vec![*value; self.values.len()],
            Initial::Values(values) => values.clone(),
        }
    }

    /// The same in memory of its own.
    pub(crate) fn detached(&self) -> Self {
        Self { values: Persistent::required(self.name.clone(), DType::F32, self.values.len()), ..self.clone() }
    }

    /// The same with its values in other memory.
    pub(crate) fn with_values(&self, values: &Persistent) -> Self {
        Self { values: values.clone(), ..self.clone() }
    }

    pub(crate) fn set_initial(&mut self, values: &[f32]) {
        self.initial = Initial::Values(values.to_vec());
    }
}
