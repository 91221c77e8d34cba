//! Programs that compute the same in another way: fused, in place, in parts, recomputed.

pub(crate) mod cut;
pub(crate) mod in_place;
pub(crate) mod recompute;
pub(crate) mod renew;

use std::fmt;
use std::sync::Arc;

use brisk_kernels::{Access, Kernel, Map};

use crate::Program;
use crate::record::program::{Step, StepArg};

/// A way to compute the same with fewer kernels: see [`Program::rewritten`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rewrite {
    /// An activation, or the derivative of one, goes into the matrix product or convolution whose result it is of.
    Epilogues,
    /// A [`Map`] over the result of another becomes one with it, by substitution of its expression: an addition and its activation, say.
    Chains,
    /// A [`Map`] that is the last to read a transient writes its result there: a [`MapInPlace`](brisk_kernels::MapInPlace), which needs one buffer less. It comes last, and is left
    /// out if transients then take more memory: a buffer that lives longer may be harder to place.
    InPlace,
}

impl Rewrite {
    /// All of them, in the order in which they do most.
    pub const ALL: [Self; 3] = [Self::Epilogues, Self::Chains, Self::InPlace];
}

impl Program {
    /// The program with kernels fused: it writes the same values to the same persistent buffers, with less traffic between. `Display` of both shows
    /// what was done.
    ///
    /// Two kernels are fused where the first writes a transient that the second alone reads, and neither the second nor any between them
    /// writes what the first reads. The fused kernel runs where the second did; so the first's inputs may not take more memory, where they are then alive
    /// for longer, than its result did. The rewrites are made one after the other, each as often as it can be. Slices of this program are not of
    /// the new one.
    ///
    /// On a GPU the values are the same up to rounding: its compiler may contract what were two kernels.
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
        while at < self.steps().len() {
            match self.fused_into(at, fusion) {
                // The step before is gone, and the new one may be fused again.
                Some((producer, step)) => {
                    self.replace(producer, at, step);
                    at -= 1;
                }
                None => at += 1,
            }
        }
    }

    /// A kernel that does what step `at` does, and an earlier step whose result it reads: that step's index, and the kernel.
    fn fused_into(&self, at: usize, fusion: Fusion) -> Option<(usize, Step)> {
        let consumer = &self.steps()[at];
        let map = consumer.kernel.as_map()?;
        (0..map.inputs.len()).find_map(|i| {
            let producer = self.producer(at, &consumer.args[i])?;
            let before = &self.steps()[producer];
            let others = (0..map.inputs.len()).filter(|&other| other != i).map(|other| &consumer.args[other]);
            let (kernel, reads) = fusion(before, map, i, reads(before).chain(others).collect())?;
            Some((producer, step(kernel, reads, consumer, before)?))
        })
    }

    /// The step whose only result is `value`, if `value` is for the step `at` alone and is not changed by being computed only there.
    fn producer(&self, at: usize, value: &StepArg) -> Option<usize> {
        let is_transient = self.buffers()[value.buffer].persistent.is_none() && value.access == Access::Read;
        let n_uses = self.steps().iter().flat_map(|step| &step.args).filter(|arg| arg.buffer == value.buffer).count();
        if !is_transient || n_uses != 2 {
            return None;
        }
        let producer = self.steps()[..at].iter().rposition(|step| step.args.iter().any(|arg| arg.buffer == value.buffer))?;
        let step = &self.steps()[producer];
        let mut results = step.args.iter().filter(|arg| arg.access.writes() && arg.access != Access::Scratch);
        let (result, others) = (results.next()?, results.next());
        let is_whole = result.buffer == value.buffer && result.bytes == value.bytes && result.access == Access::Write;
        let mut between = self.steps()[producer + 1..at].iter().flat_map(|step| &step.args).filter(|arg| arg.access.writes());
        let changes = |written: &StepArg| reads(step).any(|arg| arg.buffer == written.buffer);
        let is_as_before = is_whole && others.is_none() && !between.any(changes);
        (is_as_before && self.kept_longer_bytes(producer, at) <= value.bytes.len()).then_some(producer)
    }

    /// Bytes of the transients that the step `producer` reads and nobody behind it before `at`: what is kept longer if it runs then.
    fn kept_longer_bytes(&self, producer: usize, at: usize) -> usize {
        if producer + 1 == at {
            return 0;
        }
        let mut dying: Vec<usize> = reads(&self.steps()[producer]).map(|arg| arg.buffer).collect();
        dying.sort_unstable();
        dying.dedup();
        dying.retain(|&buffer| {
            let names = |step: &Step| step.args.iter().any(|arg| arg.buffer == buffer);
            self.buffers()[buffer].persistent.is_none() && !self.steps()[at..].iter().any(names)
        });
        dying.into_iter().map(|buffer| self.buffers()[buffer].len_bytes()).fold(0, usize::saturating_add)
    }
}

/// A kernel that computes what a producer and a map over its result do, and what it reads. Given are the map, which of its inputs the result is, and what both read.
type Fusion = for<'a> fn(&Step, &Map, usize, Vec<&'a StepArg>) -> Option<(Arc<dyn Kernel>, Vec<&'a StepArg>)>;

/// The producer with the map in its epilogue.
fn epilogue<'a>(before: &Step, map: &Map, input: usize, reads: Vec<&'a StepArg>) -> Option<(Arc<dyn Kernel>, Vec<&'a StepArg>)> {
    Some((before.kernel.followed_by(map, input)?.into(), reads))
}

/// The producer's map and this one as one, which reads each buffer once.
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

/// The fused step over `reads`, writing what `consumer` wrote with the scratch of `before`; `None` where its arguments are others, or one of those
/// that it reads lies in the buffer that it writes.
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

/// A line a kernel: what it reads, what it writes, its sizes.
impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {} kernels", self.name(), self.n_kernels())?;
        for (i, Step { kernel, args, .. }) in self.steps().iter().enumerate() {
            let names = |is_named: fn(Access) -> bool| {
                let args = args.iter().filter(|arg| is_named(arg.access));
                args.map(|arg| self.buffers()[arg.buffer].name.as_str()).collect::<Vec<_>>().join(", ")
            };
            let read = names(|access| matches!(access, Access::Read | Access::ReadWrite));
            let written = names(|access| access.writes() && access != Access::Scratch);
            writeln!(f, "{i:>4}  {}({read}) -> {written}  {kernel:?}", kernel.name())?;
        }
        Ok(())
    }
}
