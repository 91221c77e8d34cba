use std::fmt;
use std::ops::Range;

use brisk_metrics::Metric;
use brisk_nn::tensor::{DType, Tensor};

use super::head_metric::{HeadMetric, columns, restore};
use super::{LabelledRows, Labels, Task};
use crate::error::Error;
use crate::standardisation::Standardisation;

/// Several tasks that one model learns at once, such as a class and a number: each takes the next columns of the outputs and of
/// the labels. The loss is the weighted sum of theirs, and metrics are named after their heads: `letter_accuracy`, `slant_rmse`.
///
/// # Examples
/// ```
/// use brisk_loader::Rows;
/// use brisk_nn::tensor::program::Device;
/// use brisk_nn::{Activation, Mlp, MlpConfig, Schedule};
/// use brisk_train::{Binary, Head, Heads, Model, Regression, Standardisation, Trainer};
///
/// // Two columns; whether the first is positive, and 1000 times the second.
/// let x: Vec<f32> = (0..800).map(|i| (i * 7919 % 801) as f32 / 400.0 - 1.0).collect();
/// let labels: Vec<f32> = x.chunks(2).flat_map(|x| [f32::from(u8::from(x[0] > 0.0)), 1000.0 * x[1]]).collect();
/// let rows = Rows::with_label_columns(x, labels, 2, 2)?;
///
/// let scale = Standardisation::of_labels("train", &rows, 1..2)?;
/// let task = Heads::of([
///     Head::new("side", Binary::new()),
///     Head::new("height", Regression::mse()).standardised(&scale).weight(0.5),
/// ])
/// .watch("height_rmse");
/// let sizes = MlpConfig { n_inputs: 2, hidden: vec![16], n_outputs: 2, activation: Activation::relu() };
/// let mut model = Model::new(7, |params| Mlp::new(params, &sizes));
/// let mut trainer = Trainer::new(&Device::cpu()?).batch_rows(20).max_epochs(10).schedule(Schedule::constant(0.01));
/// trainer.fit(&mut model, &task, &rows, &rows)?;
///
/// let scores = model.evaluate(&task, &rows)?;
/// assert!(scores.get("side_accuracy") > Some(0.95) && scores.get("height_rmse") < Some(100.0), "{scores}");
/// // In the units of the label, like the metrics.
/// let heights = task.outputs_of("height", &model.predict(&rows)?)?;
/// assert_eq!(heights.len(), 400);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Heads {
    heads: Vec<Head>,
    watched: String,
}

/// A task among [`Heads`].
pub struct Head {
    name: String,
    task: Box<dyn Task>,
    weight: f32,
    scale: Option<Standardisation>,
}

/// A head with its columns of the outputs and of the labels.
struct Placed<'a> {
    head: &'a Head,
    outputs: Range<usize>,
    labels: Range<usize>,
}

impl fmt::Debug for Head {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, task, weight, scale } = self;
        f.debug_struct("Head")
            .field("name", name)
            .field("task", task)
            .field("weight", weight)
            .field("standardised", &scale.is_some())
            .finish()
    }
}

impl Head {
    /// `task` under a name, which begins those of its metrics.
    pub fn new(name: impl Into<String>, task: impl Task + 'static) -> Self {
        Self { name: name.into(), task: Box::new(task), weight: 1.0, scale: None }
    }

    /// Multiplies its loss; 1 by default, and 0 for a head that is only evaluated. The weights of some heads must be above 0.
    pub fn weight(mut self, weight: f32) -> Self {
        self.weight = weight;
        self
    }

    /// Standardises its labels for the loss, so that numbers of any size train alongside other heads: the model's outputs are
    /// then in standard deviations from the mean. Metrics and [`Heads::outputs_of`] are in the units of the labels.
    ///
    /// `scale` has a column for each label of this head, as [`Standardisation::of_labels`] returns it.
    pub fn standardised(mut self, scale: &Standardisation) -> Self {
        self.scale = Some(scale.clone());
        self
    }

    /// What makes it unusable.
    fn fault(&self) -> Option<(String, &'static str)> {
        let (name, n_labels) = (&self.name, self.task.n_labels());
        if !(self.weight.is_finite() && self.weight >= 0.0) {
            return Some((format!("the weight {} of the head `{name}`", self.weight), "a finite number that is not negative"));
        }
        let n_scaled = self.scale.as_ref()?.mean().len();
        if self.task.label_kinds().iter().any(|&kind| kind != Labels::Numbers) {
            return Some((
                format!("standardised classes in the head `{name}`"),
                "`Head::standardised` only where labels are numbers",
            ));
        }
        let found = format!("a standardisation of {n_scaled} columns for the {n_labels} labels of the head `{name}`");
        (n_scaled != n_labels).then_some((found, "one of as many: `Standardisation::of_labels` of the head's label columns"))
    }

    /// The labels of the batch that are this head's, as its task takes them.
    fn labels(&self, rows: &LabelledRows, own: Range<usize>) -> Tensor {
        let n_labels = own.len();
        if n_labels == 0 {
            return rows.labels.clone();
        }
        let all = match rows.labels.shape() {
            &[n] => rows.labels.reshape(&[n, 1]),
            _ => rows.labels.clone(),
        };
        let labels = all.narrow(1, own);
        let labels = match &self.scale {
            None => labels,
            Some(scale) => {
                let row = |name, values: &[f32]| labels.graph().constant(name, values, &[1, values.len()]);
                (&labels - row("label_mean", scale.mean())) * row("label_inv_std", scale.inv_std())
            }
        };
        let labels = if n_labels == 1 { labels.squeeze(1) } else { labels };
        labels.cast(self.task.labels().dtype())
    }
}

impl Heads {
    /// `heads` in the order of their columns, in the outputs and in the labels.
    pub fn of(heads: impl Into<Vec<Head>>) -> Self {
        Self { heads: heads.into(), watched: "loss".to_owned() }
    }

    /// Sets the metric that decides which epoch was the best, such as `letter_accuracy`; `loss` by default.
    pub fn watch(mut self, metric: impl Into<String>) -> Self {
        self.watched = metric.into();
        self
    }

    /// The outputs of one head, in the units of its labels, given the outputs of the model.
    ///
    /// # Shapes
    /// `outputs`: `[n_rows, n_outputs]` of all heads; the result `[n_rows, n_outputs]` of this one; both row-major.
    /// # Errors
    /// [`Error::Setting`] if no head has this name; [`Error::Tensor`] if the outputs are not those of whole rows.
    pub fn outputs_of(&self, name: &str, outputs: &[f32]) -> Result<Vec<f32>, Error> {
        let n_outputs = self.n_outputs();
        let Some(Placed { head, outputs: own, .. }) = self.placed().find(|placed| placed.head.name == name) else {
            return Err(Error::setting("head", format!("`{name}`"), "the name of one of the task's heads"));
        };
        if n_outputs == 0 || !outputs.len().is_multiple_of(n_outputs) {
            let (expected, found) = (format!("[n_rows, {n_outputs}], the outputs of all heads"), vec![outputs.len()]);
            return Err(Error::shape("outputs_of", "outputs", expected, found));
        }
        let mut own = columns(outputs, n_outputs, &own);
        restore(head.scale.as_ref(), &mut own);
        Ok(own)
    }

    /// What makes the task unusable, and what is expected.
    fn fault(&self) -> Option<(String, &'static str)> {
        if self.heads.is_empty() {
            return Some(("a task of no heads".to_owned(), "at least one"));
        }
        let is_earlier = |i: usize| self.heads[..i].iter().any(|head| head.name == self.heads[i].name);
        if let Some(i) = (0..self.heads.len()).find(|&i| is_earlier(i)) {
            return Some((format!("two heads of the name `{}`", self.heads[i].name), "different names"));
        }
        let are_all_zero = self.heads.iter().all(|head| head.weight == 0.0);
        let of_weights = are_all_zero.then(|| ("weights of the heads that are all 0".to_owned(), "one above 0"));
        self.heads.iter().find_map(Head::fault).or(of_weights)
    }

    fn placed(&self) -> impl Iterator<Item = Placed<'_>> {
        self.heads.iter().scan((0, 0), |(output, label), head| {
            let (outputs, labels) = (*output..*output + head.task.n_outputs(), *label..*label + head.task.n_labels());
            (*output, *label) = (outputs.end, labels.end);
            Some(Placed { head, outputs, labels })
        })
    }
}

impl Task for Heads {
    fn labels(&self) -> Labels {
        Labels::Mixed
    }

    fn n_labels(&self) -> usize {
        self.heads.iter().map(|head| head.task.n_labels()).sum()
    }

    fn label_kinds(&self) -> Vec<Labels> {
        self.heads.iter().flat_map(|head| head.task.label_kinds()).collect()
    }

    fn check(&self) -> Result<(), Error> {
        if let Some((found, expected)) = self.fault() {
            return Err(Error::setting("heads", found, expected));
        }
        self.heads.iter().try_for_each(|head| head.task.check())
    }

    fn n_outputs(&self) -> usize {
        self.heads.iter().map(|head| head.task.n_outputs()).sum()
    }

    #[track_caller]
    fn loss(&self, outputs: &Tensor, rows: &LabelledRows) -> Tensor {
        let losses = self.placed().map(|Placed { head, outputs: own, labels }| {
            let rows = LabelledRows { labels: head.labels(rows, labels), ..rows.clone() };
            let loss = super::record_loss(&*head.task, &outputs.narrow(1, own), &rows).cast(DType::F32);
            if head.weight == 1.0 { loss } else { loss * head.weight }
        });
        losses.reduce(|sum, loss| sum + loss).unwrap_or_else(|| rows.reduce(&rows.weights))
    }

    fn metrics(&self) -> Vec<Box<dyn Metric>> {
        let of_head = |Placed { head, outputs, labels }: Placed<'_>| {
            let of = |metric| HeadMetric::new(&head.name, metric, [&outputs, &labels], head.scale.as_ref());
            head.task.metrics().into_iter().map(of).collect::<Vec<_>>()
        };
        self.placed().flat_map(of_head).map(|metric| Box::new(metric) as Box<dyn Metric>).collect()
    }

    fn watched(&self) -> &str {
        &self.watched
    }
}
