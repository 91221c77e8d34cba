//! The arguments of a kernel's twin, its implementation on the CPU.
//!
//! Twins divide their work by shape only, never by the number of threads, so on one machine results are bit-identical for any
//! number of threads. Another processor may use other vector instructions.

use std::any::{TypeId, type_name};

use bytemuck::Pod;
use half::{bf16, f16};

use crate::arg::{Access, Arg, ArgKey, names};
use crate::dtype::DType;

/// The buffers of one call of a twin, found by the names under which the kernel [declares](crate::Signature::args) them.
///
/// Slices live as long as the borrow that they were created from, so a twin first takes all of them and then computes.
///
/// # Examples
/// ```
/// use brisk_kernels::{Arg, DType, TwinArgs, bytemuck::bytes_of, bytemuck::bytes_of_mut};
///
/// let declared = [Arg::read("x", DType::F32, 2), Arg::write("y", DType::F32, 2)];
/// let (x, mut y) = ([1.0_f32, 2.0], [0.0_f32; 2]);
/// let mut args = TwinArgs::new(&declared);
/// args.push_read(bytes_of(&x));
/// args.push_write(bytes_of_mut(&mut y));
/// // In `Kernel::twin`:
/// let (x, y) = (args.read::<f32>("x"), args.write::<f32>("y"));
/// y.copy_from_slice(x);
/// ```
#[derive(Debug)]
pub struct TwinArgs<'a> {
    declared: &'a [Arg],
    /// One for each declared argument that was given, in the same order.
    slots: Vec<Slot<'a>>,
    pub(crate) packed: Option<&'a [f32]>,
}

#[derive(Debug)]
enum Slot<'a> {
    Read(&'a [u8]),
    Write(&'a mut [u8]),
    Taken,
}

impl<'a> TwinArgs<'a> {
    /// An empty list of buffers for a kernel that declares these arguments. Buffers are added in the same order.
    pub fn new(declared: &'a [Arg]) -> Self {
        Self { declared, slots: Vec::with_capacity(declared.len()), packed: None }
    }

    /// Gives the copy of an argument that [`Packing::pack`](crate::Packing::pack) has made for this kernel.
    pub fn set_packed(&mut self, packed: &'a [f32]) {
        self.packed = Some(packed);
    }

    /// Adds the buffer of the next argument, which is only read.
    ///
    /// # Panics
    /// If the next argument is written, or has a different length; if the bytes are not aligned for its element type.
    #[track_caller]
    pub fn push_read(&mut self, bytes: &'a [u8]) {
        self.push(bytes.as_ptr(), bytes.len(), Slot::Read(bytes));
    }

    /// Adds the buffer of the next argument, which is written.
    ///
    /// # Panics
    /// If the next argument is only read, or has a different length; if the bytes are not aligned for its element type.
    #[track_caller]
    pub fn push_write(&mut self, bytes: &'a mut [u8]) {
        self.push(bytes.as_ptr(), bytes.len(), Slot::Write(bytes));
    }

    /// The elements of an argument that is only read.
    ///
    /// `T` is the type that the kernel declares: `f32`, `u32` or `u8`; for f16 and bf16 it is `half::f16` and `half::bf16`, or
    /// `u16` for the raw bits.
    ///
    /// # Panics
    /// If the kernel does not declare the argument, writes it, or declares a different element type: a mistake in the kernel.
    #[track_caller]
    pub fn read<T: Pod>(&self, arg: impl Into<ArgKey>) -> &'a [T] {
        let index = self.find(arg);
        self.check_type::<T>(index);
        bytemuck::cast_slice(self.read_bytes(index))
    }

    /// The elements of an argument that is written, updated or scratch. It can be taken once; `T` is as for [`read`](Self::read).
    ///
    /// # Panics
    /// If the kernel does not declare the argument, only reads it, has taken it before, or declares a different element type: a
    /// mistake in the kernel.
    #[track_caller]
    pub fn write<T: Pod>(&mut self, arg: impl Into<ArgKey>) -> &'a mut [T] {
        let index = self.find(arg);
        self.check_type::<T>(index);
        bytemuck::cast_slice_mut(self.write_bytes(index))
    }

    /// The element type of an argument, for kernels that have several forms.
    ///
    /// # Panics
    /// If the kernel does not declare the argument: a mistake in the kernel.
    #[track_caller]
    pub fn dtype(&self, arg: impl Into<ArgKey>) -> DType {
        self.declared[self.find(arg)].dtype
    }

    /// Checks, after a twin has run, that it has taken every argument that it declares as written in full.
    ///
    /// # Panics
    /// If it has not, so that the argument still has its previous content: a mistake in the kernel.
    #[track_caller]
    pub fn check_written(&self) {
        let left = |(slot, arg): &(&Slot<'_>, &Arg)| matches!(slot, Slot::Write(_)) && arg.access == Access::Write;
        if let Some(index) = self.slots.iter().zip(self.declared).position(|pair| left(&pair)) {
            self.refuse(index, "is declared as written, and the twin does not write it");
        }
    }

    /// The bytes of argument `index`, whatever its element type, for kernels that pass them to another kernel.
    #[track_caller]
    pub(crate) fn read_bytes(&self, index: usize) -> &'a [u8] {
        match self.slots.get(index) {
            Some(Slot::Read(bytes)) => bytes,
            Some(Slot::Write(_) | Slot::Taken) => self.refuse(index, "is written, take it with `write`"),
            None => self.refuse(index, "was given no buffer"),
        }
    }

    /// The same for an argument that is written.
    #[track_caller]
    pub(crate) fn write_bytes(&mut self, index: usize) -> &'a mut [u8] {
        let slot = self.slots.get_mut(index).map(|slot| std::mem::replace(slot, Slot::Taken));
        match slot {
            Some(Slot::Write(bytes)) => bytes,
            Some(Slot::Read(_)) => self.refuse(index, "is only read, take it with `read`"),
            Some(Slot::Taken) => self.refuse(index, "was taken before"),
            None => self.refuse(index, "was given no buffer"),
        }
    }

    #[track_caller]
    fn push(&mut self, start: *const u8, len_bytes: usize, slot: Slot<'a>) {
        let index = self.slots.len();
        let Some(arg) = self.declared.get(index) else {
            panic!("more buffers than arguments were given; the kernel has {}", names(self.declared));
        };
        match (arg.access.writes(), &slot) {
            (true, Slot::Read(_)) => self.refuse(index, "is written, give it with `push_write`"),
            (false, Slot::Write(_)) => self.refuse(index, "is only read, give it with `push_read`"),
            _ => {}
        }
        if arg.len_bytes() != len_bytes {
            self.refuse(index, &format!("was given {len_bytes} bytes, expected {}", arg.len_bytes()));
        }
        let size = arg.dtype.size_bytes();
        if !start.addr().is_multiple_of(size) {
            self.refuse(
                index,
                &format!("was given bytes at address {start:?}, expected a multiple of {size}, as {} needs", arg.dtype),
            );
        }
        self.slots.push(slot);
    }

    /// The index of an argument, for twins that check its type and then take it.
    #[track_caller]
    pub(crate) fn find(&self, arg: impl Into<ArgKey>) -> usize {
        let arg = arg.into();
        let Some(index) = arg.find(self.declared) else {
            panic!("there is no argument `{arg}`; the kernel has {}", names(self.declared));
        };
        index
    }

    #[track_caller]
    fn check_type<T: Pod>(&self, index: usize) {
        let (dtype, found) = (self.declared[index].dtype, TypeId::of::<T>());
        let is_stored_as = match dtype {
            DType::F32 => found == TypeId::of::<f32>(),
            DType::F16 => found == TypeId::of::<f16>() || found == TypeId::of::<u16>(),
            DType::Bf16 => found == TypeId::of::<bf16>() || found == TypeId::of::<u16>(),
            DType::U8 => found == TypeId::of::<u8>(),
            DType::U32 => found == TypeId::of::<u32>(),
        };
        if !is_stored_as {
            self.refuse(index, &format!("has elements of {dtype}, not {}", type_name::<T>()));
        }
    }

    #[cold]
    #[track_caller]
    fn refuse(&self, index: usize, why: &str) -> ! {
        panic!("argument `{}` {why}; the kernel has {}", self.declared[index].name, names(self.declared));
    }
}

#[cfg(test)]
mod tests;
