use std::fmt::Debug;

use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::dtype::DType;
use crate::error::Error;
use crate::gemm::packing::Packing;
use crate::kernel::twin::TwinArgs;
use crate::map::map::Map;
use crate::shader::dispatch::Dispatch;
use crate::sizes::check_indices;

/// One operation over buffers: a plain struct of sizes and constants, with two implementations that compute the same.
///
/// The trait is open: your own kernels, in your own crate, are recorded, planned and replayed like those of this crate.
/// It is dyn-compatible.
///
/// # Contract
/// - [`signature`](Kernel::signature) is a pure function of the struct; scratch arguments come last.
/// - [`dispatches`](Kernel::dispatches) and [`twin`](Kernel::twin) take arguments by their names in that list, with
///   [`Dispatch::bind`] and [`TwinArgs`].
/// - [`twin`](Kernel::twin) is the specification: plain Rust that computes the same values up to rounding, bit-identical for any
///   number of threads.
pub trait Kernel: Debug + Send + Sync + 'static {
    /// Its name, its arguments and its sizes.
    fn signature(&self) -> Signature;

    /// The [name](Signature::name).
    fn name(&self) -> &'static str {
        self.signature().name
    }

    /// The [argument list](Signature::args).
    fn args(&self) -> Vec<Arg> {
        self.signature().args
    }

    /// Checks whether the sizes and constants are valid; called before anything is recorded or executed.
    ///
    /// # Errors
    /// [`Error::Size`] or [`Error::Unsupported`]. The default checks the [sizes](Signature::sizes).
    fn check(&self) -> Result<(), Error> {
        self.signature().check()
    }

    /// The WGSL dispatches that compute it on `adapter`, in order.
    ///
    /// # Errors
    /// [`Error::Size`] if the sizes exceed what the adapter can dispatch.
    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error>;

    /// The plain-Rust twin. It may use the calling thread and, with [`OnTeam`](crate::OnTeam), the other threads of its
    /// [`Team`](crate::Team).
    fn twin(&self, args: &mut TwinArgs<'_>);

    /// The kernel as a [`Map`], if it is one, so that it can be fused with its neighbours. The default returns `None`.
    fn as_map(&self) -> Option<&Map> {
        None
    }

    /// A kernel that also computes `map`, whose input `input` is the output of this kernel, before the results are stored, if
    /// that is supported. Its arguments are those of this kernel, with the other inputs of `map` directly before the output. The
    /// default returns `None`.
    fn followed_by(&self, _map: &Map, _input: usize) -> Option<Box<dyn Kernel>> {
        None
    }

    /// The same kernel with its arguments, except scratch, stored as `dtypes` says, if it has a specialised form for these types,
    /// which depends only on sizes and types. Call [`stored`](crate::stored) instead, which also works if this returns `None`, as
    /// the default does. It only requests f16 and bf16 in place of f32.
    fn stored_as(&self, _dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        None
    }

    /// The same kernel over `n` elements, if each result depends only on the values at the same index: a program then executes it
    /// in parts if an argument is longer than an adapter can bind. Arguments whose length changes are split; each part gets the
    /// others whole. The default returns `None`.
    fn with_len(&self, _n: usize) -> Option<Box<dyn Kernel>> {
        None
    }

    /// The argument that the twin copies into another memory layout before it computes, if there is one. A caller that runs the
    /// twin several times while the argument stays the same makes the copy once, with [`Packing::pack`], and passes it to each
    /// run with [`TwinArgs::set_packed`]. The default returns `None`.
    fn packing(&self) -> Option<Packing> {
        None
    }

    /// The amount of work, for rooflines. The default counts each argument once and no arithmetic.
    fn cost(&self) -> Cost {
        Cost { flops: 0, bytes: self.args().iter().map(|arg| arg.len_bytes() as u64).sum() }
    }
}

/// Methods that are those of the kernel in a box.
macro_rules! of_boxed {
    ($(fn $name:ident(&self $(, $arg:ident: $type:ty)*) $(-> $out:ty)?;)*) => {
        $(
            fn $name(&self $(, $arg: $type)*) $(-> $out)? {
                (**self).$name($($arg),*)
            }
        )*
    };
}

impl Kernel for Box<dyn Kernel> {
    of_boxed! {
        fn signature(&self) -> Signature;
        fn check(&self) -> Result<(), Error>;
        fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error>;
        fn twin(&self, args: &mut TwinArgs<'_>);
        fn as_map(&self) -> Option<&Map>;
        fn followed_by(&self, map: &Map, input: usize) -> Option<Box<dyn Kernel>>;
        fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>>;
        fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>>;
        fn packing(&self) -> Option<Packing>;
        fn cost(&self) -> Cost;
    }
}

/// What a [`Kernel`] is called and what it is given.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signature {
    /// What it computes, such as `matmul` or `adam`. Errors, labels and profiles use it as the name of the kernel.
    pub name: &'static str,
    /// The argument list, in the order in which buffers are given.
    pub args: Vec<Arg>,
    /// The sizes that WGSL has in 32 bits, by name.
    pub sizes: Vec<(&'static str, usize)>,
}

impl Signature {
    /// A signature without sizes to check.
    pub fn new(name: &'static str, args: impl Into<Vec<Arg>>) -> Self {
        Self { name, args: args.into(), sizes: Vec::new() }
    }

    /// Sets the sizes to check.
    pub fn sizes(self, sizes: impl Into<Vec<(&'static str, usize)>>) -> Self {
        Self { sizes: sizes.into(), ..self }
    }

    /// Checks that each of the sizes, if there are any, is from 1 to 2^32 - 1, and that the arguments have no more elements.
    ///
    /// # Errors
    /// [`Error::Size`].
    pub fn check(&self) -> Result<(), Error> {
        if self.sizes.is_empty() { Ok(()) } else { check_indices(self.name, &self.args, &self.sizes) }
    }
}

/// The amount of work of one execution of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Floating-point operations; a multiply-add counts two.
    pub flops: u64,
    /// Bytes that must be read or written at least once.
    pub bytes: u64,
}
