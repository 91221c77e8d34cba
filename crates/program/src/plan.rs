#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;

use brisk_kernels::Access;

use crate::program::{Buffer, Step};
use crate::{Error, Persistent, Program};

/// How a program's buffers are laid out: known before anything runs, and held to.
///
/// Transients are put into slots; two share a slot if one's last use comes before the other's first. Each slot is a
/// buffer of its own, since a GPU's barriers hold for whole buffers.
///
/// # Units
/// Bytes as a device allocates them: persistent buffers in whole 4-byte words, slots in multiples of 256. Not in it: the
/// constants of kernels (a few hundred bytes each, on a GPU), and the staging memory of a write or read (two pieces of 16 MiB at most).
///
/// # Examples
/// ```
/// use brisk_program::{Program, kernels::{Activate, Activation, DType}};
///
/// let relu = Activate { n: 1024, activation: Activation::Relu };
/// let mut program = Program::new("chain");
/// let input = brisk_program::Persistent::new("input", DType::F32, 1024);
/// let mut x = program.persistent(&input);
/// for name in ["a", "b", "c", "d"] {
///     let y = program.transient(name, DType::F32, 1024);
///     program.push(relu, &[x, y])?;
///     x = y;
/// }
/// let plan = program.plan()?;
/// assert_eq!(plan.persistent_bytes(), 4096);
/// assert_eq!((plan.transient_bytes(), plan.unshared_bytes()), (2 * 4096, 4 * 4096));
/// # Ok::<(), brisk_program::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The slot of each of the program's buffers; `None` for persistent ones and those never used.
    slot_of: Vec<Option<usize>>,
    slots: Vec<Slot>,
    persistent_bytes: usize,
    unshared_bytes: usize,
}

/// Slots are a multiple of this, so that growing one a little costs nothing.
const SLOT_GRAIN_BYTES: usize = 256;

impl Plan {
    pub(crate) fn new(program: &Program) -> Result<Self, Error> {
        let lifetimes = lifetimes(program)?;
        let mut slots: Vec<Slot> = Vec::new();
        let mut slot_of = vec![None; program.buffers().len()];
        let mut unshared_bytes = 0;
        for (buffer, life) in in_order_of_birth(&lifetimes) {
            let Buffer { name, .. } = &program.buffers()[buffer];
            let len_bytes = slot_bytes(&program.buffers()[buffer]);
            unshared_bytes = sum_bytes([unshared_bytes, len_bytes]);
            let slot = choose_slot(&slots, life.first, len_bytes).unwrap_or_else(|| {
                slots.push(Slot { largest: name.clone(), len_bytes, busy_until: 0 });
                slots.len() - 1
            });
            if slots[slot].len_bytes < len_bytes {
                (slots[slot].largest, slots[slot].len_bytes) = (name.clone(), len_bytes);
            }
            slots[slot].busy_until = life.last + 1;
            slot_of[buffer] = Some(slot);
        }
        let persistent_bytes = sum_bytes(program.persistents().map(Persistent::allocated_bytes));
        Ok(Self { slot_of, slots, persistent_bytes, unshared_bytes })
    }

    /// Bytes of the persistent buffers the program binds.
    pub fn persistent_bytes(&self) -> usize {
        self.persistent_bytes
    }

    /// Bytes of the slots that transients share.
    pub fn transient_bytes(&self) -> usize {
        sum_bytes(self.slots.iter().map(|slot| slot.len_bytes))
    }

    /// What the transients would take if each had memory of its own.
    pub fn unshared_bytes(&self) -> usize {
        self.unshared_bytes
    }

    /// The most that is ever allocated: persistent and transient bytes.
    pub fn peak_bytes(&self) -> usize {
        sum_bytes([self.persistent_bytes, self.transient_bytes()])
    }

    pub(crate) fn slot_of(&self, buffer: usize) -> Option<usize> {
        self.slot_of[buffer]
    }

    /// The slots, each by the name of the largest transient in it.
    pub(crate) fn slots(&self) -> impl Iterator<Item = PlannedSlot<'_>> {
        self.slots.iter().map(|slot| PlannedSlot { name: &slot.largest, len_bytes: slot.len_bytes })
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, unit_bytes) = if self.peak_bytes() < 1 << 20 { ("KiB", 1 << 10) } else { ("MiB", 1 << 20) };
        let [peak, persistent, transient, unshared] =
            [self.peak_bytes(), self.persistent_bytes, self.transient_bytes(), self.unshared_bytes]
                .map(|bytes| bytes as f64 / f64::from(unit_bytes));
        let n_slots = self.slots.len();
        write!(
            f,
            "peak {peak:.1} {unit}: {persistent:.1} persistent, {transient:.1} transient in {n_slots} slots (unshared {unshared:.1})"
        )
    }
}

/// The most that is ever allocated when several programs are compiled on one device side by side: each persistent buffer
/// once, and every program's transients.
///
/// # Errors
/// As [`Program::plan`].
pub fn planned_peak_bytes(programs: &[&Program]) -> Result<usize, Error> {
    let mut seen = HashSet::new();
    let mut total = 0;
    for program in programs {
        let unseen = program.persistents().filter(|persistent| seen.insert(persistent.id())).map(Persistent::allocated_bytes);
        total = sum_bytes([total, program.plan()?.transient_bytes(), sum_bytes(unseen)]);
    }
    Ok(total)
}

#[derive(Debug, Clone, Copy)]
struct Life {
    first: usize,
    last: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Slot {
    largest: String,
    len_bytes: usize,
    /// The first step at which it is free again.
    busy_until: usize,
}

#[derive(Debug)]
pub(crate) struct PlannedSlot<'a> {
    pub(crate) name: &'a str,
    pub(crate) len_bytes: usize,
}

/// Lengths are the caller's: a sum beyond what can be addressed is one that no device gives.
fn sum_bytes(lengths: impl IntoIterator<Item = usize>) -> usize {
    lengths.into_iter().fold(0, usize::saturating_add)
}

fn slot_bytes(buffer: &Buffer) -> usize {
    buffer.len_bytes().checked_next_multiple_of(SLOT_GRAIN_BYTES).unwrap_or(usize::MAX)
}

/// The smallest free slot that fits, else the largest free one, to be grown.
fn choose_slot(slots: &[Slot], now: usize, len_bytes: usize) -> Option<usize> {
    let free = || slots.iter().enumerate().filter(|(_, slot)| slot.busy_until <= now);
    let fitting = free().filter(|(_, slot)| slot.len_bytes >= len_bytes).min_by_key(|(_, slot)| slot.len_bytes);
    fitting.or_else(|| free().max_by_key(|(_, slot)| slot.len_bytes)).map(|(i, _)| i)
}

fn lifetimes(program: &Program) -> Result<Vec<Option<Life>>, Error> {
    let mut lifetimes: Vec<Option<Life>> = vec![None; program.buffers().len()];
    for (now, step) in program.steps().iter().enumerate() {
        for arg in &step.args {
            let buffer = &program.buffers()[arg.buffer];
            if buffer.persistent.is_some() {
                continue;
            }
            match &mut lifetimes[arg.buffer] {
                Some(life) => life.last = now,
                None if needs_value(arg.access) => return Err(read_before_write(program, step, arg.name, &buffer.name)),
                unborn => *unborn = Some(Life { first: now, last: now }),
            }
        }
    }
    Ok(lifetimes)
}

fn needs_value(access: Access) -> bool {
    matches!(access, Access::Read | Access::ReadWrite)
}

fn read_before_write(program: &Program, step: &Step, arg: &'static str, buffer: &str) -> Error {
    let (program, kernel, buffer) = (program.name().to_owned(), step.kernel.name(), buffer.to_owned());
    Error::ReadBeforeWrite { program, kernel, arg, buffer }
}

/// Transients by first use.
fn in_order_of_birth(lifetimes: &[Option<Life>]) -> Vec<(usize, Life)> {
    let mut order: Vec<_> = lifetimes.iter().enumerate().filter_map(|(i, life)| life.map(|life| (i, life))).collect();
    order.sort_by_key(|(i, life)| (life.first, *i));
    order
}
