use std::fmt::Debug;

use brisk_kernels::{AdamGroups, DType, Momentum, SgdGroups, WeightDecay};
use brisk_tensor::program::Slice;
use brisk_tensor::{Error, Graph, Persistent};

use crate::origin::Origin;
use crate::parameter_group::Groups;
use crate::{ParameterGroup, ParameterId, Parameters, Piece};

/// An optimizer: kernels recorded after the backward pass that turn gradients into a step of the parameters. Dyn-compatible.
pub trait Optimizer: Debug {
    /// Records one step. Like all recording, it returns no error; an implementation records with [`Graph::push`] and [`Graph::record`], and reports invalid
    /// arguments with [`Graph::fail`].
    ///
    /// # Errors
    /// [`Error::Program`] if the buffers have different lengths or dtypes.
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs);

    /// Whether a recorded step leaves parameters and state unchanged while `state.skip` is not 0, as those of
    /// [`Adam`](brisk_kernels::Adam) and [`Sgd`](brisk_kernels::Sgd) do; loss scaling needs that. No by default: the step of a batch whose row weights are all 0 is then
    /// one with gradients of 0.
    fn skips(&self) -> bool {
        false
    }

    /// Whether each element of parameters and state is updated independently, [piece](Parameters::pieces) by piece, so that parameters may be
    /// [sharded](Parameters::divided) across replicas. No by default.
    fn divides(&self) -> bool {
        false
    }

    /// Whether layers of this parameter are trained: whether a step may change it. By default all of them; those outside the [groups](ParameterGroup) of an optimizer, or in a group with a rate of 0, are
    /// [frozen](crate::Bound::freeze_where).
    fn trains(&self, _id: ParameterId) -> bool {
        true
    }

    /// How this parameter is updated in another way than others, such as the rate and the decay of its [group](ParameterGroup), as text, for runs that resume to compare; empty by
    /// default.
    fn described(&self, _id: ParameterId) -> String {
        String::new()
    }

    /// The state that a checkpoint must contain, by name; each buffer has [`Parameters::state_len`] elements.
    fn state(&self) -> Vec<(String, &Persistent)>;
}

impl<O: Optimizer + ?Sized> Optimizer for Box<O> {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        (**self).record(graph, params, inputs);
    }

    fn skips(&self) -> bool {
        (**self).skips()
    }

    fn divides(&self) -> bool {
        (**self).divides()
    }

    fn trains(&self, id: ParameterId) -> bool {
        (**self).trains(id)
    }

    fn described(&self, id: ParameterId) -> String {
        (**self).described(id)
    }

    fn state(&self) -> Vec<(String, &Persistent)> {
        (**self).state()
    }
}

/// The inputs of every optimizer besides the gradients.
#[derive(Debug, Clone)]
pub struct StepInputs {
    /// Learning rates, f32, one for each batch of the epoch; the last one is used for all further batches.
    pub lr: Persistent,
    /// The state of the run: the batch index, the number of steps, whether to skip this step, and the number of skipped steps
    /// ([`STATE_LEN`](brisk_kernels::STATE_LEN)).
    pub state: Persistent,
}

impl StepInputs {
    /// Learning rates of `n_batches` batches, and the [state](Graph::state) of the graph, from which its random numbers follow. A second optimizer in the same graph has a
    /// [state](Graph::state_buffer) of its own.
    pub fn new(graph: &Graph, n_batches: usize) -> Self {
        Self { lr: Persistent::new("lr", DType::F32, n_batches), state: graph.state() }
    }
}

/// Adam and AdamW with their two running means.
#[derive(Debug, Clone)]
pub struct Adam {
    origin: Origin,
    m: Persistent,
    v: Persistent,
    beta1: f32,
    beta2: f32,
    eps: f32,
    weight_decay: WeightDecay,
    groups: Option<Groups>,
}

impl Adam {
    /// Adam with PyTorch's defaults: β = (0.9, 0.999), ε = 1e-8, no weight decay.
    pub fn new(params: &Parameters) -> Self {
        let buffer = |name| Persistent::new(name, DType::F32, params.state_len());
        let (m, v) = (buffer("adam.m"), buffer("adam.v"));
        Self {
            origin: params.origin(),
            m,
            v,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-8,
            weight_decay: WeightDecay::Gradient(0.0),
            groups: None,
        }
    }

    /// Sets β₁ and β₂.
    pub fn betas(mut self, beta1: f32, beta2: f32) -> Self {
        (self.beta1, self.beta2) = (beta1, beta2);
        self
    }

    /// Sets ε.
    pub fn eps(mut self, eps: f32) -> Self {
        self.eps = eps;
        self
    }

    /// Sets the weight decay; [`WeightDecay::Decoupled`] makes it AdamW.
    pub fn weight_decay(mut self, weight_decay: WeightDecay) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    /// Updates only the parameters of these groups, each group with its own rate and decay, still in one kernel. Without groups, all parameters are updated.
    ///
    /// # Errors
    /// [`Error::Program`] if a parameter is in two of them, or a factor is negative or not finite.
    pub fn groups(mut self, params: &Parameters, groups: &[ParameterGroup]) -> Result<Self, Error> {
        self.groups = Some(Groups::new(params, groups)?);
        Ok(self)
    }
}

impl Optimizer for Adam {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        let Self { beta1, beta2, eps, weight_decay, .. } = *self;
        if let Err(error) = params.check_state("adam", self.origin, &self.m) {
            return graph.fail(error);
        }
        let decay = match weight_decay {
            WeightDecay::Gradient(decay) | WeightDecay::Decoupled(decay) => decay,
        };
        for piece in params.pieces() {
            let kernel = brisk_kernels::Adam { n: piece.state.len(), n_lr: inputs.lr.len(), beta1, beta2, eps, weight_decay };
            let table = self.groups.as_ref().map(|groups| groups.table(graph, params, &piece, decay));
            let args = piece.args(graph, params, inputs, &[&self.m, &self.v]);
            match table {
                None => graph.push(kernel, &args),
                Some(table) => graph.push(AdamGroups { adam: kernel }, &[&[table.slice()], &args[..]].concat()),
            }
        }
    }

    fn divides(&self) -> bool {
        true
    }

    fn skips(&self) -> bool {
        true
    }

    fn trains(&self, id: ParameterId) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.trains(id))
    }

    fn described(&self, id: ParameterId) -> String {
        self.groups.as_ref().map_or_else(String::new, |groups| groups.described(id))
    }

    fn state(&self) -> Vec<(String, &Persistent)> {
        vec![("adam.m".to_owned(), &self.m), ("adam.v".to_owned(), &self.v)]
    }
}

/// Stochastic gradient descent with momentum.
#[derive(Debug, Clone)]
pub struct Sgd {
    origin: Origin,
    buffer: Persistent,
    momentum: f32,
    weight_decay: f32,
    form: Momentum,
    groups: Option<Groups>,
}

impl Sgd {
    /// Plain gradient descent: no momentum, no weight decay.
    pub fn new(params: &Parameters) -> Self {
        let buffer = Persistent::new("sgd.momentum", DType::F32, params.state_len());
        Self { origin: params.origin(), buffer, momentum: 0.0, weight_decay: 0.0, form: Momentum::Heavy, groups: None }
    }

    /// Sets the momentum and its form.
    pub fn momentum(mut self, momentum: f32, form: Momentum) -> Self {
        (self.momentum, self.form) = (momentum, form);
        self
    }

    /// Sets the weight decay, added to the gradient.
    pub fn weight_decay(mut self, weight_decay: f32) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    /// Updates only the parameters of these groups, each group with its own rate and decay, still in one kernel. Without groups, all parameters are updated.
    ///
    /// # Errors
    /// [`Error::Program`] if a parameter is in two of them, or a factor is negative or not finite.
    pub fn groups(mut self, params: &Parameters, groups: &[ParameterGroup]) -> Result<Self, Error> {
        self.groups = Some(Groups::new(params, groups)?);
        Ok(self)
    }
}

impl Optimizer for Sgd {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        let Self { momentum, weight_decay, form, .. } = *self;
        if let Err(error) = params.check_state("sgd", self.origin, &self.buffer) {
            return graph.fail(error);
        }
        for piece in params.pieces() {
            let kernel = brisk_kernels::Sgd { n: piece.state.len(), n_lr: inputs.lr.len(), momentum, weight_decay, form };
            let table = self.groups.as_ref().map(|groups| groups.table(graph, params, &piece, weight_decay));
            let args = piece.args(graph, params, inputs, &[&self.buffer]);
            match table {
                None => graph.push(kernel, &args),
                Some(table) => graph.push(SgdGroups { sgd: kernel }, &[&[table.slice()], &args[..]].concat()),
            }
        }
    }

    fn divides(&self) -> bool {
        true
    }

    fn skips(&self) -> bool {
        true
    }

    fn trains(&self, id: ParameterId) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.trains(id))
    }

    fn described(&self, id: ParameterId) -> String {
        self.groups.as_ref().map_or_else(String::new, |groups| groups.described(id))
    }

    fn state(&self) -> Vec<(String, &Persistent)> {
        vec![("sgd.momentum".to_owned(), &self.buffer)]
    }
}

impl Piece {
    /// The arguments of the kernels: gradients, learning rates, the state of the run, values and the state of the optimizer.
    fn args(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs, state: &[&Persistent]) -> Vec<Slice> {
        let bind = |persistent| graph.buffer(persistent);
        let args = [bind(params.grads()).slice(self.grads.clone()), bind(&inputs.lr), bind(&inputs.state)];
        let values = bind(params.values()).slice(self.values.clone());
        let state: Vec<_> = state.iter().map(|state| bind(state).slice(self.state.clone())).collect();
        args.into_iter().chain([values]).chain(state).collect()
    }
}
