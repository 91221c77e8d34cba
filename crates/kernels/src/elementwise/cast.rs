use super::cast_cpu;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::{Error, check_supported};
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::kernel::{Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::module;

/// `y = x` in another element type: f32, f16 and bf16 from one to another and to u8 and u32, u8 and u32 to f32.
///
/// To integers, values are truncated towards 0; values below 0 become 0, those beyond the largest integer become it, and NaN
/// becomes 0. To floats, values are rounded to nearest, ties to even; values beyond the largest number become infinite. NaN stays
/// NaN, a quiet one unless bf16 becomes f32; subnormals and the sign of zero are kept. Results are bit-identical on both
/// executors, and on devices with and without 16-bit arithmetic.
///
/// # Shapes
/// `x`, `y`: `[n]`.
/// # Dtypes
/// `x`: `from`; `y`: `to`.
/// # Errors
/// [`Error::Unsupported`] for other pairs of types.
/// # Reference
/// IEEE 754-2019, §5.4.2; `torch.Tensor.to`, whose integers are not specified beyond their range.
/// # Examples
/// ```
/// use brisk_kernels::{Cast, DType, Kernel, TwinArgs, bytemuck::bytes_of, bytemuck::bytes_of_mut};
///
/// let cast = Cast { n: 2, from: DType::F32, to: DType::F16 };
/// let (x, mut y) = ([1.0_f32, 65520.0], [0_u16; 2]);
/// let declared = cast.args();
/// let mut args = TwinArgs::new(&declared);
/// args.push_read(bytes_of(&x));
/// args.push_write(bytes_of_mut(&mut y));
/// cast.check()?;
/// cast.twin(&mut args);
/// assert_eq!(y, [0x3C00, 0x7C00], "one, and infinity");
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cast {
    /// Elements.
    pub n: usize,
    /// The type of `x`.
    pub from: DType,
    /// The type of `y`.
    pub to: DType,
}

impl Kernel for Cast {
    fn signature(&self) -> Signature {
        Signature::new("cast", [Arg::read("x", self.from, self.n), Arg::write("y", self.to, self.n)])
    }

    fn check(&self) -> Result<(), Error> {
        let Self { n, from, to } = *self;
        let is_known = match from {
            DType::U8 | DType::U32 => to == DType::F32,
            _ => from != to,
        };
        let expected = "f32, f16 or bf16 to another of them, or to u8 or u32, or these to f32";
        check_supported(self.name(), is_known, || format!("{from:?} to {to:?}"), expected)?;
        check_sizes(self, &[("n", n)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let module = module!("cast.wgsl", "../storage/conversions.wgsl");
        let cast = Dispatch::elementwise(self.name(), "kernels.cast", module, self.n.div_ceil(2))?
            .constants([("FROM", f64::from(self.from.code())), ("TO", f64::from(self.to.code()))]);
        // Elements are processed as bits, whatever their type.
        let [x, y] = ["x", "y"].map(|name| Binding::of(name).elements("u32"));
        Ok(vec![cast.bind(&self.args(), [x], [y])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        cast_cpu::run(self, args);
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { n, ..*self }))
    }
}
