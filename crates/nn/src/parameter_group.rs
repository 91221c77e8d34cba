use brisk_kernels::{GROUP_LEN, Interval, Outside};
use brisk_tensor::program::Error as ProgramError;
use brisk_tensor::{Error, Graph, Tensor};

use crate::parameters::{ParameterId, Parameters};
use crate::sharding::Piece;

/// Parameters that an optimizer updates with a separate learning rate and weight decay.
///
/// # Reference
/// An entry of the `param_groups` of PyTorch's optimizers, with the rate as a multiple of the schedule's.
/// # Examples
/// Biases eight times as fast and without decay, the rest with decay, still in one kernel:
/// ```
/// use brisk_nn::{Activation, Mlp, MlpConfig, ParameterGroup, ParametersBuilder, Sgd};
///
/// let mut builder = ParametersBuilder::new();
/// let sizes = MlpConfig { n_inputs: 8, hidden: vec![32], n_outputs: 1, activation: Activation::relu() };
/// Mlp::new(&mut builder, &sizes);
/// let params = builder.build(0);
/// let biases = ParameterGroup::new(params.ids_where(|entry| entry.shape.len() == 1)).lr_factor(8.0).weight_decay(0.0);
/// let rest = ParameterGroup::new(params.ids_where(|entry| entry.shape.len() > 1));
/// let optimizer = Sgd::new(&params).weight_decay(5e-4).groups(&params, &[biases, rest])?;
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ParameterGroup {
    ids: Vec<ParameterId>,
    lr_factor: f32,
    weight_decay: Option<f32>,
    /// Whether layers update their buffers although the rate is 0.
    updates_buffers: bool,
}

impl ParameterGroup {
    /// The name of the constant with the rates and decays of the groups, of which a shard of the parameters has a part.
    pub const TABLE: &'static str = "parameter groups";

    /// A group of these parameters with the optimizer's rate and decay.
    pub fn new(ids: impl Into<Vec<ParameterId>>) -> Self {
        Self { ids: ids.into(), lr_factor: 1.0, weight_decay: None, updates_buffers: false }
    }

    /// Sets the factor of their learning rate; 0 freezes them and the running statistics of their layers.
    pub fn lr_factor(mut self, lr_factor: f32) -> Self {
        self.lr_factor = lr_factor;
        self
    }

    /// Lets layers of frozen parameters update their running statistics, as in PyTorch.
    pub fn updating_buffers(mut self) -> Self {
        self.updates_buffers = true;
        self
    }

    /// Sets their weight decay; by default it is the optimizer's.
    pub fn weight_decay(mut self, weight_decay: f32) -> Self {
        self.weight_decay = Some(weight_decay);
        self
    }
}

/// Groups that have been checked against the parameters: each parameter is in at most one of them.
#[derive(Debug, Clone)]
pub(crate) struct Groups(Vec<ParameterGroup>);

impl Groups {
    pub(crate) fn new(params: &Parameters, groups: &[ParameterGroup]) -> Result<Self, Error> {
        let refused = |found: String, expected| {
            let error = brisk_kernels::Error::Unsupported { kernel: "parameter groups", found, expected };
            Err(Error::Program(ProgramError::from(error)))
        };
        for &ParameterGroup { lr_factor, weight_decay, .. } in groups {
            for (name, value) in [("lr_factor", lr_factor), ("weight_decay", weight_decay.unwrap_or(0.0))] {
                if let Err(Outside { found, expected, .. }) = Interval::NonNegative.check(name, value) {
                    return refused(format!("{name} = {found}"), expected);
                }
            }
        }
        if let Some(empty) = groups.iter().position(|group| group.ids.is_empty()) {
            let expected = "some in each; check the names by which `Parameters::ids_where` chooses them, or leave the group out";
            return refused(format!("group {} of {} without parameters", empty + 1, groups.len()), expected);
        }
        groups.iter().flat_map(|group| &group.ids).try_for_each(|id| params.origin().check_id("parameter groups", id.0))?;
        let mut ids: Vec<_> = groups.iter().flat_map(|group| &group.ids).collect();
        ids.sort_unstable();
        if let Some(twice) = ids.windows(2).find(|pair| pair[0] == pair[1]) {
            return refused(format!("`{}` twice", params.entry(*twice[0]).name), "each parameter in one group");
        }
        Ok(Self(groups.to_vec()))
    }

    /// One group of all parameters.
    pub(crate) fn all(params: &Parameters) -> Self {
        Self(vec![ParameterGroup::new(params.ids().collect::<Vec<_>>())])
    }

    /// Whether the parameter is in a group that is not frozen.
    pub(crate) fn trains(&self, id: ParameterId) -> bool {
        let is_trained = |group: &ParameterGroup| group.lr_factor > 0.0 || group.updates_buffers;
        self.0.iter().any(|group| is_trained(group) && group.ids.contains(&id))
    }

    /// The group of the parameter, as text.
    pub(crate) fn described(&self, id: ParameterId) -> String {
        let Some(group) = self.0.iter().find(|group| group.ids.contains(&id)) else { return "no group".to_owned() };
        let ParameterGroup { lr_factor, weight_decay, updates_buffers, .. } = group;
        format!("lr_factor: {lr_factor}, weight_decay: {weight_decay:?}, updates_buffers: {updates_buffers}")
    }

    /// Factor and decay of each span of the parameters of a piece, as the kernels take them; the factor is negative for
    /// parameters that do not change: those in no group, and those for which `has_gradient` is false.
    pub(crate) fn table(
        &self,
        graph: &Graph,
        params: &Parameters,
        piece: &Piece,
        weight_decay: f32,
        has_gradient: &[bool],
    ) -> Tensor {
        let mut table = vec![[-1.0, 0.0]; params.len().div_ceil(GROUP_LEN)];
        for group in &self.0 {
            let own = [group.lr_factor, group.weight_decay.unwrap_or(weight_decay)];
            for &id in group.ids.iter().filter(|id| has_gradient[id.0.index]) {
                let range = &params.entry(id).range;
                table[range.start / GROUP_LEN..range.end.div_ceil(GROUP_LEN)].fill(own);
            }
        }
        let runs = piece.elements.iter().flat_map(|range| &table[range.start / GROUP_LEN..range.end.div_ceil(GROUP_LEN)]);
        let of_piece: Vec<[f32; 2]> = runs.copied().collect();
        graph.constant(ParameterGroup::TABLE, of_piece.as_flattened(), &[of_piece.len(), 2])
    }
}
