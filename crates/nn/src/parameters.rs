use std::ops::Range;

use brisk_kernels::DType;
use brisk_tensor::program::{Device, Slice};
use brisk_tensor::{Error, Graph, Mode, Persistent, Tensor};

use crate::{BoundBucket, Buffer, BufferId, Division, Init, Kept, Piece};

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
    division: Option<Division>,
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
        Parameters { entries: self.entries, values, grads, initial, buffers: self.buffers, division: None }
    }
}

impl Parameters {
    /// The same parameters as one replica of several has them, which share what there is of them between two steps. An optimizer made of these keeps the state of
    /// this replica's own pieces.
    ///
    /// # Errors
    /// [`Error::Shape`] if the buckets do not cover the elements, or a piece does not begin and end at a multiple of 64.
    pub fn divided(self, division: Division) -> Result<Self, Error> {
        let n: usize = division.buckets.iter().map(|bucket| bucket.elements.len()).sum();
        let fits = |bucket: &crate::DividedBucket| {
            let ends = [bucket.elements.start, bucket.elements.end, bucket.own.start, bucket.own.end];
            let is_within = bucket.elements.start <= bucket.own.start && bucket.own.end <= bucket.elements.end;
            is_within && bucket.own.start <= bucket.own.end && ends.iter().all(|end| end % ALIGN == 0)
        };
        if n != self.len() || !division.buckets.iter().all(fits) {
            let expected = format!("buckets of {} elements, cut at multiples of {ALIGN}", self.len());
            return Err(Error::Shape { op: "divided", arg: "buckets", expected, found: vec![n] });
        }
        let own_len = division.own_len().max(ALIGN);
        let kept = |kept, whole: &Persistent| match kept {
            Kept::Whole => whole.clone(),
            Kept::Own => Persistent::new(whole.name(), DType::F32, own_len),
        };
        let (values, grads) = (kept(division.values, &self.values), kept(division.gradients, &self.grads));
        Ok(Self { values, grads, division: Some(division), ..self })
    }

    /// How they are divided among replicas, if they are.
    pub fn division(&self) -> Option<&Division> {
        self.division.as_ref()
    }

    /// What is stepped, a kernel each: all elements, or the replica's own.
    pub fn pieces(&self) -> Vec<Piece> {
        let all = 0..self.len();
        let whole = || vec![Piece { values: all.clone(), grads: all.clone(), state: all.clone(), elements: vec![all.clone()] }];
        self.division.as_ref().map_or_else(whole, Division::pieces)
    }

    /// Elements of a buffer for what an optimizer keeps: as many as it steps, and 64 at least.
    pub fn state_len(&self) -> usize {
        self.division.as_ref().map_or(self.len(), |division| division.own_len().max(ALIGN))
    }

    /// What an optimizer keeps here of state that is laid out as all parameters are.
    ///
    /// # Panics
    /// If there are fewer elements than parameters have.
    pub fn state_of(&self, flat: &[f32]) -> Vec<f32> {
        let Some(division) = &self.division else { return flat.to_vec() };
        let mut own: Vec<f32> = division.buckets.iter().flat_map(|bucket| &flat[bucket.own.clone()]).copied().collect();
        own.resize(self.state_len(), 0.0);
        own
    }

    /// What [`values`](Self::values) hold here of all.
    ///
    /// # Panics
    /// If there are fewer elements than parameters have.
    pub fn values_of(&self, flat: &[f32]) -> Vec<f32> {
        match &self.division {
            Some(Division { values: Kept::Own, .. }) => self.state_of(flat),
            _ => flat.to_vec(),
        }
    }

    /// The values `[len]` that [`write_initial`](Self::write_initial) starts from, padding included.
    pub fn initial(&self) -> &[f32] {
        &self.initial
    }

    /// Refuses what is not done piece by piece.
    pub(crate) fn check_whole(&self, op: &'static str) -> Result<(), Error> {
        if self.division.is_none() {
            return Ok(());
        }
        let found = "parameters that are divided among replicas".to_owned();
        Err(Error::Refused { op, found, expected: "whole ones, which this needs" })
    }

    /// Whether what an optimizer keeps was made for these.
    pub(crate) fn check_state(&self, op: &'static str, state: &Persistent) -> Result<(), Error> {
        if state.len() == self.state_len() {
            return Ok(());
        }
        let expected = format!("{} elements; make the optimizer of these parameters, after they are divided", self.state_len());
        Err(Error::Shape { op, arg: "state", expected, found: vec![state.len()] })
    }

    /// The flat values `[len]`, padding included; [a replica's own](Division) `[state_len]`, where it keeps no more.
    pub fn values(&self) -> &Persistent {
        &self.values
    }

    /// The flat gradients `[len]`, padding included; [a replica's own](Division) `[state_len]`, where it keeps no more.
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

    /// Elements of the flat layout, padding included.
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
        device.write(&self.values, &self.values_of(&self.initial))?;
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
        let buckets = self.division.as_ref().map_or(Vec::new(), |division| division.bind(graph));
        let bind = |entry: &Entry| self.bind_entry(graph, &buckets, entry);
        let tensors = self.entries.iter().map(bind).collect::<Result<_, _>>()?;
        let buffers =
            self.buffers.iter().map(|buffer| graph.tensor(buffer.values(), buffer.shape())).collect::<Result<_, _>>()?;
        Ok(Bound { tensors, buffers, buckets })
    }

    fn bind_entry(&self, graph: &Graph, buckets: &[BoundBucket], entry: &Entry) -> Result<Tensor, Error> {
        let range = entry.range.clone();
        let whole = |persistent: &Persistent| graph.with_program(|program| program.persistent(persistent)).slice(range.clone());
        let all = self.division.iter().flat_map(|division| &division.buckets).zip(buckets);
        let bucket = all.into_iter().find(|(bucket, _)| bucket.elements.start <= range.start && range.end <= bucket.elements.end);
        let within = |slice: Slice| {
            let start = bucket.map_or(0, |(bucket, _)| bucket.elements.start);
            slice.slice(range.start - start..range.end - start)
        };
        let values = bucket.and_then(|(_, bound)| bound.values).map_or_else(|| whole(&self.values), within);
        let grads = || bucket.and_then(|(_, bound)| bound.grads).map_or_else(|| whole(&self.grads), within);
        graph.parameter_in(values, (graph.mode() == Mode::Training).then(grads), &entry.shape)
    }
}

/// The parameters of a model as tensors of one graph.
#[derive(Debug, Clone)]
pub struct Bound {
    tensors: Vec<Tensor>,
    buffers: Vec<Tensor>,
    buckets: Vec<BoundBucket>,
}

impl Bound {
    /// The buckets of a [`Division`], in its order; none where there is none.
    pub fn buckets(&self) -> &[BoundBucket] {
        &self.buckets
    }

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
