use crate::adapter::adapter::Adapter;
use crate::arg::{Access, Arg};
use crate::dtype::DType;
use crate::elementwise::cast::Cast;
use crate::error::{Error, check_supported};
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::dispatch::Dispatch;

/// `kernel` with its arguments stored as `dtypes` says, one type for each argument except scratch: the kernel itself if these are
/// its own types; else a [specialised form](Kernel::stored_as) for these types, which all elementwise kernels have; else the
/// kernel between [`Cast`]s, with f32 copies in its scratch. So every kernel takes f16 and bf16.
///
/// # Errors
/// [`Error::Unsupported`] for a wrong number of types, or another type for an argument that is not f32.
/// # Examples
/// ```
/// use brisk_kernels::expr::Expr;
/// use brisk_kernels::{DType, Kernel, Map, stored};
///
/// let add = stored(Map::flat(64, Expr::input(0) + Expr::input(1)), &[DType::F16, DType::F32, DType::F16])?;
/// assert_eq!(add.args().iter().map(|arg| arg.dtype).collect::<Vec<_>>()[..3], [DType::F16, DType::F32, DType::F16]);
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
pub fn stored(kernel: impl Kernel, dtypes: &[DType]) -> Result<Box<dyn Kernel>, Error> {
    stored_impl(Box::new(kernel), dtypes)
}

fn stored_impl(kernel: Box<dyn Kernel>, dtypes: &[DType]) -> Result<Box<dyn Kernel>, Error> {
    let args = kernel.args();
    let given = args.iter().filter(|arg| arg.access != Access::Scratch);
    let n_given = given.clone().count();
    let found = || format!("{} element types for {n_given} arguments", dtypes.len());
    check_supported(kernel.name(), n_given == dtypes.len(), found, "one for each")?;
    let may_be = |arg: &Arg, dtype: DType| arg.dtype == dtype || (arg.dtype == DType::F32 && dtype.is_half());
    for (arg, dtype) in given.clone().zip(dtypes) {
        let found = || format!("`{}` ({:?}) stored as {dtype:?}", arg.name, arg.dtype);
        check_supported(kernel.name(), may_be(arg, *dtype), found, "its own type, or f16 or bf16 for f32")?;
    }
    if given.map(|arg| arg.dtype).eq(dtypes.iter().copied()) {
        return Ok(kernel);
    }
    let own = kernel.stored_as(dtypes);
    Ok(own.unwrap_or_else(|| Box::new(Converted { kernel, dtypes: dtypes.to_vec() })))
}

/// An f32 kernel between casts. Its scratch is that of the kernel, then a copy of each argument that is stored in 16 bits.
#[derive(Debug)]
pub(crate) struct Converted {
    pub(crate) kernel: Box<dyn Kernel>,
    /// The types of the arguments that are not scratch.
    pub(crate) dtypes: Vec<DType>,
}

/// An argument that is converted, and the index of its copy.
struct Copied {
    arg: usize,
    copy: usize,
    dtype: DType,
    n: usize,
    access: Access,
}

impl Converted {
    /// The kernel's arguments that are copied.
    fn copied(&self, args: &[Arg]) -> Vec<Copied> {
        let stored = args.iter().zip(&self.dtypes).enumerate().filter(|(_, (arg, dtype))| arg.dtype != **dtype);
        let copied = stored.zip(args.len()..);
        copied.map(|((arg, (of, &dtype)), copy)| Copied { arg, copy, dtype, n: of.len, access: of.access }).collect()
    }
}

impl Copied {
    /// The cast before the kernel, unless the previous content does not matter.
    fn cast_in(&self) -> Option<Cast> {
        let cast = Cast { n: self.n, from: self.dtype, to: DType::F32 };
        matches!(self.access, Access::Read | Access::ReadWrite).then_some(cast)
    }

    /// The cast after the kernel, unless the argument is only read.
    fn cast_out(&self) -> Option<Cast> {
        self.access.writes().then_some(Cast { n: self.n, from: DType::F32, to: self.dtype })
    }
}

/// The dispatches of a cast between two of the arguments.
fn cast_dispatches(cast: Cast, from: usize, to: usize, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
    let dispatches = cast.dispatches(adapter)?;
    Ok(dispatches.into_iter().map(|dispatch| Dispatch { reads: vec![from], writes: vec![to], ..dispatch }).collect())
}

impl Kernel for Converted {
    fn signature(&self) -> Signature {
        let mut args = self.kernel.args();
        for Copied { arg, dtype, n, .. } in self.copied(&args) {
            args.push(Arg::scratch(args[arg].name, DType::F32, n));
            args[arg].dtype = dtype;
        }
        Signature::new(self.kernel.name(), args)
    }

    fn check(&self) -> Result<(), Error> {
        self.kernel.check()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let copied = self.copied(&self.kernel.args());
        let mut dispatches = Vec::new();
        for of in &copied {
            if let Some(cast) = of.cast_in() {
                dispatches.extend(cast_dispatches(cast, of.arg, of.copy, adapter)?);
            }
        }
        let place = |arg: &mut usize| *arg = copied.iter().find(|of| of.arg == *arg).map_or(*arg, |of| of.copy);
        for mut dispatch in self.kernel.dispatches(adapter)? {
            dispatch.reads.iter_mut().chain(&mut dispatch.writes).for_each(place);
            dispatches.push(dispatch);
        }
        for of in &copied {
            if let Some(cast) = of.cast_out() {
                dispatches.extend(cast_dispatches(cast, of.copy, of.arg, adapter)?);
            }
        }
        Ok(dispatches)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let declared = self.kernel.args();
        let copied = self.copied(&declared);
        let mut copies: Vec<&mut [u8]> = copied.iter().map(|of| args.write_bytes(of.copy)).collect();
        let mut results = Vec::new();
        for (of, copy) in copied.iter().zip(&mut copies) {
            if of.access == Access::Read {
                run_cast(of.cast_in(), args.read_bytes(of.arg), copy);
            } else {
                let result = args.write_bytes(of.arg);
                run_cast(of.cast_in(), result, copy);
                results.push(result);
            }
        }
        let mut inner = TwinArgs::new(&declared);
        let mut copies_left = copied.iter().zip(&mut copies).peekable();
        for (i, arg) in declared.iter().enumerate() {
            let copy = copies_left.next_if(|(of, _)| of.arg == i).map(|(_, copy)| &mut **copy);
            match (arg.access.writes(), copy) {
                (false, Some(copy)) => inner.push_read(copy),
                (true, Some(copy)) => inner.push_write(copy),
                (false, None) => inner.push_read(args.read_bytes(i)),
                (true, None) => inner.push_write(args.write_bytes(i)),
            }
        }
        self.kernel.twin(&mut inner);
        let written = copied.iter().zip(&copies).filter(|(of, _)| of.access.writes());
        for ((of, copy), result) in written.zip(results) {
            run_cast(of.cast_out(), copy, result);
        }
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        let kernel = self.kernel.with_len(n)?;
        Some(Box::new(Self { kernel, dtypes: self.dtypes.clone() }))
    }

    fn cost(&self) -> Cost {
        let Cost { flops, bytes } = self.kernel.cost();
        let casts: u64 = self.copied(&self.kernel.args()).iter().map(|of| (of.n * (of.dtype.size_bytes() + 4)) as u64).sum();
        Cost { flops, bytes: bytes + casts }
    }
}

fn run_cast(cast: Option<Cast>, from: &[u8], to: &mut [u8]) {
    if let Some(cast) = cast {
        let declared = cast.args();
        let mut args = TwinArgs::new(&declared);
        args.push_read(from);
        args.push_write(to);
        cast.twin(&mut args);
    }
}
