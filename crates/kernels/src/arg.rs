use std::fmt;

use crate::dtype::DType;
use crate::error::Error;

/// What a kernel does with an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// It is only read.
    Read,
    /// Every element is written; the previous content does not matter.
    Write,
    /// It is read and written in place.
    ReadWrite,
    /// Working memory of this kernel only: its content is unspecified before and after.
    Scratch,
}

impl Access {
    /// Whether the kernel needs the argument's previous content.
    pub const fn reads(self) -> bool {
        matches!(self, Self::Read | Self::ReadWrite)
    }

    /// Whether the kernel may change the argument.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// One entry of a kernel's argument list: `len` contiguous elements of `dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arg {
    /// The name in the formula, in the WGSL and in error messages.
    pub name: &'static str,
    /// Element type.
    pub dtype: DType,
    /// The number of elements, not bytes.
    pub len: usize,
    /// How the kernel accesses it.
    pub access: Access,
}

impl Arg {
    /// An argument that is only read.
    pub fn read(name: &'static str, dtype: DType, len: impl Into<Len>) -> Self {
        Self { name, dtype, len: len.into().0, access: Access::Read }
    }

    /// An argument that is written in full.
    pub fn write(name: &'static str, dtype: DType, len: impl Into<Len>) -> Self {
        Self { name, dtype, len: len.into().0, access: Access::Write }
    }

    /// An argument updated in place.
    pub fn read_write(name: &'static str, dtype: DType, len: impl Into<Len>) -> Self {
        Self { name, dtype, len: len.into().0, access: Access::ReadWrite }
    }

    /// Working memory. Scratch arguments come last in a kernel's list; a program allocates them itself.
    pub fn scratch(name: &'static str, dtype: DType, len: impl Into<Len>) -> Self {
        Self { name, dtype, len: len.into().0, access: Access::Scratch }
    }

    /// `len` in bytes; `usize::MAX` for lengths that [`check`](Self::check) refuses.
    pub const fn len_bytes(&self) -> usize {
        self.len.saturating_mul(self.dtype.size_bytes())
    }

    /// Checks that an argument of `kernel` has a length that memory can hold. Recorders and programs call this first.
    ///
    /// # Errors
    /// [`Error::Size`] for a product of sizes that overflows, and for more than `isize::MAX` bytes.
    pub fn check(&self, kernel: &'static str) -> Result<(), Error> {
        if self.len_bytes() <= isize::MAX.unsigned_abs() {
            return Ok(());
        }
        let expected = "a number of elements that memory can hold; check the sizes of the kernel";
        Err(Error::Size { kernel, size: self.name, found: self.len, expected })
    }
}

/// One argument of a kernel: by name, or by index if several arguments share a name.
///
/// A name refers to the first argument that has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKey {
    /// The name in the argument list.
    Name(&'static str),
    /// The index in the argument list.
    Index(usize),
}

impl ArgKey {
    pub(crate) fn find(self, args: &[Arg]) -> Option<usize> {
        match self {
            // Names have only a few bytes, so comparing them here is faster than calling `memcmp`. Every replay looks up each.
            Self::Name(name) => args.iter().position(|arg| arg.name.len() == name.len() && arg.name.bytes().eq(name.bytes())),
            Self::Index(index) => (index < args.len()).then_some(index),
        }
    }
}

impl From<&'static str> for ArgKey {
    fn from(name: &'static str) -> Self {
        Self::Name(name)
    }
}

impl From<usize> for ArgKey {
    fn from(index: usize) -> Self {
        Self::Index(index)
    }
}

impl fmt::Display for ArgKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => name.fmt(f),
            Self::Index(index) => index.fmt(f),
        }
    }
}

/// The names of arguments, for error messages that list them.
pub(crate) fn names(args: &[Arg]) -> String {
    args.iter().map(|arg| arg.name).collect::<Vec<_>>().join(", ")
}

/// A number of elements, from one size or from the sizes of a shape, whose product saturates at `usize::MAX` on overflow.
///
/// # Examples
/// ```
/// use brisk_kernels::{Arg, DType};
///
/// assert_eq!(Arg::read("x", DType::F32, [2, 3]).len, 6);
/// let too_long = Arg::read("x", DType::F32, [usize::MAX, 2]);
/// assert!(too_long.check("my_kernel").is_err());
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Len(pub usize);

impl From<usize> for Len {
    fn from(len: usize) -> Self {
        Self(len)
    }
}

/// If one dimension is 0, so is the product, however long the others are.
impl<const N: usize> From<[usize; N]> for Len {
    fn from(shape: [usize; N]) -> Self {
        if shape.contains(&0) {
            return Self(0);
        }
        Self(shape.iter().fold(1, |len, size| len.saturating_mul(*size)))
    }
}
