use std::collections::HashSet;
use std::fmt;

use brisk_kernels::Access;

use crate::program::Step;
use crate::{Error, Program};

/// How a program's buffers are laid out: known before anything runs, and held to.
///
/// Transients are put into slots; two share a slot if one's last use comes before the other's first. Each slot is a
/// buffer of its own, since a GPU's barriers hold for whole buffers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The slot of each of the program's buffers; `None` for persistent ones and those never used.
    slot_of: Vec<Option<usize>>,
    slot_bytes: Vec<usize>,
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
            let len_bytes = program.buffers()[buffer].len_bytes().next_multiple_of(SLOT_GRAIN_BYTES);
            unshared_bytes += len_bytes;
            let slot = choose_slot(&slots, life.first, len_bytes).unwrap_or_else(|| {
                slots.push(Slot { len_bytes: 0, busy_until: 0 });
                slots.len() - 1
            });
            slots[slot].len_bytes = slots[slot].len_bytes.max(len_bytes);
            slots[slot].busy_until = life.last + 1;
            slot_of[buffer] = Some(slot);
        }
        Ok(Self {
            slot_of,
            slot_bytes: slots.iter().map(|slot| slot.len_bytes).collect(),
            persistent_bytes: program.persistents().map(crate::Persistent::len_bytes).sum(),
            unshared_bytes,
        })
    }

    /// Bytes of the persistent buffers the program binds.
    pub fn persistent_bytes(&self) -> usize {
        self.persistent_bytes
    }

    /// Bytes of the slots that transients share.
    pub fn transient_bytes(&self) -> usize {
        self.slot_bytes.iter().sum()
    }

    /// What the transients would take if each had memory of its own.
    pub fn unshared_bytes(&self) -> usize {
        self.unshared_bytes
    }

    /// The most that is ever allocated: persistent and transient bytes.
    pub fn peak_bytes(&self) -> usize {
        self.persistent_bytes + self.transient_bytes()
    }

    pub(crate) fn slot_of(&self, buffer: usize) -> Option<usize> {
        self.slot_of[buffer]
    }

    pub(crate) fn slot_bytes(&self) -> &[usize] {
        &self.slot_bytes
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = |bytes: usize| bytes as f64 / f64::from(1 << 20);
        write!(
            f,
            "peak {:.1} MiB: {:.1} persistent, {:.1} transient in {} slots (unshared {:.1})",
            mib(self.peak_bytes()),
            mib(self.persistent_bytes),
            mib(self.transient_bytes()),
            self.slot_bytes.len(),
            mib(self.unshared_bytes)
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
        total += program.plan()?.transient_bytes();
        total += program.persistents().filter(|p| seen.insert(p.id())).map(crate::Persistent::len_bytes).sum::<usize>();
    }
    Ok(total)
}

#[derive(Debug, Clone, Copy)]
struct Life {
    first: usize,
    last: usize,
}

#[derive(Debug)]
struct Slot {
    len_bytes: usize,
    busy_until: usize,
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
                None if needs_value(arg.access) => return Err(read_before_write(program, step, &buffer.name)),
                unborn => *unborn = Some(Life { first: now, last: now }),
            }
        }
    }
    Ok(lifetimes)
}

fn needs_value(access: Access) -> bool {
    matches!(access, Access::Read | Access::ReadWrite)
}

fn read_before_write(program: &Program, step: &Step, buffer: &str) -> Error {
    Error::ReadBeforeWrite { program: program.name().to_owned(), kernel: step.kernel.name(), buffer: buffer.to_owned() }
}

/// Transients by first use.
fn in_order_of_birth(lifetimes: &[Option<Life>]) -> Vec<(usize, Life)> {
    let mut order: Vec<_> = lifetimes.iter().enumerate().filter_map(|(i, life)| life.map(|life| (i, life))).collect();
    order.sort_by_key(|(i, life)| (life.first, *i));
    order
}
