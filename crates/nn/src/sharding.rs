use std::ops::Range;

use brisk_kernels::DType;
use brisk_tensor::program::Slice;
use brisk_tensor::{Graph, Mode};

/// How flat parameters are sharded across replicas, from the view of one replica: see
/// [`Parameters::sharded`](crate::Parameters::sharded).
///
/// The elements are divided into buckets, which are sent as a whole, and each bucket into a piece for every replica. A replica
/// updates only its own pieces, and keeps the optimizer's state for these only, concatenated in the order of the buckets.
///
/// # Reference
/// Rajbhandari et al. 2020, *ZeRO*, arXiv:1910.02054.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sharding {
    /// All elements, each in one bucket.
    pub buckets: Vec<ShardedBucket>,
    /// Which gradients are kept.
    pub gradients: Placement,
    /// Which values are kept.
    pub values: Placement,
}

/// Elements that are sent together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShardedBucket {
    /// Where they are in the flat layout.
    pub elements: Range<usize>,
    /// The elements of these that belong to this replica; empty if there are too few elements for all replicas.
    pub own: Range<usize>,
    /// The length of the pieces, which are in the order of the replicas: the last ones may have fewer elements, or none.
    pub piece_len: usize,
}

/// Which part of a buffer is kept between steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Placement {
    /// All of it.
    Replicated,
    /// The replica's own pieces. The rest is a transient of the program, bucket by bucket.
    Sharded,
}

/// Elements that one kernel updates, and where they are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// In [`Parameters::values`](crate::Parameters::values).
    pub values: Range<usize>,
    /// In [`Parameters::grads`](crate::Parameters::grads).
    pub grads: Range<usize>,
    /// In the optimizer's state.
    pub state: Range<usize>,
    /// In the flat layout, concatenated.
    pub elements: Vec<Range<usize>>,
}

/// A bucket of sharded parameters within one program, if it is a transient there.
#[derive(Debug, Clone, Copy)]
pub struct BoundBucket {
    /// The values that kernels read, for the whole bucket.
    pub values: Option<Slice>,
    /// The gradients that the backward pass writes, for the whole bucket.
    pub grads: Option<Slice>,
}

impl Sharding {
    /// Each bucket's own elements, and their offset among all elements of this replica.
    pub fn own(&self) -> impl Iterator<Item = (&ShardedBucket, Range<usize>)> {
        self.buckets.iter().scan(0, |end, bucket| {
            let start = *end;
            *end += bucket.own.len();
            Some((bucket, start..*end))
        })
    }

    /// The number of elements of this replica.
    pub(crate) fn own_len(&self) -> usize {
        self.buckets.iter().map(|bucket| bucket.own.len()).sum()
    }

    /// Transients for the parts that are not kept.
    pub(crate) fn bind(&self, graph: &Graph) -> Vec<BoundBucket> {
        let bind = |bucket: &ShardedBucket| {
            let transient = |name| graph.with_program(|program| program.transient(name, DType::F32, bucket.elements.len()));
            let values = (self.values == Placement::Sharded).then(|| transient("gathered parameters"));
            let wants_grads = self.gradients == Placement::Sharded && graph.mode() == Mode::Training;
            BoundBucket { values, grads: wants_grads.then(|| transient("gradients of a bucket")) }
        };
        self.buckets.iter().map(bind).collect()
    }

    /// Each bucket with this replica's piece of it, which may be empty.
    pub(crate) fn pieces_of_buckets(&self) -> impl Iterator<Item = (&ShardedBucket, Piece)> {
        self.own().map(|(bucket, state)| {
            let own = &bucket.own;
            let kept = |kept| if kept == Placement::Replicated { own.clone() } else { state.clone() };
            let (values, grads) = (kept(self.values), kept(self.gradients));
            (bucket, Piece { values, grads, state, elements: vec![own.clone()] })
        })
    }

    pub(crate) fn pieces(&self) -> Vec<Piece> {
        let pieces = self.pieces_of_buckets().map(|(_, piece)| piece).filter(|piece| !piece.state.is_empty());
        if (self.values, self.gradients) != (Placement::Sharded, Placement::Sharded) {
            return pieces.collect();
        }
        // In this case, the kept elements are contiguous.
        let elements: Vec<_> = pieces.flat_map(|piece| piece.elements).collect();
        let all = 0..self.own_len();
        let piece = Piece { values: all.clone(), grads: all.clone(), state: all, elements };
        std::iter::once(piece).filter(|piece| !piece.state.is_empty()).collect()
    }
}
