use std::panic::Location;

use brisk_kernels::{DType, Kernel as _, Rule, StepValue, Update};
use brisk_tensor::program::Slice;
use brisk_tensor::{Error, Graph, Persistent};

use crate::origin::Origin;
use crate::parameter_group::Groups;
use crate::parameter_group::ParameterGroup;
use crate::parameters::{ParameterId, Parameters};
use crate::sharding::Piece;
use crate::step_inputs::StepInputs;

/// What optimizers have in common whose step is a [`Rule`] of each element: their state, their [groups](ParameterGroup), and how
/// a step is recorded.
///
/// A rule reads the gradient as its only input, and replaces the parameter and the state. It needs neither a shader nor a loop,
/// and its parameters may be divided into groups, sharded, and trained with loss scaling and accumulated gradients.
///
/// # Examples
/// Sign descent with momentum (Lion without its interpolation):
/// ```
/// use brisk_nn::tensor::Graph;
/// use brisk_nn::{Elementwise, Number, Optimizer, Parameters, Rule, StepInputs, StepValue};
///
/// #[derive(Debug, Clone)]
/// struct SignDescent {
///     elementwise: Elementwise,
///     momentum: f32,
/// }
///
/// #[derive(Debug, Clone)]
/// struct Step {
///     momentum: f32,
/// }
///
/// impl Rule<2, 1, 2> for Step {
///     fn values(&self) -> [StepValue; 2] {
///         [StepValue::Rate, StepValue::Decay(0.0)]
///     }
///
///     #[inline(always)]
///     fn update<N: Number>(&self, [rate, decay]: [N; 2], [grad]: [N; 1], [param, mean]: [N; 2]) -> [N; 2] {
///         let mean = mean * self.momentum + grad * (1.0 - self.momentum);
///         let sign = mean.is_positive() - (-mean).is_positive();
///         [param - rate * (sign + decay * param), mean]
///     }
/// }
///
/// impl SignDescent {
///     fn new(params: &Parameters) -> Self {
///         Self { elementwise: Elementwise::new(params, "sign_descent", &["mean"]), momentum: 0.9 }
///     }
/// }
///
/// impl Optimizer for SignDescent {
///     fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
///         self.elementwise.record(graph, params, inputs, &Step { momentum: self.momentum });
///     }
///
///     fn elementwise(&self) -> Option<&Elementwise> {
///         Some(&self.elementwise)
///     }
/// }
/// ```
#[derive(Debug, Clone)]
pub struct Elementwise {
    name: &'static str,
    origin: Origin,
    state: Vec<(String, Persistent)>,
    groups: Option<Groups>,
    /// The line that made the optimizer, for errors: a call through `dyn` does not report its line.
    made_at: &'static Location<'static>,
}

/// The method `groups` of an optimizer with a field `elementwise`.
macro_rules! groups_setter {
    () => {
        /// Updates only the parameters of these groups, each group with its own rate and decay. Without groups, all parameters
        /// are updated.
        ///
        /// # Errors
        /// [`Error::Program`](brisk_tensor::Error::Program) if a parameter is in two of them, a group has none, or a factor is
        /// negative or not finite.
        pub fn groups(
            mut self,
            params: &$crate::Parameters,
            groups: &[$crate::ParameterGroup],
        ) -> Result<Self, brisk_tensor::Error> {
            self.elementwise = self.elementwise.groups(params, groups)?;
            Ok(self)
        }
    };
}
pub(crate) use groups_setter;

/// Methods of an optimizer with a field `config`, each of which sets a field of that.
macro_rules! setters {
    ($($(#[$doc:meta])* $field:ident: $type:ty),*) => {$(
        $(#[$doc])*
        pub fn $field(mut self, $field: $type) -> Self {
            self.config.$field = $field;
            self
        }
    )*};
}
pub(crate) use setters;

/// The methods `betas` and `eps` of an optimizer with a field `config` that has both.
macro_rules! betas_and_eps_setters {
    () => {
        /// Sets β₁ and β₂.
        pub fn betas(mut self, beta1: f32, beta2: f32) -> Self {
            self.config.betas = [beta1, beta2];
            self
        }

        $crate::elementwise::setters! {
            /// Sets ε.
            eps: f32
        }
    };
}
pub(crate) use betas_and_eps_setters;

/// What a rule reads and replaces.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Elements<'a> {
    Values,
    Grads,
    State(&'a Persistent),
}

impl Elementwise {
    /// An optimizer called `name` in errors, profiles and checkpoints, with these numbers for each element, which are 0 at the
    /// start.
    #[track_caller]
    pub fn new(params: &Parameters, name: &'static str, state: &[&str]) -> Self {
        let buffer = |own: &&str| {
            let name = format!("{name}.{own}");
            (name.clone(), Persistent::new(name, DType::F32, params.state_len()))
        };
        let state = state.iter().map(buffer).collect();
        Self { name, origin: params.origin(), state, groups: None, made_at: Location::caller() }
    }

    /// Updates only the parameters of these groups, each group with its own rate and decay, still in one kernel. Without groups,
    /// all parameters are updated.
    ///
    /// # Errors
    /// [`Error::Program`] if a parameter is in two of them, a group has none, or a factor is negative or not finite.
    pub fn groups(mut self, params: &Parameters, groups: &[ParameterGroup]) -> Result<Self, Error> {
        self.groups = Some(Groups::new(params, groups)?);
        Ok(self)
    }

    /// Records the rule for all parameters that have a gradient in the graph: `y0` of the kernel is the parameter, `y1`, … the
    /// state. For errors, its place is the line that made the optimizer.
    ///
    /// # Errors
    /// [`Error::Program`] for settings that the rule refuses; [`Error::Shape`] and [`Error::Refused`] if the optimizer was made
    /// for other parameters, or is recorded before the backward pass.
    #[track_caller]
    pub fn record<R: Rule<V, 1, O>, const V: usize, const O: usize>(
        &self,
        graph: &Graph,
        params: &Parameters,
        inputs: &StepInputs,
        rule: &R,
    ) {
        let state = self.state.iter().map(|(_, state)| Elements::State(state));
        let replaced: Vec<_> = std::iter::once(Elements::Values).chain(state).collect();
        self.record_for(graph, params, inputs, &params.pieces(), rule, [Elements::Grads], &replaced, &[]);
    }

    /// The same for some pieces, with other inputs and other values to replace, and the arguments of [`StepValue::Number`].
    #[expect(clippy::too_many_arguments, reason = "they are the kernel's, and what it is recorded in")]
    #[track_caller]
    pub(crate) fn record_for<R: Rule<V, I, O>, const V: usize, const I: usize, const O: usize>(
        &self,
        graph: &Graph,
        params: &Parameters,
        inputs: &StepInputs,
        pieces: &[Piece],
        rule: &R,
        read: [Elements<'_>; I],
        replaced: &[Elements<'_>],
        numbers: &[Slice],
    ) {
        let _caller = graph.enter_from(self.made_at);
        let has_gradient = match self.check(params).and_then(|()| params.with_gradient(self.name, graph)) {
            Ok(has_gradient) => has_gradient,
            Err(error) => return graph.fail(error),
        };
        if inputs.lr.len() > 1 {
            graph.varies_by(self.name, &inputs.state);
        }
        let all = has_gradient.contains(&false).then(|| Groups::all(params));
        let groups = self.groups.as_ref().or(all.as_ref());
        for piece in pieces {
            let kernel = Update::new(self.name, rule.clone(), piece.state.len()).table_len(inputs.lr.len());
            let decay =
                rule.values().into_iter().find_map(|value| if let StepValue::Decay(decay) = value { Some(decay) } else { None });
            let table = groups.map(|groups| groups.table(graph, params, piece, decay.unwrap_or(0.0), &has_gradient));
            let kernel = if table.is_some() { kernel.grouped() } else { kernel };
            let of_piece = |elements| match elements {
                Elements::Values => graph.buffer(params.values()).slice(piece.values.clone()),
                Elements::Grads => graph.buffer(params.grads()).slice(piece.grads.clone()),
                Elements::State(state) => params.state_in(graph, state).slice(piece.state.clone()),
            };
            let mut elements = read.into_iter().chain(replaced.iter().copied()).map(of_piece);
            let mut numbers = numbers.iter().copied();
            let args: Vec<Slice> = kernel
                .args()
                .iter()
                .filter_map(|arg| match arg.name {
                    "table" => Some(graph.buffer(&inputs.lr)),
                    "state" => Some(graph.buffer(&inputs.state)),
                    "groups" => table.as_ref().map(|table| table.slice()),
                    number if number.starts_with('n') => numbers.next(),
                    _ => elements.next(),
                })
                .collect();
            graph.push(kernel, &args);
        }
    }

    /// Checks that the state was made for these parameters.
    pub(crate) fn check(&self, params: &Parameters) -> Result<(), Error> {
        self.state.iter().try_for_each(|(_, state)| params.check_state(self.name, self.origin, state))
    }

    /// Whether a step may change this parameter, as [`Optimizer::trains`](crate::Optimizer::trains).
    pub fn trains(&self, id: ParameterId) -> bool {
        self.groups.as_ref().is_none_or(|groups| groups.trains(id))
    }

    /// The group of this parameter, as [`Optimizer::described`](crate::Optimizer::described).
    pub fn described(&self, id: ParameterId) -> String {
        self.groups.as_ref().map_or_else(String::new, |groups| groups.described(id))
    }

    /// The state by name, as [`Optimizer::state`](crate::Optimizer::state).
    pub fn state(&self) -> Vec<(String, &Persistent)> {
        self.state.iter().map(|(name, state)| (name.clone(), state)).collect()
    }
}
