use std::fmt;

use brisk_kernels::{Adapter, DType, MatmulFamily};
use brisk_program::Device;

use crate::Precision;

/// How a device has a [`Precision`]: [`Precision::resolved`]. `Display` says it in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// What the results of products are stored in: the type that was asked for, on every device.
    pub storage: DType,
    /// How that becomes f32, which everything computes in but matrix units and what [`f16_places`](Self::f16_places) says.
    pub conversion: Conversion,
    /// Rows and columns of the f16 matrices that matrix units multiply, with sums in f32, where products are of such multiples.
    pub matrix_units: Option<usize>,
    /// How many products of two operands in f16 are added in f16 before their sum is added in f32, where
    /// [`allow_f16_accumulation`](brisk_program::DeviceBuilder::allow_f16_accumulation) has an effect: for products that are not on matrix units, of sizes that are
    /// multiples of 4. `None` where all are added in f32.
    pub f16_places: Option<usize>,
}

/// How stored values become f32 and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
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
        let Self { storage, conversion, matrix_units, f16_places } = self;
        write!(f, "stored in {storage}, computed in f32")?;
        match conversion {
            Conversion::None => {}
            Conversion::Native => f.write_str(", converted by instructions")?,
            Conversion::Bits => f.write_str(", converted by bits")?,
        }
        if let Some(size) = matrix_units {
            write!(f, ", products on matrix units of {size} by {size}")?;
        }
        f16_places.map_or(Ok(()), |n| {
            let which = if matrix_units.is_some() { "other products" } else { "products" };
            write!(f, ", {which} multiplied and added in f16 for {n} places at a time")
        })
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
        self.resolved_on(device.adapter().as_ref())
    }

    fn resolved_on(self, adapter: Option<&Adapter>) -> Resolved {
        let is_native = adapter.is_some_and(Adapter::has_f16);
        let conversion = match self {
            Self::F32 => Conversion::None,
            Self::F16 if is_native => Conversion::Native,
            Self::F16 | Self::Bf16 => Conversion::Bits,
        };
        // A software adapter may list matrices too, and computes products faster without them.
        let of_family = |adapter: &&Adapter| match MatmulFamily::choose(adapter, usize::MAX) {
            MatmulFamily::Coop => [true, true],
            MatmulFamily::Tiled => [false, true],
            _ => [false, false],
        };
        let f16_adapter = adapter.filter(|_| self == Self::F16);
        let [on_units, in_tiles] = f16_adapter.as_ref().map_or([false; 2], of_family);
        Resolved {
            storage: self.dtype(),
            conversion,
            matrix_units: f16_adapter.filter(|_| on_units).and_then(|adapter| adapter.coop).map(|shape| shape.size()),
            f16_places: f16_adapter.filter(|_| in_tiles).and_then(Adapter::f16_places),
        }
    }
}

#[cfg(test)]
mod tests;
