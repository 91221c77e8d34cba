//! All-reduce of a power of two of ranks along the fixed tree, by exchanges between two ranks at a time.

use std::ops::Range;

use super::{Mpi, PIECE_BYTES, WHOLE_BYTES, room};
use crate::element::Element;
use crate::error::Error;
use crate::reduce_op::ReduceOp;
use crate::tree::{means_of_sums, reduce_in_place};

/// Halves are cut at multiples of this many elements, a cache line.
const LINE: usize = 16;

impl Mpi {
    /// Partial reductions are of type `T`, as those of the tree are only for `f32`, or with a single round.
    ///
    /// After round `k` a rank has the partial reductions of `2^(k+1)` ranks, an inner node of the tree: of all values if they are
    /// few; otherwise of one half of those it had, and the parts are gathered in the inverse order.
    ///
    /// # Reference
    /// Thakur, Rabenseifner and Gropp 2005, *Optimization of collective communication operations in MPICH*.
    pub(super) fn all_reduce_in_pairs<T: Element>(&mut self, values: &mut [T], reduce: ReduceOp) -> Result<(), Error> {
        let n_rounds = self.world_size.trailing_zeros();
        let is_mean_of_more = reduce == ReduceOp::Mean && n_rounds > 1;
        let of_pair = if is_mean_of_more { ReduceOp::Sum } else { reduce };
        let mut memory = std::mem::take(&mut self.received);
        let received: &mut [T] = room(&mut memory, values.len().min(PIECE_BYTES / size_of::<T>()));
        for piece in values.chunks_mut(PIECE_BYTES / size_of::<T>()) {
            let is_whole = size_of_val(piece) <= WHOLE_BYTES;
            let mut kept = 0..piece.len();
            let mut split = Vec::new();
            for peer in (0..n_rounds).map(|round| self.rank ^ 1 << round) {
                let is_lower = self.rank < peer;
                let [mine, theirs] = match (is_whole, halves(&kept)) {
                    (true, _) => [kept.clone(), kept.clone()],
                    (false, [lower, upper]) if is_lower => [lower, upper],
                    (false, [lower, upper]) => [upper, lower],
                };
                let received = &mut received[..mine.len()];
                self.exchange(peer, &piece[theirs], received)?;
                let own = &mut piece[mine.clone()];
                reduce_in_place(&mut if is_lower { [own, received] } else { [received, own] }, of_pair);
                split.push((peer, std::mem::replace(&mut kept, mine)));
            }
            if is_mean_of_more {
                means_of_sums(&mut piece[kept], self.world_size);
            }
            for (peer, whole) in split.into_iter().rev().filter(|_| !is_whole) {
                let [lower, _] = halves(&whole);
                let (lower, upper) = piece[whole].split_at_mut(lower.len());
                let (own, others) = if self.rank < peer { (lower, upper) } else { (upper, lower) };
                self.exchange(peer, own, others)?;
            }
        }
        self.received = memory;
        Ok(())
    }
}

fn halves(range: &Range<usize>) -> [Range<usize>; 2] {
    let middle = range.start + range.len() / 2 / LINE * LINE;
    [range.start..middle, middle..range.end]
}
