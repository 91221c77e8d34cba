//! Dynamic loss scaling.
//!
//! Whether a step is skipped is a flag in the state of the step, which optimizers read anyway: the host is not asked, and
//! gradient accumulation uses the same flag.

use std::cell::{Cell, RefCell};

use brisk_kernels::{DType, Error as KernelError, Kernel, SCALER_LEN, Unscale, UpdateScale};
use brisk_tensor::program::{Device, Slice};
use brisk_tensor::{Error, Graph, Persistent, Tensor};
use serde::{Deserialize, Serialize};

use crate::optimizer::Optimizer;
use crate::origin::Origin;
use crate::parameters::Parameters;
use crate::step_inputs::StepInputs;

/// Dynamic loss scaling, which keeps f16 gradients in range: the loss is multiplied by a scale, the gradients are divided by it,
/// a step whose gradients are not finite is skipped, and the scale is adjusted. All of it happens on the device: a step reads
/// nothing back.
///
/// A step records two kernels, and one more for each further optimizer: call [`backward`](Self::backward), then
/// [`step`](Self::step) for each optimizer, then [`update`](Self::update), then [`Graph::advance`] for the `state` of each
/// optimizer. To clip or read gradients, [`unscale`](Self::unscale) them first, which returns the step that is left. To sum
/// gradients over several batches, call `backward` on the sum of their losses, which have the same scale.
///
/// The scale is kept on the device, where [`write_initial`](Self::write_initial) or [`load_state`](Self::load_state) must write
/// it before the first step. Every step is skipped if the scale falls below 2⁻¹²⁶, unlike in PyTorch; [`report`](Self::report)
/// and [`state`](Self::state) then return an error.
///
/// With several optimizers, each with its own [`Parameters`], only those with a gradient that is not finite skip the step, and
/// the scale decreases if any of them does. Each then needs its own `state`, which says whether to skip. Several optimizers for
/// parts of one [`Parameters`] are combined by [`CombinedOptimizer`](crate::CombinedOptimizer), and all of them skip the step.
///
/// # Reference
/// `torch.amp.GradScaler`, with the same defaults, trajectories and refusals.
/// # Examples
/// ```
/// use brisk_nn::tensor::program::Device;
/// use brisk_nn::tensor::{DType, Graph, Persistent, Reduction};
/// use brisk_nn::{Activation, GradScaler, GradScalerConfig, Mlp, MlpConfig, ParametersBuilder, Sgd, StepInputs};
///
/// let mut builder = ParametersBuilder::new();
/// let model = Mlp::new(&mut builder, &MlpConfig { n_inputs: 2, hidden: vec![], n_outputs: 1, activation: Activation::relu() });
/// let params = builder.build(42);
/// let optimizer = Sgd::new(&params);
/// let scaler = GradScaler::new(GradScalerConfig { init_scale: 2.0_f32.powi(127), ..GradScalerConfig::default() })?;
///
/// let graph = Graph::training("step");
/// let inputs = StepInputs::new(&graph, 1);
/// let x = graph.constant("x", &[10.0, 20.0, 30.0, 40.0], &[2, 2]);
/// let (labels, weights) = (graph.constant("labels", &[0.0, 1.0], &[2]), graph.constant("weights", &[1.0; 2], &[2]));
/// let loss = model.forward(&params.bind(&graph), &x).bce_with_logits(&labels, &weights, Reduction::Mean, 1.0);
/// scaler.backward(&loss)?;
/// let unscaled = scaler.unscale(&graph, &params, &inputs); // only because the gradients are clipped
/// params.clip_grad_norm(&graph, 1.0);
/// unscaled.step(&optimizer);
/// scaler.update(&graph);
/// graph.advance(&inputs.state);
///
/// let device = Device::cpu()?;
/// params.write_initial(&device)?;
/// scaler.write_initial(&device)?;
/// device.write(&inputs.lr, &[0.1_f32])?;
/// graph.compile(&device)?.run(10)?;
/// let report = scaler.report(&device)?;
/// assert!(report.n_skipped > 0 && report.n_skipped < 10, "a scale that is too high comes down: {report:?}");
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug)]
pub struct GradScaler {
    config: Cell<GradScalerConfig>,
    scale: Persistent,
    counts: Persistent,
    is_written: Cell<bool>,
    recorded: RefCell<Recorded>,
    models: RefCell<Vec<Stepped>>,
}

/// Settings of a [`GradScaler`].
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct GradScalerConfig {
    /// The initial scale.
    pub init_scale: f32,
    /// The factor of the scale after `growth_interval` consecutive steps with finite gradients; more than 1.
    pub growth_factor: f64,
    /// The factor of the scale after a step with a gradient that is not finite; less than 1.
    pub backoff_factor: f64,
    /// The number of consecutive steps with finite gradients after which the scale grows.
    pub growth_interval: u32,
    /// Whether the loss is scaled. If not, a step is recorded as it would be without a scaler.
    pub enabled: bool,
}

impl Default for GradScalerConfig {
    /// PyTorch's: 65536, 2, 0.5, 2000.
    fn default() -> Self {
        let UpdateScale { growth_factor, backoff_factor, growth_interval } = UpdateScale::default();
        Self { init_scale: 65536.0, growth_factor, backoff_factor, growth_interval, enabled: true }
    }
}

/// The state of a [`GradScaler`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalerReport {
    /// The scale; 1 if the scaler is not enabled.
    pub scale: f32,
    /// Steps with finite gradients since the scale last changed.
    pub growth_tracker: u32,
    /// Steps that were skipped.
    pub n_skipped: u32,
    /// Steps that were skipped since the last one that was not. If there are many, the scale is not the cause.
    pub n_skipped_in_a_row: u32,
}

/// The calls since the last update, to refuse calls in the wrong order.
#[derive(Debug, Default)]
struct Recorded {
    any_scaled: bool,
    /// The results of `scale`.
    scaled: Vec<Slice>,
    any_updated: bool,
    /// The gradients that have been divided by the scale, and the state that says whether they are finite.
    unscaled: Vec<[Slice; 2]>,
}

/// A model whose step the scaler is part of.
#[derive(Debug)]
struct Stepped {
    graph: String,
    /// The scale in the graph's program, which distinguishes graphs.
    scale: Slice,
    origin: Origin,
}

/// Gradients that have been divided by the scale, which their optimizer can use; from [`GradScaler::unscale`].
#[derive(Debug)]
#[must_use = "its `step` records the step of the optimizer"]
pub struct Unscaled<'a> {
    scaler: &'a GradScaler,
    graph: &'a Graph,
    params: &'a Parameters,
    inputs: &'a StepInputs,
}

/// The names in PyTorch's `state_dict`.
const STATE_NAMES: [&str; 5] = ["scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"];

impl GradScaler {
    /// A scaler without recorded calls.
    ///
    /// # Errors
    /// [`Error::Refused`] for a growth factor of 1 or less, a backoff factor that is not between 0 and 1, an interval of 0, or an
    /// initial scale that is not a positive normal number.
    pub fn new(config: GradScalerConfig) -> Result<Self, Error> {
        const OP: &str = "GradScalerConfig";
        config.check(OP)?;
        check_scale(OP, "init_scale", config.init_scale)?;
        let scale = Persistent::required("scaler.scale", DType::F32, 1);
        let counts = Persistent::new("scaler.counts", DType::U32, SCALER_LEN);
        Ok(Self {
            config: Cell::new(config),
            scale,
            counts,
            is_written: Cell::new(false),
            recorded: RefCell::default(),
            models: RefCell::default(),
        })
    }

    /// The settings.
    pub fn config(&self) -> GradScalerConfig {
        self.config.get()
    }

    /// The counters on the device, [`SCALER_LEN`] words, the first of which says whether a gradient was not finite since the last
    /// update. Needed by replicas whose gradients differ, which must agree on it.
    pub fn found(&self) -> &Persistent {
        &self.counts
    }

    /// Writes the initial scale to `device` and resets the counters; before the first step, instead of
    /// [`load_state`](Self::load_state).
    ///
    /// # Errors
    /// [`Error::Refused`] while a step is recorded without [`update`](Self::update); [`Error::Program`].
    pub fn write_initial(&self, device: &Device) -> Result<(), Error> {
        if !self.config().enabled {
            return Ok(());
        }
        self.check_updated("write_initial")?;
        device.write(&self.counts, &[0_u32; SCALER_LEN])?;
        self.write_scale(device, self.config().init_scale)
    }

    /// The loss times the scale, for [`Graph::backward`]; the alternative to [`backward`](Self::backward). With several losses,
    /// scale each of them or their sum.
    ///
    /// # Errors
    /// [`Error::Refused`] if the loss is not a single number, or has been scaled already.
    #[track_caller]
    pub fn scale(&self, loss: &Tensor) -> Tensor {
        const OP: &str = "scale";
        let graph = loss.graph();
        if loss.n_elements() != 1 {
            let found = format!("the loss has shape {:?}", loss.shape());
            let error = Error::Refused { op: OP, found, expected: "one number; reduce the loss first" };
            return graph.failed(error, loss.dtype(), loss.shape());
        }
        if !self.config().enabled {
            return loss.clone();
        }
        if let Err(error) = self.check_not_scaled(OP, loss) {
            return graph.failed(error, loss.dtype(), loss.shape());
        }
        let scaled = loss.multiply(&graph.tensor(&self.scale, loss.shape()));
        let mut recorded = self.recorded.borrow_mut();
        recorded.any_scaled = true;
        recorded.scaled.push(scaled.slice());
        scaled
    }

    /// Records the backward pass of the loss times the scale; the alternative to [`scale`](Self::scale). The scale is passed as
    /// the gradient of the loss, so no kernel multiplies by it.
    ///
    /// A tensor that `scale` returned is refused. A tensor computed from one, such as a sum, is not recognised.
    ///
    /// # Errors
    /// The first error of the graph, including [`Error::Refused`] for a loss that has been scaled already; as
    /// [`Graph::backward`].
    #[track_caller]
    pub fn backward(&self, loss: &Tensor) -> Result<(), Error> {
        let graph = loss.graph();
        if !self.config().enabled || loss.n_elements() != 1 {
            return graph.backward(loss);
        }
        if let Err(error) = self.check_not_scaled("backward", loss) {
            graph.fail(error);
        }
        graph.backward_from(loss, &graph.tensor(&self.scale, loss.shape()))?;
        self.recorded.borrow_mut().any_scaled = true;
        Ok(())
    }

    /// Records that gradients are divided by the scale, after the backward pass and before they are clipped or otherwise read. If
    /// one is not finite, the `state` of `inputs` says that the step must be skipped; kernels recorded before
    /// [`Unscaled::step`] see the gradients unchanged.
    ///
    /// # Errors
    /// [`Error::Refused`] if no loss has been scaled, if these gradients have been unscaled since the last update, or if the
    /// state belongs to other gradients.
    #[track_caller]
    pub fn unscale<'a>(&'a self, graph: &'a Graph, params: &'a Parameters, inputs: &'a StepInputs) -> Unscaled<'a> {
        if self.config().enabled {
            let (grads, state) = (graph.buffer(params.grads()), graph.buffer(&inputs.state));
            match self.check_unscale(grads, state, params, inputs) {
                Ok(()) => {
                    let (scale, counts) = (graph.buffer(&self.scale), graph.buffer(&self.counts));
                    graph.push(Unscale { n: params.grads().len() }, &[scale, grads, counts, state]);
                    self.recorded.borrow_mut().unscaled.push([grads, state]);
                }
                Err(error) => graph.fail(error),
            }
        }
        Unscaled { scaler: self, graph, params, inputs }
    }

    fn check_unscale(&self, grads: Slice, state: Slice, params: &Parameters, inputs: &StepInputs) -> Result<(), Error> {
        let refused = |found: String, expected: &'static str| Err(Error::Refused { op: "unscale", found, expected });
        let recorded = self.recorded.borrow();
        if !recorded.any_scaled {
            let expected = "a call of `scale` or `backward` before, since these gradients are divided by the scale";
            return refused("no loss has been scaled".to_owned(), expected);
        }
        if recorded.unscaled.iter().any(|known| known[0] == grads) {
            let found = format!("`{}` have been unscaled since the last update", params.grads().name());
            let expected = "once before `update`, and then `Unscaled::step`; combine several optimizers by `CombinedOptimizer`, or \
                            give each its own `Parameters`";
            return refused(found, expected);
        }
        if recorded.unscaled.iter().any(|known| known[1] == state) {
            let found = format!("`{}` is the state of an optimizer of other gradients", inputs.state.name());
            return refused(found, "a state for each optimizer, which tells it whether to skip");
        }
        Ok(())
    }

    /// Records the step of the optimizer, which is skipped if a gradient is not finite; [unscales](Self::unscale) the gradients
    /// first.
    ///
    /// # Errors
    /// As for [`unscale`](Self::unscale) and [`Unscaled::step`].
    #[track_caller]
    pub fn step(&self, graph: &Graph, optimizer: &dyn Optimizer, params: &Parameters, inputs: &StepInputs) {
        let _caller = graph.enter_from_caller();
        if let Err(error) = self.check_skips(optimizer) {
            return graph.fail(error);
        }
        self.unscale(graph, params, inputs).step(optimizer);
    }

    fn check_skips(&self, optimizer: &dyn Optimizer) -> Result<(), Error> {
        if !self.config().enabled || optimizer.skips() {
            return Ok(());
        }
        let found = "the optimizer does not say that its steps can be skipped".to_owned();
        let expected = "one that changes nothing while `state.skip` is not 0, and says so by `Optimizer::skips`";
        Err(Error::Refused { op: "step", found, expected })
    }

    /// Models that are trained by separate graphs have separate gradients, which one scale and one count of finite steps cannot
    /// describe.
    fn check_model(&self, graph: &Graph, params: &Parameters) -> Result<(), Error> {
        let (name, scale, origin) = (graph.name(), graph.buffer(&self.scale), params.origin());
        let mut models = self.models.borrow_mut();
        if let Some(other) = models.iter().find(|other| other.scale != scale && !other.origin.is(origin)) {
            let found = format!(
                "one scaler for the graph `{}`, which trains the parameters built at {}, and for `{name}`, which trains those built at {}",
                other.graph, other.origin.built_at, origin.built_at
            );
            return Err(Error::Refused { op: "step", found, expected: "a `GradScaler` for each of them" });
        }
        models.push(Stepped { graph: name, scale, origin });
        Ok(())
    }

    /// Records the update of the scale; once a step, after the steps of all optimizers.
    ///
    /// # Errors
    /// [`Error::Refused`] if no gradients have been unscaled since the last update.
    #[track_caller]
    pub fn update(&self, graph: &Graph) {
        if !self.config().enabled {
            return;
        }
        let mut recorded = self.recorded.borrow_mut();
        if recorded.unscaled.is_empty() {
            let found = "no gradients have been unscaled since the last update".to_owned();
            return graph.fail(Error::Refused { op: "update", found, expected: "`step` before" });
        }
        graph.push(self.config().kernel(), &[graph.buffer(&self.scale), graph.buffer(&self.counts)]);
        recorded.unscaled.clear();
        recorded.any_updated = true;
    }

    /// Reads the state of the scaler. Waits for the device, so call it at the end of an epoch, not after every step.
    ///
    /// # Errors
    /// [`Error::Refused`] while a step is recorded without [`update`](Self::update), and if the scale is 0 or subnormal, so that
    /// every step is skipped: because none has been written to this device, or because too many steps were skipped, in which case
    /// the error says how many. [`Error::Program`].
    pub fn report(&self, device: &Device) -> Result<ScalerReport, Error> {
        self.read("report", device)
    }

    /// Writes a new scale and keeps the count of steps with finite gradients, as PyTorch's `update(new_scale)` does.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is not a positive normal number.
    pub fn set_scale(&self, device: &Device, scale: f32) -> Result<(), Error> {
        check_scale("set_scale", "the scale", scale)?;
        self.write_scale(device, scale)
    }

    /// The state that a checkpoint must contain, with the names and values of PyTorch's `state_dict`; empty if the scaler is not
    /// enabled.
    ///
    /// # Errors
    /// As [`report`](Self::report).
    pub fn state(&self, device: &Device) -> Result<Vec<(&'static str, f64)>, Error> {
        if !self.config().enabled {
            return Ok(Vec::new());
        }
        let ScalerReport { scale, growth_tracker, .. } = self.read("state", device)?;
        let GradScalerConfig { growth_factor, backoff_factor, growth_interval, .. } = self.config();
        let values = [f64::from(scale), growth_factor, backoff_factor].into_iter();
        Ok(STATE_NAMES.into_iter().zip(values.chain([growth_interval, growth_tracker].map(f64::from))).collect())
    }

    /// Restores a state: its scale, its count of steps with finite gradients, its factors. Does nothing if the scaler is not
    /// enabled. It replaces [`write_initial`](Self::write_initial), which must not be called after it.
    ///
    /// # Errors
    /// [`Error::Refused`] if the state lacks one of the names or has an invalid value, or if its factors differ from those that
    /// an update was recorded with.
    pub fn load_state<N: AsRef<str>>(&self, device: &Device, state: &[(N, f64)]) -> Result<(), Error> {
        const OP: &str = "load_state";
        if !self.config().enabled {
            return Ok(());
        }
        if state.is_empty() {
            let found = "the state is empty, as that of a scaler that is not enabled".to_owned();
            return Err(Error::Refused { op: OP, found, expected: "the state of an enabled scaler" });
        }
        let value = |name: &str| {
            let found = state.iter().find(|(known, _)| known.as_ref() == name).map(|(_, value)| *value);
            found.ok_or_else(|| Error::Refused {
                op: OP,
                found: format!("the state has no `{name}`"),
                expected: "PyTorch's five",
            })
        };
        let count = |name: &str| match value(name)? {
            count if count.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&count) => Ok(count as u32),
            found => Err(Error::Refused { op: OP, found: format!("`{name}` is {found}"), expected: "a whole number, 0 or more" }),
        };
        let scale = value("scale")? as f32;
        let (growth_factor, backoff_factor) = (value("growth_factor")?, value("backoff_factor")?);
        let (growth_interval, growth_tracker) = (count("growth_interval")?, count("_growth_tracker")?);
        let config = GradScalerConfig { growth_factor, backoff_factor, growth_interval, ..self.config() };
        config.check(OP)?;
        check_scale(OP, "`scale`", scale)?;
        if config != self.config() && self.recorded.borrow().any_updated {
            let found = format!("the state has {:?}, the update was recorded with {:?}", config.kernel(), self.config().kernel());
            return Err(Error::Refused { op: OP, found, expected: "the same; load the state before anything is recorded" });
        }
        device.write(&self.counts, &[0, growth_tracker, 0, 0])?;
        self.write_scale(device, scale)?;
        self.config.set(config);
        Ok(())
    }

    fn write_scale(&self, device: &Device, scale: f32) -> Result<(), Error> {
        device.write(&self.scale, &[scale])?;
        self.is_written.set(true);
        Ok(())
    }

    fn read(&self, op: &'static str, device: &Device) -> Result<ScalerReport, Error> {
        if !self.config().enabled {
            return Ok(ScalerReport { scale: 1.0, growth_tracker: 0, n_skipped: 0, n_skipped_in_a_row: 0 });
        }
        self.check_updated(op)?;
        let scale = device.read::<f32>(&self.scale)?[0];
        let counts: Vec<u32> = device.read(&self.counts)?;
        let report = ScalerReport { scale, growth_tracker: counts[1], n_skipped_in_a_row: counts[2], n_skipped: counts[3] };
        if scale.is_normal() {
            return Ok(report);
        }
        let (found, expected) = if self.is_written.get() && report.n_skipped > 0 {
            let found = format!("the scale is {scale:e} since {} steps in a row were skipped", report.n_skipped_in_a_row);
            (found, "gradients that are finite under some scale; `Graph::detect_anomaly` finds where they cease to be")
        } else {
            let found = "no scale has been written to this device, so that it is 0 and every step is skipped".to_owned();
            (found, "`write_initial` or `load_state` before the first step")
        };
        Err(Error::Refused { op, found, expected })
    }

    fn check_updated(&self, op: &'static str) -> Result<(), Error> {
        if self.recorded.borrow().unscaled.is_empty() {
            return Ok(());
        }
        let found = "gradients are unscaled without an `update` after it, so that the scale never changes".to_owned();
        Err(Error::Refused { op, found, expected: "`update` after the steps of all optimizers" })
    }

    fn check_not_scaled(&self, op: &'static str, loss: &Tensor) -> Result<(), Error> {
        if !self.recorded.borrow().scaled.contains(&loss.slice()) {
            return Ok(());
        }
        let expected = "an unscaled loss; for a scaled loss, call `Graph::backward`";
        Err(Error::Refused { op, found: "the loss has been scaled by `scale`".to_owned(), expected })
    }
}

impl Unscaled<'_> {
    /// Records the step of the optimizer, which is skipped if a gradient is not finite.
    ///
    /// # Errors
    /// [`Error::Refused`] if the gradients are [accumulated](crate::Accumulate) after they were unscaled, if the optimizer does
    /// not [skip](Optimizer::skips), or if the scaler is part of the step of another model in another graph; the errors of the
    /// optimizer.
    #[track_caller]
    pub fn step(self, optimizer: &dyn Optimizer) {
        let Self { scaler, graph, params, inputs } = self;
        let _caller = graph.enter_from_caller();
        if scaler.config().enabled
            && let Err(error) = self.check(optimizer)
        {
            return graph.fail(error);
        }
        optimizer.record(graph, params, inputs);
    }

    fn check(&self, optimizer: &dyn Optimizer) -> Result<(), Error> {
        let Self { scaler, graph, params, .. } = self;
        scaler.check_skips(optimizer)?;
        if is_accumulated_since_unscale(graph, graph.buffer(params.grads())) {
            let found = "the gradients of batches are accumulated after they were unscaled".to_owned();
            let expected = "`backward`, `Accumulate::record`, `unscale`, `step`, so that their sum is checked";
            return Err(Error::Refused { op: "step", found, expected });
        }
        scaler.check_model(graph, params)
    }
}

impl GradScalerConfig {
    fn check(&self, op: &'static str) -> Result<(), Error> {
        self.kernel().check().map_err(|error| match error {
            KernelError::Unsupported { found, expected, .. } => Error::Refused { op, found, expected },
            other => brisk_tensor::program::Error::from(other).into(),
        })
    }

    fn kernel(&self) -> UpdateScale {
        let Self { growth_factor, backoff_factor, growth_interval, .. } = *self;
        UpdateScale { growth_factor, backoff_factor, growth_interval }
    }
}

/// Whether these gradients have been accumulated since they were last unscaled.
fn is_accumulated_since_unscale(graph: &Graph, grads: Slice) -> bool {
    graph.with_program(|program| {
        let names: Vec<_> = program.kernel_names().collect();
        let mut of_grads = program.readers(grads).into_iter().rev().map(|at| names[at]);
        of_grads.find(|name| ["accumulate_batches", "unscale"].contains(name)) == Some("accumulate_batches")
    })
}

fn check_scale(op: &'static str, name: &str, scale: f32) -> Result<(), Error> {
    if scale.is_normal() && scale > 0.0 {
        return Ok(());
    }
    let found = format!("{name} is {scale:e}");
    Err(Error::Refused { op, found, expected: "a positive number, neither subnormal nor infinite" })
}
