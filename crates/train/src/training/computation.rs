//! What a run computes, as it is recorded, for checkpoints and replicas to compare: so a setting cannot be left out of a list.

use std::cell::OnceCell;
use std::rc::Rc;

use brisk_nn::tensor::{DType, Graph, Persistent, Reduction};
use brisk_nn::{Augment, Optimizer, ParameterGroup, ParameterId, Parameters, StepInputs};
use twox_hash::XxHash3_64;

use crate::data_parallel::DataParallel;
use crate::error::Error;
use crate::feed::{BatchTensors, Feed};
use crate::rows::RowLayout;
use crate::standardisation::Standardisation;
use crate::step::{RecordedStep, Trained};
use crate::task::Task;
use crate::trainable::Trainable;
use crate::trainer_config::TrainerConfig;

/// A part of what a run computes, as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Computation {
    /// Names it in checkpoints.
    pub(super) key: &'static str,
    /// Names it in messages.
    pub(super) what: &'static str,
    /// The digest, then the text unless it is long.
    pub(super) value: String,
}

/// Rows of a batch, and of the table they are gathered from. The same for all runs: the size of a batch is a setting.
pub(super) const ROWS: usize = 64;

const EVALUATION: &str = "computed_evaluation";
const STEP: &str = "computed_step";

/// Texts up to this length are kept, so that a message can say what differs.
const KEPT_LEN: usize = 4096;

impl Computation {
    /// The parts: each is recorded on its own, for all rows of a batch and whole parameters, so that it does not depend on the
    /// number of replicas, the device, or how rows reach it.
    #[track_caller]
    pub(super) fn of(
        trainable: &Trainable<'_>,
        task: &dyn Task,
        layout: RowLayout,
        augment: Option<&Rc<dyn Augment + '_>>,
        batch_rows: usize,
    ) -> Result<Vec<Self>, Error> {
        let Trainable { module, params, optimizer } = *trainable;
        let params_of_all = params.unsharded();
        let scale = Standardisation::none(layout.n_cols);
        let plain = Feed::recorded_only(layout, batch_rows);
        let augmented = augment.map_or_else(|| plain.clone(), |augment| plain.clone().augmented(augment.clone()));
        let state = Graph::state_buffer();
        // What `record` records of a batch in a graph, together with the batch.
        let listing = |graph: Graph, feed: &Feed<'_>, record: &dyn Fn(&Graph, BatchTensors)| {
            record(&graph, feed.record(&graph, &scale, &state));
            graph.check().map(|()| graph.listing())
        };
        let augmentation = listing(Graph::training("augmentation"), &augmented, &|_, _| {})?;
        let batch = listing(Graph::training("batch"), &plain, &|_, _| {})?;
        let after_batch = |listing: String| listing.strip_prefix(&batch).map_or(listing.clone(), str::to_owned);

        let found = OnceCell::new();
        let model = listing(Graph::training("model"), &plain, &|graph, batch| {
            let outputs = batch.outputs(module, &params_of_all.bind(graph), task);
            found.get_or_init(|| (outputs.dtype(), outputs.shape().to_vec()));
        });
        let (model, (dtype, shape)) = (after_batch(model?), found.into_inner().expect("it was recorded"));
        let loss_by = |reduction| {
            let record = |graph: &Graph, batch: BatchTensors| {
                let outputs = Persistent::new("outputs", dtype, shape.iter().product());
                batch.loss(task, &graph.tensor(&outputs, &shape), reduction);
            };
            listing(Graph::training("loss"), &plain, &record).map(after_batch)
        };
        let loss = loss_by(Reduction::Mean)?;
        if loss == loss_by(Reduction::Sum)? {
            let found = format!("a loss of the task {task:?} that is the same for `Reduction::Mean` and `Reduction::Sum`");
            let expected = "one that follows `LabelledRows::reduction`, as `LabelledRows::reduce` does: validation and replicas add up sums, steps take means";
            return Err(Error::refused("loss", found, expected));
        }

        let evaluation = listing(Graph::inference("evaluate"), &plain, &|graph, batch| {
            batch.task_loss(module, &params_of_all.bind(graph), task, Reduction::Sum);
        })?;

        // The whole step, which also has the backward pass. Its settings are compared by name.
        let config = TrainerConfig::default();
        let trained = [Trained { params: &params_of_all, optimizer: &NoStep(optimizer), ema: None }];
        let replicas = DataParallel::single();
        let step = RecordedStep::record(&augmented, &scale, &config, &trained, &[], replicas, |batch, reduction, bound| {
            batch.task_loss(module, &bound[0], task, reduction)
        })?;
        let step = step.graph.listing();

        let parts = [
            ("computed_input", "input of a training batch (augmentation)", augmentation),
            ("computed_model", "model", model),
            ("computed_loss", "loss", loss),
            ("computed_optimizer", "optimizer", optimizer_listing(optimizer, &params_of_all)?),
            (EVALUATION, "evaluation", evaluation),
            (STEP, "training step", step),
        ];
        Ok(parts.into_iter().map(|(key, what, text)| Self { key, what, value: value_of(&text) }).collect())
    }

    /// Whether other parts are part of it, so that it differs where they do.
    pub(super) fn has_others(&self) -> bool {
        [EVALUATION, STEP].contains(&self.key)
    }

    /// The part for replicas to compare.
    pub(super) fn described(&self) -> (String, String) {
        (self.what.to_owned(), self.value.lines().next().unwrap_or_default().to_owned())
    }
}

/// What an optimizer records, with groups of parameters as text.
fn optimizer_listing(optimizer: &dyn Optimizer, params: &Parameters) -> Result<String, Error> {
    let graph = Graph::training("optimizer");
    let inputs = StepInputs { lr: Persistent::new("lr", DType::F32, 1), state: Graph::state_buffer() };
    optimizer.record(&graph, params, &inputs);
    graph.check()?;
    let listing = graph.listing();
    let lines = listing.lines().filter(|line| !line.contains(ParameterGroup::TABLE)).map(str::to_owned);
    let described = params.ids_where(|_| true).into_iter().map(|id| (&params.entry(id).name, optimizer.described(id)));
    let groups = described.filter(|(_, is)| !is.is_empty()).map(|(name, is)| format!("{name} {{ {is}"));
    Ok(lines.chain(groups).collect::<Vec<_>>().join("\n"))
}

fn value_of(text: &str) -> String {
    let digest = format!("digest {:016x}", XxHash3_64::oneshot(text.as_bytes()));
    if text.len() > KEPT_LEN { digest } else { format!("{digest}\n{text}") }
}

/// Two values of one part, shortened to the first field that differs.
pub(super) fn shortened(checkpoint: &str, run: &str) -> [String; 2] {
    let digests = || [checkpoint, run].map(|value| value.lines().next().unwrap_or_default().to_owned());
    let (mut theirs, mut ours) = (checkpoint.lines().skip(1), run.lines().skip(1));
    loop {
        match (theirs.next(), ours.next()) {
            (Some(a), Some(b)) if a == b => {}
            (None, None) => return digests(),
            (a, b) => {
                let (a, b) = (a.unwrap_or("nothing"), b.unwrap_or("nothing"));
                let n_same = a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count();
                return [field_at(a, n_same), field_at(b, n_same)];
            }
        }
    }
}

/// The field of a `Debug` form that contains byte `at`. A list is one field.
fn field_at(line: &str, at: usize) -> String {
    const SHOWN_CHARS: usize = 60;
    let mut n_open = 0_usize;
    let ends = line.bytes().map(|byte| {
        match byte {
            b'[' => n_open += 1,
            b']' => n_open = n_open.saturating_sub(1),
            _ => {}
        }
        n_open == 0 && matches!(byte, b',' | b'{' | b'}')
    });
    let ends: Vec<usize> = ends.zip(0..).filter_map(|(is_end, at)| is_end.then_some(at)).collect();
    let (before, after) = ends.split_at(ends.partition_point(|&end| end < at));
    let (start, end) = (before.last().map_or(0, |before| before + 1), after.first().copied().unwrap_or(line.len()));
    let field = line.get(start..end).unwrap_or(line).trim();
    field.chars().take(SHOWN_CHARS).collect()
}

/// An optimizer that does nothing, and freezes the same parameters as another.
#[derive(Debug)]
struct NoStep<'a>(&'a dyn Optimizer);

impl Optimizer for NoStep<'_> {
    fn record(&self, _: &Graph, _: &Parameters, _: &StepInputs) {}

    fn skips(&self) -> bool {
        true
    }

    fn can_shard(&self) -> bool {
        true
    }

    fn trains(&self, id: ParameterId) -> bool {
        self.0.trains(id)
    }
}
