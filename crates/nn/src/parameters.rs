use std::ops::Range;

use brisk_kernels::DType;
use brisk_tensor::program::Device;
use brisk_tensor::{Error, Graph, Persistent, Tensor};

use crate::{Buffer, BufferId, Init};

/// All parameters of a model in one flat buffer, and their gradients in another of the same layout.
///
/// So an optimizer, a norm, a check for infinities, an average or an all-reduce is one kernel, however many tensors there are.
/// Each tensor starts at a multiple of 64 elements; what lies between stays 0.
#[derive(Debug, Clone)]
pub struct Parameters {
    entries: Vec<Entry>,
    values: Persistent,
    grads: Persistent,
    initial: Vec<f32>,
    buffers: Vec<Buffer>,
}

/// One parameter: its name, its shape, where it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Dotted, as PyTorch's `state_dict` has it: `layers.0.weight`.
    pub name: String,
    /// Lengths of its dimensions.
    pub shape: Vec<usize>,
    /// Its elements of the flat buffer.
    pub range: Range<usize>,
}

/// Which parameter of a [`Parameters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterId(usize);

/// Collects the parameters of a model while its layers are made.
#[derive(Debug, Default)]
pub struct ParametersBuilder {
    entries: Vec<Entry>,
    inits: Vec<Init>,
    len: usize,
    buffers: Vec<Buffer>,
}

/// Elements to whose multiple each tensor is aligned: 256 bytes of f32, what every adapter can bind at.
const ALIGN: usize = 64;

impl ParametersBuilder {
    /// No parameters yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a parameter behind the last.
    pub fn add(&mut self, name: impl Into<String>, shape: &[usize], init: Init) -> ParameterId {
        let start = self.len.next_multiple_of(ALIGN);
        let range = start..start + shape.iter().product::<usize>();
        self.len = range.end;
        self.entries.push(Entry { name: name.into(), shape: shape.to_vec(), range });
        self.inits.push(init);
        ParameterId(self.entries.len() - 1)
    }

    /// Adds a buffer, a tensor that is kept with the parameters and not trained. It starts as `value` throughout.
    pub fn add_buffer(&mut self, name: impl Into<String>, shape: &[usize], value: f32) -> BufferId {
        self.buffers.push(Buffer::new(name.into(), shape, value));
        BufferId(self.buffers.len() - 1)
    }

    /// Closes the list and draws the starting values.
    pub fn build(self, seed: u64) -> Parameters {
        let len = self.len.next_multiple_of(ALIGN).max(ALIGN);
        let mut initial = vec![0.0; len];
        for (stream, (entry, init)) in self.entries.iter().zip(&self.inits).enumerate() {
            init.fill(seed, stream as u32, &mut initial[entry.range.clone()]);
        }
        let values = Persistent::new("parameters", DType::F32, len);
        let grads = Persistent::new("gradients", DType::F32, len);
        Parameters { entries: self.entries, values, grads, initial, buffers: self.buffers }
    }
}

impl Parameters {
    /// The flat values `[len]`, padding included.
    pub fn values(&self) -> &Persistent {
        &self.values
    }

    /// The flat gradients `[len]`, padding included.
    pub fn grads(&self) -> &Persistent {
        &self.grads
    }

    /// The parameters in order.
    pub fn entries(&self) -> &[Entry] {
        &self.entries
    }

    /// The parameter `id`.
    ///
    /// # Panics
    /// If `id` comes from other parameters: a mistake in the model.
    pub fn entry(&self, id: ParameterId) -> &Entry {
        &self.entries[id.0]
    }

    /// The parameters that `is_wanted`, in order.
    pub fn ids_where(&self, is_wanted: impl Fn(&Entry) -> bool) -> Vec<ParameterId> {
        (0..self.entries.len()).map(ParameterId).filter(|&id| is_wanted(self.entry(id))).collect()
    }

    /// Which parameter has this name.
    pub fn id_of(&self, name: &str) -> Option<ParameterId> {
        self.entries.iter().position(|entry| entry.name == name).map(ParameterId)
    }

    /// Which buffer has this name.
    pub fn buffer_id_of(&self, name: &str) -> Option<BufferId> {
        self.buffers.iter().position(|buffer| buffer.name() == name).map(BufferId)
    }

    /// What belongs to the model and is not trained, in order; a checkpoint keeps it by name, beside the parameters.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// How many numbers are trained, padding not counted.
    pub fn n_trained(&self) -> usize {
        self.entries.iter().map(|entry| entry.range.len()).sum()
    }

    /// Elements of the flat buffers, padding included.
    pub fn len(&self) -> usize {
        self.initial.len()
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The same parameters with their values elsewhere, in a buffer of the same layout.
    pub(crate) fn with_values(&self, values: &Persistent) -> Self {
        Self { values: values.clone(), ..self.clone() }
    }

    /// Writes the starting values to `device`, those of the buffers too.
    ///
    /// # Errors
    /// [`Error::Program`].
    pub fn write_initial(&self, device: &Device) -> Result<(), Error> {
        device.write(&self.values, &self.initial)?;
        for buffer in &self.buffers {
            device.write(buffer.values(), &buffer.initial)?;
        }
        Ok(())
    }

    /// Replaces a starting value, such as one read from a file.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer values than the parameter has.
    pub fn set_initial(&mut self, id: ParameterId, values: &[f32]) -> Result<(), Error> {
        let entry = &self.entries[id.0];
        if values.len() != entry.range.len() {
            let expected = format!("{} elements for `{}`", entry.range.len(), entry.name);
            return Err(Error::Shape { op: "set_initial", arg: "values", expected, found: vec![values.len()] });
        }
        self.initial[entry.range.clone()].copy_from_slice(values);
        Ok(())
    }

    /// Replaces what a buffer starts as, such as by what was read from a file.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer values than the buffer has.
    pub fn set_initial_buffer(&mut self, id: BufferId, values: &[f32]) -> Result<(), Error> {
        let buffer = &mut self.buffers[id.0];
        if values.len() != buffer.initial.len() {
            let expected = format!("{} elements for `{}`", buffer.initial.len(), buffer.name());
            return Err(Error::Shape { op: "set_initial_buffer", arg: "values", expected, found: vec![values.len()] });
        }
        buffer.initial.copy_from_slice(values);
        Ok(())
    }

    /// The parameters and buffers as tensors of `graph`.
    ///
    /// # Errors
    /// [`Error::Program`].
    pub fn bind(&self, graph: &Graph) -> Result<Bound, Error> {
        let bind = |entry: &Entry| graph.parameter(&self.values, &self.grads, entry.range.clone(), &entry.shape);
        let tensors = self.entries.iter().map(bind).collect::<Result<_, _>>()?;
        let buffers =
            self.buffers.iter().map(|buffer| graph.tensor(buffer.values(), buffer.shape())).collect::<Result<_, _>>()?;
        Ok(Bound { tensors, buffers })
    }
}

/// The parameters of a model as tensors of one graph.
#[derive(Debug, Clone)]
pub struct Bound {
    tensors: Vec<Tensor>,
    buffers: Vec<Tensor>,
}

impl Bound {
    /// All of them, in the order of [`Parameters::entries`].
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The parameter `id`.
    ///
    /// # Panics
    /// If `id` comes from other parameters: a mistake in the model.
    pub fn tensor(&self, id: ParameterId) -> &Tensor {
        &self.tensors[id.0]
    }

    /// The buffer `id`.
    ///
    /// # Panics
    /// If `id` comes from other parameters: a mistake in the model.
    pub fn buffer(&self, id: BufferId) -> &Tensor {
        &self.buffers[id.0]
    }
}
