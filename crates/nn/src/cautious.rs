use brisk_kernels::expr::Expr;
use brisk_kernels::{DType, Interval, MapReduce, Number, Reducer, Rule, StepValue};
use brisk_tensor::Graph;

use crate::adam::{AdamConfig, moments};
use crate::elementwise::{Elements, Elementwise, betas_and_eps_setters, groups_setter};
use crate::optimizer::Optimizer;
use crate::parameters::Parameters;
use crate::sharding::Piece;
use crate::step_inputs::StepInputs;

/// AdamW that moves only those elements of a parameter whose momentum and gradient have the same sign, further by as much as
/// others stand still.
///
/// As [`Adam`](crate::Adam) with decoupled decay, but with the step `lr s φ m̂ / (√v̂ + ε)`: `φ` is 1 where `m g > 0`, else 0,
/// and `s` is one over the mean of `φ` in the parameter, at most 1000.
///
/// # Cost
/// One kernel for all parameters, and for each parameter one for the mean and one for the step.
/// # Reference
/// Liang et al. 2024, *Cautious Optimizers: Improving Training with One Line of Code*, arXiv:2411.16085, with the limit of the
/// authors' implementation.
#[derive(Debug, Clone)]
pub struct CautiousAdamW {
    elementwise: Elementwise,
    config: AdamConfig,
}

impl CautiousAdamW {
    /// β = (0.9, 0.999), ε = 1e-8, no weight decay.
    #[track_caller]
    pub fn new(params: &Parameters) -> Self {
        Self::from_config(params, AdamConfig::default())
    }

    /// Cautious AdamW with these settings, of which `amsgrad` has no effect; the decay is 0 by default.
    #[track_caller]
    pub(crate) fn from_config(params: &Parameters, config: AdamConfig) -> Self {
        let elementwise = Elementwise::new(params, "cautious_adamw", &["m", "v"]);
        Self { elementwise, config }.weight_decay(config.weight_decay.unwrap_or(0.0))
    }

    betas_and_eps_setters!();

    /// Sets the decoupled weight decay λ.
    pub fn weight_decay(mut self, weight_decay: f32) -> Self {
        self.config.weight_decay = Some(weight_decay);
        self
    }

    groups_setter!();
}

/// The moments.
#[derive(Debug, Clone, Copy)]
struct Moments(AdamConfig);

impl Rule<0, 1, 2> for Moments {
    fn values(&self) -> [StepValue; 0] {
        []
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        self.0.settings(Interval::BelowOne, self.0.weight_decay.unwrap_or(0.0))
    }

    #[inline(always)]
    fn update<N: Number>(&self, []: [N; 0], [grad]: [N; 1], replaced: [N; 2]) -> [N; 2] {
        moments(self.0.betas, grad, replaced)
    }
}

/// The step, given the mean of `φ`.
#[derive(Debug, Clone, Copy)]
struct Step(AdamConfig);

impl Rule<5, 3, 1> for Step {
    fn values(&self) -> [StepValue; 5] {
        let AdamConfig { betas: [beta1, beta2], weight_decay, .. } = self.0;
        let corrections = [StepValue::BiasCorrection(beta1), StepValue::RootBiasCorrection(beta2)];
        [StepValue::Rate, StepValue::Decay(weight_decay.unwrap_or(0.0)), corrections[0], corrections[1], StepValue::Number]
    }

    #[inline(always)]
    fn update<N: Number>(&self, values: [N; 5], [grad, m, v]: [N; 3], [param]: [N; 1]) -> [N; 1] {
        let [rate, decay, of_m, of_v, mean] = values;
        // At least 0.001.
        let mean = (mean - 1e-3).is_positive().select(mean, N::constant(1e-3));
        let step = rate * of_m / mean * m / (v.sqrt() * of_v + self.0.eps);
        [param - rate * decay * param - (m * grad).is_positive().select(step, N::constant(0.0))]
    }
}

impl Optimizer for CautiousAdamW {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        if let Err(error) = params.check_whole("cautious_adamw") {
            return graph.fail(error);
        }
        let state = self.elementwise.state();
        let [m, v] = [0, 1].map(|i| Elements::State(state[i].1));
        self.elementwise.record_for(
            graph,
            params,
            inputs,
            &params.pieces(),
            &Moments(self.config),
            [Elements::Grads],
            &[m, v],
            &[],
        );
        let Ok(has_gradient) = params.with_gradient("cautious_adamw", graph) else { return };
        let [grads, m_buffer] = [params.grads(), state[0].1].map(|buffer| graph.buffer(buffer));
        for (entry, _) in params.entries().iter().zip(has_gradient).filter(|(entry, has)| *has && !entry.range.is_empty()) {
            let range = entry.range.clone();
            let n = range.len();
            let mean = graph.with_program(|program| program.transient("mean", DType::F32, 1));
            let agree = (Expr::input(0) * Expr::input(1)).gt(0.0);
            graph.record(|program| {
                let kernel = MapReduce::new(Reducer::Mean, agree, &[&[n], &[n]], &[0])?;
                program.push(kernel, &[m_buffer.slice(range.clone()), grads.slice(range.clone()), mean])
            });
            let piece = Piece { values: range.clone(), grads: range.clone(), state: range.clone(), elements: vec![range] };
            let read = [Elements::Grads, m, v];
            self.elementwise.record_for(graph, params, inputs, &[piece], &Step(self.config), read, &[Elements::Values], &[mean]);
        }
    }

    fn elementwise(&self) -> Option<&Elementwise> {
        Some(&self.elementwise)
    }

    /// A parameter's step depends on all of its elements.
    fn can_shard(&self) -> bool {
        false
    }
}
