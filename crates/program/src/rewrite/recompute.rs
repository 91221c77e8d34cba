use std::collections::{HashMap, HashSet};
use std::ops::Range;

use brisk_kernels::Access;

use crate::record::program::{Program, Slice, StepArg};

/// Consecutive kernels whose results are not kept for later kernels: the results that these read are
/// [computed again](Program::recomputed), which takes time and saves memory.
///
/// # Examples
/// ```
/// use brisk_program::{Persistent, Program, kernels::{DType, Map}};
///
/// // y = tanh(tanh(tanh(x))) + tanh(x), in which tanh(x) is wanted at the end again.
/// let [x, y] = ["x", "y"].map(|name| Persistent::new(name, DType::F32, 256));
/// let mut program = Program::new("skip");
/// let tanh = Map::unary(256, |x| x.tanh());
/// let (x, y) = (program.persistent(&x), program.persistent(&y));
/// let [a, b, c] = ["a", "b", "c"].map(|name| program.transient(name, DType::F32, 256));
/// for (from, to) in [(x, a), (a, b), (b, c)] {
///     program.push(tanh.clone(), &[from, to])?;
/// }
/// let mut segment = program.segment(0..2);
/// let again = program.recomputed(&mut segment, a);
/// program.push(Map::binary(256, |a, b| a + b), &[c, again, y])?;
/// assert_eq!(program.n_kernels(), 5);
/// assert_eq!(program.plan()?.transient_bytes(), 2 * 1024, "c and one other, where it would be three");
/// # Ok::<(), brisk_program::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct RecomputedSegment {
    kernels: Range<usize>,
    /// The buffers of kernels that were recorded after it when it was created: they are kept anyway.
    kept: HashSet<usize>,
    /// The copy of each buffer that was computed again.
    copies: HashMap<usize, usize>,
}

impl Program {
    /// The kernels with indices `kernels` as a segment. Results that kernels recorded after it so far read are kept.
    ///
    /// # Panics
    /// If `kernels` is out of range.
    #[track_caller]
    pub fn segment(&self, kernels: Range<usize>) -> RecomputedSegment {
        let n_kernels = self.n_kernels();
        assert!(kernels.start <= kernels.end && kernels.end <= n_kernels, "kernels {kernels:?} of {n_kernels}");
        let behind = self.steps[kernels.end..].iter().flat_map(|step| &step.args);
        let kept = behind.map(|arg| arg.buffer).collect();
        RecomputedSegment { kernels, kept, copies: HashMap::new() }
    }

    /// A slice with the values of `slice`, computed again by recording the necessary kernels of `segment`, each at most once;
    /// `slice` itself if it is not a result of the segment, or one that is kept.
    ///
    /// Results of kernels that cannot run twice are kept too: those that write to a persistent buffer, write in place, or read a
    /// buffer that has been written to since.
    pub fn recomputed(&mut self, segment: &mut RecomputedSegment, slice: Slice) -> Slice {
        slice.of_buffer(self.buffer_again(segment, slice.buffer))
    }

    fn buffer_again(&mut self, segment: &mut RecomputedSegment, buffer: usize) -> usize {
        if let Some(&copy) = segment.copies.get(&buffer) {
            return copy;
        }
        let Some(maker) = self.maker(segment, buffer) else { return buffer };
        let mut step = self.steps[maker].clone();
        for StepArg { buffer, access, .. } in &mut step.args {
            let again = match access {
                Access::Read => self.buffer_again(segment, *buffer),
                _ => self.copy_of(*buffer),
            };
            if *access != Access::Read {
                segment.copies.insert(*buffer, again);
            }
            *buffer = again;
        }
        self.steps.push(step);
        segment.copies[&buffer]
    }

    /// The kernel of the segment that computes the contents of the buffer, if it can run again.
    fn maker(&self, segment: &RecomputedSegment, buffer: usize) -> Option<usize> {
        if segment.kept.contains(&buffer) {
            return None;
        }
        let maker = segment.kernels.clone().find(|&at| writes(&self.steps[at].args, buffer))?;
        let can_repeat = |arg: &StepArg| {
            let is_transient = self.buffers[arg.buffer].persistent.is_none();
            let mut others = self.steps.iter().enumerate().filter(|&(at, _)| at != maker);
            match arg.access {
                Access::Scratch => true,
                Access::Read => !self.steps[maker + 1..].iter().any(|step| writes(&step.args, arg.buffer)),
                Access::Write => is_transient && !others.any(|(_, step)| writes(&step.args, arg.buffer)),
                Access::ReadWrite => false,
            }
        };
        self.steps[maker].args.iter().all(can_repeat).then_some(maker)
    }
}

fn writes(args: &[StepArg], buffer: usize) -> bool {
    args.iter().any(|arg| arg.buffer == buffer && arg.access.writes())
}
