use std::rc::Rc;
use std::sync::Arc;

use brisk_kernels::{
    Activation, BatchNorm, BatchNormFrozenGrad, BatchNormFrozenStats, BatchNormGrad, BatchNormGradSums, BatchNormShape,
    BatchNormStats, ColumnSum, DType,
};

use crate::loss::check_len;
use crate::sync_batch_norm::{SyncStats, SyncSums};
use crate::{Error, Tensor};

const OP: &str = "batch_norm";

/// What a batch normalisation takes beside its input.
#[derive(Debug, Clone, Copy)]
pub struct BatchNormOptions<'a> {
    /// What each channel is multiplied by, `[n_channels]`; 1 without. One that is no parameter is a frozen scale and gets no gradient.
    pub weight: Option<&'a Tensor>,
    /// What is then added to each channel, `[n_channels]`; 0 without.
    pub bias: Option<&'a Tensor>,
    /// The running mean, `[n_channels]`, bound from a buffer that outlives the run.
    pub running_mean: &'a Tensor,
    /// The running variance, likewise.
    pub running_var: &'a Tensor,
    /// By which statistics.
    pub statistics: Statistics,
    /// ε, added to the variance.
    pub eps: f32,
    /// What is done with the result, in the same kernel if its derivative follows from its output and [`Autocast::overrides`](crate::Autocast::overrides) leaves it.
    pub activation: Activation,
}

/// By which statistics a batch is normalised.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Statistics {
    /// Those of the batch, as in training: the running ones take a step towards them.
    Batch {
        /// Equal runs of images or rows, each normalised by itself: ghost batch normalisation. 1 for the whole batch.
        n_groups: usize,
        /// How much of the running statistics is replaced.
        momentum: f32,
    },
    /// The running ones, which stay as they are, as in evaluation.
    Running,
}

impl Tensor {
    /// Normalises each channel over all that comes before it: rows, or the pixels of all images.
    ///
    /// # Shapes
    /// `self`: `[n_rows, n_channels]`, or `[n_images, height, width, n_channels]`; the result likewise. Groups are runs of the first dimension.
    /// # Dtypes
    /// Any for `self`, and the result likewise; weight, bias and statistics are f32.
    /// # Errors
    /// [`Error::Shape`], also where the groups do not divide the rows or images; [`Error::ForeignTensor`]; [`Error::Program`] where a group has fewer
    /// than two values a channel.
    /// # Reference
    /// `torch.nn.functional.batch_norm`. With groups the running statistics take the mean over the groups of what each would have given.
    pub fn batch_norm(&self, options: &BatchNormOptions<'_>) -> Result<Self, Error> {
        if self.graph().fuses(options.activation) {
            self.batch_norm_fused(options)
        } else {
            self.batch_norm_fused(&BatchNormOptions { activation: Activation::Identity, ..*options })?
                .activate(options.activation)
        }
    }

    fn batch_norm_fused(&self, options: &BatchNormOptions<'_>) -> Result<Self, Error> {
        let &BatchNormOptions { weight, bias, running_mean, running_var, statistics, eps, activation } = options;
        let graph = self.graph();
        let shape = self.batch_norm_shape(statistics)?;
        let given =
            [("weight", weight), ("bias", bias), ("running_mean", Some(running_mean)), ("running_var", Some(running_var))];
        for (name, tensor) in given {
            if let Some(tensor) = tensor {
                check_len(OP, name, self, tensor, shape.n_channels)?;
            }
        }
        let filled = |name, value| graph.constant(name, &vec![value; shape.n_channels], &[shape.n_channels]);
        let weight = weight.map_or_else(|| filled("ones", 1.0), |weight| Ok(weight.clone()))?;
        let bias = bias.map_or_else(|| filled("zeros", 0.0), |bias| Ok(bias.clone()))?;
        let is_of_one_group = matches!(statistics, Statistics::Batch { n_groups: 1, .. });
        let replicas = graph.replicas().filter(|_| is_of_one_group);
        let kernel = BatchNorm { shape, activation };
        let (dtype, [input]) = graph.operands(OP, &kernel, [self])?;
        let (stats, y) = (graph.transient("stats", DType::F32, shape.n_stats()), graph.transient(OP, dtype, shape.len()));
        let (x, mean, var) = (input.slice(), running_mean.slice(), running_var.slice());
        match statistics {
            Statistics::Batch { momentum, .. } => match &replicas {
                None => graph.push(BatchNormStats { shape, eps, momentum }, &[x, mean, var, stats])?,
                Some(replicas) => {
                    graph.push(BatchNormStats { shape, eps, momentum: 0.0 }, &[x, mean, var, stats])?;
                    let BatchNormShape { n_channels, n_rows, .. } = shape;
                    let sync = SyncStats { replicas: replicas.clone(), n_channels, n_rows, eps, momentum };
                    graph.with_program(|program| program.push_host(Arc::new(sync), &[stats, mean, var]))?;
                }
            },
            Statistics::Running => {
                graph.push(BatchNormFrozenStats { n_channels: shape.n_channels, eps }, &[mean, var, stats])?;
            }
        }
        graph.push(kernel, &[x, stats, weight.slice(), bias.slice(), y])?;

        let (x_id, weight_id, bias_id, w) = (input.id(), weight.id(), bias.id(), weight.slice());
        let rule = move |backward: &mut crate::Backward<'_>, dz| {
            let is_of_batch = matches!(statistics, Statistics::Batch { .. });
            let sums = [(); 2].map(|()| backward.transient("batch_norm_sums", DType::F32, shape.n_stats() / 2));
            if backward.wants(weight_id) || backward.wants(bias_id) || is_of_batch {
                backward.push(BatchNormGradSums { shape }, &[dz, x, stats, sums[0], sums[1]])?;
            }
            let over_groups = ColumnSum { n_rows: shape.n_groups, n_cols: shape.n_channels };
            for (id, sum) in [(bias_id, sums[0]), (weight_id, sums[1])] {
                if backward.wants(id) {
                    backward.give(id, over_groups, &[sum])?;
                }
            }
            if let Some(replicas) = replicas.clone().filter(|_| backward.wants(x_id)) {
                let BatchNormShape { n_channels, n_rows, .. } = shape;
                backward.push_host(Arc::new(SyncSums { replicas, n_channels, n_rows }), &sums)?;
            }
            match (backward.wants(x_id), is_of_batch) {
                (false, _) => Ok(()),
                (true, true) => backward.give(x_id, BatchNormGrad { shape }, &[dz, x, stats, w, sums[0], sums[1]]),
                (true, false) => backward.give(x_id, BatchNormFrozenGrad { shape }, &[dz, stats, w]),
            }
        };
        graph.result(OP, &[&input, &weight, &bias], y, self.shape(), Some(activation), Rc::new(rule))
    }

    fn batch_norm_shape(&self, statistics: Statistics) -> Result<BatchNormShape, Error> {
        let found = || self.shape().to_vec();
        let (&[n_first, ref within @ .., n_channels], 2 | 4) = (self.shape(), self.shape().len()) else {
            let expected = "[n_rows, n_channels], or [n_images, height, width, n_channels]".to_owned();
            return Err(Error::Shape { op: OP, arg: "x", expected, found: found() });
        };
        let n_groups = match statistics {
            Statistics::Batch { n_groups, .. } => n_groups,
            Statistics::Running => 1,
        };
        if n_groups == 0 || !n_first.is_multiple_of(n_groups) {
            let expected = format!("a first dimension that is cut into {n_groups} equal groups");
            return Err(Error::Shape { op: OP, arg: "x", expected, found: found() });
        }
        Ok(BatchNormShape { n_rows: n_first * within.iter().product::<usize>(), n_channels, n_groups })
    }
}
