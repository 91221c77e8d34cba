use std::ops::Range;

use brisk_kernels::DType;
use brisk_tensor::program::Slice;
use brisk_tensor::{Graph, Mode};

/// How flat parameters are divided among replicas, as one of these sees it: see [`Parameters::divided`](crate::Parameters::divided).
///
/// The elements are cut into buckets, which travel as one, and each bucket into a piece for every replica. A replica steps its own pieces and keeps the optimizer's state of
/// those alone, one behind the other in the order of the buckets.
///
/// # Reference
/// Rajbhandari et al. 2020, *ZeRO*, arXiv:1910.02054.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Division {
    /// All elements, each in one bucket.
    pub buckets: Vec<DividedBucket>,
    /// What is kept of gradients.
    pub gradients: Kept,
    /// What is kept of values.
    pub values: Kept,
}

/// Elements that travel together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DividedBucket {
    /// Where they are in the flat layout.
    pub elements: Range<usize>,
    /// Those of them that are this replica's own; none, if there are too few for all.
    pub own: Range<usize>,
}

/// How much of a buffer there is from step to step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kept {
    /// All of it.
    Whole,
    /// The replica's own pieces. The rest is a transient of the program, bucket by bucket.
    Own,
}

/// Elements that one kernel steps, and where they lie.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// In [`Parameters::values`](crate::Parameters::values).
    pub values: Range<usize>,
    /// In [`Parameters::grads`](crate::Parameters::grads).
    pub grads: Range<usize>,
    /// In what the optimizer keeps.
    pub state: Range<usize>,
    /// In the flat layout, one behind the other.
    pub elements: Vec<Range<usize>>,
}

/// A bucket of divided parameters within one program, where it is a transient there.
#[derive(Debug, Clone, Copy)]
pub struct BoundBucket {
    /// The values that kernels read, all of the bucket's.
    pub values: Option<Slice>,
    /// The gradients that backward writes, all of the bucket's.
    pub grads: Option<Slice>,
}

impl Division {
    /// Each bucket's own elements, and where they are among all that are this replica's own.
    pub fn own(&self) -> impl Iterator<Item = (&DividedBucket, Range<usize>)> {
        self.buckets.iter().scan(0, |end, bucket| {
            let start = *end;
            *end += bucket.own.len();
            Some((bucket, start..*end))
        })
    }

    /// How many elements are this replica's own.
    pub fn own_len(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.own.len()).sum()
    }

    /// Transients for what is not kept.
    pub(crate) fn bind(&self, graph: &Graph) -> Vec<BoundBucket> {
        let bind = |bucket: &DividedBucket| {
            let transient = |name| graph.with_program(|program| program.transient(name, DType::F32, bucket.elements.len()));
            let values = (self.values == Kept::Own).then(|| transient("gathered parameters"));
            let wants_grads = self.gradients == Kept::Own && graph.mode() == Mode::Training;
            BoundBucket { values, grads: wants_grads.then(|| transient("gradients of a bucket")) }
        };
        self.buckets.iter().map(bind).collect()
    }

    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let pieces = self.own().filter(|(bucket, _)| !bucket.own.is_empty()).map(|(DividedBucket { own, .. }, state)| {
            let kept = |kept| if kept == Kept::Whole { own.clone() } else { state.clone() };
            Piece { values: kept(self.values), grads: kept(self.gradients), state: state.clone(), elements: vec![own.clone()] }
        });
        if (self.values, self.gradients) != (Kept::Own, Kept::Own) {
            return pieces.collect();
        }
        // All that is kept lies together then.
        let elements: Vec<_> = pieces.flat_map(|piece| piece.elements).collect();
        let all = 0..self.own_len();
        let piece = Piece { values: all.clone(), grads: all.clone(), state: all, elements };
        std::iter::once(piece).filter(|piece| !piece.state.is_empty()).collect()
    }
}
