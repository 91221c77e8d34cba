use std::fmt::Debug;

use crate::{Adapter, Arg, DType, Dispatch, Error, Map, TwinArgs};

/// One operation over buffers: a plain struct of sizes and constants, with two bodies that compute the same.
///
/// The trait is open: a kernel of your own, in a crate of your own, is recorded, planned and replayed like those here.
/// It is dyn-compatible.
///
/// # Contract
/// - [`args`](Kernel::args) is a pure function of the struct; scratch arguments come last.
/// - [`dispatches`](Kernel::dispatches) and [`twin`](Kernel::twin) take arguments by their names in that list, with [`Dispatch::bind`] and [`TwinArgs`].
/// - [`twin`](Kernel::twin) is the specification: plain Rust, the same values up to rounding, and the same bits however many
///   threads there are.
pub trait Kernel: Debug + Send + Sync + 'static {
    /// What it computes, in the field's words: `matmul`, `adam`. Names the kernel in errors, labels and profiles.
    fn name(&self) -> &'static str;

    /// The argument list, in the order in which buffers are given.
    fn args(&self) -> Vec<Arg>;

    /// Whether the sizes and constants make sense; asked before anything is recorded or run.
    ///
    /// # Errors
    /// [`Error::Size`] or [`Error::Unsupported`]. The default accepts all.
    fn check(&self) -> Result<(), Error> {
        Ok(())
    }

    /// The WGSL dispatches that compute it on `adapter`, in order.
    ///
    /// # Errors
    /// [`Error::Size`] where the sizes are beyond what the adapter can dispatch.
    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error>;

    /// The plain-Rust twin. It may use the calling thread and, with [`OnTeam`](crate::OnTeam), the other threads of its
    /// [`Team`](crate::Team).
    fn twin(&self, args: &mut TwinArgs<'_>);

    /// The kernel as a [`Map`], if it is one: then it can be fused with its neighbours. The default returns `None`.
    fn as_map(&self) -> Option<&Map> {
        None
    }

    /// A kernel that also computes `map`, whose input `input` is what this one writes, before the results are stored, if there is one. Its arguments are those
    /// of this one, with the other inputs of `map` right before what is written. The default returns `None`.
    fn followed_by(&self, _map: &Map, _input: usize) -> Option<Box<dyn Kernel>> {
        None
    }

    /// The same kernel with its arguments, scratch left out, stored as `dtypes` says, where it has a form of its own for that: decided by sizes and types alone.
    /// Call [`stored`](crate::stored), which finds a way where this says `None`, as the default does. It asks only for types that differ from those of
    /// [`args`](Self::args), and only for f16 and bf16 in the place of f32.
    fn stored_as(&self, _dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        None
    }

    /// The same kernel over `n` elements, if what it does at a place depends on nothing but the values there: a program then runs it in parts, where an
    /// argument is longer than an adapter binds at once. Arguments whose length changes are cut, the others given whole to each part. The default says no.
    fn with_len(&self, _n: usize) -> Option<Box<dyn Kernel>> {
        None
    }

    /// Work done, for rooflines. The default counts each argument once and no arithmetic.
    fn cost(&self) -> Cost {
        Cost { flops: 0, bytes: self.args().iter().map(|arg| arg.len_bytes() as u64).sum() }
    }
}

impl Kernel for Box<dyn Kernel> {
    fn name(&self) -> &'static str {
        (**self).name()
    }

    fn args(&self) -> Vec<Arg> {
        (**self).args()
    }

    fn check(&self) -> Result<(), Error> {
        (**self).check()
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        (**self).dispatches(adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        (**self).twin(args);
    }

    fn as_map(&self) -> Option<&Map> {
        (**self).as_map()
    }

    fn followed_by(&self, map: &Map, input: usize) -> Option<Box<dyn Kernel>> {
        (**self).followed_by(map, input)
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        (**self).stored_as(dtypes)
    }

    fn with_len(&self, n: usize) -> Option<Box<dyn Kernel>> {
        (**self).with_len(n)
    }

    fn cost(&self) -> Cost {
        (**self).cost()
    }
}

/// The work of one run of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cost {
    /// Floating-point operations; a multiply-add counts two.
    pub flops: u64,
    /// Bytes that must be read or written at least once.
    pub bytes: u64,
}
