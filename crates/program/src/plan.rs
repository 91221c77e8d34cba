//! The lifetimes of transients, and which of them share memory.
//!
//! A memory slot is a whole buffer. wgpu's barriers and usage checks apply to whole buffers, so a kernel that reads one range of
//! a heap and writes another would be refused. Buffers that are alive together share a slot side by side only where no kernel
//! writes both. The planner improves the best of six greedy layouts; `Plan` shows the lower bound beside it.

pub(crate) mod layout;

#[cfg(test)]
mod tests;

use std::collections::HashSet;
use std::fmt;
use std::ops::Range;

use brisk_kernels::Access;

use crate::error::Error;
use crate::plan::layout::{Life, Place, Transient, lay_out, most_alive_bytes};
use crate::record::persistent::Persistent;
use crate::record::program::{Buffer, Program, Step};

/// The memory layout of a program's buffers, known before anything runs. A device allocates exactly this.
///
/// Transients are placed in slots: those that are never alive together share the same bytes, others lie beside each other unless
/// some kernel uses both and writes one of them. Each slot is a separate buffer, and a GPU binds a whole buffer for either
/// reading or writing.
///
/// # Units
/// Bytes as a device allocates them: persistent buffers in whole 4-byte words, slots in multiples of 256. Not included are the
/// constants of kernels (a few hundred bytes each, on a GPU), and staging memory (two pieces of 16 MiB at most).
///
/// # Examples
/// ```
/// use brisk_program::{Program, kernels::{DType, Map}};
///
/// let relu = Map::unary(1024, |x| x.relu());
/// let mut program = Program::new("chain");
/// let input = brisk_program::Persistent::new("input", DType::F32, 1024);
/// let mut x = program.persistent(&input);
/// for name in ["a", "b", "c", "d"] {
///     let y = program.transient(name, DType::F32, 1024);
///     program.push(relu.clone(), &[x, y])?;
///     x = y;
/// }
/// let plan = program.plan()?;
/// assert_eq!(plan.persistent_bytes(), 4096);
/// assert_eq!((plan.least_transient_bytes(), plan.transient_bytes(), plan.unshared_bytes()), (2 * 4096, 2 * 4096, 4 * 4096));
/// # Ok::<(), brisk_program::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// The place of each of the program's buffers; `None` for persistent ones and those never used.
    places: Vec<Option<Place>>,
    /// The slots, each with the name of the largest transient in it.
    pub(crate) slots: Vec<PlannedSlot>,
    persistent_bytes: usize,
    least_transient_bytes: usize,
    unshared_bytes: usize,
}

/// Transients start at a multiple of this, an offset at which every adapter can bind.
const GRAIN_BYTES: usize = 256;

impl Program {
    /// Lays out the transients and adds up the memory, without a device.
    ///
    /// # Errors
    /// [`Error::ReadBeforeWrite`] if a kernel reads a transient of which an element has not been written, or a host step one of
    /// which none has.
    pub fn plan(&self) -> Result<Plan, Error> {
        Plan::new(self)
    }
}

impl Plan {
    pub(crate) fn new(program: &Program) -> Result<Self, Error> {
        let Used { buffers, transients, .. } = Used::of(program)?;
        let layout = lay_out(&transients);
        let name = |&i: &usize| program.buffers[buffers[i]].name.clone();
        let slots = layout
            .slots
            .iter()
            .map(|slot| PlannedSlot { name: slot.transients.first().map(name).unwrap_or_default(), len_bytes: slot.len_bytes });
        let mut places = vec![None; program.buffers.len()];
        for (&buffer, place) in buffers.iter().zip(layout.places) {
            places[buffer] = Some(place);
        }
        Ok(Self {
            places,
            slots: slots.collect(),
            persistent_bytes: sum_bytes(program.persistents().map(Persistent::allocated_bytes)),
            least_transient_bytes: most_alive_bytes(&transients),
            unshared_bytes: sum_bytes(transients.iter().map(|transient| transient.len_bytes)),
        })
    }

    /// Bytes of the persistent buffers the program binds.
    pub fn persistent_bytes(&self) -> usize {
        self.persistent_bytes
    }

    /// Bytes of the slots that transients share.
    pub fn transient_bytes(&self) -> usize {
        sum_bytes(self.slots.iter().map(|slot| slot.len_bytes))
    }

    /// The maximum number of bytes of transients alive at one step: no layout takes less.
    pub fn least_transient_bytes(&self) -> usize {
        self.least_transient_bytes
    }

    /// The bytes that transients would take if they did not share memory.
    pub fn unshared_bytes(&self) -> usize {
        self.unshared_bytes
    }

    /// The maximum number of bytes allocated at any time: persistent and transient bytes.
    pub fn peak_bytes(&self) -> usize {
        sum_bytes([self.persistent_bytes, self.transient_bytes()])
    }

    pub(crate) fn place_of(&self, buffer: usize) -> Option<Place> {
        self.places[buffer]
    }
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (unit, unit_bytes) = if self.peak_bytes() < 1 << 20 { ("KiB", 1 << 10) } else { ("MiB", 1 << 20) };
        let Self { persistent_bytes, least_transient_bytes, unshared_bytes, .. } = *self;
        let [peak, persistent, transient, least, unshared] =
            [self.peak_bytes(), persistent_bytes, self.transient_bytes(), least_transient_bytes, unshared_bytes]
                .map(|bytes| bytes as f64 / f64::from(unit_bytes));
        let n_slots = self.slots.len();
        write!(
            f,
            "peak {peak:.1} {unit}: {persistent:.1} persistent, {transient:.1} transient in {n_slots} slots (at least {least:.1}, unshared {unshared:.1})"
        )
    }
}

/// The maximum number of bytes allocated at any time when several programs are compiled on the same device: each persistent
/// buffer once, and the transients of every program.
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

/// A buffer that transients are placed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PlannedSlot {
    pub(crate) name: String,
    pub(crate) len_bytes: usize,
}

/// Saturates, because the caller chooses the lengths: no device can allocate that much.
fn sum_bytes(lengths: impl IntoIterator<Item = usize>) -> usize {
    lengths.into_iter().fold(0, usize::saturating_add)
}

fn placed_bytes(buffer: &Buffer) -> usize {
    buffer.len_bytes().checked_next_multiple_of(GRAIN_BYTES).unwrap_or(usize::MAX)
}

/// The transients that kernels use, in the order of their first use.
#[derive(Debug, Default)]
struct Used {
    /// The index of each among the program's buffers.
    buffers: Vec<usize>,
    transients: Vec<Transient>,
    /// The bytes of each that have been written so far.
    written: Vec<Written>,
}

/// Ranges of bytes that do not touch each other, in order.
#[derive(Debug, Default)]
struct Written(Vec<Range<usize>>);

impl Written {
    fn add(&mut self, bytes: &Range<usize>) {
        let Self(ranges) = self;
        let first = ranges.partition_point(|range| range.end < bytes.start);
        let end = ranges.partition_point(|range| range.start <= bytes.end);
        let joined = ranges[first..end].iter().fold(bytes.clone(), |a, b| a.start.min(b.start)..a.end.max(b.end));
        ranges.splice(first..end, [joined]);
    }

    /// The first of `bytes` that has not been written.
    fn first_missing(&self, bytes: &Range<usize>) -> Option<usize> {
        let range = self.0.iter().find(|range| range.contains(&bytes.start));
        let missing = range.map_or(bytes.start, |range| range.end);
        (missing < bytes.end).then_some(missing)
    }
}

impl Used {
    fn of(program: &Program) -> Result<Self, Error> {
        let mut used = Self::default();
        let mut index_of: Vec<Option<usize>> = vec![None; program.buffers.len()];
        for (now, step) in program.steps.iter().enumerate() {
            let mut given: Vec<(usize, Access)> = Vec::with_capacity(step.args.len());
            for arg in &step.args {
                let buffer = &program.buffers[arg.buffer];
                if buffer.persistent.is_some() {
                    continue;
                }
                let index = match index_of[arg.buffer] {
                    Some(index) => index,
                    None => {
                        used.buffers.push(arg.buffer);
                        used.written.push(Written::default());
                        let life = Life { first: now, last: now };
                        used.transients.push(Transient { len_bytes: placed_bytes(buffer), life, apart: vec![] });
                        *index_of[arg.buffer].insert(used.transients.len() - 1)
                    }
                };
                let written = &used.written[index];
                // A host step reads elements of its choice.
                if arg.access.reads()
                    && (step.host.is_none() || written.0.is_empty())
                    && let Some(missing) = written.first_missing(&arg.bytes)
                {
                    return Err(read_before_write(program, step, arg.name, buffer, missing));
                }
                if arg.access.writes() {
                    used.written[index].add(&arg.bytes);
                }
                used.transients[index].life.last = now;
                given.push((index, arg.access));
            }
            used.keep_apart(&given);
        }
        Ok(used)
    }

    /// Notes which of the buffers `given` to one kernel must not lie in the same slot.
    fn keep_apart(&mut self, given: &[(usize, Access)]) {
        for &(a, access_a) in given {
            for &(b, access_b) in given {
                if a != b && (access_a.writes() || access_b.writes()) {
                    self.transients[a].apart.push(b);
                }
            }
        }
    }
}

fn read_before_write(program: &Program, step: &Step, arg: &'static str, buffer: &Buffer, missing_byte: usize) -> Error {
    let (program, kernel, element) = (program.name().to_owned(), step.kernel.name(), missing_byte / buffer.dtype.size_bytes());
    Error::ReadBeforeWrite { program, kernel, arg, buffer: buffer.name.clone(), element }
}
