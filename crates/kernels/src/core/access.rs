use crate::DType;

/// What a kernel does with an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Access {
    /// Only read.
    Read,
    /// Every element is written; what was there before does not matter.
    Write,
    /// Read and written in place.
    ReadWrite,
    /// Working memory of this kernel alone: its content means nothing before and after.
    Scratch,
}

impl Access {
    /// Whether the kernel may change the argument.
    pub const fn writes(self) -> bool {
        !matches!(self, Self::Read)
    }
}

/// One entry of a kernel's argument list: a run of `len` elements of `dtype`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arg {
    /// The name in the formula, in the WGSL and in error messages.
    pub name: &'static str,
    /// Element type.
    pub dtype: DType,
    /// Elements, not bytes.
    pub len: usize,
    /// What is done with it.
    pub access: Access,
}

impl Arg {
    /// An argument that is only read.
    pub const fn read(name: &'static str, dtype: DType, len: usize) -> Self {
        Self { name, dtype, len, access: Access::Read }
    }

    /// An argument that is written in full.
    pub const fn write(name: &'static str, dtype: DType, len: usize) -> Self {
        Self { name, dtype, len, access: Access::Write }
    }

    /// An argument updated in place.
    pub const fn read_write(name: &'static str, dtype: DType, len: usize) -> Self {
        Self { name, dtype, len, access: Access::ReadWrite }
    }

    /// Working memory. Scratch arguments come last in a kernel's list; a program allocates them itself.
    pub const fn scratch(name: &'static str, dtype: DType, len: usize) -> Self {
        Self { name, dtype, len, access: Access::Scratch }
    }

    /// `len` in bytes.
    pub const fn len_bytes(&self) -> usize {
        self.len * self.dtype.size_bytes()
    }
}
