//! The message with which every operation begins: what each rank calls and, if they are few, its values. An operation on few
//! values thus needs no second one.

use crate::call::Encoded;
use crate::element::Element;
use crate::reduce_op::ReduceOp;
use crate::tree::reduce_into;

/// The slots of all ranks, a call and its values each, and what is known of them so far.
///
/// They are gathered in ⌈log₂ n⌉ rounds. A slot begins with its length, and a rank has room for the longest, so ranks whose calls
/// differ understand each other.
///
/// # Reference
/// Bruck et al. 1997, *Efficient algorithms for all-to-all communications*, the concatenation.
#[derive(Debug)]
pub(super) struct Opening {
    rank: usize,
    world_size: usize,
    /// The slot of this rank, then that of the next one, and so on, without gaps.
    words: Vec<u32>,
    /// Where the slots begin that have arrived, and where the last one ends.
    bounds: Vec<usize>,
}

/// A round: the first words are sent, and others are received after the last.
pub(super) struct Round<'a> {
    pub(super) to: usize,
    pub(super) from: usize,
    pub(super) sent: &'a [u32],
    pub(super) received: &'a mut [u32],
}

/// Words before the values: the call, the microseconds that the rank was busy before it, and the number of bytes.
const HEADER: usize = 8;
/// The most bytes that the values of a rank may have.
const LIMIT: usize = 16 << 10;
/// The most bytes that the values of all ranks may have, which the last round halves.
const ALL: usize = 64 << 10;

impl Opening {
    pub(super) fn new(rank: usize, world_size: usize) -> Self {
        let slot = HEADER + limit(world_size) / 4;
        Self { rank, world_size, words: vec![0; world_size * slot], bounds: Vec::with_capacity(world_size + 1) }
    }

    /// Whether so many bytes are few.
    pub(super) fn has_room_for(&self, n_bytes: usize) -> bool {
        n_bytes <= limit(self.world_size)
    }

    /// Begins with the slot of this rank. `values` must be few.
    pub(super) fn put(&mut self, call: Encoded, busy_us: u32, values: &[u8]) {
        self.words[..call.len()].copy_from_slice(&call);
        self.words[HEADER - 2..HEADER].copy_from_slice(&[busy_us, values.len() as u32]);
        let end = HEADER + values.len().div_ceil(4);
        bytemuck::cast_slice_mut(&mut self.words[HEADER..end])[..values.len()].copy_from_slice(values);
        self.bounds.clear();
        self.bounds.extend([0, end]);
    }

    /// The next round; `None` once all slots are here.
    pub(super) fn round(&mut self) -> Option<Round<'_>> {
        let (n, n_here) = (self.world_size, self.bounds.len() - 1);
        let n_sent = n_here.min(n - n_here);
        if n_sent == 0 {
            return None;
        }
        let (here, free) = self.words.split_at_mut(self.bounds[n_here]);
        let (to, from) = ((self.rank + n - n_here) % n, (self.rank + n_here) % n);
        Some(Round { to, from, sent: &here[..self.bounds[n_sent]], received: free })
    }

    /// Takes in the slots that a round has received; whether they are such.
    pub(super) fn take_in(&mut self) -> bool {
        let n_here = self.bounds.len() - 1;
        for _ in 0..n_here.min(self.world_size - n_here) {
            let start = self.bounds[self.bounds.len() - 1];
            let Some(&n_bytes) = self.words.get(start + HEADER - 1) else { return false };
            let end = start + HEADER + (n_bytes as usize).div_ceil(4);
            if end > self.words.len() || !self.has_room_for(n_bytes as usize) {
                return false;
            }
            self.bounds.push(end);
        }
        true
    }

    /// A rank whose call differs from that of rank 0.
    pub(super) fn other(&self) -> Option<usize> {
        let first = self.call(0);
        (1..self.world_size).find(|&rank| self.call(rank) != first)
    }

    /// The call of `rank`.
    pub(super) fn call(&self, rank: usize) -> Encoded {
        let slot = self.slot(rank);
        std::array::from_fn(|i| slot[i])
    }

    /// The microseconds that `rank` was busy before the call.
    pub(super) fn busy_us(&self, rank: usize) -> u32 {
        self.slot(rank)[HEADER - 2]
    }

    /// The values of `rank`.
    pub(super) fn values(&self, rank: usize) -> &[u8] {
        let slot = self.slot(rank);
        &bytemuck::cast_slice(&slot[HEADER..])[..slot[HEADER - 1] as usize]
    }

    /// Reduces the values of all ranks, those from `at` on, into `out`.
    pub(super) fn reduce<T: Element>(&self, at: usize, reduce: ReduceOp, out: &mut [T]) {
        let of = |rank| &bytemuck::cast_slice::<u8, T>(self.values(rank))[at..][..out.len()];
        reduce_into(&(0..self.world_size).map(of).collect::<Vec<_>>(), reduce, out);
    }

    fn slot(&self, rank: usize) -> &[u32] {
        let place = (rank + self.world_size - self.rank) % self.world_size;
        &self.words[self.bounds[place]..self.bounds[place + 1]]
    }
}

/// The most bytes of values in a slot, whole words.
fn limit(world_size: usize) -> usize {
    (ALL / world_size).min(LIMIT) / 4 * 4
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a rank of `n` puts: as many bytes as its number, repeated, where there is room.
    fn values(rank: usize, n: usize) -> Vec<u8> {
        vec![rank as u8; (rank % 11).min(limit(n))]
    }

    #[test]
    fn every_rank_has_the_slots_of_all_after_the_rounds() {
        for n in [1, 2, 3, 4, 5, 7, 8, 13, 64, 100] {
            let mut ranks: Vec<Opening> = (0..n).map(|rank| Opening::new(rank, n)).collect();
            for (rank, opening) in ranks.iter_mut().enumerate() {
                opening.put([rank as u32; 6], 100 + rank as u32, &values(rank, n));
            }
            let mut n_rounds = 0;
            while ranks[0].round().is_some() {
                let sent: Vec<(usize, Vec<u32>)> = ranks
                    .iter_mut()
                    .map(|opening| opening.round().map(|round| (round.to, round.sent.to_vec())).expect("all have as many rounds"))
                    .collect();
                for (rank, opening) in ranks.iter_mut().enumerate() {
                    let round = opening.round().expect("all have as many rounds");
                    let (to, words) = &sent[round.from];
                    assert_eq!(*to, rank, "who is received from sends");
                    round.received[..words.len()].copy_from_slice(words);
                    assert!(opening.take_in(), "{n} ranks");
                }
                n_rounds += 1;
            }
            assert_eq!(n_rounds, n.next_power_of_two().trailing_zeros(), "{n} ranks");
            for opening in ranks.iter().step_by(n.div_ceil(40)) {
                for rank in 0..n {
                    let slot = (opening.call(rank), opening.busy_us(rank), opening.values(rank).to_vec());
                    assert_eq!(slot, ([rank as u32; 6], 100 + rank as u32, values(rank, n)), "{n} ranks");
                }
                assert_eq!(opening.other(), (n > 1).then_some(1));
            }
        }
    }

    #[test]
    fn words_that_are_no_slot_are_refused() {
        for n_bytes in [LIMIT as u32 + 1, u32::MAX] {
            let mut opening = Opening::new(0, 2);
            opening.put([0; 6], 0, &[1; 8]);
            opening.round().expect("two ranks have one").received[HEADER - 1] = n_bytes;
            assert!(!opening.take_in(), "{n_bytes}");
        }
    }
}
