use std::fmt::Debug;

use brisk_tensor::{Error, Graph, Persistent};

use crate::elementwise::Elementwise;
use crate::parameters::{ParameterId, Parameters};
use crate::step_inputs::StepInputs;

/// An optimizer: kernels recorded after the backward pass that turn gradients into a step of the parameters. Dyn-compatible.
///
/// A step changes the parameters on which the loss of its graph depends. As in PyTorch, where their gradient is `None`, it leaves
/// others as they are, and their state: without decay, and without the momentum of earlier steps. In a graph without a backward
/// pass, which steps by gradients that another one has computed, it changes all of them.
///
/// An optimizer that updates each element by a [`Rule`](crate::Rule) of a few lines is [`Elementwise`], which has an example.
pub trait Optimizer: Debug {
    /// Records one step. Like all recording, it returns no error; an implementation records with [`Graph::push`] and
    /// [`Graph::record`], and reports invalid arguments with [`Graph::fail`].
    ///
    /// # Errors
    /// [`Error::Program`](brisk_tensor::Error::Program) if the buffers have different lengths or dtypes;
    /// [`Error::Refused`](brisk_tensor::Error::Refused) before the backward pass of a graph in which the parameters are bound.
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs);

    /// What its step consists of, if it is [a rule of each element](Elementwise): the methods below then follow from it. `None`
    /// by default.
    fn elementwise(&self) -> Option<&Elementwise> {
        None
    }

    /// Whether a recorded step leaves parameters and state unchanged while `state.skip` is not 0, as those of
    /// [`Adam`](crate::Adam) and [`Sgd`](crate::Sgd) do; loss scaling needs that. By default only if it is
    /// [elementwise](Self::elementwise): the step of a batch whose row weights are all 0 is otherwise one with gradients of 0.
    fn skips(&self) -> bool {
        self.elementwise().is_some()
    }

    /// Whether it can be recorded for parameters that are [sharded](Parameters::sharded) across replicas: it updates the
    /// replica's own [pieces](Parameters::pieces), and binds its state by [`Parameters::state_in`]. By default only if it is
    /// [elementwise](Self::elementwise).
    fn can_shard(&self) -> bool {
        self.elementwise().is_some()
    }

    /// Records, in a graph that evaluates, the average that is to be evaluated instead of the parameters that steps update, as
    /// with [`ScheduleFreeAdamW`](crate::ScheduleFreeAdamW). Returns the parameters with the averaged values, and their own
    /// buffers, to be bound in this graph or in one that runs after it. `None`, as by default, if the parameters are evaluated as
    /// they are.
    #[track_caller]
    fn record_averaged(&self, _graph: &Graph, _params: &Parameters) -> Option<Parameters> {
        None
    }

    /// Whether layers of this parameter are trained: whether a step may change it. By default all of them; those outside the
    /// [groups](crate::ParameterGroup) of an optimizer, or in a group with a rate of 0, are [frozen](crate::Bound::freeze_where).
    fn trains(&self, id: ParameterId) -> bool {
        self.elementwise().is_none_or(|elementwise| elementwise.trains(id))
    }

    /// How this parameter is updated in another way than others, such as the rate and the decay of its
    /// [group](crate::ParameterGroup), as text, for runs that resume to compare; empty by default.
    fn described(&self, id: ParameterId) -> String {
        self.elementwise().map_or_else(String::new, |elementwise| elementwise.described(id))
    }

    /// The state that a checkpoint must contain, by name; each buffer has [`Parameters::state_len`] elements. By default that of
    /// its [elementwise](Self::elementwise) rule, or none.
    fn state(&self) -> Vec<(String, &Persistent)> {
        self.elementwise().map_or_else(Vec::new, Elementwise::state)
    }
}

impl<O: Optimizer + ?Sized> Optimizer for Box<O> {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        (**self).record(graph, params, inputs);
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        (**self).elementwise()
    }

    fn skips(&self) -> bool {
        (**self).skips()
    }

    fn can_shard(&self) -> bool {
        (**self).can_shard()
    }

    #[track_caller]
    fn record_averaged(&self, graph: &Graph, params: &Parameters) -> Option<Parameters> {
        (**self).record_averaged(graph, params)
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

/// The average of an optimizer within another one, `op`, which cannot evaluate it.
#[track_caller]
pub(crate) fn refused_average(graph: &Graph, op: &'static str, average: Option<Parameters>) -> Option<Parameters> {
    if average.is_some() {
        let found = "an optimizer whose average is to be evaluated".to_owned();
        graph.fail(Error::Refused { op, found, expected: "that optimizer by itself, or another one, such as AdamW" });
    }
    average
}
