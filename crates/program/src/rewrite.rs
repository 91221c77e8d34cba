//! Rewrites of programs that compute the same values: fused, in place, in parts, recomputed.
//!
//! Writing in place is a rewrite, not a matter of the plan: a GPU binds a buffer for reading or for writing, so it takes another
//! kernel with one argument fewer ([`MapInPlace`](brisk_kernels::MapInPlace)).

pub(crate) mod cut;
pub(crate) mod in_place;
pub(crate) mod recompute;
pub(crate) mod renew;

use std::fmt;
use std::sync::Arc;

use brisk_kernels::{Access, Kernel, Map};

use crate::record::program::{Program, Step, StepArg};

/// A rewrite that computes the same values with fewer kernels or buffers: see [`Program::rewritten`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rewrite {
    /// An activation, or its derivative, becomes the epilogue of the matrix product or convolution whose result it reads.
    Epilogues,
    /// A [`Map`] over the result of another is merged with it by its expression, such as an addition and its activation.
    Chains,
    /// A [`Map`] that is the last to read a transient overwrites it with its result, as a
    /// [`MapInPlace`](brisk_kernels::MapInPlace), which needs one buffer less. It is applied last, and not at all if transients
    /// would then take more memory, since a buffer that lives longer may be harder to place.
    InPlace,
}

impl Rewrite {
    /// All rewrites, in the most effective order.
    pub const ALL: [Self; 3] = [Self::Epilogues, Self::Chains, Self::InPlace];
}

impl Program {
    /// The program with kernels fused: it writes the same values to the same persistent buffers, with less memory traffic.
    /// `Display` of both programs shows what changed.
    ///
    /// Two kernels are fused if the first writes a transient that only the second reads, and neither the second nor any kernel in
    /// between writes what the first reads. The fused kernel runs in the place of the second, so the inputs of the first may live
    /// longer: they are fused only if these inputs take no more memory than the result that is saved. The rewrites are applied
    /// one after the other, each as often as possible. Slices of this program do not belong to the new one.
    ///
    /// On a GPU the values are the same up to rounding: its compiler may contract operations that were in two kernels.
    ///
    /// # Examples
    /// ```
    /// use brisk_program::kernels::{DType, Map};
    /// use brisk_program::{Persistent, Program, Rewrite};
    ///
    /// let mut program = Program::new("residual");
    /// let [x, skip, y] = ["x", "skip", "y"].map(|name| program.persistent(&Persistent::new(name, DType::F32, 8)));
    /// let sum = program.transient("sum", DType::F32, 8);
    /// program.push(Map::binary(8, |a, b| a + b), &[x, skip, sum])?;
    /// program.push(Map::unary(8, |x| x.relu()), &[sum, y])?;
    /// let fused = program.rewritten(&Rewrite::ALL);
    /// assert_eq!(fused.kernel_names().collect::<Vec<_>>(), ["map"]);
    /// println!("{program}{fused}");
    /// # Ok::<(), brisk_program::Error>(())
    /// ```
    pub fn rewritten(&self, rewrites: &[Rewrite]) -> Self {
        let mut program = self.copy();
        for rewrite in rewrites {
            match rewrite {
                Rewrite::Epilogues => program.fuse(epilogue),
                Rewrite::Chains => program.fuse(joined),
                Rewrite::InPlace => program = program.in_place_if_not_larger(),
            }
        }
        program
    }

    fn fuse(&mut self, fusion: Fusion) {
        let mut at = 0;
        while at < self.steps.len() {
            match self.fused_into(at, fusion) {
                // An earlier step has been removed, and the new one may be fused again.
                Some((producer, step)) => {
                    self.steps[at] = step;
                    self.steps.remove(producer);
                    at -= 1;
                }
                None => at += 1,
            }
        }
    }

    /// Fuses step `at` with an earlier step whose result it reads: the index of that step, and the fused step.
    fn fused_into(&self, at: usize, fusion: Fusion) -> Option<(usize, Step)> {
        let consumer = &self.steps[at];
        let map = consumer.kernel.as_map()?;
        (0..map.inputs.len()).find_map(|i| {
            let producer = self.producer(at, &consumer.args[i])?;
            let before = &self.steps[producer];
            let others = (0..map.inputs.len()).filter(|&other| other != i).map(|other| &consumer.args[other]);
            let (kernel, reads) = fusion(before, map, i, reads(before).chain(others).collect())?;
            Some((producer, step(kernel, reads, consumer, before)?))
        })
    }

    /// The step whose only result is `value`, if only step `at` reads it and computing it there gives the same result.
    fn producer(&self, at: usize, value: &StepArg) -> Option<usize> {
        let is_transient = self.buffers[value.buffer].persistent.is_none() && value.access == Access::Read;
        let n_uses = self.steps.iter().flat_map(|step| &step.args).filter(|arg| arg.buffer == value.buffer).count();
        if !is_transient || n_uses != 2 {
            return None;
        }
        let producer = self.steps[..at].iter().rposition(|step| step.names(value.buffer))?;
        let step = &self.steps[producer];
        let mut results = step.args.iter().filter(|arg| arg.access.writes() && arg.access != Access::Scratch);
        let (result, others) = (results.next()?, results.next());
        let is_whole = result.buffer == value.buffer && result.bytes == value.bytes && result.access == Access::Write;
        let mut between = self.steps[producer + 1..at].iter().flat_map(|step| &step.args).filter(|arg| arg.access.writes());
        let changes = |written: &StepArg| reads(step).any(|arg| arg.buffer == written.buffer);
        let is_as_before = is_whole && others.is_none() && !between.any(changes);
        (is_as_before && self.kept_longer_bytes(producer, at) <= value.bytes.len()).then_some(producer)
    }

    /// Bytes of the transients that the step `producer` reads and no step from `at` on uses: they live longer if it runs at `at`.
    fn kept_longer_bytes(&self, producer: usize, at: usize) -> usize {
        if producer + 1 == at {
            return 0;
        }
        let mut dying: Vec<usize> = reads(&self.steps[producer]).map(|arg| arg.buffer).collect();
        dying.sort_unstable();
        dying.dedup();
        dying.retain(|&buffer| {
            self.buffers[buffer].persistent.is_none() && !self.steps[at..].iter().any(|step| step.names(buffer))
        });
        dying.into_iter().map(|buffer| self.buffers[buffer].len_bytes()).fold(0, usize::saturating_add)
    }
}

/// Fuses a producer and a map over its result: given the producer, the map, the index of the result among the map's inputs and
/// the arguments that both read, returns the fused kernel and the arguments that it reads.
type Fusion = for<'a> fn(&Step, &Map, usize, Vec<&'a StepArg>) -> Option<(Arc<dyn Kernel>, Vec<&'a StepArg>)>;

/// The producer with the map as its epilogue, which reads the state of the run last.
fn epilogue<'a>(before: &Step, map: &Map, input: usize, reads: Vec<&'a StepArg>) -> Option<(Arc<dyn Kernel>, Vec<&'a StepArg>)> {
    let kernel = before.kernel.followed_by(map, input)?;
    let others = map.inputs.iter().enumerate().filter(|(i, _)| *i != input).map(|(_, other)| other.draws.is_some());
    let is_state = self::reads(before).map(|arg| arg.name == "state").chain(others);
    let (state, first): (Vec<_>, Vec<_>) = reads.into_iter().zip(is_state).partition(|(_, is_state)| *is_state);
    Some((kernel.into(), first.into_iter().chain(state).map(|(arg, _)| arg).collect()))
}

/// The producer's map and this one merged into one, which reads each buffer once.
fn joined<'a>(
    before: &Step,
    map: &Map,
    input: usize,
    mut reads: Vec<&'a StepArg>,
) -> Option<(Arc<dyn Kernel>, Vec<&'a StepArg>)> {
    let mut joined = map.fused_with(input, before.kernel.as_map()?)?;
    let mut i = 0;
    while i < reads.len() {
        let same = |j: &usize| {
            reads[*j].buffer == reads[i].buffer && reads[*j].bytes == reads[i].bytes && joined.inputs[*j] == joined.inputs[i]
        };
        match (i + 1..reads.len()).find(same) {
            Some(j) => {
                joined = joined.with_one_input(i, j);
                reads.remove(j);
            }
            None => i += 1,
        }
    }
    Some((Arc::new(joined), reads))
}

fn reads(step: &Step) -> impl Iterator<Item = &StepArg> {
    step.args.iter().filter(|arg| arg.access == Access::Read)
}

/// The fused step over `reads`, which writes what `consumer` wrote, with the scratch of `before`; `None` if its argument list
/// does not match, or if one of the arguments that it reads lies in the buffer that it writes.
fn step(kernel: Arc<dyn Kernel>, reads: Vec<&StepArg>, consumer: &Step, before: &Step) -> Option<Step> {
    let written: Vec<&StepArg> = consumer.args.iter().filter(|arg| arg.access == Access::Write).collect();
    let scratch = before.args.iter().filter(|arg| arg.access == Access::Scratch);
    let given: Vec<&StepArg> = reads.into_iter().chain(written.iter().copied()).chain(scratch).collect();
    let wanted = kernel.args();
    let fits = kernel.check().is_ok()
        && wanted.len() == given.len()
        && wanted.iter().zip(&given).all(|(arg, given)| arg.access == given.access && arg.len_bytes() == given.bytes.len())
        && written.iter().all(|written| given.iter().filter(|arg| arg.buffer == written.buffer).count() == 1);
    let args = wanted.iter().zip(given).map(|(arg, given)| StepArg { name: arg.name, ..given.clone() });
    fits.then(|| Step { args: args.collect(), kernel: kernel.clone(), host: None })
}

/// One line per kernel: what it reads, what it writes, its sizes.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} kernels", self.name(), self.n_kernels())?;
        for (i, Step { kernel, args, .. }) in self.steps.iter().enumerate() {
            let names = |is_named: fn(Access) -> bool| {
                let args = args.iter().filter(|arg| is_named(arg.access));
                args.map(|arg| self.buffers[arg.buffer].name.as_str()).collect::<Vec<_>>().join(", ")
            };
            let read = names(|access| matches!(access, Access::Read | Access::ReadWrite));
            let written = names(|access| access.writes() && access != Access::Scratch);
            writeln!(f, "{i:>4}  {}({read}) -> {written}  {kernel:?}", kernel.name())?;
        }
        Ok(())
    }
}
