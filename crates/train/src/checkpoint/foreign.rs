//! Tensors of other programs' files, whose types brisk does not write.

use half::{bf16, f16};
use safetensors::tensor::Dtype;

use super::tensor_data::{TensorData, copied};

/// The values as checkpoints hold them: numbers of any precision as f32, whole numbers of any size as i64. `None` for types
/// without an equivalent, and for values that would become infinite or wrap around.
pub(super) fn converted(dtype: Dtype, bytes: &[u8]) -> Option<TensorData> {
    let values = match dtype {
        Dtype::F32 => copied::<f32>(bytes).into(),
        Dtype::U32 => TensorData::U32(copied(bytes)),
        Dtype::I64 => TensorData::I64(copied(bytes)),
        Dtype::F16 => each(bytes, f16::to_f32).into(),
        Dtype::BF16 => each(bytes, bf16::to_f32).into(),
        Dtype::F64 => copied::<f64>(bytes).into_iter().map(rounded).collect::<Option<Vec<f32>>>()?.into(),
        Dtype::I32 => TensorData::I64(each(bytes, i64::from as fn(i32) -> i64)),
        Dtype::I16 => TensorData::I64(each(bytes, i64::from as fn(i16) -> i64)),
        Dtype::I8 => TensorData::I64(each(bytes, i64::from as fn(i8) -> i64)),
        Dtype::U16 => TensorData::I64(each(bytes, i64::from as fn(u16) -> i64)),
        Dtype::U8 | Dtype::BOOL => TensorData::I64(each(bytes, i64::from as fn(u8) -> i64)),
        Dtype::U64 => {
            let values = copied::<u64>(bytes).into_iter().map(|value| i64::try_from(value).ok());
            TensorData::I64(values.collect::<Option<_>>()?)
        }
        _ => return None,
    };
    Some(values)
}

fn each<T: bytemuck::Pod, V>(bytes: &[u8], convert: fn(T) -> V) -> Vec<V> {
    copied::<T>(bytes).into_iter().map(convert).collect()
}

/// The nearest f32, unless a finite number would become infinite.
fn rounded(value: f64) -> Option<f32> {
    let rounded = value as f32;
    (rounded.is_finite() || !value.is_finite()).then_some(rounded)
}
