use std::any::TypeId;

use brisk_kernels::DType;

use crate::error::Error;
use crate::record::persistent::Persistent;

/// Checks that host values of type `T` match the dtype of the buffer. Only Rust's numbers are checked; others are taken as bytes.
pub(crate) fn check_host_type<T: 'static>(persistent: &Persistent) -> Result<(), Error> {
    let numbers: [(TypeId, &'static str); 14] = [
        (TypeId::of::<f32>(), "f32"),
        (TypeId::of::<f64>(), "f64"),
        (TypeId::of::<u8>(), "u8"),
        (TypeId::of::<u16>(), "u16"),
        (TypeId::of::<u32>(), "u32"),
        (TypeId::of::<u64>(), "u64"),
        (TypeId::of::<u128>(), "u128"),
        (TypeId::of::<usize>(), "usize"),
        (TypeId::of::<i8>(), "i8"),
        (TypeId::of::<i16>(), "i16"),
        (TypeId::of::<i32>(), "i32"),
        (TypeId::of::<i64>(), "i64"),
        (TypeId::of::<i128>(), "i128"),
        (TypeId::of::<isize>(), "isize"),
    ];
    let expected = match persistent.dtype() {
        DType::F32 => "f32",
        DType::F16 | DType::Bf16 => "u16",
        DType::U8 => "u8",
        DType::U32 => "u32",
        _ => return Ok(()),
    };
    match numbers.iter().find(|(id, _)| *id == TypeId::of::<T>()) {
        Some(&(_, found)) if found != expected => {
            Err(Error::HostType { buffer: persistent.name().to_owned(), dtype: persistent.dtype(), expected, found })
        }
        _ => Ok(()),
    }
}
