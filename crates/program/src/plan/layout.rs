//! The layout of transients: those that are never alive together share memory, others lie side by side, in as few bytes as a
//! limited search finds.

use std::cmp::Reverse;

/// A transient that has to be placed.
#[derive(Debug, Clone)]
pub(crate) struct Transient {
    pub(crate) len_bytes: usize,
    pub(crate) life: Life,
    /// The transients that some kernel uses together with this one, writing at least one of the two: a GPU binds a whole buffer
    /// for either reading or writing, so they must lie in different slots.
    pub(crate) apart: Vec<usize>,
}

/// The steps from the first use to the last.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    pub(crate) first: usize,
    pub(crate) last: usize,
}

/// The place of a transient.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) slot: usize,
    pub(crate) start_bytes: usize,
}

/// Slots, each a buffer as long as the first transient placed in it, and a place for every transient.
#[derive(Debug, Clone)]
pub(crate) struct Layout {
    pub(crate) slots: Vec<Slot>,
    pub(crate) places: Vec<Place>,
}

#[derive(Debug, Clone)]
pub(crate) struct Slot {
    pub(crate) len_bytes: usize,
    /// Its transients; the slot is as long as the first.
    pub(crate) transients: Vec<usize>,
}

/// Which of the gaps that it fits into is chosen for a transient.
#[derive(Debug, Clone, Copy)]
enum Choice {
    /// The smallest one.
    Tightest,
    /// One in a slot that is completely free, if there is one.
    FreeSlot,
}

/// The maximum number of tries to improve the best order.
const MAX_TRIES: usize = 200;
/// The most pairs of transients compared in these tries, so that planning takes less than a tenth of a second.
const MAX_PAIRS: usize = 1 << 21;

/// Makes greedy layouts in several orders, and improves the best of them by changes of its order, as long as a change helps. The
/// problem is NP-hard.
///
/// # Reference
/// Pisarchyk & Lee 2020, *Efficient Memory Management for Deep Neural Net Inference*, arXiv:2001.03288: greedy by size. Joslin &
/// Clements 1999, *Squeaky Wheel Optimization*, arXiv:1105.5454: an item that was placed badly goes earlier the next time.
pub(crate) fn lay_out(transients: &[Transient]) -> Layout {
    let ways = orders(transients).into_iter().flat_map(|order| [(order.clone(), Choice::Tightest), (order, Choice::FreeSlot)]);
    let layouts = ways.map(|(order, choice)| (greedy(transients, &order, choice), order, choice));
    match layouts.min_by_key(|(layout, _, _)| layout.len_bytes()) {
        Some((layout, order, choice)) => improved(transients, layout, order, choice),
        None => Layout { slots: vec![], places: vec![] },
    }
}

/// Large transients first, since small ones fit into the gaps beside and after them: by length, then by first use; by length,
/// then by lifetime; by length times the square root of the lifetime.
fn orders(transients: &[Transient]) -> [Vec<usize>; 3] {
    let by = |key: fn(u128, u128) -> (u128, u128)| {
        let mut order: Vec<usize> = (0..transients.len()).collect();
        order.sort_by_key(|&i| {
            let Transient { len_bytes, life, .. } = transients[i];
            Reverse(key(len_bytes as u128, life.n_steps() as u128))
        });
        order
    };
    [
        by(|length, _| (length, 0)),
        by(|length, n_steps| (length, n_steps)),
        by(|length, n_steps| (length.saturating_mul(length).saturating_mul(n_steps), 0)),
    ]
}

/// Moves transients that needed a new slot to an earlier place in the order, as long as that reduces the bytes.
fn improved(transients: &[Transient], mut best: Layout, mut order: Vec<usize>, choice: Choice) -> Layout {
    let least_bytes = most_alive_bytes(transients);
    let enough_bytes = least_bytes.saturating_add(least_bytes / 128);
    let n_pairs = transients.len().pow(2).max(1);
    let mut n_tries = MAX_TRIES.min(MAX_PAIRS / n_pairs);
    'better: while best.len_bytes() > enough_bytes {
        for slot in best.slots.iter().rev() {
            let Some(at) = order.iter().position(|i| Some(i) == slot.transients.first()) else { continue };
            for to in (0..usize::BITS).map_while(|shift| at.checked_sub(1 << shift)) {
                if n_tries == 0 {
                    break 'better;
                }
                n_tries -= 1;
                let mut other = order.clone();
                other[to..=at].rotate_right(1);
                let layout = greedy(transients, &other, choice);
                if layout.len_bytes() < best.len_bytes() {
                    (best, order) = (layout, other);
                    continue 'better;
                }
            }
        }
        break;
    }
    best
}

/// The maximum number of bytes alive at one step: no layout takes less.
pub(crate) fn most_alive_bytes(transients: &[Transient]) -> usize {
    let n_steps = transients.iter().map(|transient| transient.life.last + 1).max().unwrap_or(0);
    let mut alive = vec![0_usize; n_steps];
    for Transient { len_bytes, life, .. } in transients {
        alive[life.first..=life.last].iter_mut().for_each(|sum| *sum = sum.saturating_add(*len_bytes));
    }
    alive.into_iter().max().unwrap_or(0)
}

impl Layout {
    pub(crate) fn len_bytes(&self) -> usize {
        self.slots.iter().map(|slot| slot.len_bytes).fold(0, usize::saturating_add)
    }

    /// The gaps in slot `slot` that the transient `new` fits into: the start and the length of each.
    fn gaps(&self, transients: &[Transient], slot: usize, new: usize) -> Gaps {
        let Slot { len_bytes, transients: there } = &self.slots[slot];
        let Transient { len_bytes: new_bytes, life, apart } = &transients[new];
        let mut taken = Vec::new();
        for &other in there.iter().filter(|&&other| transients[other].life.overlaps(*life)) {
            if apart.contains(&other) {
                return Gaps { gaps: vec![], is_free: false };
            }
            taken.push((self.places[other].start_bytes, transients[other].len_bytes));
        }
        taken.sort_unstable();
        let is_free = taken.is_empty();
        let (mut start, mut gaps) = (0, Vec::new());
        for (taken_start, taken_bytes) in taken.into_iter().chain([(*len_bytes, 0)]) {
            if taken_start.saturating_sub(start) >= *new_bytes {
                gaps.push((start, taken_start - start));
            }
            start = start.max(taken_start + taken_bytes);
        }
        Gaps { gaps, is_free }
    }
}

/// Starts and lengths of the gaps that are free in a slot during the lifetime of a transient and large enough for it.
struct Gaps {
    gaps: Vec<(usize, usize)>,
    /// Whether no other transient uses the slot during that time.
    is_free: bool,
}

impl Life {
    fn overlaps(self, other: Self) -> bool {
        self.first <= other.last && other.first <= self.last
    }

    fn n_steps(self) -> usize {
        self.last - self.first + 1
    }
}

fn greedy(transients: &[Transient], order: &[usize], choice: Choice) -> Layout {
    let mut layout = Layout { slots: Vec::new(), places: vec![Place { slot: 0, start_bytes: 0 }; transients.len()] };
    for &new in order {
        let gaps = (0..layout.slots.len()).flat_map(|slot| {
            let Gaps { gaps, is_free } = layout.gaps(transients, slot, new);
            gaps.into_iter().map(move |(start_bytes, gap_bytes)| (is_free, gap_bytes, Place { slot, start_bytes }))
        });
        let best = match choice {
            Choice::Tightest => gaps.min_by_key(|&(_, gap_bytes, _)| gap_bytes),
            Choice::FreeSlot => gaps.min_by_key(|&(is_free, gap_bytes, _)| (!is_free, gap_bytes)),
        };
        let place = best.map_or_else(
            || {
                layout.slots.push(Slot { len_bytes: transients[new].len_bytes, transients: vec![] });
                Place { slot: layout.slots.len() - 1, start_bytes: 0 }
            },
            |(_, _, place)| place,
        );
        layout.slots[place.slot].transients.push(new);
        layout.places[new] = place;
    }
    layout
}
