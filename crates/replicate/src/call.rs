use std::fmt;

use crate::element::ElementType;
use crate::error::RETURN;
use crate::reduce_op::ReduceOp;

/// A call of an operation, which must be the same on every rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Call {
    pub(crate) op: &'static str,
    pub(crate) element: ElementType,
    pub(crate) len: usize,
    pub(crate) how: How,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    Plainly,
    By(ReduceOp),
    From(usize),
}

impl fmt::Display for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { op, element, len, how } = self;
        match how {
            How::Plainly if *op == RETURN => f.write_str(op),
            How::Plainly if ["barrier", "finish"].contains(op) => write!(f, "{op}()"),
            How::Plainly => write!(f, "{op}({len} {element:?})"),
            How::By(reduce) => write!(f, "{op}({len} {element:?}, {reduce:?})"),
            How::From(root) => write!(f, "{op}({len} {element:?}, root {root})"),
        }
    }
}

/// A call encoded as numbers, so that processes can compare it.
#[cfg(feature = "mpi")]
pub(crate) type Encoded = [u32; 6];

#[cfg(feature = "mpi")]
impl Call {
    const OPS: [&str; 6] = ["all_reduce", "reduce_scatter", "all_gather", "broadcast", "barrier", "finish"];
    const ELEMENTS: [ElementType; 5] = [ElementType::F32, ElementType::F16, ElementType::Bf16, ElementType::U8, ElementType::U32];
    const REDUCTIONS: [ReduceOp; 3] = [ReduceOp::Sum, ReduceOp::Mean, ReduceOp::Max];

    pub(crate) fn encode(self) -> Encoded {
        fn place<T: PartialEq>(list: &[T], of: &T) -> u32 {
            list.iter().position(|one| one == of).unwrap_or(list.len()) as u32
        }
        let (kind, detail) = match self.how {
            How::Plainly => (0, 0),
            How::By(reduce) => (1, place(&Self::REDUCTIONS, &reduce)),
            How::From(root) => (2, root as u32),
        };
        let (op, element) = (place(&Self::OPS, &self.op), place(&Self::ELEMENTS, &self.element));
        [op, element, self.len as u32, (self.len as u64 >> 32) as u32, kind, detail]
    }

    pub(crate) fn decode([op, element, low, high, kind, detail]: Encoded) -> Self {
        let how = match kind {
            1 => How::By(Self::REDUCTIONS.get(detail as usize).copied().unwrap_or(ReduceOp::Sum)),
            2 => How::From(detail as usize),
            _ => How::Plainly,
        };
        Self {
            op: Self::OPS.get(op as usize).copied().unwrap_or("an operation of another version"),
            element: Self::ELEMENTS.get(element as usize).copied().unwrap_or(ElementType::U8),
            len: (u64::from(high) << 32 | u64::from(low)) as usize,
            how,
        }
    }
}
