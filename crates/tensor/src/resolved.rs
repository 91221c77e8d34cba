use std::fmt;

use brisk_kernels::{Adapter, Bf16Instructions, DType, MatmulFamily};
use brisk_program::Device;

use crate::graph::autocast::Precision;

/// How a device computes in a [`Precision`]: [`Precision::resolved`]. `Display` is one line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Resolved {
    /// The dtype in which results of products are stored: that of the precision, on every device.
    pub storage: DType,
    /// How stored values become f32, in which all kernels compute, except on tensor cores and as
    /// [`f16_sum_len`](Self::f16_sum_len) says.
    pub conversion: Conversion,
    /// Rows and columns of the f16 matrices that tensor cores multiply (cooperative matrices in wgpu), with sums in f32, for
    /// products whose sizes are multiples of them; `None` if they are not used.
    pub tensor_cores: Option<usize>,
    /// How many products of two f16 operands are added in f16 before their sum is added in f32, if
    /// [`allow_f16_accumulation`](brisk_program::DeviceBuilder::allow_f16_accumulation) has an effect: for products that do not
    /// run on tensor cores and whose sizes are multiples of 4. `None` if all are added in f32.
    pub f16_sum_len: Option<usize>,
    /// The processor's instructions for products of bf16, which the CPU executor uses where both operands are bf16, and with AMX
    /// for large products where both are f16; `None` for f32 and for other devices.
    pub bf16_instructions: Option<Bf16Instructions>,
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
        let Self { storage, conversion, tensor_cores, f16_sum_len, bf16_instructions } = self;
        write!(f, "stored in {storage}, computed in f32")?;
        match conversion {
            Conversion::None => {}
            Conversion::Native => f.write_str(", converted by instructions")?,
            Conversion::Bits => f.write_str(", converted by bits")?,
        }
        if let Some(size) = tensor_cores {
            write!(f, ", products on tensor cores by matrices of {size} by {size}")?;
        }
        if let Some(instructions) = bf16_instructions {
            let which = if *storage == DType::F16 { "large products" } else { "products" };
            write!(f, ", {which} by {instructions}")?;
        }
        f16_sum_len.map_or(Ok(()), |n| {
            let which = if tensor_cores.is_some() { "other products" } else { "products" };
            write!(f, ", {which} accumulated in f16 over {n} elements of K at a time")
        })
    }
}

impl Precision {
    /// The precision in which `device` trains fastest, as far as that has been measured: bf16 on the CPU if its processor has
    /// [instructions](Bf16Instructions) for products of bf16, else f32. With bf16's range the loss needs no scaling.
    ///
    /// # Examples
    /// ```
    /// use brisk_tensor::{Precision, program::Device};
    ///
    /// let device = Device::cpu()?;
    /// let precision = Precision::fastest(&device);
    /// assert_eq!(precision == Precision::Bf16, Precision::Bf16.resolved(&device).bf16_instructions.is_some());
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    pub fn fastest(device: &Device) -> Self {
        if Self::Bf16.resolved(device).bf16_instructions.is_some() { Self::Bf16 } else { Self::F32 }
    }

    /// How `device` computes in this precision. No device falls back to another type; they differ only in speed.
    ///
    /// # Examples
    /// ```
    /// use brisk_tensor::{Precision, program::Device};
    ///
    /// let resolved = Precision::Bf16.resolved(&Device::cpu()?);
    /// // And "products by AMX" or "products by AVX512_BF16" where the processor has them.
    /// assert!(resolved.to_string().starts_with("stored in bf16, computed in f32, converted by bits"));
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
        let [on_tensor_cores, in_tiles] = f16_adapter.as_ref().map_or([false; 2], of_family);
        Resolved {
            storage: self.dtype(),
            conversion,
            tensor_cores: f16_adapter.filter(|_| on_tensor_cores).and_then(|adapter| adapter.coop).map(|shape| shape.size()),
            f16_sum_len: f16_adapter.filter(|_| in_tiles).and_then(Adapter::f16_sum_len),
            bf16_instructions: Bf16Instructions::detect().filter(|instructions| match self {
                Self::F32 => false,
                Self::F16 => adapter.is_none() && *instructions == Bf16Instructions::Amx,
                Self::Bf16 => adapter.is_none(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
