use std::fmt;

use brisk_kernels::{DType, FIRST_NON_FINITE_LEN, FirstNonFinite, MapReduce, Reducer, bytemuck};
use brisk_program::{Device, Persistent, Program, Slice};

use crate::error::Error;
use crate::graph::node::Node;
use crate::graph::stored::push;
use crate::graph::tensor::Tensor;
use crate::graph::{Graph, Inner};

/// The first value that was not finite: the result of [`Graph::first_anomaly`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Anomaly {
    /// The run of the program, counted from 1 since the graph was compiled or [cleared](Graph::clear_anomaly).
    pub run: usize,
    /// The operation.
    pub operation: &'static str,
    /// The index of the operation among those that [`Graph::report`] lists.
    pub index: usize,
    /// The pass in which the operation met the value.
    pub pass: Pass,
}

/// Where an operation met a value that is not finite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Pass {
    /// In an operand that comes from outside the graph, data or parameters, with this index.
    Operand(usize),
    /// In its result.
    Forward,
    /// In a gradient that it computed.
    Backward,
}

impl fmt::Display for Pass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operand(operand) => write!(f, "its operand {operand}, which comes from outside the graph, is not finite"),
            Self::Forward => f.write_str("its result is the first value that is not finite"),
            Self::Backward => f.write_str("a gradient that it computes is the first value that is not finite"),
        }
    }
}

impl fmt::Display for Anomaly {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { run, operation, index, pass } = self;
        write!(f, "run {run}, operation {index}, `{operation}`: {pass}")
    }
}

/// The checks for values that are not finite.
#[derive(Debug)]
pub(crate) struct Watch {
    first: Persistent,
    places: Vec<Place>,
    /// The tensors from outside the graph that are checked already.
    outside: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    operation: &'static str,
    index: usize,
    pass: Pass,
}

impl Place {
    /// The operation that computes tensor `id`.
    pub(crate) fn new(nodes: &[Node], id: usize, pass: Pass) -> Self {
        let index = nodes[..id].iter().filter(|node| node.op.is_some()).count();
        Self { operation: nodes[id].op.unwrap_or("loss"), index, pass }
    }
}

/// The value on the device while all values are finite.
const NONE: [u32; FIRST_NON_FINITE_LEN] = [0; FIRST_NON_FINITE_LEN];

impl Inner {
    fn watching(&self, op: &'static str) -> Result<&Watch, Error> {
        self.watch.as_ref().ok_or_else(|| Error::NotDetecting { op, graph: self.program.name().to_owned() })
    }
}

impl Watch {
    /// Records a check of `slice`.
    pub(crate) fn record(&mut self, program: &mut Program, slice: Slice, place: Place) -> Result<(), Error> {
        let found = program.transient("found", DType::F32, 1);
        push(program, MapReduce::of(Reducer::NonFinite, &[slice.len()], &[0]), &[slice, found])?;
        let first = program.persistent(&self.first);
        push(program, FirstNonFinite { place: self.places.len() as u32 }, &[found, first])?;
        self.places.push(place);
        Ok(())
    }
}

impl Graph {
    /// From now on, checks the result of each operation, in the backward pass each gradient, and operands from outside the graph.
    /// The first value that is not finite is recorded on the device; [`first_anomaly`](Self::first_anomaly) names its operation.
    ///
    /// This is for debugging, not for training: every value is read once more.
    ///
    /// With a loss scale, gradients overflow in each step that tries a scale that is too high; such a step is skipped and is no
    /// error. So check after every step. If a skipped step has an anomaly in [`Pass::Backward`], clear it with
    /// [`clear_anomaly`](Self::clear_anomaly), unless many steps in a row are skipped. An anomaly in a step that was not skipped,
    /// or in another pass, is not caused by the scale.
    ///
    /// # Errors
    /// [`Error::Refused`] if operations have been recorded already, which would not be checked.
    /// # Reference
    /// `torch.autograd.detect_anomaly`, which checks the backward pass only.
    /// # Examples
    /// ```
    /// use brisk_tensor::program::Device;
    /// use brisk_tensor::{Graph, Pass, Transpose};
    ///
    /// let graph = Graph::inference("too much");
    /// graph.detect_anomaly();
    /// let x = graph.constant("x", &[1e30; 4], &[2, 2]);
    /// let squares = &x * &x; // 1e60, which overflows f32
    /// squares.softmax(1);
    /// let device = Device::cpu()?;
    /// graph.compile(&device)?.run(1)?;
    /// let anomaly = graph.first_anomaly(&device)?.expect("there is one");
    /// assert_eq!((anomaly.operation, anomaly.pass, anomaly.run), ("multiply", Pass::Forward, 1));
    /// println!("{anomaly}");
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn detect_anomaly(&self) {
        if self.inner().watch.is_some() {
            return;
        }
        let recorded = self.inner().nodes.iter().find_map(|node| node.op);
        if let Some(op) = recorded {
            let found = format!("the graph `{}` has operations already, the first of them `{op}`", self.name());
            let expected = "to be called before anything is recorded";
            return self.fail(Error::Refused { op: "detect_anomaly", found, expected });
        }
        let first = Persistent::new("first anomaly", DType::U32, FIRST_NON_FINITE_LEN);
        let mut inner = self.inner_mut();
        inner.constants.push((first.clone(), bytemuck::cast_slice::<_, u8>(&NONE).into()));
        inner.watch = Some(Watch { first, places: Vec::new(), outside: Vec::new() });
    }

    /// The first value that was not finite in all runs on `device` since the graph was compiled or
    /// [cleared](Self::clear_anomaly). Waits for these runs.
    ///
    /// # Errors
    /// [`Error::NotDetecting`]; [`Error::Program`].
    pub fn first_anomaly(&self, device: &Device) -> Result<Option<Anomaly>, Error> {
        let inner = self.inner();
        let watch = inner.watching("first_anomaly")?;
        let first: Vec<u32> = device.read(&watch.first)?;
        let place = (first[0] as usize).checked_sub(1).and_then(|place| watch.places.get(place));
        Ok(place.map(|&Place { operation, index, pass }| Anomaly { run: first[1] as usize, operation, index, pass }))
    }

    /// Clears the anomaly on `device`, so that the next one is recorded; runs are counted from 1 again.
    ///
    /// # Errors
    /// As [`first_anomaly`](Self::first_anomaly).
    pub fn clear_anomaly(&self, device: &Device) -> Result<(), Error> {
        let inner = self.inner();
        Ok(device.write(&inner.watching("clear_anomaly")?.first, &NONE)?)
    }

    /// Records checks of a result, and before it of the operands that come from outside the graph.
    pub(crate) fn watch(&self, result: &Tensor) -> Result<(), Error> {
        let mut inner = self.inner_mut();
        let Inner { program, nodes, watch: Some(watch), .. } = &mut *inner else { return Ok(()) };
        for (operand, &id) in nodes[result.id()].inputs.iter().enumerate() {
            let node = &nodes[id];
            if node.op.is_none() && node.slice.dtype().is_float() && !watch.outside.contains(&id) {
                watch.outside.push(id);
                watch.record(program, node.slice, Place::new(nodes, result.id(), Pass::Operand(operand)))?;
            }
        }
        watch.record(program, result.slice(), Place::new(nodes, result.id(), Pass::Forward))
    }
}
