use brisk_tensor::{Error, Graph, Persistent};

use crate::optimizer::{Optimizer, refused_average};
use crate::parameters::{ParameterId, Parameters};
use crate::step_inputs::StepInputs;

/// Several optimizers as one, each for its own parameters.
///
/// They step together or skip together: with a [`GradScaler`](crate::GradScaler), a gradient that is not finite in the parameters
/// of one makes all of them skip the step. In PyTorch, each of several optimizers skips on its own.
///
/// # Examples
/// [`Muon`](crate::Muon) for the hidden matrices, AdamW for the rest:
/// ```
/// use brisk_nn::{Activation, Adam, Mlp, MlpConfig, Muon, ParameterGroup, ParametersBuilder, CombinedOptimizer, WeightDecay};
///
/// let mut builder = ParametersBuilder::new();
/// let sizes = MlpConfig { n_inputs: 8, hidden: vec![32, 32], n_outputs: 1, activation: Activation::relu() };
/// Mlp::new(&mut builder, &sizes);
/// let params = builder.build(0);
/// let hidden = params.ids_where(|entry| entry.shape == [32, 32]);
/// let rest = ParameterGroup::new(params.ids_where(|entry| entry.shape != [32, 32])).lr_factor(0.1);
/// let adamw = Adam::new(&params).weight_decay(WeightDecay::Decoupled(0.01)).groups(&params, &[rest])?;
/// let optimizer = CombinedOptimizer::new().and(Muon::new(&params, &hidden)?).and(adamw);
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug, Default)]
pub struct CombinedOptimizer {
    parts: Vec<Part>,
}

#[derive(Debug)]
struct Part {
    optimizer: Box<dyn Optimizer>,
    lr: Option<Persistent>,
}

impl CombinedOptimizer {
    /// A combination without optimizers. A step of it can be recorded once it has some, each of parameters of its own.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds an optimizer that uses the run's learning rates.
    pub fn and(mut self, optimizer: impl Optimizer + 'static) -> Self {
        self.parts.push(Part { optimizer: Box::new(optimizer), lr: None });
        self
    }

    /// Adds an optimizer with its own learning rates, f32, which are read like those of the run: one for each batch of the epoch,
    /// the last one for all further batches. The caller sets them together with those of the run.
    pub fn and_at(mut self, lr: &Persistent, optimizer: impl Optimizer + 'static) -> Self {
        self.parts.push(Part { optimizer: Box::new(optimizer), lr: Some(lr.clone()) });
        self
    }
}

impl CombinedOptimizer {
    /// Checks that there is an optimizer, and that no parameter is stepped twice.
    fn check(&self, params: &Parameters) -> Result<(), Error> {
        let refused = |found: String, expected| Err(Error::Refused { op: "combined", found, expected });
        if self.parts.is_empty() {
            return refused("no optimizer".to_owned(), "at least one (`CombinedOptimizer::and`)");
        }
        let n_of = |id: ParameterId| self.parts.iter().filter(|part| part.optimizer.trains(id)).count();
        match params.ids().find(|&id| n_of(id) > 1) {
            None => Ok(()),
            Some(id) => {
                let found = format!("{} optimizers of `{}`", n_of(id), params.entry(id).name);
                refused(
                    found,
                    "one for each parameter; leave it out of the groups of the others (`ParameterGroup`), or of what they say that they train (`Optimizer::trains`)",
                )
            }
        }
    }
}

impl Optimizer for CombinedOptimizer {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        let _caller = graph.enter_from_caller();
        if let Err(error) = self.check(params) {
            return graph.fail(error);
        }
        for Part { optimizer, lr } in &self.parts {
            let lr = lr.as_ref().unwrap_or(&inputs.lr).clone();
            optimizer.record(graph, params, &StepInputs { lr, state: inputs.state.clone() });
        }
    }

    fn skips(&self) -> bool {
        self.parts.iter().all(|part| part.optimizer.skips())
    }

    fn can_shard(&self) -> bool {
        self.parts.iter().all(|part| part.optimizer.can_shard())
    }

    /// Fails if one of them has an average, which would be that of its own parameters only.
    #[track_caller]
    fn record_averaged(&self, graph: &Graph, params: &Parameters) -> Option<Parameters> {
        let average = self.parts.iter().find_map(|part| part.optimizer.record_averaged(graph, params));
        refused_average(graph, "combined", average)
    }

    fn trains(&self, id: ParameterId) -> bool {
        self.parts.iter().any(|part| part.optimizer.trains(id))
    }

    fn described(&self, id: ParameterId) -> String {
        let parts = self.parts.iter().enumerate().map(|(i, part)| (i, part.optimizer.described(id)));
        let parts = parts.filter(|(_, described)| !described.is_empty()).map(|(i, described)| format!("{i}: {described}"));
        parts.collect::<Vec<_>>().join("; ")
    }

    /// The state of each, prefixed with its number: `0.muon.momentum`.
    fn state(&self) -> Vec<(String, &Persistent)> {
        let states = self.parts.iter().enumerate().flat_map(|(i, part)| {
            let numbered = move |(name, buffer)| (format!("{i}.{name}"), buffer);
            part.optimizer.state().into_iter().map(numbered)
        });
        states.collect()
    }
}
