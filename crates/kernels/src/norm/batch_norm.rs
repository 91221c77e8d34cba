use super::batch_norm_cpu;
use super::batch_norm_shape::BatchNormShape;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conversion::stored_form::{StoredForm, by_stored_form, sharing};
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::interval::{Interval, check_settings};
use crate::kernel::kernel::{Cost, Kernel, Signature};
use crate::kernel::twin::TwinArgs;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::{module, part};
use crate::sizes::check_size;
use crate::storage::element::with_element;
use crate::storage::stored_types::{Group, Template};

const X: &[Group] = &[Group::one("X").loads()];
const BATCH_NORM_STATS: Template = Template::new(&[part!("batch_norm_stats.wgsl"), part!("batch_norm_equal_weights.wgsl")], X);
const WEIGHTED_STATS: Template = Template::new(&[part!("batch_norm_stats.wgsl"), part!("batch_norm_row_weights.wgsl")], X);

/// The statistics of a batch, by group and channel, and an update of the running statistics:
/// `stats = (mean, 1 / √(var + ε))` with the variance of all values of a channel, and
/// `running = (1 - momentum) running + momentum · new`, `new` being the mean over the groups of the mean and of the unbiased
/// variance.
///
/// Rows may have weights: a mean is then `Σ w x / Σ w`, a variance `Σ w (x - mean)² / Σ w`, and the unbiased variance is that of
/// `(Σ w)² / Σ w²` rows. Weights of 0 and 1 give the statistics of the rows of weight 1, and a common factor of all weights has
/// no effect. A group with at most one row of a weight above 0 has no unbiased variance and leaves the running statistics as they
/// are; without any such row its statistics are 0.
///
/// # Shapes
/// `x`: `[n_rows, n_channels]`; `weights`, if there are any: `[n_weights]`, whose squares must be finite; `running_mean`,
/// `running_var`: `[n_channels]`, updated in place; `stats`: `[n_groups, 2, n_channels]`.
/// # Dtypes
/// f32; `x` in f16 and bf16 by [`stored`](crate::stored). Each part's mean is subtracted before its squares are summed; parts are
/// merged in order (Chan, Golub & LeVeque 1983), on GPUs in two levels if there are many, so that a mean far from 0 does not
/// reduce the precision of the variance.
/// # Errors
/// [`Error::Size`] if the groups do not divide the rows, or a group has fewer than two rows, which have no unbiased variance.
/// # Reference
/// Ioffe & Szegedy 2015, arXiv:1502.03167; `torch.nn.functional.batch_norm`; ghost batches: Hoffer et al. 2017, arXiv:1705.08741.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchNormStats {
    /// The sizes.
    pub shape: BatchNormShape,
    /// The number of weights, each of which is that of equally many consecutive rows; 0 if all rows count alike.
    pub n_weights: usize,
    /// ε, added to the variance.
    pub eps: f32,
    /// The fraction of the running statistics that is replaced.
    pub momentum: f32,
}

impl Kernel for BatchNormStats {
    fn signature(&self) -> Signature {
        let shape = &self.shape;
        let mut args = vec![Arg::read("x", DType::F32, shape.len())];
        if self.n_weights > 0 {
            args.push(Arg::read("weights", DType::F32, self.n_weights));
        }
        args.extend([
            Arg::read_write("running_mean", DType::F32, shape.n_channels),
            Arg::read_write("running_var", DType::F32, shape.n_channels),
            Arg::write("stats", DType::F32, shape.n_stats()),
            Arg::scratch("parts", DType::F32, shape.n_parts().saturating_mul(shape.part_len())),
        ]);
        if shape.has_blocks() {
            args.push(Arg::scratch("joined", DType::F32, shape.n_blocks().saturating_mul(shape.part_len())));
        }
        Signature::new("batch_norm_stats", args)
    }

    fn check(&self) -> Result<(), Error> {
        self.shape.check(self)?;
        check_settings(self, &[("eps", self.eps, Interval::NonNegative), ("momentum", self.momentum, Interval::Unit)])?;
        let group_rows = self.shape.group_rows();
        let expected = "at least 2, for a variance; use larger batches or fewer groups";
        check_size(self.name(), ("rows of a group", group_rows), group_rows >= 2, expected)?;
        if self.n_weights > 0 { self.shape.check_divisor(self, "n_weights", self.n_weights) } else { Ok(()) }
    }

    by_stored_form!();

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let weights = if self.n_weights > 0 { args.read("weights") } else { &[] };
        let running = ["running_mean", "running_var"].map(|name| args.write(name));
        let (stats, parts) = (args.write("stats"), args.write("parts"));
        with_element!(args.dtype("x"), T => batch_norm_cpu::stats::<T>(self, args.read("x"), weights, running, stats, parts));
    }

    fn cost(&self) -> Cost {
        let n = self.shape.len() as u64;
        Cost { flops: 4 * n, bytes: 4 * n }
    }
}

impl StoredForm for BatchNormStats {
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        sharing(self, &[0], dtypes)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let (shape, args, is_weighted) = (&self.shape, self.args(), self.n_weights > 0);
        let template = if is_weighted { &WEIGHTED_STATS } else { &BATCH_NORM_STATS };
        let (module, n) = (template.module(&[("X", dtypes[0])]), shape.n_parts().saturating_mul(shape.n_channels));
        let part = Dispatch::elementwise(self.name(), "kernels.batch_norm_stats", module, n)?.params(shape.params());
        let part = match is_weighted {
            true => part.param("weight_rows", shape.n_rows / self.n_weights).bind(&args, ["x", "weights"], ["parts"])?,
            false => part.bind(&args, ["x"], ["parts"])?,
        };
        let mut dispatches = vec![part];
        let (merged, group_parts) = if shape.has_blocks() {
            let (block_parts, group_blocks) = (shape.block_parts(), shape.group_blocks());
            let module = module!("batch_norm_stats_join.wgsl", "batch_norm_merge_parts.wgsl");
            let n = shape.n_blocks().saturating_mul(shape.n_channels);
            let join = Dispatch::elementwise(self.name(), "kernels.batch_norm_stats.join", module, n)?
                .param("n_channels", shape.n_channels)
                .param("n_groups", shape.n_groups)
                .param("group_parts", shape.group_parts())
                .param("block_parts", block_parts)
                .param("group_blocks", group_blocks);
            dispatches.push(join.bind(&args, ["parts"], ["joined"])?);
            (Binding::of("joined").named("parts"), group_blocks)
        } else {
            (Binding::of("parts"), shape.group_parts())
        };
        let module = module!("batch_norm_stats_merge.wgsl", "batch_norm_merge_parts.wgsl");
        let merge = Dispatch::elementwise(self.name(), "kernels.batch_norm_stats.merge", module, shape.n_channels)?
            .param("n_channels", shape.n_channels)
            .param("n_groups", shape.n_groups)
            .param("group_parts", group_parts)
            .param("eps", self.eps)
            .param("momentum", self.momentum);
        dispatches.push(merge.bind(&args, [merged], ["running_mean", "running_var", "stats"])?);
        Ok(dispatches)
    }
}

/// The statistics of [`BatchNormStats`] from the running ones, which stay as they are: for normalisation outside of training.
///
/// # Shapes
/// `running_mean`, `running_var`: `[n_channels]`; `stats`: `[1, 2, n_channels]`.
/// # Dtypes
/// f32.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchNormFrozenStats {
    /// Channels.
    pub n_channels: usize,
    /// ε, added to the variance.
    pub eps: f32,
}

impl Kernel for BatchNormFrozenStats {
    fn signature(&self) -> Signature {
        let running = |name| Arg::read(name, DType::F32, self.n_channels);
        let args =
            [running("running_mean"), running("running_var"), Arg::write("stats", DType::F32, self.n_channels.saturating_mul(2))];
        Signature::new("batch_norm_frozen_stats", args)
    }

    fn check(&self) -> Result<(), Error> {
        check_settings(self, &[("eps", self.eps, Interval::NonNegative)])?;
        check_sizes(self, &[("n_channels", self.n_channels)])
    }

    fn dispatches(&self, _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let (module, n) = (module!("batch_norm_frozen_stats.wgsl"), self.n_channels);
        let dispatch = Dispatch::elementwise(self.name(), "kernels.batch_norm_frozen_stats", module, n)?
            .param("n_channels", n)
            .param("eps", self.eps);
        Ok(vec![dispatch.bind(&self.args(), ["running_mean", "running_var"], ["stats"])?])
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        batch_norm_cpu::frozen_stats(self, args.read("running_mean"), args.read("running_var"), args.write("stats"));
    }
}
