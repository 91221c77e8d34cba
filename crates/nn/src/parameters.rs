mod shards;

use std::collections::HashMap;
use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use brisk_kernels::DType;
use brisk_tensor::program::Device;
use brisk_tensor::{AllGather, Error, Graph, Persistent};

use crate::buffer::{Buffer, BufferId};
use crate::categorical_column::CategoricalColumn;
use crate::entry::{Entry, MAX_LEN, len_of};
use crate::feature_scale::{FeatureScale, TrainedOn};
use crate::init::Init;
use crate::initial::Initial;
use crate::newest::Newest;
use crate::origin::{Id, Model, Origin};
use crate::sharding::{Placement, Sharding};

/// All parameters of a model in one flat buffer, and their gradients in another of the same layout.
///
/// An optimizer, a norm, a check for infinities, an average or an all-reduce is therefore one kernel for any number of tensors.
/// Each tensor starts at a multiple of 64 elements; the elements between tensors stay 0.
///
/// Their newest values are those on the device where a program or the host has last written to them, or the initial ones:
/// [`newest`](Self::newest) returns them, and a saved model, a prediction and an evaluation use them.
///
/// Making parameters takes no memory for their values: a device allocates them when they are first written, and initial values
/// are drawn a piece at a time. So a model of any size can be created, and [measured](Self::len) before it is used.
#[derive(Debug, Clone)]
pub struct Parameters {
    entries: Vec<Entry>,
    values: Persistent,
    grads: Persistent,
    len: usize,
    initial: Initial,
    newest: Newest,
    trained_on: TrainedOn,
    buffers: Vec<Buffer>,
    /// The lines that added the parameters, and the buffers.
    pub(crate) made_at: Vec<&'static Location<'static>>,
    buffers_made_at: Vec<&'static Location<'static>>,
    columns: Arc<[CategoricalColumn]>,
    sharding: Option<Sharding>,
    /// How replicas of sharded parameters exchange values.
    replicas: Option<Arc<dyn AllGather>>,
    /// The length of the optimizers' state, if that is sharded and these parameters are not.
    sharded_state_len: Option<usize>,
    origin: Origin,
    first_error: Option<Error>,
}

/// The id of a parameter of a [`Parameters`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ParameterId(pub(crate) Id);

/// Collects the parameters of a model while its layers are made.
#[derive(Debug, Default)]
pub struct ParametersBuilder {
    entries: Vec<Entry>,
    inits: Vec<Init>,
    len: usize,
    buffers: Vec<Buffer>,
    places: HashMap<String, &'static Location<'static>>,
    made_at: Vec<&'static Location<'static>>,
    buffers_made_at: Vec<&'static Location<'static>>,
    columns: Vec<CategoricalColumn>,
    model: Model,
    prefix: String,
    first_error: Option<Error>,
}

/// Tensors start at multiples of this many elements: 256 bytes of f32, the binding alignment that every adapter supports.
const ALIGN: usize = 64;

/// The number of initial values that are drawn and written at a time.
const CHUNK_LEN: usize = 1 << 20;

impl ParametersBuilder {
    /// A builder without parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// Calls `make`, and prefixes all names that it adds with `path`: `layers.0.weight` within `encoder` becomes
    /// `encoder.layers.0.weight`. So a model can have the same module several times.
    ///
    /// # Examples
    /// ```
    /// use brisk_nn::{Activation, Linear, ParametersBuilder};
    ///
    /// let mut builder = ParametersBuilder::new();
    /// let [encoder, decoder] = [("encoder", 8, 2), ("decoder", 2, 8)].map(|(path, n_in, n_out)| {
    ///     builder.within(path, |p| Linear::new(p, "0", n_in, n_out, Activation::relu()))
    /// });
    /// assert_eq!(builder.build(0).entries()[2].name, "decoder.0.weight");
    /// ```
    pub fn within<T>(&mut self, path: &str, make: impl FnOnce(&mut Self) -> T) -> T {
        let outer = self.prefix.clone();
        self.prefix = format!("{outer}{path}.");
        let made = make(self);
        self.prefix = outer;
        made
    }

    /// Adds a parameter after the last.
    ///
    /// A name that another tensor has, or too many elements, are reported when the model is first used: [`Parameters::check`].
    #[track_caller]
    pub fn add(&mut self, name: impl Into<String>, shape: &[usize], init: Init) -> ParameterId {
        let name = self.named(name.into());
        let start = self.len.next_multiple_of(ALIGN);
        let end = len_of(shape).map(|len| start + len).filter(|&end| end <= MAX_LEN);
        if end.is_none() {
            self.note_too_large(&name, shape);
        }
        let range = start..end.unwrap_or(start);
        self.len = range.end;
        self.entries.push(Entry { name, shape: shape.to_vec(), range });
        self.inits.push(init);
        self.made_at.push(Location::caller());
        ParameterId(Id { model: self.model, index: self.entries.len() - 1, made_at: Location::caller() })
    }

    /// Adds a buffer, a tensor that is kept with the parameters but not trained. All of its elements start as `value`.
    #[track_caller]
    pub fn add_buffer(&mut self, name: impl Into<String>, shape: &[usize], value: f32) -> BufferId {
        let name = self.named(name.into());
        if len_of(shape).is_none() {
            self.note_too_large(&name, shape);
        }
        self.buffers.push(Buffer::new(name, shape, value));
        self.buffers_made_at.push(Location::caller());
        BufferId(Id { model: self.model, index: self.buffers.len() - 1, made_at: Location::caller() })
    }

    /// Notes that the model reads the codes of these columns from [`Bound::categories`](crate::Bound::categories). Layers that
    /// read them call it, as [`CategoryEmbeddings`](crate::CategoryEmbeddings) do. All layers of a model read the same columns,
    /// whose embeddings may have different dimensions; others are an error of the [parameters](Parameters::check).
    #[track_caller]
    pub fn reads_categories(&mut self, columns: &[CategoricalColumn]) {
        let n_codes = |columns: &[CategoricalColumn]| columns.iter().map(|column| column.n_codes).collect::<Vec<_>>();
        let (first, found) = (n_codes(&self.columns), n_codes(columns));
        if first.is_empty() {
            self.columns = columns.to_vec();
        } else if !found.is_empty() && found != first {
            let found = format!("a layer that reads categories with {found:?} codes, and one before with {first:?}");
            self.refuse("categories", found, "the same columns for all layers");
        }
    }

    /// Finishes the parameters. `seed` determines the initial values.
    #[track_caller]
    pub fn build(self, seed: u64) -> Parameters {
        let Self { entries, inits, len, buffers, made_at, buffers_made_at, columns, model, first_error, .. } = self;
        let len = len.next_multiple_of(ALIGN).max(ALIGN);
        let values = Persistent::required("parameters", DType::F32, len);
        let grads = Persistent::new("gradients", DType::F32, len);
        let (initial, origin) = (Initial::new(seed, inits), Origin::new(model));
        Parameters {
            entries,
            values,
            grads,
            len,
            initial,
            newest: Newest::default(),
            trained_on: TrainedOn::default(),
            buffers,
            made_at,
            buffers_made_at,
            columns: columns.into(),
            sharding: None,
            replicas: None,
            sharded_state_len: None,
            origin,
            first_error,
        }
    }

    /// Notes an error in the settings of a layer, which [`Parameters::check`] returns with the caller's line.
    #[track_caller]
    pub(crate) fn refuse(&mut self, op: &'static str, found: String, expected: &'static str) {
        let found = format!("{found} (at {})", Location::caller());
        self.first_error.get_or_insert(Error::Refused { op, found, expected });
    }

    fn note_too_large(&mut self, name: &str, shape: &[usize]) {
        let found = format!("`{name}` has shape {shape:?}, and with it the model has more than {MAX_LEN} elements");
        self.first_error.get_or_insert(Error::Refused { op: "parameters", found, expected: "a smaller model" });
    }

    /// The name with the prefix. Records an error if the name is already used.
    #[track_caller]
    fn named(&mut self, name: String) -> String {
        let (name, here) = (format!("{}{name}", self.prefix), Location::caller());
        if let Some(there) = self.places.insert(name.clone(), here) {
            let found = format!("two tensors are called `{name}`, added at {there} and at {here}");
            let expected = "a name for each; `ParametersBuilder::within` puts a prefix before the names of a module";
            self.first_error.get_or_insert(Error::Refused { op: "parameters", found, expected });
        }
        name
    }
}

impl Parameters {
    /// The values `[len]` that [`write_initial`](Self::write_initial) starts from, padding included.
    ///
    /// # Cost
    /// Draws all of them into memory; [`initial_of`](Self::initial_of) does so for one parameter.
    pub fn initial(&self) -> Vec<f32> {
        self.initial_range(&(0..self.len))
    }

    /// The initial values of the parameter `id`.
    ///
    /// # Panics
    /// If `id` comes from other parameters: a mistake in the model.
    pub fn initial_of(&self, id: ParameterId) -> Vec<f32> {
        self.initial_range(&self.entry(id).range)
    }

    fn initial_range(&self, range: &Range<usize>) -> Vec<f32> {
        let mut values = vec![0.0; range.len()];
        self.initial.fill(&self.entries, range, &mut values);
        values
    }

    /// A number that identifies these initial values, for replicas to compare: it follows from the seed and how values are drawn,
    /// and from values that were [set](Self::set_initial). It is the same only in programs built with the same version of Rust.
    pub fn initial_fingerprint(&self) -> u64 {
        self.initial.fingerprint(&self.entries)
    }

    /// Whether the model was built without mistakes. [`bind`](Self::bind) and [`write_initial`](Self::write_initial) call this.
    ///
    /// # Errors
    /// [`Error::Refused`] for two tensors with the same name, with the lines that added them, for too many elements, or for
    /// settings that a layer does not support.
    pub fn check(&self) -> Result<(), Error> {
        self.first_error.clone().map_or(Ok(()), Err)
    }

    /// The categorical columns whose codes the model [reads](ParametersBuilder::reads_categories); none for most models.
    pub fn categorical_columns(&self) -> &[CategoricalColumn] {
        &self.columns
    }

    pub(crate) fn columns(&self) -> &Arc<[CategoricalColumn]> {
        &self.columns
    }

    /// Identifies the model, for optimizers that check it.
    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// Which parameters a step in `graph` changes: those with a gradient there, or all of them if the gradients come from another
    /// graph. For optimizers and for what else reads gradients.
    ///
    /// # Errors
    /// [`Error::Refused`] if the graph has no gradients of these parameters yet, or not of these.
    pub(crate) fn with_gradient(&self, op: &'static str, graph: &Graph) -> Result<Vec<bool>, Error> {
        let refused = |found: &str, expected| Err(Error::Refused { op, found: found.to_owned(), expected });
        let built_at = self.origin.built_at;
        match graph.gradients_of(&self.values) {
            None if graph.has_backward() && graph.has_parameters() => {
                let found = format!("the parameters built at {built_at}, which are not bound in this graph");
                refused(&found, "the parameters that its loss depends on")
            }
            Some(_) if !graph.has_backward() => {
                refused("parameters without gradients", "a call after `Graph::backward`, which records the gradients")
            }
            Some(reached) if !reached.is_empty() && !reached.contains(&true) => {
                let found = format!("the parameters built at {built_at}, on none of which the loss of this graph depends");
                refused(&found, "the parameters that its loss depends on")
            }
            reached => Ok(reached.unwrap_or_else(|| vec![true; self.entries.len()])),
        }
    }

    /// The flat values `[len]`, padding included; `[state_len]` if this replica keeps only [its own](Sharding).
    pub fn values(&self) -> &Persistent {
        &self.values
    }

    /// The flat gradients `[len]`, padding included; `[state_len]` if this replica keeps only [its own](Sharding).
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
        &self.entries[self.index(id.0)]
    }

    /// The ids of all parameters, in order.
    pub(crate) fn ids(&self) -> impl Iterator<Item = ParameterId> {
        self.made_at.iter().enumerate().map(|(index, made_at)| ParameterId(self.origin.id(index, made_at)))
    }

    fn index(&self, id: Id) -> usize {
        self.origin.check_id("parameters", id).unwrap_or_else(|error| panic!("{error}"));
        id.index
    }

    /// The parameters for which `is_wanted` returns true, in order.
    pub fn ids_where(&self, is_wanted: impl Fn(&Entry) -> bool) -> Vec<ParameterId> {
        self.ids().filter(|&id| is_wanted(self.entry(id))).collect()
    }

    /// The id of the parameter with this name.
    pub fn id_of(&self, name: &str) -> Option<ParameterId> {
        self.ids().find(|&id| self.entry(id).name == name)
    }

    /// The id of the buffer with this name.
    pub fn buffer_id_of(&self, name: &str) -> Option<BufferId> {
        self.buffer_ids().find(|&id| self.buffer(id).name() == name)
    }

    /// The ids of the buffers, in order.
    pub fn buffer_ids(&self) -> impl Iterator<Item = BufferId> + use<> {
        let origin = self.origin;
        let ids = self.buffers_made_at.clone().into_iter().enumerate();
        ids.map(move |(index, made_at)| BufferId(origin.id(index, made_at)))
    }

    /// The buffer `id`.
    ///
    /// # Panics
    /// If `id` comes from other parameters: a mistake in the model.
    pub fn buffer(&self, id: BufferId) -> &Buffer {
        &self.buffers[self.index(id.0)]
    }

    /// Tensors of the model that are not trained, in order; a checkpoint keeps them by name, with the parameters.
    pub fn buffers(&self) -> &[Buffer] {
        &self.buffers
    }

    /// The number of trained elements, without padding.
    pub fn n_trained(&self) -> usize {
        self.entries.iter().map(|entry| entry.range.len()).sum()
    }

    /// Elements of the flat layout, padding included.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether there are no parameters.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// The same parameters with their values, and those of their buffers, in different memory of the same layout.
    pub(crate) fn with_values(&self, values: &Persistent, buffers: &[Persistent]) -> Self {
        let buffers = self.buffers.iter().zip(buffers).map(|(buffer, values)| buffer.with_values(values)).collect();
        Self { values: values.clone(), buffers, newest: Newest::default(), ..self.clone() }
    }

    /// Parameters with the same names and shapes, whose initial values are the [newest](Self::newest) of these, with separate
    /// memory for values, gradients and buffers: training one does not change the other.
    ///
    /// # Errors
    /// [`Error::Refused`] for parameters that are sharded across replicas; [`Error::Program`] if a device fails.
    pub fn detached(&self) -> Result<Self, Error> {
        self.check_whole("detached")?;
        let values = Persistent::required(self.values.name(), DType::F32, self.values.len());
        let grads = Persistent::new(self.grads.name(), DType::F32, self.grads.len());
        let mut copy = Self { trained_on: self.trained_on.detached(), ..self.clone() };
        copy.fetch()?;
        let buffers = copy.buffers.iter().map(Buffer::detached).collect();
        Ok(Self { values, grads, buffers, newest: Newest::default(), ..copy })
    }

    /// Whether both are parameters of one model, as clones are.
    pub fn is_of_same_model(&self, other: &Self) -> bool {
        self.origin.is(other.origin)
    }

    /// The standardisation of the features that the [newest](Self::newest) values were trained on, as what trained them has
    /// [noted](Self::set_trained_on); `None` if nothing has.
    pub fn trained_on(&self) -> Option<Arc<FeatureScale>> {
        self.trained_on.newest()
    }

    /// Notes how the features are standardised on which the [newest](Self::newest) values were trained, in all clones of these
    /// parameters. What predicts by them then returns an error for features in another scale, instead of wrong results.
    pub fn set_trained_on(&self, features: Option<Arc<FeatureScale>>) {
        match self.newest_device() {
            Some(_) => self.trained_on.set_newest(features),
            None => self.trained_on.set_initial(features),
        }
    }

    /// The device that has newer values than the initial ones.
    pub fn newest_device(&self) -> Option<Device> {
        self.newest.device(&self.values)
    }

    /// The newest values `[len]`, padding included: those on the device that has last written to them, or the initial ones.
    /// [`Buffer::newest`] returns those of buffers.
    ///
    /// # Errors
    /// [`Error::Refused`] if this replica keeps only [its own](Sharding); [`Error::Program`] if the device fails.
    pub fn newest(&self) -> Result<Vec<f32>, Error> {
        let Some(device) = self.newest_device() else { return Ok(self.initial()) };
        if self.values.len() != self.len {
            self.check_whole("newest")?;
        }
        Ok(device.read(&self.values)?)
    }

    /// Writes the newest values of parameters and buffers to `device`, unless it has them.
    ///
    /// # Errors
    /// As [`check`](Self::check); [`Error::Program`].
    pub fn write_newest(&self, device: &Device) -> Result<(), Error> {
        self.check()?;
        match self.newest_device() {
            Some(newest) if newest.is_same(device) => {}
            Some(newest) => device.write(&self.values, &newest.read::<f32>(&self.values)?)?,
            None if self.newest.is_initial_on(&self.values, device) => {}
            None => self.write_initial_values(device)?,
        }
        self.buffers.iter().try_for_each(|buffer| buffer.write_newest(device))
    }

    /// Makes the newest values of parameters and buffers the initial ones, from which training starts.
    ///
    /// # Errors
    /// As [`newest`](Self::newest).
    pub fn fetch(&mut self) -> Result<(), Error> {
        if self.newest_device().is_some() {
            let values = self.newest()?;
            for (index, entry) in self.entries.iter().enumerate() {
                self.initial.replace(index, &values[entry.range.clone()]);
            }
            self.newest.set_equal(&self.values);
        }
        self.trained_on.fetch();
        self.buffers.iter_mut().try_for_each(Buffer::fetch)
    }

    /// Makes the initial values of parameters and buffers the newest, whatever a device has.
    pub fn keep_initial(&self) {
        self.newest.set_initial(&self.values);
        self.trained_on.keep_initial();
        self.buffers.iter().for_each(Buffer::keep_initial);
    }

    /// Writes the initial values of parameters and buffers to `device`.
    ///
    /// # Errors
    /// As [`check`](Self::check); [`Error::Program`].
    pub fn write_initial(&self, device: &Device) -> Result<(), Error> {
        self.check()?;
        self.write_initial_values(device)?;
        self.trained_on.keep_initial();
        self.buffers.iter().try_for_each(|buffer| buffer.write_initial(device))
    }

    fn write_initial_values(&self, device: &Device) -> Result<(), Error> {
        let mut at = 0;
        match &self.sharding {
            Some(sharding @ Sharding { values: Placement::Sharded, .. }) => {
                for bucket in &sharding.buckets {
                    self.write_initial_range(device, &bucket.own, at)?;
                    at += bucket.own.len();
                }
            }
            _ => {
                self.write_initial_range(device, &(0..self.len), 0)?;
                at = self.len;
            }
        }
        // A replica's own elements may be fewer than its buffer holds.
        if at < self.values.len() {
            device.write_at(&self.values, at, &vec![0.0_f32; self.values.len() - at])?;
        }
        self.newest.set_equal(&self.values);
        Ok(())
    }

    /// Writes the initial values of some elements of the flat layout to `values`, starting at its element `at`, a piece at a
    /// time.
    fn write_initial_range(&self, device: &Device, range: &Range<usize>, at: usize) -> Result<(), Error> {
        for start in range.clone().step_by(CHUNK_LEN) {
            let chunk = start..range.end.min(start + CHUNK_LEN);
            device.write_at(&self.values, at + start - range.start, &self.initial_range(&chunk))?;
        }
        Ok(())
    }

    /// Replaces the initial value of a parameter, such as by one read from a file; also on the device that has the
    /// [newest](Self::newest) values, if one has.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer values than the parameter has; [`Error::Refused`] for the id of another model;
    /// as [`newest`](Self::newest).
    pub fn set_initial(&mut self, id: ParameterId, values: &[f32]) -> Result<(), Error> {
        self.origin.check_id("set_initial", id.0)?;
        let entry = &self.entries[id.0.index];
        if values.len() != entry.range.len() {
            let expected = format!("{} elements for `{}`", entry.range.len(), entry.name);
            return Err(Error::Shape { op: "set_initial", arg: "values", expected, found: vec![values.len()] });
        }
        match self.newest_device() {
            None => self.newest.set_initial(&self.values),
            Some(device) => {
                self.check_whole("set_initial")?;
                device.write_at(&self.values, self.entries[id.0.index].range.start, values)?;
            }
        }
        self.initial.replace(id.0.index, values);
        Ok(())
    }

    /// [`set_initial`](Self::set_initial) with values that are drawn by the model's seed, such as those of
    /// [`Init::kaiming_normal`](crate::Init::kaiming_normal).
    ///
    /// # Errors
    /// As [`set_initial`](Self::set_initial).
    pub fn draw_initial(&mut self, id: ParameterId, init: Init) -> Result<(), Error> {
        self.origin.check_id("draw_initial", id.0)?;
        let mut values = vec![0.0; self.entries[id.0.index].range.len()];
        init.fill(self.initial.seed(), id.0.index as u32, 0, &mut values);
        self.set_initial(id, &values)
    }

    /// Replaces the initial value of a buffer, such as by one read from a file; also on the device that has the
    /// [newest](Buffer::newest) values, if one has.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are more or fewer values than the buffer has; [`Error::Refused`] for the id of another model;
    /// [`Error::Program`] if the device fails.
    pub fn set_initial_buffer(&mut self, id: BufferId, values: &[f32]) -> Result<(), Error> {
        self.origin.check_id("set_initial_buffer", id.0)?;
        let buffer = &mut self.buffers[id.0.index];
        if values.len() != buffer.values().len() {
            let expected = format!("{} elements for `{}`", buffer.values().len(), buffer.name());
            return Err(Error::Shape { op: "set_initial_buffer", arg: "values", expected, found: vec![values.len()] });
        }
        buffer.set_initial(values)
    }
}
