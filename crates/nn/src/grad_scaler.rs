use std::cell::{Cell, RefCell};

use brisk_kernels::{DType, Kernel, SCALER_LEN, Unscale, UpdateScale};
use brisk_tensor::program::{Device, Slice};
use brisk_tensor::{Error, Graph, Persistent, Tensor};

use crate::{Optimizer, Parameters, StepInputs};

/// Keeps the gradients of f16 within its range: the loss is multiplied by a scale, the gradients are divided by it, a step whose gradients are not
/// finite is skipped, and the scale follows. All of it happens on the device: a step reads nothing back.
///
/// Per step it records two kernels, and one more for each further optimizer: [`backward`](Self::backward), then [`step`](Self::step) for each
/// optimizer, then [`update`](Self::update), and [`Graph::advance`] for each optimizer's `state` behind them. To clip gradients, or to look at them,
/// [`unscale`](Self::unscale) them before. To sum gradients over several batches, go back from the sum of their losses, which the scale is the same for.
///
/// With several optimizers, only those with a gradient that is not finite skip the step, and the scale backs off if any does. Each needs a
/// `state` of its own then, since that is where it is told to skip.
///
/// # Reference
/// `torch.amp.GradScaler`, whose defaults, trajectories and refusals these are.
/// # Examples
/// ```
/// use brisk_nn::tensor::program::Device;
/// use brisk_nn::tensor::{DType, Graph, Persistent, Reduction};
/// use brisk_nn::{Activation, GradScaler, GradScalerConfig, Mlp, MlpConfig, ParametersBuilder, Sgd, StepInputs};
///
/// let mut builder = ParametersBuilder::new();
/// let model = Mlp::new(&mut builder, &MlpConfig { n_inputs: 2, hidden: vec![], n_outputs: 1, activation: Activation::Relu });
/// let params = builder.build(42);
/// let optimizer = Sgd::new(&params);
/// let scaler = GradScaler::new(GradScalerConfig { init_scale: 2.0_f32.powi(127), ..GradScalerConfig::default() })?;
/// let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
///
/// let graph = Graph::training("step");
/// let x = graph.constant("x", &[10.0, 20.0, 30.0, 40.0], &[2, 2])?;
/// let (labels, weights) = (graph.constant("labels", &[0.0, 1.0], &[2])?, graph.constant("weights", &[1.0; 2], &[2])?);
/// let loss = model.forward(&params.bind(&graph)?, &x)?.bce_with_logits(&labels, &weights, Reduction::Mean, 1.0)?;
/// scaler.backward(&loss)?;
/// scaler.unscale(&graph, params.grads(), &inputs.state)?; // only since the gradients are clipped
/// params.clip_grad_norm(&graph, 1.0)?;
/// scaler.step(&graph, &optimizer, &params, &inputs)?;
/// scaler.update(&graph)?;
/// graph.advance(&inputs.state)?;
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
    recorded: RefCell<Recorded>,
}

/// Settings of a [`GradScaler`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GradScalerConfig {
    /// The scale to begin with.
    pub init_scale: f32,
    /// What the scale is multiplied by after `growth_interval` steps in a row without anything that is not finite; more than 1.
    pub growth_factor: f32,
    /// What it is multiplied by after a step with something; less than 1.
    pub backoff_factor: f32,
    /// How many good steps make it grow.
    pub growth_interval: u32,
    /// Whether anything is scaled at all: if not, a step is recorded as it would be without a scaler.
    pub enabled: bool,
}

impl Default for GradScalerConfig {
    /// PyTorch's: 65536, 2, 0.5, 2000.
    fn default() -> Self {
        let UpdateScale { growth_factor, backoff_factor, growth_interval } = UpdateScale::default();
        Self { init_scale: 65536.0, growth_factor, backoff_factor, growth_interval, enabled: true }
    }
}

/// How a [`GradScaler`] stands.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScalerReport {
    /// The scale; 1 where nothing is scaled.
    pub scale: f32,
    /// Good steps since it last changed.
    pub growth_tracker: u32,
    /// Steps that found something not finite.
    pub n_skipped: u32,
    /// How many of them there have been since the last good one. Where there are many, it is not the scale that is wrong.
    pub n_skipped_in_a_row: u32,
}

/// What has been recorded since the last update, to refuse what makes no sense.
#[derive(Debug, Default)]
struct Recorded {
    any_scaled: bool,
    any_updated: bool,
    gradients: Vec<Gradients>,
}

/// Gradients that have been divided by the scale.
#[derive(Debug)]
struct Gradients {
    grads: Slice,
    /// Where it says whether they are finite.
    state: Slice,
    has_stepped: bool,
}

/// The names that PyTorch's `state_dict` has.
const STATE_NAMES: [&str; 5] = ["scale", "growth_factor", "backoff_factor", "growth_interval", "_growth_tracker"];

impl GradScaler {
    /// A scaler with nothing recorded.
    ///
    /// # Errors
    /// [`Error::Program`] for a growth factor of 1 or less, a backoff factor that is not between 0 and 1, or an interval of 0; [`Error::Refused`] for an
    /// initial scale that is not a positive normal number.
    pub fn new(config: GradScalerConfig) -> Result<Self, Error> {
        config.kernel().check().map_err(brisk_tensor::program::Error::from)?;
        check_scale("grad_scaler", config.init_scale)?;
        let scale = Persistent::new("scaler.scale", DType::F32, 1);
        let counts = Persistent::new("scaler.counts", DType::U32, SCALER_LEN);
        Ok(Self { config: Cell::new(config), scale, counts, recorded: RefCell::default() })
    }

    /// The settings.
    pub fn config(&self) -> GradScalerConfig {
        self.config.get()
    }

    /// What has been found since the last update, and counts: [`SCALER_LEN`] words on the device. For replicas whose gradients differ, of which one may find what
    /// the others do not.
    pub fn found(&self) -> &Persistent {
        &self.counts
    }

    /// Writes the initial scale to `device`, and that nothing has been counted.
    ///
    /// # Errors
    /// [`Error::Program`].
    pub fn write_initial(&self, device: &Device) -> Result<(), Error> {
        if !self.config().enabled {
            return Ok(());
        }
        device.write(&self.scale, &[self.config().init_scale])?;
        Ok(device.write(&self.counts, &[0_u32; SCALER_LEN])?)
    }

    /// A loss times the scale, to go backward from. With several losses, scale each, or their sum.
    ///
    /// # Errors
    /// [`Error::Shape`] if the loss is not one number.
    pub fn scale(&self, loss: &Tensor) -> Result<Tensor, Error> {
        if !self.config().enabled {
            return Ok(loss.clone());
        }
        let scaled = loss.multiply(&loss.graph().tensor(&self.scale, loss.shape())?)?;
        self.recorded.borrow_mut().any_scaled = true;
        Ok(scaled)
    }

    /// Records the backward pass of a loss times the scale. The scale is the gradient from above, so that no kernel multiplies anything.
    ///
    /// # Errors
    /// As [`Graph::backward`].
    pub fn backward(&self, loss: &Tensor) -> Result<(), Error> {
        let graph = loss.graph();
        if !self.config().enabled || loss.n_elements() != 1 {
            return graph.backward(loss);
        }
        graph.backward_from(loss, &graph.tensor(&self.scale, loss.shape())?)?;
        self.recorded.borrow_mut().any_scaled = true;
        Ok(())
    }

    /// Records that gradients are divided by the scale, behind the backward pass and before they are clipped or otherwise looked at. If one is
    /// not finite, `state` says that the step is to be skipped; what is recorded in between sees them as they are.
    ///
    /// # Errors
    /// [`Error::Refused`] if no loss has been scaled, or these gradients have been unscaled or stepped by since the last update, or are not f32.
    pub fn unscale(&self, graph: &Graph, grads: &Persistent, state: &Persistent) -> Result<(), Error> {
        const OP: &str = "unscale";
        if !self.config().enabled {
            return Ok(());
        }
        if grads.dtype() != DType::F32 {
            let found = format!("the gradients are {:?}", grads.dtype());
            let expected = "f32 ones, which master parameters have; the scale could not be divided out within the range of less";
            return Err(Error::Refused { op: OP, found, expected });
        }
        let (slice, state_slice) = (bound(graph, grads), bound(graph, state));
        let mut recorded = self.recorded.borrow_mut();
        if !recorded.any_scaled {
            let expected = "`scale` or `backward` before, since these gradients are to be divided by the scale";
            return Err(Error::Refused { op: OP, found: "no loss has been scaled".to_owned(), expected });
        }
        if let Some(known) = recorded.gradients.iter().find(|known| known.grads == slice) {
            let done = if known.has_stepped { "stepped by" } else { "unscaled" };
            let found = format!("`{}` have been {done} since the last update", grads.name());
            return Err(Error::Refused { op: OP, found, expected: "once a step, before it" });
        }
        graph.with_program(|program| {
            let (scale, counts) = (program.persistent(&self.scale), program.persistent(&self.counts));
            program.push(Unscale { n: grads.len() }, &[scale, slice, counts, state_slice])
        })?;
        recorded.gradients.push(Gradients { grads: slice, state: state_slice, has_stepped: false });
        Ok(())
    }

    /// Records the optimizer's step, skipped where a gradient is not finite; [unscales](Self::unscale) the gradients first, unless that has been recorded.
    ///
    /// # Errors
    /// [`Error::Refused`] if these gradients have been stepped by since the last update, or were unscaled with another `state`, or if the
    /// optimizer does not [skip](Optimizer::skips); what the optimizer says.
    pub fn step(&self, graph: &Graph, optimizer: &dyn Optimizer, params: &Parameters, inputs: &StepInputs) -> Result<(), Error> {
        const OP: &str = "step";
        if !self.config().enabled {
            return optimizer.record(graph, params, inputs);
        }
        if !optimizer.skips() {
            let found = "the optimizer does not say that its steps can be skipped".to_owned();
            let expected = "one that leaves all as it is while `state.skip` is not 0, and says so by `Optimizer::skips`";
            return Err(Error::Refused { op: OP, found, expected });
        }
        let (grads, state) = (bound(graph, params.grads()), bound(graph, &inputs.state));
        let position = || self.recorded.borrow().gradients.iter().position(|known| known.grads == grads);
        if position().is_none() {
            self.unscale(graph, params.grads(), &inputs.state)?;
        }
        let at = position().expect("they are unscaled now");
        {
            let known = &self.recorded.borrow().gradients[at];
            if known.has_stepped {
                let found = "these parameters have made a step since the last update".to_owned();
                return Err(Error::Refused { op: OP, found, expected: "one step, then `update`" });
            }
            if known.state != state {
                let found = "the gradients were unscaled with another `state`".to_owned();
                return Err(Error::Refused { op: OP, found, expected: "that of this optimizer, which is told there to skip" });
            }
        }
        optimizer.record(graph, params, inputs)?;
        self.recorded.borrow_mut().gradients[at].has_stepped = true;
        Ok(())
    }

    /// Records that the scale follows what was found; once a step, behind the steps of all optimizers.
    ///
    /// # Errors
    /// [`Error::Refused`] if no gradients have been unscaled since the last update.
    pub fn update(&self, graph: &Graph) -> Result<(), Error> {
        if !self.config().enabled {
            return Ok(());
        }
        let mut recorded = self.recorded.borrow_mut();
        if recorded.gradients.is_empty() {
            let found = "no gradients have been unscaled since the last update".to_owned();
            return Err(Error::Refused { op: "update", found, expected: "`step` before" });
        }
        graph.with_program(|program| {
            let (scale, counts) = (program.persistent(&self.scale), program.persistent(&self.counts));
            program.push(self.config().kernel(), &[scale, counts])
        })?;
        recorded.gradients.clear();
        recorded.any_updated = true;
        Ok(())
    }

    /// Reads how it stands. It waits for the device: for the end of an epoch, not for every step.
    ///
    /// # Errors
    /// [`Error::Program`].
    pub fn report(&self, device: &Device) -> Result<ScalerReport, Error> {
        if !self.config().enabled {
            return Ok(ScalerReport { scale: 1.0, growth_tracker: 0, n_skipped: 0, n_skipped_in_a_row: 0 });
        }
        let scale = device.read::<f32>(&self.scale)?[0];
        let counts: Vec<u32> = device.read(&self.counts)?;
        Ok(ScalerReport { scale, growth_tracker: counts[1], n_skipped_in_a_row: counts[2], n_skipped: counts[3] })
    }

    /// Writes another scale; the count of good steps goes on. What PyTorch's `update(new_scale)` does.
    ///
    /// # Errors
    /// [`Error::Refused`] if it is not a positive normal number.
    pub fn set_scale(&self, device: &Device, scale: f32) -> Result<(), Error> {
        check_scale("set_scale", scale)?;
        Ok(device.write(&self.scale, &[scale])?)
    }

    /// What a checkpoint must keep, with the names and values of PyTorch's `state_dict`; nothing where nothing is scaled.
    ///
    /// # Errors
    /// [`Error::Program`].
    pub fn state(&self, device: &Device) -> Result<Vec<(&'static str, f64)>, Error> {
        if !self.config().enabled {
            return Ok(Vec::new());
        }
        let ScalerReport { scale, growth_tracker, .. } = self.report(device)?;
        let GradScalerConfig { growth_factor, backoff_factor, growth_interval, .. } = self.config();
        let values = [scale, growth_factor, backoff_factor].map(f64::from).into_iter();
        Ok(STATE_NAMES.into_iter().zip(values.chain([growth_interval, growth_tracker].map(f64::from))).collect())
    }

    /// Goes on from a state: its scale, its count of good steps, its factors. Does nothing where nothing is scaled.
    ///
    /// # Errors
    /// [`Error::Refused`] if the state lacks one of the names or has a value that it cannot have, or if it has other factors than those that an
    /// update was recorded with.
    pub fn load_state<N: AsRef<str>>(&self, device: &Device, state: &[(N, f64)]) -> Result<(), Error> {
        const OP: &str = "load_state";
        if !self.config().enabled {
            return Ok(());
        }
        if state.is_empty() {
            let found = "the state is empty, as that of a scaler that is not enabled".to_owned();
            return Err(Error::Refused { op: OP, found, expected: "that of one that was" });
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
        let [scale, growth_factor, backoff_factor] =
            [value("scale")? as f32, value("growth_factor")? as f32, value("backoff_factor")? as f32];
        let (growth_interval, growth_tracker) = (count("growth_interval")?, count("_growth_tracker")?);
        let config = GradScalerConfig { growth_factor, backoff_factor, growth_interval, ..self.config() };
        config.kernel().check().map_err(brisk_tensor::program::Error::from)?;
        check_scale(OP, scale)?;
        if config != self.config() && self.recorded.borrow().any_updated {
            let found = format!("the state has {:?}, the update was recorded with {:?}", config.kernel(), self.config().kernel());
            return Err(Error::Refused { op: OP, found, expected: "the same; load the state before anything is recorded" });
        }
        device.write(&self.scale, &[scale])?;
        device.write(&self.counts, &[0, growth_tracker, 0, 0])?;
        self.config.set(config);
        Ok(())
    }
}

impl GradScalerConfig {
    fn kernel(&self) -> UpdateScale {
        let Self { growth_factor, backoff_factor, growth_interval, .. } = *self;
        UpdateScale { growth_factor, backoff_factor, growth_interval }
    }
}

fn bound(graph: &Graph, persistent: &Persistent) -> Slice {
    graph.with_program(|program| program.persistent(persistent))
}

fn check_scale(op: &'static str, scale: f32) -> Result<(), Error> {
    if scale.is_normal() && scale > 0.0 {
        return Ok(());
    }
    Err(Error::Refused {
        op,
        found: format!("the scale is {scale:e}"),
        expected: "a positive number, neither subnormal nor infinite",
    })
}
