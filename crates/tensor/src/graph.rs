use std::cell::{Ref, RefCell, RefMut};
use std::collections::HashMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use brisk_kernels::{DType, Kernel, bytemuck};
use brisk_program::{Device, Executable, Persistent, Program, Rewrite, Slice};
use half::{bf16, f16};

use crate::anomaly::Watch;
use crate::autocast::AutocastRegion;
use crate::backward;
use crate::cast::Rounded;
use crate::node::Node;
use crate::{AllGather, Error, Tensor, stored};

/// Operations recorded into one [`Program`], with the tape that turns them back.
///
/// A graph computes nothing: tensors are names of buffers in its program. What is recorded once is compiled once and replayed for
/// every step. Clones are the same graph.
#[derive(Debug, Clone)]
pub struct Graph {
    inner: Rc<RefCell<Inner>>,
}

/// Whether a graph keeps a tape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mode {
    /// What backward needs is kept alive until backward has used it.
    Training,
    /// Nothing is kept, so that every activation's memory is used again: this is no-grad.
    Inference,
}

pub(crate) struct Inner {
    pub(crate) program: Program,
    pub(crate) mode: Mode,
    pub(crate) nodes: Vec<Node>,
    /// The region that is being recorded.
    pub(crate) autocast: Option<AutocastRegion>,
    /// The copies that autocast has made, by what they are of and their type.
    pub(crate) rounded: HashMap<(usize, DType), Rounded>,
    /// Whether a backward pass adds to gradients instead of replacing them.
    pub(crate) accumulates: bool,
    /// Where values that are not finite are looked for.
    pub(crate) watch: Option<Watch>,
    /// Kernels whose results are not kept for the backward pass.
    pub(crate) segments: Vec<Range<usize>>,
    /// Whether such are being recorded.
    pub(crate) in_segment: bool,
    /// What is written when the graph is compiled.
    pub(crate) constants: Vec<(Persistent, Vec<u8>)>,
    went_back: bool,
    /// With whom statistics of batches are shared.
    pub(crate) replicas: Option<Arc<dyn AllGather>>,
    /// How kernels are fused when it is compiled.
    rewrites: Vec<Rewrite>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Graph").field("program", &self.program).field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Graph {
    /// A graph that can go backward.
    pub fn training(name: impl Into<String>) -> Self {
        Self::new(name, Mode::Training)
    }

    /// A graph that only goes forward and keeps nothing for a backward pass.
    pub fn inference(name: impl Into<String>) -> Self {
        Self::new(name, Mode::Inference)
    }

    /// A graph of either mode.
    pub fn new(name: impl Into<String>, mode: Mode) -> Self {
        let program = Program::new(name);
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
            replicas: None,
            rewrites: Rewrite::ALL.to_vec(),
        };
        Self { inner: Rc::new(RefCell::new(inner)) }
    }

    /// Its name.
    pub fn name(&self) -> String {
        self.inner.borrow().program.name().to_owned()
    }

    /// Whether it keeps a tape. What a layer does otherwise in training than in evaluation, it decides by this.
    pub fn mode(&self) -> Mode {
        self.inner.borrow().mode
    }

    /// Binds a persistent buffer as a tensor of `shape`, whose values come from outside and need no gradient.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape has another number of elements.
    pub fn tensor(&self, persistent: &Persistent, shape: &[usize]) -> Result<Tensor, Error> {
        self.part(persistent, 0..persistent.len(), shape)
    }

    /// Binds the elements of `range` of a persistent buffer as a tensor.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    pub fn part(&self, persistent: &Persistent, range: Range<usize>, shape: &[usize]) -> Result<Tensor, Error> {
        check_elements("tensor", persistent, &range, shape)?;
        let slice = self.with_program(|program| program.persistent(persistent)).slice(range);
        Ok(self.add_node(Node::of(slice, shape)))
    }

    /// Binds the elements of `range` of two persistent buffers as a parameter and its gradient.
    ///
    /// Backward writes the gradient there, whole; it does not add to what was there before.
    ///
    /// # Dtypes
    /// Both f32, f16 or bf16, not necessarily the same: the gradient is written in the type of where it goes.
    /// # Errors
    /// As [`tensor`](Self::tensor); [`Error::Dtype`].
    pub fn parameter(
        &self,
        values: &Persistent,
        grads: &Persistent,
        range: Range<usize>,
        shape: &[usize],
    ) -> Result<Tensor, Error> {
        check_elements("parameter", values, &range, shape)?;
        check_elements("parameter", grads, &range, shape)?;
        let slice = |persistent: &Persistent| self.with_program(|program| program.persistent(persistent)).slice(range.clone());
        for (arg, persistent) in [("values", values), ("grads", grads)] {
            check_float(arg, persistent.dtype())?;
        }
        let keeps_tape = self.mode() == Mode::Training;
        self.parameter_in(slice(values), keeps_tape.then(|| slice(grads)), shape)
    }

    /// The same for slices of the program, which may be of transients: whoever gives them sees to it that there are values when they are read, and that gradients go
    /// somewhere. Without `grad` there is none.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape has another number of elements; [`Error::Dtype`].
    pub fn parameter_in(&self, value: Slice, grad: Option<Slice>, shape: &[usize]) -> Result<Tensor, Error> {
        let n: usize = shape.iter().product();
        for (arg, slice) in [("value", Some(value)), ("grad", grad)] {
            let Some(slice) = slice else { continue };
            check_float(arg, slice.dtype())?;
            if slice.len() != n {
                let expected = format!("{} elements", slice.len());
                return Err(Error::Shape { op: "parameter", arg: "shape", expected, found: shape.to_vec() });
            }
        }
        Ok(self.add_node(Node { is_parameter: true, wants_grad: grad.is_some(), grad, ..Node::of(value, shape) }))
    }

    /// A tensor of values known when recording; they are written when the graph is compiled.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer values than `shape` has elements.
    pub fn constant(&self, name: &str, values: &[f32], shape: &[usize]) -> Result<Tensor, Error> {
        self.constant_of(Persistent::new(name, DType::F32, values.len()), bytemuck::cast_slice(values), shape)
    }

    /// The same for whole numbers, u32: codes that [`Tensor::embedding`] looks up.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer values than `shape` has elements.
    pub fn constant_codes(&self, name: &str, values: &[u32], shape: &[usize]) -> Result<Tensor, Error> {
        self.constant_of(Persistent::new(name, DType::U32, values.len()), bytemuck::cast_slice(values), shape)
    }

    /// The same for bytes, u8, such as pixels.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer values than `shape` has elements.
    pub fn constant_bytes(&self, name: &str, values: &[u8], shape: &[usize]) -> Result<Tensor, Error> {
        self.constant_of(Persistent::new(name, DType::U8, values.len()), values, shape)
    }

    /// The same for numbers of any floating type, rounded when the graph is compiled.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer values than `shape` has elements; [`Error::Dtype`] for a type that is not floating.
    pub fn constant_in(&self, dtype: DType, name: &str, values: &[f32], shape: &[usize]) -> Result<Tensor, Error> {
        let bytes: Vec<u8> = match dtype {
            DType::F32 => return self.constant(name, values, shape),
            DType::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_ne_bytes()).collect(),
            DType::Bf16 => values.iter().flat_map(|&value| bf16::from_f32(value).to_ne_bytes()).collect(),
            found => return Err(Error::Dtype { op: "constant", arg: "dtype", expected: "f32, f16 or bf16", found }),
        };
        self.constant_of(Persistent::new(name, dtype, values.len()), &bytes, shape)
    }

    fn constant_of(&self, persistent: Persistent, bytes: &[u8], shape: &[usize]) -> Result<Tensor, Error> {
        let tensor = self.tensor(&persistent, shape)?;
        self.inner.borrow_mut().constants.push((persistent, bytes.to_vec()));
        Ok(tensor)
    }

    /// Records the backward pass of `loss`, which is one number: the gradient of every parameter that has a part in it is
    /// written to where [`parameter`](Self::parameter) said.
    ///
    /// # Errors
    /// [`Error::NoTape`], [`Error::LossNotScalar`], [`Error::BackwardTwice`], [`Error::NothingToTrain`], [`Error::ForeignTensor`].
    pub fn backward(&self, loss: &Tensor) -> Result<(), Error> {
        self.check_own("backward", "loss", loss)?;
        if loss.n_elements() != 1 {
            return Err(Error::LossNotScalar { found: loss.shape().to_vec() });
        }
        self.check_can_go_back(loss)?;
        let seed = self.constant("one", &[1.0], loss.shape())?;
        self.backward_from(loss, &seed)
    }

    /// [`backward`](Self::backward) of a tensor of any shape, given the gradient that comes from above.
    ///
    /// # Errors
    /// As [`backward`](Self::backward); [`Error::Shape`] if the gradient's shape differs.
    pub fn backward_from(&self, y: &Tensor, dy: &Tensor) -> Result<(), Error> {
        self.check_own("backward", "y", y)?;
        self.check_own("backward", "dy", dy)?;
        if y.shape() != dy.shape() {
            let expected = format!("{:?}, that of what it is the gradient of", y.shape());
            return Err(Error::Shape { op: "backward", arg: "dy", expected, found: dy.shape().to_vec() });
        }
        self.check_can_go_back(y)?;
        let mut inner = self.inner.borrow_mut();
        inner.went_back = true;
        backward::record(&mut inner, y.id(), dy.slice())
    }

    fn check_can_go_back(&self, y: &Tensor) -> Result<(), Error> {
        let inner = self.inner.borrow();
        let graph = inner.program.name().to_owned();
        if inner.mode == Mode::Inference {
            return Err(Error::NoTape { graph });
        }
        if inner.went_back && !inner.accumulates {
            return Err(Error::BackwardTwice { graph });
        }
        if inner.nodes[y.id()].wants_grad { Ok(()) } else { Err(Error::NothingToTrain { graph }) }
    }

    /// Compiles the program on `device`, with kernels [fused](Program::rewritten), and writes the constants there. On the CPU the values are those of the
    /// kernels as they were recorded, to the bit.
    ///
    /// # Errors
    /// [`Error::Program`].
    pub fn compile(&self, device: &Device) -> Result<Executable, Error> {
        let inner = self.inner.borrow();
        let executable = device.compile(&inner.program.rewritten(&inner.rewrites))?;
        for (persistent, values) in &inner.constants {
            device.write(persistent, values)?;
        }
        Ok(executable)
    }

    /// The program recorded so far, to look at it or to record kernels of one's own.
    pub fn with_program<T>(&self, f: impl FnOnce(&mut Program) -> T) -> T {
        f(&mut self.inner.borrow_mut().program)
    }

    /// The most that is ever allocated when these graphs are compiled on one device side by side: each persistent buffer once,
    /// and the transients of every graph.
    ///
    /// # Errors
    /// [`Error::Program`] if a transient is read before it is written.
    pub fn planned_peak_bytes(graphs: &[&Self]) -> Result<usize, Error> {
        let programs: Vec<_> = graphs.iter().map(|graph| graph.fused()).collect();
        Ok(brisk_program::planned_peak_bytes(&programs.iter().collect::<Vec<_>>())?)
    }

    /// The program as it is [compiled](Self::compile): what has been recorded so far, with kernels fused. Its `Display` lists them.
    pub fn fused(&self) -> Program {
        let inner = self.inner.borrow();
        inner.program.rewritten(&inner.rewrites)
    }

    /// How kernels are fused when the graph is compiled; `&[]` leaves each as it was recorded. At first it is [`Rewrite::ALL`].
    pub fn fuse_by(&self, rewrites: &[Rewrite]) {
        self.inner.borrow_mut().rewrites = rewrites.to_vec();
    }

    /// Takes a slice that a kernel of one's own has written into the graph, as a tensor without gradient.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape has another number of elements.
    pub fn wrap(&self, slice: Slice, shape: &[usize]) -> Result<Tensor, Error> {
        if shape.iter().product::<usize>() != slice.len() {
            let expected = format!("{} elements", slice.len());
            return Err(Error::Shape { op: "wrap", arg: "shape", expected, found: shape.to_vec() });
        }
        Ok(self.add_node(Node::of(slice, shape)))
    }

    pub(crate) fn add_node(&self, node: Node) -> Tensor {
        let (slice, shape) = (node.slice, node.shape.clone());
        let mut inner = self.inner.borrow_mut();
        inner.nodes.push(node);
        Tensor::new(self.clone(), inner.nodes.len() - 1, slice, shape)
    }

    pub(crate) fn check_own(&self, op: &'static str, arg: &'static str, tensor: &Tensor) -> Result<(), Error> {
        if Rc::ptr_eq(&self.inner, &tensor.graph().inner) { Ok(()) } else { Err(Error::ForeignTensor { op, arg }) }
    }

    /// How many tensors there are so far, casts left out: the same number in every precision.
    pub(crate) fn n_uncast(&self) -> usize {
        self.inner().nodes.iter().filter(|node| node.op != Some("cast")).count()
    }

    /// A transient of the program, for a result.
    pub(crate) fn transient(&self, name: &'static str, dtype: DType, len: usize) -> Slice {
        self.with_program(|program| program.transient(name, dtype, len))
    }

    /// Records a kernel of an operation, over slices stored in any type.
    pub(crate) fn push(&self, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        self.with_program(|program| stored::push(program, kernel, args))
    }

    pub(crate) fn inner(&self) -> Ref<'_, Inner> {
        self.inner.borrow()
    }

    pub(crate) fn inner_mut(&self) -> RefMut<'_, Inner> {
        self.inner.borrow_mut()
    }
}

fn check_float(arg: &'static str, found: DType) -> Result<(), Error> {
    if found.is_float() { Ok(()) } else { Err(Error::Dtype { op: "parameter", arg, expected: "f32, f16 or bf16", found }) }
}

fn check_elements(op: &'static str, persistent: &Persistent, range: &Range<usize>, shape: &[usize]) -> Result<(), Error> {
    let n: usize = shape.iter().product();
    if range.start <= range.end && range.end <= persistent.len() && range.len() == n {
        return Ok(());
    }
    let expected = format!("{} elements, those of {range:?} of `{}` ({})", range.len(), persistent.name(), persistent.len());
    Err(Error::Shape { op, arg: "shape", expected, found: shape.to_vec() })
}
