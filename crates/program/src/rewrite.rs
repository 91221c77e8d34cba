use std::fmt;
use std::sync::Arc;

use brisk_kernels::{Access, Elementwise, Kernel};

use crate::Program;
use crate::program::{Step, StepArg};

/// A way to compute the same with fewer kernels: see [`Program::rewritten`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Rewrite {
    /// An activation, or the derivative of one, goes into the matrix product or convolution whose result it is of.
    Epilogues,
    /// Elementwise kernels, each over the result of the one before, become one [`Elementwise`]: an addition and its activation, say.
    Chains,
    /// An elementwise kernel that is the last to read a transient writes its result there: an
    /// [`ElementwiseInPlace`](brisk_kernels::ElementwiseInPlace), which needs one buffer less. It is for chains with operands, and comes last.
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
    /// use brisk_program::kernels::{Activate, Activation, Add, DType};
    /// use brisk_program::{Persistent, Program, Rewrite};
    ///
    /// let mut program = Program::new("residual");
    /// let [x, skip, y] = ["x", "skip", "y"].map(|name| program.persistent(&Persistent::new(name, DType::F32, 8)));
    /// let sum = program.transient("sum", DType::F32, 8);
    /// program.push(Add { n: 8 }, &[x, skip, sum])?;
    /// program.push(Activate { n: 8, activation: Activation::Relu }, &[sum, y])?;
    /// let fused = program.rewritten(&Rewrite::ALL);
    /// assert_eq!(fused.kernel_names().collect::<Vec<_>>(), ["elementwise"]);
    /// println!("{program}{fused}");
    /// # Ok::<(), brisk_program::Error>(())
    /// ```
    pub fn rewritten(&self, rewrites: &[Rewrite]) -> Self {
        let mut program = self.copy();
        for rewrite in rewrites {
            match rewrite {
                Rewrite::Epilogues => program.fuse(epilogue),
                Rewrite::Chains => program.fuse(joined),
                Rewrite::InPlace => program.put_in_place(),
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
        let chain = consumer.kernel.elementwise()?;
        (0..consumer.args.len()).find_map(|i| {
            let (chain, operands) = led_by(&chain, &consumer.args, i)?;
            let producer = self.producer(at, &consumer.args[i])?;
            let before = &self.steps()[producer];
            let (kernel, reads) = fusion(before, chain, operands)?;
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

/// The chain with the argument `i` as what it starts from, and its operands then.
pub(crate) fn led_by<'a>(chain: &Elementwise, args: &'a [StepArg], i: usize) -> Option<(Elementwise, Vec<&'a StepArg>)> {
    let n_reads = args.len() - 1;
    let may_lead = i == 0 || (i == 1 && chain.steps.first().is_some_and(|step| step.is_symmetric()));
    (i < n_reads && may_lead)
        .then(|| (chain.clone(), (0..n_reads).filter(|&other| other != i).map(|other| &args[other]).collect()))
}

/// A kernel that does what a producer and the chain over its result do, given the chain's operands; and what it reads.
type Fusion = for<'a> fn(&'a Step, Elementwise, Vec<&'a StepArg>) -> Option<(Arc<dyn Kernel>, Vec<&'a StepArg>)>;

/// The producer with the steps of the chain in its epilogue, and what it reads.
fn epilogue<'a>(before: &'a Step, chain: Elementwise, operands: Vec<&'a StepArg>) -> Option<(Arc<dyn Kernel>, Vec<&'a StepArg>)> {
    let [step] = chain.steps[..] else { return None };
    let kernel = before.kernel.followed_by(step)?;
    Some((kernel.into(), reads(before).chain(operands).collect()))
}

/// The producer's chain and this one as one, and what it reads.
fn joined<'a>(before: &'a Step, chain: Elementwise, operands: Vec<&'a StepArg>) -> Option<(Arc<dyn Kernel>, Vec<&'a StepArg>)> {
    let mut joined = before.kernel.elementwise()?;
    joined.steps.extend(chain.steps);
    joined.check().ok()?;
    Some((Arc::new(joined), reads(before).chain(operands).collect()))
}

fn reads(step: &Step) -> impl Iterator<Item = &StepArg> {
    step.args.iter().filter(|arg| arg.access == Access::Read)
}

/// The fused step over `reads`, writing what `consumer` wrote with the scratch of `before`; `None` where its arguments are others, or one of those
/// that it reads lies in the buffer that it writes.
fn step(kernel: Arc<dyn Kernel>, reads: Vec<&StepArg>, consumer: &Step, before: &Step) -> Option<Step> {
    let written = consumer.args.last()?;
    let scratch = before.args.iter().filter(|arg| arg.access == Access::Scratch);
    let given: Vec<&StepArg> = reads.into_iter().chain(std::iter::once(written)).chain(scratch).collect();
    let wanted = kernel.args();
    let fits = kernel.check().is_ok()
        && wanted.len() == given.len()
        && wanted.iter().zip(&given).all(|(arg, given)| arg.access == given.access && arg.len_bytes() == given.bytes.len())
        && given.iter().filter(|arg| arg.buffer == written.buffer).count() == 1;
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
