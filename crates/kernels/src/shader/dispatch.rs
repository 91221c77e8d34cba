use crate::arg::Arg;
use crate::error::Error;
use crate::shader::binding::Binding;
use crate::shader::module::{Module, Part, part};
use crate::shader::param::Param;
use crate::sizes::{check_size, in_u32};

/// One WGSL dispatch of a kernel: module, entry point, constants, parameters, and which arguments it binds.
///
/// In bind group 0, binding 0 is a uniform struct of `params` (left out if `params` is empty), followed by the arguments of
/// `reads` as `read`, then those of `writes` as `read_write`. A scratch argument is written by one dispatch and read by the next;
/// no argument may be on both lists of one dispatch.
///
/// [`bind`](Self::bind) finds arguments by name and declares them in the module, so that its WGSL has no `@binding`.
///
/// # Examples
/// ```
/// use brisk_kernels::{Arg, DType, Dispatch};
///
/// const WGSL: &str = "fn element(i: u32) { if i < params.n { y[i] = params.scale * x[i]; } }";
/// let (n, scale) = (1000_usize, 0.5_f32);
/// let args = [Arg::read("x", DType::F32, n), Arg::write("y", DType::F32, n)];
/// let dispatch = Dispatch::elementwise("scale", "mine.scale", WGSL, n)?
///     .param("n", n)
///     .param("scale", scale)
///     .bind(&args, ["x"], ["y"])?;
/// assert_eq!(dispatch.workgroups, [16, 1, 1]);
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub struct Dispatch {
    /// `crate.kernel`, shown by profilers.
    pub label: &'static str,
    /// The module.
    pub wgsl: Module,
    /// The entry point.
    pub entry: &'static str,
    /// Values of `override` constants.
    pub constants: Vec<(&'static str, f64)>,
    /// The uniform struct's bytes (std140-compatible: scalars, vec2s and vec4s), a multiple of 16.
    pub params: Vec<u8>,
    /// The arguments that it reads, as indices into the kernel's argument list.
    pub reads: Vec<usize>,
    /// The arguments that it writes, likewise.
    pub writes: Vec<usize>,
    /// The number of workgroups, in x, y, z.
    pub workgroups: [u32; 3],
}

/// Calls `element(i)` for each element.
const ELEMENTWISE: Part = part!("elementwise.wgsl");
/// Invocations per workgroup.
const ELEMENTWISE_WORKGROUP: usize = 64;

impl Dispatch {
    /// A dispatch of the entry point `main` of `wgsl`, with no constants, no parameters, and nothing bound.
    pub fn new(label: &'static str, wgsl: impl Into<Module>, workgroups: [u32; 3]) -> Self {
        Self {
            label,
            wgsl: wgsl.into(),
            entry: "main",
            constants: Vec::new(),
            params: Vec::new(),
            reads: Vec::new(),
            writes: Vec::new(),
            workgroups,
        }
    }

    /// A dispatch that calls the function `element(i: u32)` of `wgsl` for each `i` below `n`, and for the remaining invocations
    /// of the last workgroup of 64.
    ///
    /// # Errors
    /// [`Error::Size`] of `kernel` if `n` is zero or beyond 64 * 65535².
    pub fn elementwise(kernel: &'static str, label: &'static str, wgsl: impl Into<Module>, n: usize) -> Result<Self, Error> {
        let workgroups = fold_workgroups(kernel, n.div_ceil(ELEMENTWISE_WORKGROUP))?;
        Ok(Self::new(label, wgsl.into().with(ELEMENTWISE), workgroups))
    }

    /// Sets the entry point; `main` by default.
    pub fn entry(self, entry: &'static str) -> Self {
        Self { entry, ..self }
    }

    /// Sets the values of further `override` constants.
    pub fn constants(mut self, constants: impl IntoIterator<Item = (&'static str, f64)>) -> Self {
        self.constants.extend(constants);
        self
    }

    /// Adds a field of the uniform struct, `params.name` in the WGSL.
    pub fn param(self, name: &'static str, value: impl Into<Param>) -> Self {
        self.params([(name, value)])
    }

    /// Adds fields of the uniform struct, as [`param`](Self::param).
    pub fn params(mut self, params: impl IntoIterator<Item = (&'static str, impl Into<Param>)>) -> Self {
        params.into_iter().for_each(|(name, value)| self.wgsl.declare_field(name, value.into(), &mut self.params));
        self
    }

    /// Binds arguments of a kernel's list by name: those that are read, then those that are written. Adds a part to the module
    /// that declares them and the uniform.
    ///
    /// # Errors
    /// [`Error::UnknownArg`] if there is no such argument.
    pub fn bind(
        mut self,
        args: &[Arg],
        reads: impl IntoIterator<Item = impl Into<Binding>>,
        writes: impl IntoIterator<Item = impl Into<Binding>>,
    ) -> Result<Self, Error> {
        let bindings = [reads.into_iter().map(Into::into).collect(), writes.into_iter().map(Into::into).collect()];
        let [reads, writes] = self.wgsl.declare_args(self.label, args, bindings)?;
        self.reads.extend(reads);
        self.writes.extend(writes);
        Ok(self)
    }

    /// Binds arguments by their indices, for a module that declares its bindings itself: first the uniform, with the bytes
    /// `params`, if there are any, then the arguments that are read, then those that are written.
    pub fn bind_declared(self, params: Vec<u8>, reads: Vec<usize>, writes: Vec<usize>) -> Self {
        Self { params, reads, writes, ..self }
    }
}

/// The maximum number of workgroups of a dispatch in one dimension on any adapter.
pub const MAX_WORKGROUPS: u32 = 65_535;

/// Folds `n` workgroups into x and y, for kernels whose index is
/// `(workgroup.y * num_workgroups.x + workgroup.x) * WG + invocation`.
///
/// # Errors
/// [`Error::Size`] if `n` is zero or beyond 65535².
pub fn fold_workgroups(kernel: &'static str, n: usize) -> Result<[u32; 3], Error> {
    let max = MAX_WORKGROUPS as usize;
    check_size(kernel, ("number of workgroups", n), n > 0 && n <= max * max, "1 to 65535 * 65535")?;
    let y = n.div_ceil(max);
    let x = n.div_ceil(y);
    Ok([in_u32(x), in_u32(y), 1])
}

#[cfg(test)]
mod tests;
