use std::cell::OnceCell;
use std::panic::Location;
use std::rc::Rc;
use std::sync::Arc;

use brisk_tensor::program::Slice;
use brisk_tensor::{DType, Error, Graph, Mode, Persistent, Scope, Tensor};

use crate::buffer::BufferId;
use crate::categorical_column::CategoricalColumn;
use crate::entry::Entry;
use crate::origin::{Id, Origin};
use crate::parameters::{ParameterId, Parameters};
use crate::sharding::BoundBucket;

impl Parameters {
    /// The parameters and buffers as tensors of `graph`. Binding them again gives the same tensors, so that a layer may be called
    /// several times: its gradient is that of all calls.
    ///
    /// # Errors
    /// As [`check`](Self::check); [`Error::Refused`] for a second call if they are sharded across replicas, and for parameters
    /// that share their gradients with others of the graph, as an average does: [`bind_frozen`](Self::bind_frozen).
    #[track_caller]
    pub fn bind(&self, graph: &Graph) -> Bound {
        if let Err(error) = self.check() {
            graph.fail(error.clone());
            let failed = |shape: &[usize]| graph.failed(error.clone(), DType::F32, shape);
            let tensors = self.entries().iter().map(|entry| failed(&entry.shape)).collect();
            let buffers = self.buffers().iter().map(|buffer| failed(buffer.shape())).collect();
            return self.bound(graph, tensors, buffers, Vec::new());
        }
        let buckets = self.sharding().map_or(Vec::new(), |sharding| sharding.bind(graph));
        let is_bound = graph.gradients_of(self.values()).is_some();
        if is_bound && buckets.iter().any(|bucket| bucket.values.is_some() || bucket.grads.is_some()) {
            let found = "a second call in one graph for parameters that are sharded across replicas".to_owned();
            graph.fail(Error::Refused { op: "bind", found, expected: "one `Bound`, or clones of it, in a graph" });
        }
        let tensors: Vec<_> = self.entries().iter().map(|entry| self.bind_entry(graph, &buckets, entry)).collect();
        if !is_bound {
            graph.keep_parameters(self.values(), &tensors);
        }
        let buffers = self.buffers().iter().map(|buffer| graph.tensor(buffer.values(), buffer.shape())).collect();
        self.bound(graph, tensors, buffers, buckets)
    }

    /// The parameters and buffers as tensors of `graph`, without gradients: for parameters that are used but not trained, such as
    /// those of a teacher or of a pretrained backbone. Layers with such parameters are [frozen](Bound::is_frozen): batch
    /// normalisation uses its running statistics and does not update them, unless [`Bound::updating_buffers`] follows.
    ///
    /// # Errors
    /// As [`bind`](Self::bind); [`Error::Refused`] for parameters that are sharded across replicas.
    #[track_caller]
    pub fn bind_frozen(&self, graph: &Graph) -> Bound {
        if let Err(error) = self.check().and_then(|()| self.check_whole("bind_frozen")) {
            graph.fail(error);
        }
        let tensor = |entry: &Entry| graph.part(self.values(), entry.range.clone(), &entry.shape);
        let tensors = self.entries().iter().map(tensor).collect();
        let buffers = self.buffers().iter().map(|buffer| graph.tensor(buffer.values(), buffer.shape())).collect();
        self.bound(graph, tensors, buffers, Vec::new()).freeze_where(|_| true)
    }

    fn bound(&self, graph: &Graph, tensors: Vec<Tensor>, buffers: Vec<Tensor>, buckets: Vec<BoundBucket>) -> Bound {
        let layer = |(entry, made_at): (&Entry, _)| Layer { path: entry.path().to_owned(), made_at };
        let layers = self.entries().iter().zip(self.made_at.iter().copied()).map(layer).collect();
        let trained = vec![true; tensors.len()];
        let (graph, origin, foreign, columns) = (graph.clone(), self.origin(), OnceCell::new(), self.columns().clone());
        Bound { graph, origin, layers, tensors, trained, buffers, buckets, foreign, columns, categories: None }
    }

    fn bind_entry(&self, graph: &Graph, buckets: &[BoundBucket], entry: &Entry) -> Tensor {
        let range = entry.range.clone();
        let whole = |persistent: &Persistent| graph.with_program(|program| program.persistent(persistent)).slice(range.clone());
        let all = self.sharding().into_iter().flat_map(|sharding| &sharding.buckets).zip(buckets);
        let bucket = all.into_iter().find(|(bucket, _)| bucket.elements.start <= range.start && range.end <= bucket.elements.end);
        let within = |slice: Slice| {
            let start = bucket.map_or(0, |(bucket, _)| bucket.elements.start);
            slice.slice(range.start - start..range.end - start)
        };
        let values = bucket.and_then(|(_, bound)| bound.values).map_or_else(|| whole(self.values()), within);
        let grads = || bucket.and_then(|(_, bound)| bound.grads).map_or_else(|| whole(self.grads()), within);
        graph.parameter_in(values, (graph.mode() == Mode::Training).then(grads), &entry.shape)
    }
}

/// The layer of a parameter, and the line that created it.
#[derive(Debug)]
struct Layer {
    path: String,
    made_at: &'static Location<'static>,
}

/// The parameters of a model as tensors of one graph, and the codes of the rows that it is recorded for.
#[derive(Debug, Clone)]
pub struct Bound {
    graph: Graph,
    origin: Origin,
    layers: Rc<[Layer]>,
    tensors: Vec<Tensor>,
    /// Whether each of them is trained.
    trained: Vec<bool>,
    buffers: Vec<Tensor>,
    buckets: Vec<BoundBucket>,
    /// A failed tensor, for ids of another model.
    foreign: OnceCell<Tensor>,
    columns: Arc<[CategoricalColumn]>,
    categories: Option<Tensor>,
}

impl Bound {
    /// Opens the [scope](Graph::enter_layer) of the layer that the parameter `id` belongs to: `encoder.0` for `encoder.0.weight`.
    /// Layers open it while they record.
    ///
    /// # Errors
    /// [`Error::Refused`] if `id` comes from other parameters.
    #[track_caller]
    pub fn enter(&self, id: ParameterId) -> Scope {
        let Some(Layer { path, made_at }) = self.own(id.0, &self.layers) else { return self.graph.enter("") };
        self.graph.enter_layer(path, made_at)
    }

    /// Whether none of these parameters of a layer is trained. Such a layer leaves its buffers as they are: batch normalisation
    /// uses its running statistics, as in evaluation.
    ///
    /// # Errors
    /// [`Error::Refused`] if an id comes from other parameters.
    /// # Reference
    /// `trainable = False` in Keras. PyTorch goes on to update running statistics: [`updating_buffers`](Self::updating_buffers).
    #[track_caller]
    pub fn is_frozen(&self, ids: &[ParameterId]) -> bool {
        for id in ids {
            if self.own(id.0, &self.trained) == Some(&true) {
                return false;
            }
        }
        true
    }

    /// Marks parameters as frozen, such as those that an optimizer [does not train](crate::Optimizer::trains). They still get
    /// gradients.
    pub fn freeze_where(mut self, is_frozen: impl Fn(ParameterId) -> bool) -> Self {
        let Self { trained, layers, origin, .. } = &mut self;
        for (index, (trained, layer)) in trained.iter_mut().zip(layers.iter()).enumerate() {
            *trained &= !is_frozen(ParameterId(origin.id(index, layer.made_at)));
        }
        self
    }

    /// Lets the layers of frozen parameters update their buffers as if they were trained, as PyTorch does.
    pub fn updating_buffers(mut self) -> Self {
        self.trained.fill(true);
        self
    }

    /// The parameters, with the codes of the rows that a module is recorded for: `[n_rows, n_categories]` u32, a column for each
    /// of the [`categorical_columns`](Self::categorical_columns).
    #[must_use]
    pub fn with_categories<'a>(&self, codes: impl Into<Option<&'a Tensor>>) -> Self {
        Self { categories: codes.into().cloned(), ..self.clone() }
    }

    /// The codes of the rows, which [`CategoryEmbeddings`](crate::CategoryEmbeddings) embed; `None` for rows without.
    pub fn categories(&self) -> Option<&Tensor> {
        self.categories.as_ref()
    }

    /// The columns of the codes that the model takes: [`Parameters::categorical_columns`].
    pub fn categorical_columns(&self) -> &[CategoricalColumn] {
        &self.columns
    }

    /// The buckets of a [`Sharding`](crate::Sharding), in its order; none if the parameters are not sharded.
    pub fn buckets(&self) -> &[BoundBucket] {
        &self.buckets
    }

    /// All parameters, in the order of [`Parameters::entries`].
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }

    /// The parameter `id`.
    ///
    /// # Errors
    /// [`Error::Refused`] if `id` comes from other parameters.
    #[track_caller]
    pub fn tensor(&self, id: ParameterId) -> &Tensor {
        let Some(tensor) = self.own(id.0, &self.tensors) else { return self.foreign() };
        tensor
    }

    /// The buffer `id`.
    ///
    /// # Errors
    /// [`Error::Refused`] if `id` comes from other parameters.
    #[track_caller]
    pub fn buffer(&self, id: BufferId) -> &Tensor {
        let Some(tensor) = self.own(id.0, &self.buffers) else { return self.foreign() };
        tensor
    }

    /// What this model has for `id`; for the id of another one, the graph gets an error.
    #[track_caller]
    fn own<'a, T>(&self, id: Id, of: &'a [T]) -> Option<&'a T> {
        if let Err(error) = self.origin.check_id("parameters", id) {
            self.graph.fail(error);
            return None;
        }
        of.get(id.index)
    }

    /// A failed tensor, of as many dimensions as any layer asks a parameter for.
    fn foreign(&self) -> &Tensor {
        let wrong = || Error::Refused { op: "parameters", found: "the id of another model".to_owned(), expected: "one of these" };
        self.foreign.get_or_init(|| self.graph.failed(wrong(), DType::F32, &[0; 8]))
    }
}
