use std::ops::Range;
use std::panic::Location;
use std::sync::Arc;

use brisk_kernels::expr::Expr;
use brisk_kernels::{
    DType, GatherRuns, Interval, Map, MapInput, MapReduce, Number, Reducer, Rule, Runs, ScaleRuns, StepValue, Update,
};
use brisk_tensor::program::{Error as ProgramError, Program, Slice};
use brisk_tensor::{AllGather, Error, Graph, Persistent};
use serde::{Deserialize, Serialize};

use crate::adam::{Adam, AdamConfig};
use crate::combined_optimizer::CombinedOptimizer;
use crate::gather_matrices::GatherMatrices;
use crate::newton_schulz::NewtonSchulz;
use crate::optimizer::Optimizer;
use crate::origin::Origin;
use crate::parameter_group::ParameterGroup;
use crate::parameters::{ParameterId, Parameters};
use crate::sgd::Momentum;
use crate::sharding::{Piece, ShardedBucket};
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
/// # Sharded parameters
/// Each replica keeps and updates its own pieces of the momentum and of the matrices. Bucket by bucket, it gets the rest of `u`
/// from the other replicas, one all-gather of the bucket in f32, and orthogonalises the matrices that it has a part of. The
/// result is bit-identical to that of whole parameters.
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

/// The settings of [`Muon`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MuonConfig {
    /// The names of its parameters: the matrices of hidden layers and the filters of convolutions.
    pub matrices: Vec<String>,
    /// The momentum.
    pub momentum: f32,
    /// Its form, `nesterov` or `heavy`.
    pub form: Momentum,
    /// The weight decay.
    pub weight_decay: f32,
    /// The size of a step: `original`, `match_rms_adamw`, `spectral_unclamped` or `plain`.
    pub scale: MuonScale,
    /// AdamW, for all other parameters.
    pub rest: AdamConfig,
    /// What its learning rate is multiplied by.
    pub rest_lr_factor: f32,
}

impl Default for MuonConfig {
    /// PyTorch's, without matrices.
    fn default() -> Self {
        Self {
            matrices: Vec::new(),
            momentum: 0.95,
            form: Momentum::Nesterov,
            weight_decay: 0.1,
            scale: MuonScale::Original,
            rest: AdamConfig::default(),
            rest_lr_factor: 1.0,
        }
    }
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
        let MuonConfig { momentum, form, weight_decay, scale, .. } = MuonConfig::default();
        Ok(Self {
            origin: params.origin(),
            made_at: Location::caller(),
            ids: ids.to_vec(),
            buffer: Persistent::new("muon.momentum", DType::F32, params.state_len()),
            shapes,
            momentum,
            form,
            weight_decay,
            lr_factor: 1.0,
            newton_schulz: NewtonSchulz::default(),
            scale,
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

    /// Muon with these settings, with AdamW for the parameters that are not its own.
    pub(crate) fn from_config(params: &Parameters, config: &MuonConfig) -> Result<CombinedOptimizer, Error> {
        let MuonConfig { matrices, rest, .. } = config;
        let unknown: Vec<_> = matrices.iter().filter(|name| params.id_of(name).is_none()).collect();
        if matrices.is_empty() || !unknown.is_empty() {
            let known: Vec<_> = params.entries().iter().filter(|entry| entry.shape.len() > 1).map(|entry| &entry.name).collect();
            let found = if unknown.is_empty() { "no matrices".to_owned() } else { format!("unknown matrices {unknown:?}") };
            let found = format!("{found} in a model with {known:?}");
            return Err(Error::Refused { op: "muon", found, expected: "the names of some parameters of the model" });
        }
        let ids: Vec<_> = matrices.iter().filter_map(|name| params.id_of(name)).collect();
        let muon = Self::new(params, &ids)?.momentum(config.momentum, config.form).weight_decay(config.weight_decay);
        let optimizer = CombinedOptimizer::new().and(muon.scale(config.scale));
        let others = params.ids_where(|entry| !matrices.contains(&entry.name));
        if others.is_empty() {
            return Ok(optimizer);
        }
        let others = ParameterGroup::new(others).lr_factor(config.rest_lr_factor);
        Ok(optimizer.and(Adam::from_config(params, *rest, rest.decoupled()).groups(params, &[others])?))
    }

    /// Records the step of matrices of one shape, which are whole.
    fn record_whole(&self, program: &mut Program, buffers: &Buffers, matrices: &Matrices) -> Result<(), ProgramError> {
        let runs = Runs { n: buffers.values.len(), starts: matrices.starts.clone(), len: matrices.len() };
        let update = program.transient("update", DType::F32, runs.n_elements());
        let is_aligned = runs.len.is_multiple_of(ALIGN);
        // Slices start at multiples of `ALIGN`, as parameters do.
        let directions = if is_aligned { update } else { program.transient("directions", DType::F32, runs.n) };
        if !is_aligned {
            // What lies between the matrices.
            program.push(Map::flat(runs.n, Expr::constant(0.0)), &[directions])?;
        }
        let mut parts = Vec::with_capacity(runs.starts.len());
        for (run, &start) in runs.starts.iter().enumerate() {
            let at = if is_aligned { run * runs.len } else { start };
            let of_run = start..start + runs.len;
            let part = Part { within: 0..runs.len, values: of_run.clone(), grads: of_run.clone(), state: of_run };
            self.record_direction(program, buffers, &part, directions.slice(at..at + runs.len))?;
            parts.push(part);
        }
        if !is_aligned {
            program.push(GatherRuns { runs: runs.clone() }, &[directions, update])?;
        }
        let mut weights = None;
        if self.norm == MuonNorm::SqrtRows {
            let copy = program.transient("weights", DType::F32, runs.n_elements());
            program.push(GatherRuns { runs: runs.clone() }, &[buffers.values, copy])?;
            weights = Some(Weights { weights: copy, scaled: buffers.values, runs });
        }
        self.record_steps(program, buffers, matrices, update, weights, &parts)
    }

    /// Records the step of the matrices of a bucket, of which this replica has a piece: it updates its part of each matrix, for
    /// which it needs the directions of the whole matrix.
    fn record_bucket(
        &self,
        program: &mut Program,
        buffers: &Buffers,
        (bucket, piece): (&ShardedBucket, &Piece),
        replicas: &Arc<dyn AllGather>,
    ) -> Result<(), ProgramError> {
        let of_bucket: Vec<Matrices> = self.shapes.iter().filter_map(|matrices| matrices.within(&bucket.elements)).collect();
        if of_bucket.is_empty() {
            return Ok(());
        }
        let (mut own, mut directions, mut weights, mut needed) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for matrices in of_bucket {
            let len = matrices.len();
            let parts = matrices.starts.iter().map(|&start| (start, Part::of(start..start + len, bucket, piece)));
            let (starts, parts): (Vec<usize>, Vec<Part>) = parts.filter_map(|(start, part)| Some((start, part?))).unzip();
            for part in &parts {
                let direction = program.transient("direction", DType::F32, part.within.len());
                self.record_direction(program, buffers, part, direction)?;
                own.push(part.state.start - piece.state.start..part.state.end - piece.state.start);
                directions.push(direction);
                weights.push(buffers.values.slice(part.values.clone()));
            }
            if !parts.is_empty() {
                needed.push((Matrices { starts, ..matrices }, parts));
            }
        }
        let wanted = |matrices: &Matrices| {
            let starts = matrices.starts.iter().map(|start| start - bucket.elements.start).collect();
            Runs { n: bucket.elements.len(), starts, len: matrices.len() }
        };
        let wanted: Vec<Runs> = needed.iter().map(|(matrices, _)| wanted(matrices)).collect();
        let gather = |program: &mut Program, name, args: Vec<Slice>| {
            let to: Vec<Slice> = wanted.iter().map(|runs| program.transient(name, DType::F32, runs.n_elements())).collect();
            let (replicas, own, wanted) = (replicas.clone(), own.clone(), wanted.clone());
            let step = GatherMatrices { replicas, piece_len: bucket.piece_len, own, wanted };
            program.push_host(Arc::new(step), &[args, to.clone()].concat()).map(|()| to)
        };
        let updates = gather(program, "update", directions)?;
        let weights = (self.norm == MuonNorm::SqrtRows).then(|| gather(program, "weights", weights)).transpose()?;
        for (i, (matrices, parts)) in needed.iter().enumerate() {
            let weights = weights.as_ref().map(|weights| {
                let runs = Runs::concatenated(parts.len(), matrices.len());
                Weights { weights: weights[i], scaled: weights[i], runs }
            });
            self.record_steps(program, buffers, matrices, updates[i], weights, parts)?;
        }
        Ok(())
    }

    /// Records the momentum of some elements, and their direction before it is orthogonalised, `u`.
    fn record_direction(&self, program: &mut Program, buffers: &Buffers, part: &Part, u: Slice) -> Result<(), ProgramError> {
        let (g, b) = (buffers.grads.slice(part.grads.clone()), buffers.momentum.slice(part.state.clone()));
        let kernel = Update::new("muon_momentum", MuonMomentum { momentum: self.momentum }, u.len());
        program.push(kernel, &[g, buffers.state, b])?;
        match self.form {
            Momentum::Nesterov => program.push(Map::binary(u.len(), |g, b| &g + self.momentum * (b - &g)), &[g, b, u]),
            Momentum::Heavy | Momentum::FoldedNesterov => program.push(Map::unary(u.len(), |b| b), &[b, u]),
        }
    }

    /// Records the step of a part of each of these matrices, given the directions of all of their elements.
    fn record_steps(
        &self,
        program: &mut Program,
        buffers: &Buffers,
        matrices: &Matrices,
        directions: Slice,
        weights: Option<Weights>,
        parts: &[Part],
    ) -> Result<(), ProgramError> {
        let Matrices { n_rows, n_cols, .. } = *matrices;
        let Buffers { values, lr, state, .. } = *buffers;
        let update = self.newton_schulz.record(program, directions, state, [parts.len(), n_rows, n_cols])?;
        // This replica's part of each of the matrices in `x`.
        let own = |program: &mut Program, x: Slice, run: usize, part: &Part| {
            let start = run * matrices.len() + part.within.start;
            aligned(program, x, start..start + part.within.len())
        };
        if let Some(Weights { weights, scaled, runs }) = weights {
            let norms = program.transient("norms", DType::F32, parts.len());
            program.push(MapReduce::of(Reducer::Norm, &[parts.len(), runs.len], &[1]), &[weights, norms])?;
            let to = (n_rows as f32).sqrt();
            program.push(ScaleRuns { runs, to, eps: f32::MIN_POSITIVE }, &[norms, state, scaled])?;
            for (run, part) in parts.iter().enumerate().filter(|_| scaled == weights) {
                let of_part = own(program, weights, run, part)?;
                program.push(Map::unary(of_part.len(), |x| x), &[of_part, values.slice(part.values.clone())])?;
            }
        }
        let factor = self.lr_factor * self.scale.factor(n_rows, n_cols);
        let weight_decay = self.lr_factor * self.weight_decay;
        for (run, part) in parts.iter().enumerate() {
            let update = own(program, update, run, part)?;
            let kernel = Update::new("muon", MuonStep { factor, weight_decay }, update.len()).table_len(lr.len());
            program.push(kernel, &[update, lr, state, values.slice(part.values.clone())])?;
        }
        Ok(())
    }
}

/// The buffers of a step.
#[derive(Debug, Clone, Copy)]
struct Buffers {
    grads: Slice,
    values: Slice,
    momentum: Slice,
    lr: Slice,
    state: Slice,
}

/// The elements of a matrix that this replica updates: within the matrix, and in each buffer.
#[derive(Debug)]
struct Part {
    within: Range<usize>,
    values: Range<usize>,
    grads: Range<usize>,
    state: Range<usize>,
}

impl Part {
    /// Those in this replica's piece of a bucket, if there are any.
    fn of(matrix: Range<usize>, bucket: &ShardedBucket, piece: &Piece) -> Option<Self> {
        let (start, end) = (matrix.start.max(bucket.own.start), matrix.end.min(bucket.own.end));
        (start < end).then(|| {
            let within = |of: &Range<usize>| of.start + start - bucket.own.start..of.start + end - bucket.own.start;
            let [values, grads, state] = [&piece.values, &piece.grads, &piece.state].map(within);
            Self { within: start - matrix.start..end - matrix.start, values, grads, state }
        })
    }
}

/// Copies of matrices whose norms are set, concatenated.
#[derive(Debug)]
struct Weights {
    weights: Slice,
    /// Where they are scaled: in the parameters, or in the copies, of which the parts are then copied back.
    scaled: Slice,
    runs: Runs,
}

impl Matrices {
    /// The elements of each.
    fn len(&self) -> usize {
        self.n_rows * self.n_cols
    }

    /// Those among some elements, if there are any.
    fn within(&self, elements: &Range<usize>) -> Option<Self> {
        let starts: Vec<usize> = self.starts.iter().copied().filter(|start| elements.contains(start)).collect();
        (!starts.is_empty()).then_some(Self { starts, ..*self })
    }
}

/// Slices may start at multiples of this many elements.
const ALIGN: usize = 64;

/// Some elements of `x`, copied if no slice may start there.
fn aligned(program: &mut Program, x: Slice, elements: Range<usize>) -> Result<Slice, ProgramError> {
    if elements.start.is_multiple_of(ALIGN) {
        return Ok(x.slice(elements));
    }
    let copy = program.transient("update", DType::F32, elements.len());
    let mut map = Map::unary(elements.len(), |x| x);
    map.inputs = vec![MapInput { offset: elements.start, len: x.len(), ..MapInput::new(&[elements.len()], DType::F32) }];
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
        let checked = params.check_state("muon", self.origin, &self.buffer);
        let has_gradient = match checked.and_then(|()| params.with_gradient("muon", graph)) {
            Ok(has_gradient) => has_gradient,
            Err(error) => return graph.fail(error),
        };
        if inputs.lr.len() > 1 {
            graph.varies_by("muon", &inputs.state);
        }
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
        let mut of_step = self.clone();
        of_step.shapes.iter_mut().for_each(|matrices| matrices.starts.retain(|start| !still.contains(start)));
        of_step.shapes.retain(|matrices| !matrices.starts.is_empty());
        let [grads, values, lr, state] =
            [params.grads(), params.values(), &inputs.lr, &inputs.state].map(|persistent| graph.buffer(persistent));
        let buffers = Buffers { grads, values, momentum: params.state_in(graph, &self.buffer), lr, state };
        graph.record(|program| match (params.sharding(), params.replicas()) {
            (Some(sharding), Some(replicas)) => sharding
                .pieces_of_buckets()
                .try_for_each(|(bucket, piece)| of_step.record_bucket(program, &buffers, (bucket, &piece), replicas)),
            _ => of_step.shapes.iter().try_for_each(|matrices| of_step.record_whole(program, &buffers, matrices)),
        });
    }

    fn skips(&self) -> bool {
        true
    }

    fn can_shard(&self) -> bool {
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
