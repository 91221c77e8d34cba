use safetensors::tensor::Dtype;

use super::SharedSlice;

/// The values of one tensor of a checkpoint, row-major.
#[derive(Clone, Debug, PartialEq)]
pub enum TensorData {
    /// Single precision. Clones of a checkpoint share their memory.
    F32(SharedSlice<f32>),
    /// Whole numbers, such as counters and keys.
    U32(Vec<u32>),
    /// Whole numbers of other programs' files, such as the `num_batches_tracked` of PyTorch's batch norm.
    I64(Vec<i64>),
}

impl TensorData {
    /// The number of values.
    pub fn len(&self) -> usize {
        self.as_bytes().len() * 8 / self.safetensors_dtype().bitsize()
    }

    /// Whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// `f32`, `u32` or `i64`.
    pub fn dtype(&self) -> &'static str {
        match self {
            Self::F32(_) => "f32",
            Self::U32(_) => "u32",
            Self::I64(_) => "i64",
        }
    }

    /// The values as in memory and in a file: little-endian, without padding.
    pub fn as_bytes(&self) -> &[u8] {
        match self {
            Self::F32(values) => bytemuck::cast_slice(values),
            Self::U32(values) => bytemuck::cast_slice(values),
            Self::I64(values) => bytemuck::cast_slice(values),
        }
    }

    pub(super) fn safetensors_dtype(&self) -> Dtype {
        match self {
            Self::F32(_) => Dtype::F32,
            Self::U32(_) => Dtype::U32,
            Self::I64(_) => Dtype::I64,
        }
    }
}

impl From<Vec<f32>> for TensorData {
    fn from(values: Vec<f32>) -> Self {
        Self::F32(values.into())
    }
}

impl From<SharedSlice<f32>> for TensorData {
    fn from(values: SharedSlice<f32>) -> Self {
        Self::F32(values)
    }
}

impl From<Vec<u32>> for TensorData {
    fn from(values: Vec<u32>) -> Self {
        Self::U32(values)
    }
}

/// The values of bytes that need not be aligned.
pub(super) fn copied<T: bytemuck::Pod>(bytes: &[u8]) -> Vec<T> {
    let mut values = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    bytemuck::cast_slice_mut(&mut values).copy_from_slice(bytes);
    values
}
