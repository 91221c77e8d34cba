use std::sync::Arc;

use brisk_kernels::{Activation, BatchNormFrozenStats, BatchNormShape, BatchNormStats, DType};
use brisk_program::Slice;

use crate::error::Error;
use crate::graph::all_gather::AllGather;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::{Tensor, rows_of_last};
use crate::row_weights::NormWeights;
use crate::sync_batch_norm::{SyncStats, SyncSums, SyncedRows};

const NAME: &str = "batch_norm";

/// The parameters, statistics and options of a batch normalisation.
#[derive(Debug, Clone)]
pub struct BatchNormOptions<'a> {
    /// The scale of each channel, `[n_channels]`; 1 if `None`. One that is no parameter is frozen and gets no gradient.
    pub weight: Option<&'a Tensor>,
    /// The bias of each channel, `[n_channels]`; 0 if `None`.
    pub bias: Option<&'a Tensor>,
    /// The running mean, `[n_channels]`, bound from a persistent buffer.
    pub running_mean: &'a Tensor,
    /// The running variance, `[n_channels]`, bound from a persistent buffer.
    pub running_var: &'a Tensor,
    /// The statistics to normalise by.
    pub statistics: Statistics,
    /// ε, added to the variance.
    pub eps: f32,
    /// The activation of the result, in the same kernel unless [`Autocast::overrides`](crate::Autocast::overrides) names it.
    pub activation: Activation,
}

/// The statistics that a batch is normalised by.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum Statistics {
    /// Those of the batch, as in training. The running statistics are moved towards them.
    Batch {
        /// The number of equal groups of consecutive rows or images, each normalised on its own: ghost batch normalisation. 1 for
        /// the whole batch.
        n_groups: usize,
        /// The fraction of the running statistics that is replaced.
        momentum: f32,
    },
    /// The running statistics, which are not changed, as in evaluation.
    Running,
}

impl BatchNormOptions<'_> {
    /// The number of channels of `x`, if all other tensors have as many elements.
    fn check(&self, x: &Tensor) -> Result<usize, Error> {
        let n_channels = batch_norm_shape(x, self.statistics)?.n_channels;
        let running = [("running_mean", Some(self.running_mean)), ("running_var", Some(self.running_var))];
        for (arg, given) in [("weight", self.weight), ("bias", self.bias)].into_iter().chain(running) {
            if let Some(given) = given {
                x.graph().check_own(NAME, arg, given)?;
                given.check_len(NAME, arg, x.shape(), n_channels)?;
            }
        }
        Ok(n_channels)
    }
}

impl Tensor {
    /// Normalises each channel over all other dimensions: over the rows, or over the pixels of all images. If the graph has
    /// [weights](crate::Graph::set_row_weights) of the batch's rows, the statistics of a batch and the update of the running ones
    /// are weighted by them: rows of weight 0 count as absent, and a batch with at most one value per channel left does not
    /// change the running statistics.
    ///
    /// # Shapes
    /// `self`: `[n_rows, n_channels]`, or `[n_images, height, width, n_channels]`; the result likewise. Groups divide the first
    /// dimension.
    /// # Dtypes
    /// Any for `self`, and the result likewise; weight, bias and statistics are f32. The derivative of CELU follows from the
    /// result in all of them, as that of PyTorch's `celu_` does.
    /// # Errors
    /// [`Error::Shape`], also if the groups do not divide the rows or images ; [`Error::ForeignTensor`]; [`Error::Program`] if a
    /// group has fewer than two values per channel; [`Error::OneValue`] if the last batch of an epoch leaves a group with one.
    /// # Reference
    /// `torch.nn.functional.batch_norm`. With groups, the running statistics move by the mean of the updates of all groups.
    #[track_caller]
    pub fn batch_norm(&self, options: &BatchNormOptions<'_>) -> Self {
        let &BatchNormOptions { weight, bias, running_mean, running_var, statistics, eps, ref activation } = options;
        let graph = self.graph();
        let n_channels = match options.check(self) {
            Ok(n_channels) => n_channels,
            Err(error) => return self.refused(error, self.shape()),
        };
        let filled = |name, value| graph.constant(name, &vec![value; n_channels], &[n_channels]);
        let is_of_one_group = matches!(statistics, Statistics::Batch { n_groups: 1, .. });
        let replicas = graph.replicas().filter(|_| is_of_one_group);
        let row_weights = match statistics {
            Statistics::Running => Ok(None),
            Statistics::Batch { n_groups, .. } => graph.norm_weights(NAME, self, n_groups, replicas.is_some()),
        };
        let row_weights = match row_weights {
            Ok(row_weights) => row_weights,
            Err(error) => return self.refused(error, self.shape()),
        };
        let weight = weight.map_or_else(|| filled("ones", 1.0), Self::clone);
        let bias = bias.map_or_else(|| filled("zeros", 0.0), Self::clone);
        // A kernel must not have inputs that it does not read.
        let is_read = activation.forward.reads(0) && (activation.from_output.is_some() || activation.slope().reads(0));
        let is_fused = activation.is_identity() || is_read && !graph.overrides_activation();
        let operation = Normalisation {
            running: [running_mean.slice(), running_var.slice()],
            statistics,
            eps,
            activation: if is_fused { activation.clone() } else { Activation::identity() },
            replicas,
            row_weights,
        };
        let y = graph.apply(operation, &[self, &weight, &bias]);
        if is_fused { y } else { y.activate(activation.clone()) }
    }
}

#[derive(Debug)]
struct Normalisation {
    /// Mean and variance.
    running: [Slice; 2],
    statistics: Statistics,
    eps: f32,
    activation: Activation,
    /// The replicas that share the statistics of the batch.
    replicas: Option<Arc<dyn AllGather>>,
    /// The weights of the rows of the batch, if not all count alike.
    row_weights: Option<NormWeights>,
}

impl Normalisation {
    fn shape(&self, x: &[usize]) -> BatchNormShape {
        let (n_rows, n_channels) = rows_of_last(x);
        BatchNormShape { n_rows, n_channels, n_groups: n_groups(self.statistics) }
    }

    /// The weights as they were set, if there are any.
    fn row_weights(&self) -> Option<Slice> {
        self.row_weights.as_ref().map(|of| of.weights)
    }

    /// How the `n_rows` rows of this replica count among those of all.
    fn synced(&self, n_rows: usize) -> SyncedRows {
        SyncedRows { n_rows, n_weights: self.row_weights().map_or(0, |weights| weights.len()) }
    }
}

impl Operation for Normalisation {
    fn signature(&self) -> Signature {
        Signature { n_operands: 1, ..Signature::new(NAME, &["x", "weight", "bias"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let shape = batch_norm_shape(inputs[0], self.statistics)?;
        for (arg, input) in [("weight", inputs[1]), ("bias", inputs[2])] {
            input.check_len(NAME, arg, inputs[0].shape(), shape.n_channels)?;
        }
        check_kernel(&shape.normalise(&self.activation))?;
        Ok(inputs[0].shape().to_vec())
    }

    /// For another activation, the backward pass computes its input again.
    fn output_activation(&self) -> Option<Activation> {
        self.activation.from_output.is_some().then(|| self.activation.clone())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let shape = self.shape(forward.shape(0));
        let BatchNormShape { n_channels, n_rows, .. } = shape;
        let (x, [mean, var], eps) = (forward.input(0), self.running, self.eps);
        let stats = forward.transient("stats", DType::F32, shape.n_stats());
        if let Statistics::Batch { momentum, .. } = self.statistics {
            let (n_weights, shares) = self.row_weights.as_ref().map_or((0, None), |of| (of.shares.len(), Some(of.shares)));
            let own_momentum = if self.replicas.is_some() { 0.0 } else { momentum };
            let args = [Some(x), shares, Some(mean), Some(var), Some(stats)];
            let kernel = BatchNormStats { shape, n_weights, eps, momentum: own_momentum };
            forward.push(kernel, &args.into_iter().flatten().collect::<Vec<_>>())?;
            if let Some(replicas) = self.replicas.clone() {
                let sync = SyncStats { replicas, n_channels, rows: self.synced(n_rows), eps, momentum };
                forward.push_host(Arc::new(sync), &[&[stats, mean, var], self.row_weights().as_slice()].concat())?;
            }
        } else {
            forward.push(BatchNormFrozenStats { n_channels, eps }, &[mean, var, stats])?;
        }
        let (weight, bias, y) = (forward.input(1), forward.input(2), forward.output());
        forward.push(shape.normalise(&self.activation), &[x, stats, stats, weight, bias, y])?;
        forward.save(stats);
        Ok(())
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let shape = self.shape(backward.shape(0));
        let BatchNormShape { n_channels, n_rows, .. } = shape;
        let (x, weight, stats) = (backward.input(0), backward.input(1), backward.saved(0));
        let mut dz = backward.grad();
        if self.activation.from_output.is_none() {
            let (dy, bias) = (dz, backward.input(2));
            dz = backward.transient("gradient", dy.dtype(), dy.len());
            backward.push(shape.activation_grad(&self.activation), &[dy, x, stats, stats, weight, bias, dz])?;
        }
        let is_of_batch = matches!(self.statistics, Statistics::Batch { .. });
        let sums = backward.transient("batch_norm_sums", DType::F32, shape.n_stats());
        if backward.wants(1) || backward.wants(2) || is_of_batch {
            backward.push(shape.grad_sums(), &[dz, x, stats, stats, sums])?;
        }
        for (i, kernel) in [(2, shape.grad_bias()), (1, shape.grad_weight())] {
            if backward.wants(i) {
                backward.give(i, kernel, &[sums])?;
            }
        }
        if !backward.wants(0) {
            return Ok(());
        }
        if let Some(replicas) = self.replicas.clone() {
            let sync = SyncSums { replicas, n_channels, rows: self.synced(n_rows) };
            backward.push_host(Arc::new(sync), &[&[sums], self.row_weights().as_slice()].concat())?;
        }
        if let Some(NormWeights { shares, .. }) = self.row_weights {
            let n_weights = shares.len();
            let factors = [(); 3].map(|()| backward.transient("batch_norm_factors", DType::F32, shape.n_stats() / 2));
            let args = [stats, weight, sums, sums];
            backward.push(shape.weighted_grad_factors(n_weights), &[&args[..], &factors].concat())?;
            return backward.give(0, shape.weighted_grad_x(n_weights), &[&[dz, x, shares, stats][..], &factors].concat());
        }
        match is_of_batch {
            true => backward.give(0, shape.grad_x(), &[dz, x, stats, stats, weight, sums, sums]),
            false => backward.give(0, shape.frozen_grad_x(), &[dz, stats, weight]),
        }
    }
}

fn batch_norm_shape(x: &Tensor, statistics: Statistics) -> Result<BatchNormShape, Error> {
    let found = || x.shape().to_vec();
    if !matches!(x.shape().len(), 2 | 4) {
        let expected = "[n_rows, n_channels], or [n_images, height, width, n_channels]".to_owned();
        return Err(Error::Shape { op: NAME, arg: "x", expected, found: found() });
    }
    let n_groups = n_groups(statistics);
    if n_groups == 0 || !x.shape()[0].is_multiple_of(n_groups) {
        let expected = format!("a first dimension that {n_groups} groups divide evenly");
        return Err(Error::Shape { op: NAME, arg: "x", expected, found: found() });
    }
    let (n_rows, n_channels) = x.rows_of_last();
    Ok(BatchNormShape { n_rows, n_channels, n_groups })
}

fn n_groups(statistics: Statistics) -> usize {
    match statistics {
        Statistics::Batch { n_groups, .. } => n_groups,
        Statistics::Running => 1,
    }
}
