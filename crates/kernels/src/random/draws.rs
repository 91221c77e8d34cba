//! Random numbers as an input of a [`Map`](crate::Map): computed where they are read, never stored.
//!
//! A mask of dropout is neither stored nor a kernel of its own, and the backward pass draws it again. The index is that of the
//! whole batch, so that replicas draw what one device draws.

use crate::random::philox::Philox;
use crate::shader::module::{Part, part};

/// The random numbers of a [`MapInput`](crate::MapInput): number `i` is a hash of `first + i` and of two keys, which follow from
/// the seed, the stream, the part and `state.step`. So a kernel that reads the same draws in the same step, such as a gradient,
/// reads the same numbers, and each step draws new ones.
///
/// # Examples
/// Dropout with probability 1/4:
/// ```
/// use brisk_kernels::expr::Expr;
/// use brisk_kernels::{DType, Draws, Kernel, Map, MapInput, MapOutput};
///
/// let (x, u) = (Expr::input(0), Expr::input(1));
/// let inputs = vec![MapInput::new(&[64], DType::F32), MapInput::uniform(&[64], Draws { seed: 7, ..Draws::default() })];
/// let y = MapOutput { expr: u.lt(0.25).select(0.0, x / 0.75), dtype: DType::F32 };
/// let dropout = Map { shape: vec![64], inputs, outputs: vec![y] };
/// dropout.check()?;
/// # Ok::<(), brisk_kernels::Error>(())
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Draws {
    /// The seed of the run.
    pub seed: u64,
    /// Distinguishes the draws of one step.
    pub stream: u32,
    /// Distinguishes draws of the same stream on several replicas, if [`first`](Self::first) does not.
    pub part: u32,
    /// The index of the first number, such as the position of a replica's part in the values of all replicas.
    pub first: u32,
}

/// The word of a Philox counter that distinguishes the keys from other uses of the seed.
const KEYS: u32 = 0x6472_6177;

pub(crate) const DRAWS: Part = part!("draws.wgsl");

impl Draws {
    /// What the keys of all steps are computed from.
    pub(crate) fn seeds(&self) -> [u32; 2] {
        let [a, b, ..] = Philox::new(self.seed).block([self.part, 0, self.stream, KEYS]);
        [a, b]
    }
}
