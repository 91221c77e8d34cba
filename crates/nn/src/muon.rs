use std::panic::Location;

use brisk_kernels::{
    DType, GatherRuns, Interval, Map, MapInput, MapReduce, Number, Reducer, Rule, Runs, ScaleRuns, StepValue, Update,
};
use brisk_tensor::program::{Error as ProgramError, Program, Slice};
use brisk_tensor::{Error, Graph, Persistent};
use serde::{Deserialize, Serialize};

use crate::newton_schulz::NewtonSchulz;
use crate::optimizer::Optimizer;
use crate::origin::Origin;
use crate::parameters::{ParameterId, Parameters};
use crate::sgd::Momentum;
use crate::step_inputs::StepInputs;

/// Muon: momentum whose update is orthogonalised, matrix by matrix, so that it has the same size in all directions. For the
/// matrices of hidden layers and the filters of convolutions; combine it with another optimizer for biases, normalisations,
/// embeddings and the last layer ([`CombinedOptimizer`](crate::CombinedOptimizer)).
///
/// With a gradient `g` and `lr` from the table: `b += (1 - μ) (g - b)`; `u = g + μ (b - g)` with Nesterov, `u = b` without; `o`
/// is `u` with its singular values moved close to 1 by Newton–Schulz steps; `p -= lr λ p + lr s o`, with `s` by the
/// [`MuonScale`].
///
/// A parameter of more than two dimensions is treated as a matrix with a row for each entry of the first: a filter
/// `[n_out, height, width, n_in]` as `[n_out, height * width * n_in]`. All matrices of one shape are multiplied in batched
/// products.
///
/// # Dtypes
/// f32 throughout, where PyTorch orthogonalises in bf16; its results are within that format's precision of these.
/// # Reference
/// Jordan et al. 2024, *Muon: An optimizer for hidden layers in neural networks*; `torch.optim.Muon`, with the same names and
/// defaults.
/// # Examples
/// ```
/// use brisk_nn::{Activation, Mlp, MlpConfig, Muon, ParametersBuilder};
///
/// let mut builder = ParametersBuilder::new();
/// let sizes = MlpConfig { n_inputs: 8, hidden: vec![32, 32, 32], n_outputs: 1, activation: Activation::relu() };
/// Mlp::new(&mut builder, &sizes);
/// let params = builder.build(0);
/// let hidden = params.ids_where(|entry| entry.shape == [32, 32]);
/// let optimizer = Muon::new(&params, &hidden)?.weight_decay(0.01);
/// # Ok::<(), brisk_nn::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Muon {
    origin: Origin,
    made_at: &'static Location<'static>,
    ids: Vec<ParameterId>,
    buffer: Persistent,
    shapes: Vec<Matrices>,
    momentum: f32,
    form: Momentum,
    weight_decay: f32,
    lr_factor: f32,
    newton_schulz: NewtonSchulz,
    scale: MuonScale,
    norm: MuonNorm,
}

/// The size of a [`Muon`] step for a matrix of `n_rows` rows (outputs of a layer) and `n_cols` columns (inputs).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum MuonScale {
    /// `√max(1, n_rows / n_cols)` times the learning rate, PyTorch's `original`.
    #[default]
    Original,
    /// `0.2 √max(n_rows, n_cols)` times the learning rate: about the size of an AdamW step with the same rate. PyTorch's
    /// `match_rms_adamw`.
    MatchRmsAdamw,
    /// `√(n_rows / n_cols)` times the learning rate, PyTorch's `spectral_unclamped`.
    SpectralUnclamped,
    /// The learning rate itself.
    Plain,
}

/// How [`Muon`] changes the Frobenius norm of a matrix.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum MuonNorm {
    /// It does not set the norm.
    #[default]
    Free,
    /// Sets it to `√n_rows` before each step. If a normalisation follows, this replaces weight decay.
    SqrtRows,
}

/// Parameters of one shape.
#[derive(Debug, Clone)]
struct Matrices {
    n_rows: usize,
    n_cols: usize,
    starts: Vec<usize>,
}

impl Muon {
    /// Muon over the parameters `ids`, with PyTorch's defaults: μ = 0.95 with Nesterov, λ = 0.1, 5 steps of Newton–Schulz.
    ///
    /// # Errors
    /// [`Error::Shape`] if there are none, or if one has less than two dimensions, has no elements, or is given twice;
    /// [`Error::Refused`] for a parameter of another model.
    #[track_caller]
    pub fn new(params: &Parameters, ids: &[ParameterId]) -> Result<Self, Error> {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        if sorted.is_empty() || sorted.len() < ids.len() {
            let expected = "parameters, each of them once".to_owned();
            return Err(Error::Shape { op: "muon", arg: "ids", expected, found: vec![ids.len()] });
        }
        let mut shapes: Vec<Matrices> = Vec::new();
        for id in sorted {
            params.origin().check_id("muon", id.0)?;
            let entry = params.entry(id);
            let len = entry.range.len();
            if entry.shape.len() < 2 || len == 0 {
                let expected = format!("a matrix for `{}`; leave it to another optimizer", entry.name);
                return Err(Error::Shape { op: "muon", arg: "parameter", expected, found: entry.shape.clone() });
            }
            let (n_rows, n_cols) = (entry.shape[0], len / entry.shape[0]);
            match shapes.iter_mut().find(|matrices| (matrices.n_rows, matrices.n_cols) == (n_rows, n_cols)) {
                Some(matrices) => matrices.starts.push(entry.range.start),
                None => shapes.push(Matrices { n_rows, n_cols, starts: vec![entry.range.start] }),
            }
        }
        Ok(Self {
            origin: params.origin(),
            made_at: Location::caller(),
            ids: ids.to_vec(),
            buffer: Persistent::new("muon.momentum", DType::F32, params.len()),
            shapes,
            momentum: 0.95,
            form: Momentum::Nesterov,
            weight_decay: 0.1,
            lr_factor: 1.0,
            newton_schulz: NewtonSchulz::default(),
            scale: MuonScale::default(),
            norm: MuonNorm::default(),
        })
    }

    /// Sets the momentum μ and its form.
    pub fn momentum(mut self, momentum: f32, form: Momentum) -> Self {
        (self.momentum, self.form) = (momentum, form);
        self
    }

    /// Sets the decoupled weight decay λ.
    pub fn weight_decay(mut self, weight_decay: f32) -> Self {
        self.weight_decay = weight_decay;
        self
    }

    /// Sets what the learning rate is multiplied by.
    pub fn lr_factor(mut self, lr_factor: f32) -> Self {
        self.lr_factor = lr_factor;
        self
    }

    /// Sets how many Newton–Schulz steps there are, and their coefficients; the default coefficients are (3.4445, -4.7750,
    /// 2.0315).
    pub fn newton_schulz(mut self, n_steps: usize, coefficients: [f32; 3]) -> Self {
        (self.newton_schulz.n_steps, self.newton_schulz.coefficients) = (n_steps, coefficients);
        self
    }

    /// Sets ε, the minimum norm that an update is divided by.
    pub fn eps(mut self, eps: f32) -> Self {
        self.newton_schulz.eps = eps;
        self
    }

    /// Sets how the size of a step depends on the shape of a matrix.
    pub fn scale(mut self, scale: MuonScale) -> Self {
        self.scale = scale;
        self
    }

    /// Sets how the norms of matrices change.
    pub fn norm(mut self, norm: MuonNorm) -> Self {
        self.norm = norm;
        self
    }

    fn record_shape(
        &self,
        program: &mut Program,
        params: &Parameters,
        inputs: &StepInputs,
        matrices: &Matrices,
    ) -> Result<(), ProgramError> {
        let Matrices { n_rows, n_cols, starts } = matrices;
        let [grads, values, buffer, lr, state] = [params.grads(), params.values(), &self.buffer, &inputs.lr, &inputs.state]
            .map(|persistent| program.persistent(persistent));
        let runs = Runs { n: params.len(), starts: starts.clone(), len: n_rows * n_cols };

        for &start in starts {
            let of_run = start..start + runs.len;
            let kernel = Update::new("muon_momentum", MuonMomentum { momentum: self.momentum }, runs.len);
            program.push(kernel, &[grads.slice(of_run.clone()), state, buffer.slice(of_run)])?;
        }
        let update = self.record_directions(program, &runs, grads, buffer)?;
        let update = self.newton_schulz.record(program, update, state, [starts.len(), *n_rows, *n_cols])?;

        if self.norm == MuonNorm::SqrtRows {
            let weights = program.transient("weights", DType::F32, runs.n_elements());
            let norms = program.transient("norms", DType::F32, starts.len());
            program.push(GatherRuns { runs: runs.clone() }, &[values, weights])?;
            program.push(MapReduce::of(Reducer::Norm, &[starts.len(), runs.len], &[1]), &[weights, norms])?;
            let to = (*n_rows as f32).sqrt();
            program.push(ScaleRuns { runs: runs.clone(), to, eps: f32::MIN_POSITIVE }, &[norms, state, values])?;
        }
        let factor = self.lr_factor * self.scale.factor(*n_rows, *n_cols);
        let weight_decay = self.lr_factor * self.weight_decay;
        for (run, &start) in starts.iter().enumerate() {
            let kernel = Update::new("muon", MuonStep { factor, weight_decay }, runs.len).table_len(inputs.lr.len());
            let update = aligned_run(program, update, &runs, run)?;
            program.push(kernel, &[update, lr, state, values.slice(start..start + runs.len)])?;
        }
        Ok(())
    }

    /// Records the directions before they are orthogonalised, `u`, matrix by matrix; returns where they are, concatenated.
    fn record_directions(
        &self,
        program: &mut Program,
        runs: &Runs,
        grads: Slice,
        momentum: Slice,
    ) -> Result<Slice, ProgramError> {
        let update = program.transient("update", DType::F32, runs.n_elements());
        let is_aligned = runs.len.is_multiple_of(ALIGN);
        // Slices start at multiples of `ALIGN`, as parameters do.
        let directions = if is_aligned { update } else { program.transient("directions", DType::F32, runs.n) };
        for (run, &start) in runs.starts.iter().enumerate() {
            let at = if is_aligned { run * runs.len } else { start };
            let of_run = start..start + runs.len;
            let [g, b] = [grads, momentum].map(|flat| flat.slice(of_run.clone()));
            let u = directions.slice(at..at + runs.len);
            match self.form {
                Momentum::Nesterov => program.push(Map::binary(runs.len, |g, b| &g + self.momentum * (b - &g)), &[g, b, u])?,
                Momentum::Heavy | Momentum::FoldedNesterov => program.push(Map::unary(runs.len, |b| b), &[b, u])?,
            }
        }
        if !is_aligned {
            program.push(GatherRuns { runs: runs.clone() }, &[directions, update])?;
        }
        Ok(update)
    }
}

/// Slices may start at multiples of this many elements.
const ALIGN: usize = 64;

/// Run number `run` of those concatenated in `x`, copied if no slice may start there.
fn aligned_run(program: &mut Program, x: Slice, runs: &Runs, run: usize) -> Result<Slice, ProgramError> {
    let at = run * runs.len;
    if at.is_multiple_of(ALIGN) {
        return Ok(x.slice(at..at + runs.len));
    }
    let copy = program.transient("update", DType::F32, runs.len);
    let mut map = Map::unary(runs.len, |x| x);
    map.inputs = vec![MapInput { offset: at, len: runs.n_elements(), ..MapInput::new(&[runs.len], DType::F32) }];
    program.push(map, &[x, copy])?;
    Ok(copy)
}

/// `b += (1 - μ) (g - b)`.
#[derive(Debug, Clone, Copy)]
struct MuonMomentum {
    momentum: f32,
}

impl Rule<0, 1, 1> for MuonMomentum {
    fn values(&self) -> [StepValue; 0] {
        []
    }

    #[inline(always)]
    fn update<N: Number>(&self, []: [N; 0], [grad]: [N; 1], [mean]: [N; 1]) -> [N; 1] {
        [mean + (grad - mean) * (1.0 - self.momentum)]
    }
}

/// `p -= lr λ p + lr s o`, for the orthogonalised `o`.
#[derive(Debug, Clone, Copy)]
struct MuonStep {
    factor: f32,
    weight_decay: f32,
}

impl Rule<2, 1, 1> for MuonStep {
    fn values(&self) -> [StepValue; 2] {
        [StepValue::Rate, StepValue::Decay(self.weight_decay)]
    }

    fn settings(&self) -> Vec<(&'static str, f32, Interval)> {
        vec![("factor", self.factor, Interval::NonNegative), ("weight_decay", self.weight_decay, Interval::NonNegative)]
    }

    #[inline(always)]
    fn update<N: Number>(&self, [rate, decay]: [N; 2], [update]: [N; 1], [param]: [N; 1]) -> [N; 1] {
        [param - rate * decay * param - rate * self.factor * update]
    }
}

impl Optimizer for Muon {
    #[track_caller]
    fn record(&self, graph: &Graph, params: &Parameters, inputs: &StepInputs) {
        let _caller = graph.enter_from(self.made_at);
        let checked = params.check_whole("muon").and_then(|()| params.check_state("muon", self.origin, &self.buffer));
        let has_gradient = match checked.and_then(|()| params.with_gradient("muon", graph)) {
            Ok(has_gradient) => has_gradient,
            Err(error) => return graph.fail(error),
        };
        let [a, b, c] = self.newton_schulz.coefficients;
        let settings = [
            ("momentum", self.momentum, Interval::BelowOne),
            ("lr_factor", self.lr_factor, Interval::NonNegative),
            ("weight_decay", self.weight_decay, Interval::NonNegative),
            ("eps", self.newton_schulz.eps, Interval::Positive),
            ("coefficients", a + b + c, Interval::Finite),
        ];
        if let Err(outside) = settings.into_iter().try_for_each(|(name, value, interval)| interval.check(name, value)) {
            let found = format!("{} = {}", outside.name, outside.found);
            return graph.fail(Error::Refused { op: "muon", found, expected: outside.expected });
        }
        if self.form == Momentum::FoldedNesterov {
            let expected = "`Momentum::Heavy` or `Momentum::Nesterov`: updates are orthogonalised before they are multiplied by the learning rate";
            return graph.fail(Error::Refused { op: "muon", found: format!("form = {:?}", self.form), expected });
        }
        let still = params.entries().iter().zip(has_gradient).filter(|(_, has_gradient)| !has_gradient);
        let still: Vec<usize> = still.map(|(entry, _)| entry.range.start).collect();
        graph.record(|program| {
            self.shapes.iter().try_for_each(|matrices| {
                let starts: Vec<_> = matrices.starts.iter().copied().filter(|start| !still.contains(start)).collect();
                let of_step = Matrices { starts, ..*matrices };
                if of_step.starts.is_empty() { Ok(()) } else { self.record_shape(program, params, inputs, &of_step) }
            })
        });
    }

    fn skips(&self) -> bool {
        true
    }

    fn trains(&self, id: ParameterId) -> bool {
        self.ids.contains(&id)
    }

    fn state(&self) -> Vec<(String, &Persistent)> {
        vec![("muon.momentum".to_owned(), &self.buffer)]
    }
}

impl MuonScale {
    fn factor(self, n_rows: usize, n_cols: usize) -> f32 {
        let (rows, cols) = (n_rows as f64, n_cols as f64);
        let factor = match self {
            Self::Original => (rows / cols).max(1.0).sqrt(),
            Self::MatchRmsAdamw => 0.2 * rows.max(cols).sqrt(),
            Self::SpectralUnclamped => (rows / cols).sqrt(),
            Self::Plain => 1.0,
        };
        factor as f32
    }
}
