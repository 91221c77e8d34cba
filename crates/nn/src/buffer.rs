use brisk_kernels::DType;
use brisk_tensor::Persistent;

/// A tensor that belongs to a model and is not trained: running statistics, a scale that is frozen.
///
/// It stands beside the flat parameters, in a buffer of its own, so that no optimizer, norm or decay ever sees it. A checkpoint keeps it under its name,
/// as PyTorch's `state_dict` does.
#[derive(Debug, Clone)]
pub struct Buffer {
    name: String,
    shape: Vec<usize>,
    values: Persistent,
    pub(crate) initial: Vec<f32>,
}

/// Which buffer of a [`Parameters`](crate::Parameters).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BufferId(pub(crate) usize);

impl Buffer {
    pub(crate) fn new(name: String, shape: &[usize], value: f32) -> Self {
        let len = shape.iter().product();
        Self { values: Persistent::new(name.clone(), DType::F32, len), name, shape: shape.to_vec(), initial: vec![value; len] }
    }

    /// Dotted, as PyTorch's `state_dict` has it: `norm.running_mean`.
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
}
