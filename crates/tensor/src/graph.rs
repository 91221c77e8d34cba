//! A graph and all that is recorded in it: tensors, the operations that made them, and the tape. Operations are built on it.

pub(crate) mod all_gather;
pub(crate) mod anomaly;
pub(crate) mod autocast;
pub(crate) mod backward;
mod cast;
mod detect_anomaly;
mod failure;
mod first_error;
#[expect(clippy::module_inception, reason = "the type that the folder is about")]
pub(crate) mod graph;
mod lower_precision;
pub(crate) mod node;
pub(crate) mod operation;
pub(crate) mod recording;
mod region;
pub(crate) mod row_weights;
pub(crate) mod run_state;
pub(crate) mod scope;
pub(crate) mod state_use;
pub(crate) mod stored;
pub(crate) mod tensor;

use std::ops::Range;
use std::rc::Rc;

use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Kernel, Map, bytemuck};
use brisk_program::{Device, Executable, Persistent, Program, Rewrite, Slice};
use half::{bf16, f16};

pub(crate) use graph::Inner;
pub use graph::{Graph, Mode};

use crate::error::Error;
use crate::graph::node::Node;
use crate::graph::tensor::{Tensor, n_elements};

impl Graph {
    /// Binds a persistent buffer as a tensor of `shape`, whose values come from outside and need no gradient.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape has another number of elements.
    #[track_caller]
    pub fn tensor(&self, persistent: &Persistent, shape: &[usize]) -> Tensor {
        self.part(persistent, 0..persistent.len(), shape)
    }

    /// Binds the elements of `range` of a persistent buffer as a tensor.
    ///
    /// # Errors
    /// As [`tensor`](Self::tensor).
    #[track_caller]
    pub fn part(&self, persistent: &Persistent, range: Range<usize>, shape: &[usize]) -> Tensor {
        match check_elements("tensor", persistent, &range, shape) {
            // Devices have no empty buffers.
            Ok(()) if range.is_empty() => self.empty("tensor", persistent.dtype(), shape),
            Ok(()) => self.add_node(Node::of(self.buffer(persistent).slice(range), shape)),
            Err(error) => self.failed(error, persistent.dtype(), shape),
        }
    }

    /// Binds the elements of `range` of two persistent buffers as a parameter and its gradient.
    ///
    /// The backward pass overwrites the gradient; it does not add to it. Binding the same parameter again gives the same tensor,
    /// whose gradient is that of all its uses. The gradient of a parameter that is bound after the backward pass is 0.
    ///
    /// # Dtypes
    /// Both f32, f16 or bf16, not necessarily the same: the gradient is written in the dtype of its buffer.
    /// # Errors
    /// As [`tensor`](Self::tensor); [`Error::Dtype`]; [`Error::Refused`] if the gradient overlaps that of another parameter.
    #[track_caller]
    pub fn parameter(&self, values: &Persistent, grads: &Persistent, range: Range<usize>, shape: &[usize]) -> Tensor {
        let check = |persistent| check_elements("parameter", persistent, &range, shape);
        if let Err(error) = check(values).and_then(|()| check(grads)) {
            return self.failed(error, values.dtype(), shape);
        }
        let slice = |persistent| self.buffer(persistent).slice(range.clone());
        // The type of the gradient is checked in a graph for inference too.
        if let Err(error) = check_float("values", values.dtype()).and_then(|()| check_float("grads", grads.dtype())) {
            return self.failed(error, values.dtype(), shape);
        }
        let keeps_tape = self.mode() == Mode::Training;
        self.parameter_in(slice(values), keeps_tape.then(|| slice(grads)), shape)
    }

    /// Binds slices of the program as a parameter and its gradient. They may be of transients: the caller must make sure that
    /// values are written before they are read, and that gradients are used. Without `grad` the parameter gets no gradient.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape has another number of elements; as [`parameter`](Self::parameter).
    #[track_caller]
    pub fn parameter_in(&self, value: Slice, grad: Option<Slice>, shape: &[usize]) -> Tensor {
        for (arg, slice) in [("value", Some(value)), ("grad", grad)] {
            let Some(slice) = slice else { continue };
            let checked = check_float(arg, slice.dtype()).and_then(|()| check_slice("parameter", slice, shape));
            if let Err(error) = checked {
                return self.failed(error, value.dtype(), shape);
            }
        }
        let other = grad.and_then(|grad| self.overlapping(grad));
        match other {
            Some(id) if self.is_parameter_of(id, value, grad) => Tensor::new(self.clone(), id, value, shape.to_vec()),
            Some(id) => {
                let other = self.inner().nodes[id].shape.clone();
                let found = format!("a gradient whose elements are also those of another parameter, of shape {other:?}");
                let expected = "separate gradients, of which each is written, or no gradient for one of them (`Graph::part`)";
                self.failed(Error::Refused { op: "parameter", found, expected }, value.dtype(), shape)
            }
            None => {
                // No backward pass writes it, and its buffer may have the gradient of another graph.
                if let Some(grad) = grad.filter(|grad| self.is_after_backward() && !grad.is_empty()) {
                    self.push(Map::flat(grad.len(), Expr::constant(0.0)), &[grad]);
                }
                self.add_node(Node { is_parameter: true, wants_grad: grad.is_some(), grad, ..Node::of(value, shape) })
            }
        }
    }

    /// The parameter whose gradient overlaps `grad`.
    fn overlapping(&self, grad: Slice) -> Option<usize> {
        self.inner().nodes.iter().position(|node| node.grad.is_some_and(|other| other.overlaps(grad)))
    }

    /// Whether no further backward pass can follow.
    fn is_after_backward(&self) -> bool {
        let inner = self.inner();
        inner.went_back && !inner.accumulates
    }

    fn is_parameter_of(&self, id: usize, value: Slice, grad: Option<Slice>) -> bool {
        let node = &self.inner().nodes[id];
        (node.slice, node.grad) == (value, grad)
    }

    /// Keeps the parameters of a model, for what is recorded later and knows only the buffer of its values:
    /// [`gradients_of`](Self::gradients_of).
    pub fn keep_parameters(&self, values: &Persistent, parameters: &[Tensor]) {
        let model = (values.clone(), parameters.iter().map(Tensor::id).collect());
        self.inner_mut().models.push(model);
    }

    /// Which of the parameters that were [kept](Self::keep_parameters) for these values [have a gradient](Tensor::has_gradient),
    /// in order; `None` if none were.
    pub fn gradients_of(&self, values: &Persistent) -> Option<Vec<bool>> {
        let inner = self.inner();
        let (_, ids) = inner.models.iter().find(|(model, _)| model.is_same(values))?;
        Some(ids.iter().map(|&id| inner.nodes[id].has_gradient).collect())
    }

    /// Whether parameters of any model were [kept](Self::keep_parameters).
    pub fn has_parameters(&self) -> bool {
        !self.inner().models.is_empty()
    }

    /// Whether a backward pass has been recorded.
    pub fn has_backward(&self) -> bool {
        self.inner().went_back
    }

    /// A tensor of f32 values that are known when recording; [`compile`](Self::compile) writes them to the device.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer values than `shape` has elements.
    #[track_caller]
    pub fn constant(&self, name: &str, values: &[f32], shape: &[usize]) -> Tensor {
        self.constant_of(Persistent::new(name, DType::F32, values.len()), bytemuck::cast_slice(values), shape)
    }

    /// [`constant`](Self::constant) for integers, u32, such as the codes that [`Tensor::embedding`] looks up.
    ///
    /// # Errors
    /// As [`constant`](Self::constant).
    #[track_caller]
    pub fn constant_codes(&self, name: &str, values: &[u32], shape: &[usize]) -> Tensor {
        self.constant_of(Persistent::new(name, DType::U32, values.len()), bytemuck::cast_slice(values), shape)
    }

    /// [`constant`](Self::constant) for bytes, u8, such as pixels.
    ///
    /// # Errors
    /// As [`constant`](Self::constant).
    #[track_caller]
    pub fn constant_bytes(&self, name: &str, values: &[u8], shape: &[usize]) -> Tensor {
        self.constant_of(Persistent::new(name, DType::U8, values.len()), values, shape)
    }

    /// [`constant`](Self::constant) for any floating-point dtype, to which the values are rounded.
    ///
    /// # Errors
    /// As [`constant`](Self::constant); [`Error::Dtype`] unless the dtype is f32, f16 or bf16.
    #[track_caller]
    pub fn constant_in(&self, dtype: DType, name: &str, values: &[f32], shape: &[usize]) -> Tensor {
        let bytes: Vec<u8> = match dtype {
            DType::F32 => return self.constant(name, values, shape),
            DType::F16 => values.iter().flat_map(|&value| f16::from_f32(value).to_ne_bytes()).collect(),
            DType::Bf16 => values.iter().flat_map(|&value| bf16::from_f32(value).to_ne_bytes()).collect(),
            found => {
                let error = Error::Dtype { op: "constant", arg: "dtype", expected: "f32, f16 or bf16", found };
                return self.failed(error, dtype, shape);
            }
        };
        self.constant_of(Persistent::new(name, dtype, values.len()), &bytes, shape)
    }

    #[track_caller]
    fn constant_of(&self, persistent: Persistent, bytes: &[u8], shape: &[usize]) -> Tensor {
        if n_elements(shape) != Some(persistent.len()) {
            let (expected, found) = (format!("as many elements as shape {shape:?} has"), vec![persistent.len()]);
            let error = Error::Shape { op: "constant", arg: "values", expected, found };
            return self.failed(error, persistent.dtype(), shape);
        }
        let tensor = self.tensor(&persistent, shape);
        self.inner_mut().constants.push((persistent, bytes.into()));
        tensor
    }

    /// The kernels recorded so far, as [`Program::listing`] has them, then the [constants](Self::constant) by name with a
    /// checksum of their values.
    pub fn listing(&self) -> String {
        let inner = self.inner();
        let mut listing = inner.program.listing();
        for (persistent, bytes) in &inner.constants {
            let buffer = inner.program.position_of(persistent).unwrap_or_default();
            let checksum = bytes.iter().fold(FNV_START, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(FNV_FACTOR));
            listing.push_str(&format!("constant {buffer} {} {checksum:016x}\n", persistent.name()));
        }
        listing
    }

    /// Records the backward pass of `loss`, which must be a single number: the gradient of every parameter is written to the
    /// buffer that was given to [`parameter`](Self::parameter). That of a parameter on which the loss does not depend is 0, and
    /// [`Tensor::has_gradient`] is false for it.
    ///
    /// # Errors
    /// The first error of the graph, as [`check`](Self::check); [`Error::NoTape`], [`Error::LossNotScalar`],
    /// [`Error::BackwardTwice`], [`Error::NothingToTrain`], [`Error::ForeignTensor`], after which the graph is as before. An
    /// error of an operation's backward pass is also kept as that of the graph, as is [`Error::Overwritten`], if a kernel that
    /// was recorded after an operation has overwritten values that its gradient is computed from.
    #[track_caller]
    pub fn backward(&self, loss: &Tensor) -> Result<(), Error> {
        self.check()?;
        let own = self.check_own("backward", "loss", loss);
        let checked = own.and_then(|()| match loss.n_elements() {
            1 => self.check_can_go_back(loss),
            _ => Err(Error::LossNotScalar { found: loss.shape().to_vec() }),
        });
        match checked {
            Ok(()) => self.record_backward(loss, &self.constant("one", &[1.0], loss.shape())),
            Err(error) => Err(self.placed(error)),
        }
    }

    /// [`backward`](Self::backward) of a tensor of any shape, given the gradient of the loss with respect to it.
    ///
    /// # Errors
    /// As [`backward`](Self::backward); [`Error::Shape`] if the gradient has another shape.
    #[track_caller]
    pub fn backward_from(&self, y: &Tensor, dy: &Tensor) -> Result<(), Error> {
        self.check()?;
        let own = self.check_own("backward", "y", y).and_then(|()| self.check_own("backward", "dy", dy));
        let checked = own.and_then(|()| match y.shape() == dy.shape() {
            true => self.check_can_go_back(y),
            false => {
                let expected = format!("{:?}, the shape of the tensor that it is the gradient of", y.shape());
                Err(Error::Shape { op: "backward", arg: "dy", expected, found: dy.shape().to_vec() })
            }
        });
        match checked {
            Ok(()) => self.record_backward(y, dy),
            Err(error) => Err(self.placed(error)),
        }
    }

    #[track_caller]
    fn record_backward(&self, y: &Tensor, dy: &Tensor) -> Result<(), Error> {
        let recorded = {
            let mut inner = self.inner_mut();
            inner.went_back = true;
            backward::record(&mut inner, y.id(), dy.slice())
        };
        self.catch(recorded);
        self.check()
    }

    fn check_can_go_back(&self, y: &Tensor) -> Result<(), Error> {
        let inner = self.inner();
        let graph = inner.program.name().to_owned();
        if inner.mode == Mode::Inference {
            return Err(Error::NoTape { graph });
        }
        if self.is_after_backward() {
            return Err(Error::BackwardTwice { graph });
        }
        if inner.nodes[y.id()].wants_grad { Ok(()) } else { Err(Error::NothingToTrain { graph }) }
    }

    /// Compiles the program on `device`, with kernels [fused](Program::rewritten), and writes the constants there. On the CPU the
    /// results are bit-identical to those of the kernels as they were recorded.
    ///
    /// # Errors
    /// The first error of the graph, as [`check`](Self::check); [`Error::NotAdvanced`]; [`Error::SameDraws`];
    /// [`Error::AfterAdvance`]; [`Error::Program`].
    pub fn compile(&self, device: &Device) -> Result<Executable, Error> {
        self.recording()?.compile(device)
    }

    /// The memory that these graphs take together when they are compiled on one device: each persistent buffer once,
    /// and the transients of every graph.
    ///
    /// # Errors
    /// The first error of a graph, as [`check`](Self::check); [`Error::Program`] if a transient is read before it is written.
    pub fn planned_peak_bytes(graphs: &[&Self]) -> Result<usize, Error> {
        graphs.iter().try_for_each(|graph| graph.check())?;
        let programs: Vec<_> = graphs.iter().map(|graph| graph.fused()).collect();
        Ok(brisk_program::planned_peak_bytes(&programs.iter().collect::<Vec<_>>())?)
    }

    /// The program as it is [compiled](Self::compile): everything recorded so far, with kernels fused. Its `Display` lists the
    /// kernels.
    pub fn fused(&self) -> Program {
        let inner = self.inner.borrow();
        inner.program.rewritten(&inner.rewrites)
    }

    /// Sets how kernels are fused when the graph is compiled: [`Rewrite::ALL`] by default; `&[]` leaves each as it was recorded.
    pub fn fuse_by(&self, rewrites: &[Rewrite]) {
        self.inner.borrow_mut().rewrites = rewrites.to_vec();
    }

    /// Wraps a slice that a custom kernel writes as a tensor without gradient.
    ///
    /// # Errors
    /// [`Error::Shape`] if the shape has another number of elements.
    #[track_caller]
    pub fn wrap(&self, slice: Slice, shape: &[usize]) -> Tensor {
        match check_slice("wrap", slice, shape) {
            Ok(()) => self.add_node(Node::of(slice, shape)),
            Err(error) => self.failed(error, slice.dtype(), shape),
        }
    }

    /// A tensor without elements, which takes no memory. No kernel may read it.
    pub(crate) fn empty(&self, name: &'static str, dtype: DType, shape: &[usize]) -> Tensor {
        self.add_node(Node::of(self.transient(name, dtype, 0), shape))
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

    /// Records a kernel of an operation, over slices of any dtype.
    pub(crate) fn try_push(&self, kernel: impl Kernel, args: &[Slice]) -> Result<(), Error> {
        self.with_program(|program| stored::push(program, kernel, args))
    }
}

fn check_float(arg: &'static str, found: DType) -> Result<(), Error> {
    if found.is_float() { Ok(()) } else { Err(Error::Dtype { op: "parameter", arg, expected: "f32, f16 or bf16", found }) }
}

fn check_slice(op: &'static str, slice: Slice, shape: &[usize]) -> Result<(), Error> {
    if n_elements(shape) == Some(slice.len()) {
        return Ok(());
    }
    Err(Error::Shape { op, arg: "shape", expected: format!("{} elements", slice.len()), found: shape.to_vec() })
}

fn check_elements(op: &'static str, persistent: &Persistent, range: &Range<usize>, shape: &[usize]) -> Result<(), Error> {
    if range.start <= range.end && range.end <= persistent.len() && n_elements(shape) == Some(range.len()) {
        return Ok(());
    }
    let expected = format!("{} elements, those of {range:?} of `{}` ({})", range.len(), persistent.name(), persistent.len());
    Err(Error::Shape { op, arg: "shape", expected, found: shape.to_vec() })
}

/// Of FNV-1a in 64 bits.
const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;
const FNV_FACTOR: u64 = 0x0000_0100_0000_01b3;
