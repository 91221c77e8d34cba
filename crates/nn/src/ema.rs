use brisk_kernels::{DType, Interval, Number, Rule, StepCount, StepValue, Update};
use brisk_tensor::program::Device;
use brisk_tensor::{Error, Graph, Persistent};
use serde::{Deserialize, Serialize};

use crate::origin::Origin;
use crate::parameters::Parameters;

/// An exponential moving average of a model's parameters and buffers, kept on the device. It often evaluates better than the
/// parameters themselves.
///
/// Buffers, such as the running statistics of batch normalisation, are averaged with the same weights as the parameters.
///
/// # Reference
/// `torch.optim.swa_utils.AveragedModel` with `get_ema_multi_avg_fn` and `use_buffers=True`: the first update copies the
/// parameters, later ones set `average = decay average + (1 - decay) parameters`.
#[derive(Debug, Clone)]
pub struct Ema {
    origin: Origin,
    average: Persistent,
    buffers: Vec<Persistent>,
    config: EmaConfig,
}

/// When and how fast an [`Ema`] is updated.
///
/// # Examples
/// ```
/// use brisk_nn::EmaConfig;
///
/// // Each step.
/// let every_step = EmaConfig::new(0.999);
/// // Steps 1, 6, 11, …, from the initial parameters.
/// let page = EmaConfig::new(0.99_f32.powi(5)).every(5).first_step(1).from_initial();
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmaConfig {
    /// The fraction of the average that an update keeps, 0 to 1.
    pub decay: f32,
    /// Steps between two updates, at least 1.
    #[serde(default = "one")]
    pub every: u32,
    /// The step of the first update, counted from 1.
    #[serde(default = "one")]
    pub first_step: u32,
    /// What the average starts with.
    #[serde(default)]
    pub start: EmaStart,
}

fn one() -> u32 {
    1
}

/// What an [`Ema`] starts with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EmaStart {
    /// The parameters: they are copied on each step up to and including the first update, as in `torch.optim.swa_utils`.
    #[default]
    Parameters,
    /// The values written to the average before the run: in a trainer's, the initial parameters.
    #[serde(rename = "initial")]
    Given,
}

/// `average = decay average + (1 - decay) parameters`, or the parameters up to the first update.
#[derive(Debug, Clone, Copy)]
struct EmaUpdate(EmaConfig);

impl Rule<2, 1, 1> for EmaUpdate {
    fn values(&self) -> [StepValue; 2] {
        let EmaConfig { every, first_step, start, .. } = self.0;
        let last = if start == EmaStart::Parameters { first_step } else { 0 };
        let of = StepCount::Updates;
        [StepValue::UpTo { of, last }, StepValue::Due { of, first: first_step, every }]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        vec![("decay", self.0.decay, Interval::Unit), ("first_step", self.0.first_step as f32, Interval::Positive)]
    }

    #[inline(always)]
    fn takes_place<N: Number>(&self, is_skipped: N, [copies, is_due]: [N; 2]) -> N {
        (-is_skipped + 1.0) * (copies + is_due).is_positive()
    }

    #[inline(always)]
    fn update<N: Number>(&self, [copies, _]: [N; 2], [value]: [N; 1], [average]: [N; 1]) -> [N; 1] {
        let EmaConfig { decay, .. } = self.0;
        [copies.select(value, average * decay + value * (1.0 - decay))]
    }
}

impl EmaConfig {
    /// An average that is updated after each step.
    pub fn new(decay: f32) -> Self {
        Self { decay, every: 1, first_step: 1, start: EmaStart::Parameters }
    }

    /// Updates the average on the [first step](Self::first_step) and every `n_steps`th step after it. The decay applies per
    /// update.
    pub fn every(mut self, n_steps: u32) -> Self {
        self.every = n_steps;
        self
    }

    /// Sets the step of the first update, counted from 1; the default is 1. Until then the average is the parameters, unless it
    /// starts [from the initial ones](Self::from_initial).
    pub fn first_step(mut self, step: u32) -> Self {
        self.first_step = step;
        self
    }

    /// Starts from the initial parameters: the first update averages them with those of its step instead of copying them.
    pub fn from_initial(mut self) -> Self {
        self.start = EmaStart::Given;
        self
    }
}

impl From<f32> for EmaConfig {
    fn from(decay: f32) -> Self {
        Self::new(decay)
    }
}

impl Ema {
    /// An average with this decay, updated after each step, or according to an [`EmaConfig`].
    pub fn new(params: &Parameters, config: impl Into<EmaConfig>) -> Self {
        let config = config.into();
        let make = if config.start == EmaStart::Given { Persistent::required } else { Persistent::new };
        let like = |name: String, len| make(name, DType::F32, len);
        Self {
            origin: params.origin(),
            average: like("ema.average".to_owned(), params.len()),
            buffers: params.buffers().iter().map(|b| like(format!("ema.{}", b.name()), b.values().len())).collect(),
            config,
        }
    }

    /// Updates the average on every `n_steps`th step, first on step `n_steps`.
    pub fn every(mut self, n_steps: u32) -> Self {
        (self.config.every, self.config.first_step) = (n_steps, n_steps);
        self
    }

    /// Sets the average to the initial parameters and buffers: before a run whose average starts
    /// [from these](EmaConfig::from_initial), or is used before the first step.
    ///
    /// # Errors
    /// As [`Parameters::write_initial`]; [`Error::Refused`](brisk_tensor::Error::Refused) for parameters that are sharded across
    /// replicas.
    pub fn write_initial(&self, params: &Parameters, device: &Device) -> Result<(), Error> {
        params.check_whole("ema")?;
        self.averaged(params).write_initial(device)
    }

    /// Records an update, after the optimizer and before the step ends; `state` is the state of the run.
    ///
    /// # Errors
    /// [`Error::Program`](brisk_tensor::Error::Program) if the decay is not within 0 to 1, or the interval or the first step is
    /// 0; [`Error::Refused`](brisk_tensor::Error::Refused) for parameters that are sharded across replicas, for those of another
    /// model, and in a graph that trains them and has not changed them yet.
    #[track_caller]
    pub fn record(&self, graph: &Graph, params: &Parameters, state: &Persistent) {
        let checked = params.check_whole("ema").and_then(|()| params.origin().check("ema", self.origin));
        if let Err(error) = checked.and_then(|()| params.check_after_step("ema", graph)) {
            return graph.fail(error);
        }
        let push = |values: &Persistent, average: &Persistent| {
            let kernel = Update::new("ema", EmaUpdate(self.config), values.len());
            graph.push(kernel, &[values, state, average].map(|persistent| graph.buffer(persistent)));
        };
        push(params.values(), &self.average);
        for (buffer, average) in params.buffers().iter().zip(&self.buffers) {
            push(buffer.values(), average);
        }
    }

    /// The same model with the averaged values and buffers, for graphs that evaluate. Before the first step, and without
    /// [`write_initial`](Self::write_initial), the values are zeros; of an average that starts from the initial parameters,
    /// reading them is then an error when the program runs. It shares the gradients of `params`: in a graph that trains these,
    /// bind it by [`Parameters::bind_frozen`].
    pub fn averaged(&self, params: &Parameters) -> Parameters {
        params.with_values(&self.average, &self.buffers)
    }

    /// The averaged parameters, in the layout of [`Parameters::values`]; a checkpoint must contain them.
    pub fn average(&self) -> &Persistent {
        &self.average
    }

    /// When and how fast it is updated.
    pub fn config(&self) -> EmaConfig {
        self.config
    }

    /// Bytes that the average takes on the device.
    pub fn len_bytes(&self) -> usize {
        self.buffers.iter().chain([&self.average]).map(|values| values.len_bytes()).sum()
    }
}
