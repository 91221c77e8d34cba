use std::fmt;

use brisk_kernels::DType;
use brisk_program::Device;

use crate::Precision;

/// How a device has a [`Precision`]: [`Precision::resolved`]. `Display` says it in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// What the results of products are stored in: the type that was asked for, on every device.
    pub storage: DType,
    /// How that becomes f32, which everything but matrix units computes in.
    pub conversion: Conversion,
    /// Rows and columns of the f16 matrices that matrix units multiply, with sums in f32, where products are of such multiples.
    pub matrix_units: Option<usize>,
}

/// How stored values become f32 and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Conversion {
    /// They are f32.
    None,
    /// By instructions of the device, in products; elsewhere by their bits.
    Native,
    /// By their bits, which takes a few integer operations.
    Bits,
}

impl fmt::Display for Resolved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { storage, conversion, matrix_units } = self;
        write!(f, "stored in {storage}, computed in f32")?;
        match conversion {
            Conversion::None => {}
            Conversion::Native => f.write_str(", converted by instructions")?,
            Conversion::Bits => f.write_str(", converted by bits")?,
        }
        matrix_units.map_or(Ok(()), |size| write!(f, ", products on matrix units of {size} by {size}"))
    }
}

impl Precision {
    /// How `device` has it. Nothing falls back to another type: what differs is how fast.
    ///
    /// # Examples
    /// ```
    /// use brisk_tensor::{Precision, program::Device};
    ///
    /// let resolved = Precision::Bf16.resolved(&Device::cpu()?);
    /// assert_eq!(resolved.to_string(), "stored in bf16, computed in f32, converted by bits");
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    pub fn resolved(self, device: &Device) -> Resolved {
        let adapter = device.adapter();
        let is_native = adapter.as_ref().is_some_and(|adapter| adapter.has_f16());
        let conversion = match self {
            Self::F32 => Conversion::None,
            Self::F16 if is_native => Conversion::Native,
            Self::F16 | Self::Bf16 => Conversion::Bits,
        };
        let units = adapter.and_then(|adapter| adapter.coop).map(|shape| shape.size());
        Resolved { storage: self.dtype(), conversion, matrix_units: units.filter(|_| self == Self::F16) }
    }
}
