use std::cell::{Ref, RefCell, RefMut};
use std::collections::HashMap;
use std::ops::Range;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use brisk_kernels::DType;
use brisk_program::{Persistent, Program, Rewrite, Slice};

use crate::graph::all_gather::AllGather;
use crate::graph::anomaly::Watch;
use crate::graph::autocast::AutocastRegion;
use crate::graph::first_error::FirstError;
use crate::graph::node::{Node, Rounded};
use crate::graph::row_weights::RowWeights;
use crate::graph::state_use::{IndexUse, Source};
use crate::place::OpenScope;

/// Operations recorded into one [`Program`], with the tape for the backward pass.
///
/// A graph computes nothing: tensors are names of buffers in its program. It is recorded once, compiled once and replayed for
/// every step. Clones are handles of the same graph.
#[derive(Debug, Clone)]
pub struct Graph {
    pub(super) inner: Rc<RefCell<Inner>>,
}

/// Whether a graph keeps a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// Values that the backward pass needs are kept until it has used them.
    Training,
    /// Nothing is kept, so that the memory of every activation is reused: no-grad.
    Inference,
}

pub(crate) struct Inner {
    pub(crate) program: Program,
    pub(crate) mode: Mode,
    pub(crate) nodes: Vec<Node>,
    /// The innermost open region of autocast.
    pub(crate) autocast: Option<AutocastRegion>,
    /// The copies that autocast has made, by the original tensor and the dtype.
    pub(crate) rounded: HashMap<(usize, DType), Rounded>,
    /// Whether a backward pass adds to gradients instead of replacing them.
    pub(crate) accumulates: bool,
    /// The checks for values that are not finite.
    pub(crate) watch: Option<Watch>,
    /// Ranges of kernels whose results are not kept for the backward pass.
    pub(crate) segments: Vec<Range<usize>>,
    /// Whether such a range is being recorded.
    pub(crate) in_segment: bool,
    /// Values that are written when the graph is compiled.
    pub(crate) constants: Vec<(Persistent, Arc<[u8]>)>,
    pub(super) went_back: bool,
    /// The batch indices that batches are gathered by, and results stored by.
    pub(crate) index_uses: Vec<IndexUse>,
    /// The states that the graph advances.
    pub(crate) advanced: Vec<Slice>,
    /// Where random numbers come from.
    pub(crate) source: Source,
    pub(crate) first_error: FirstError,
    /// The open scopes, the outermost first.
    pub(crate) scopes: Vec<OpenScope>,
    /// The caller of the outermost model that is being recorded.
    pub(crate) outer: Option<&'static Location<'static>>,
    /// The replicas that share the statistics of batches.
    pub(crate) replicas: Option<Arc<dyn AllGather>>,
    /// The weights of the rows of a batch, if not all count alike.
    pub(crate) row_weights: Option<RowWeights>,
    /// The parameters of each model that is bound, by its values.
    pub(super) models: Vec<(Persistent, Vec<usize>)>,
    /// How kernels are fused when the graph is compiled.
    pub(super) rewrites: Vec<Rewrite>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("program", &self.program).field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Inner {
    /// The program with kernels fused, in which kernels that are not fused write to the buffers they were recorded with.
    pub(crate) fn fused_keeping_results(&self) -> Program {
        let rewrites: Vec<Rewrite> = self.rewrites.iter().copied().filter(|&rewrite| rewrite != Rewrite::InPlace).collect();
        self.program.rewritten(&rewrites)
    }
}

impl Graph {
    /// A graph that keeps a tape, for a backward pass.
    pub fn training(name: impl Into<String>) -> Self {
        Self::new(name, Mode::Training)
    }

    /// A graph for the forward pass only, which keeps nothing for a backward pass.
    pub fn inference(name: impl Into<String>) -> Self {
        Self::new(name, Mode::Inference)
    }

    /// A graph of either mode.
    pub fn new(name: impl Into<String>, mode: Mode) -> Self {
        let program = Program::new(name);
        let first_error = FirstError::none(program.name());
        let inner = Inner {
            program,
            mode,
            nodes: Vec::new(),
            autocast: None,
            rounded: HashMap::new(),
            accumulates: false,
            watch: None,
            segments: Vec::new(),
            in_segment: false,
            constants: Vec::new(),
            went_back: false,
            index_uses: Vec::new(),
            advanced: Vec::new(),
            source: Source::default(),
            first_error,
            scopes: Vec::new(),
            outer: None,
            replicas: None,
            row_weights: None,
            models: Vec::new(),
            rewrites: Rewrite::ALL.to_vec(),
        };
        Self { inner: Rc::new(RefCell::new(inner)) }
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.inner.borrow().program.name().to_owned()
    }

    /// Whether it keeps a tape. Layers that behave differently in training and evaluation, such as dropout, decide by this.
    pub fn mode(&self) -> Mode {
        self.inner.borrow().mode
    }

    /// Calls `f` with the program recorded so far. To record custom kernels, see [`record`](Self::record).
    pub fn with_program<T>(&self, f: impl FnOnce(&mut Program) -> T) -> T {
        f(&mut self.inner.borrow_mut().program)
    }

    /// The slice of a persistent buffer in the graph's program.
    pub fn buffer(&self, persistent: &Persistent) -> Slice {
        self.with_program(|program| program.persistent(persistent))
    }

    /// A transient of the program, for a result.
    pub(crate) fn transient(&self, name: &'static str, dtype: DType, len: usize) -> Slice {
        self.with_program(|program| program.transient(name, dtype, len))
    }

    pub(crate) fn inner(&self) -> Ref<'_, Inner> {
        self.inner.borrow()
    }

    pub(crate) fn inner_mut(&self) -> RefMut<'_, Inner> {
        self.inner.borrow_mut()
    }
}
