use crate::gemm::gemm::{self, Operand};
use crate::gemm::transpose::Transpose;

/// How the CPU copies `b` of a matrix product before it multiplies. [`Kernel::packing`](crate::Kernel::packing) returns it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Packing {
    /// The argument's index in the list of the kernel. It is stored in f32.
    pub arg: usize,
    pub(crate) size: [usize; 2],
    pub(crate) transpose: Transpose,
}

impl Packing {
    /// The number of floats of the copy, which depends on the vector instructions of this machine.
    pub fn len(&self) -> usize {
        gemm::packed_len(self.size)
    }

    /// Whether the copy has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Copies the operand, with the threads of this thread's [`Team`](crate::Team).
    ///
    /// # Panics
    /// If `b` is not the operand, or if `packed` does not have [`len`](Self::len) elements.
    pub fn pack(&self, b: &[f32], packed: &mut [f32]) {
        gemm::pack(self.operand(b), packed);
    }

    fn operand<'a>(&self, b: &'a [f32]) -> Operand<'a> {
        Operand::right(b, self.size, self.transpose)
    }
}
