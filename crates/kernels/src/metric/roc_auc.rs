use super::roc_auc_cpu;
use crate::core::module::module;
use crate::core::sizes::check_sizes;
use crate::{Adapter, Arg, Cost, DType, Dispatch, Error, Kernel, Reduce, ReduceOp, TwinArgs, fold_workgroups};

/// The area under the ROC curve: the probability that a row labelled 1, drawn by weight, scores above one labelled 0, ties counting half.
///
/// Exact: rows are sorted by score, not put into bins. Rows of weight 0, such as padding, do not count, whatever their score. A score that is
/// NaN, or one class alone, makes it NaN. Any increasing function of a score serves, so logits need no sigmoid.
///
/// # Shapes
/// `scores`, `labels`, `weights`: `[n]`; `y`: `[1]`.
/// # Dtypes
/// f32; a label above 0 is a 1, weights are not negative. Sums of weights are f64 in the twin and f32 in runs of 64 on a GPU, where the area is
/// within about 1e-6 of the twin's.
/// # Errors
/// [`Error::Size`] for more than 2³⁰ rows.
/// # Cost
/// With `m` the least power of two that is not below `n`: on a GPU scratch of about `20 m` bytes and `(log₂ m)² / 6` dispatches that each read and write
/// `8 m`, of a bitonic sort that needs no workgroup memory. The twin sorts once.
/// # Reference
/// `sklearn.metrics.roc_auc_score(labels, scores, sample_weight=weights)`; Batcher 1968, *Sorting networks and their applications*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RocAuc {
    /// Rows.
    pub n: usize,
}

/// Distances of a sorting network that one dispatch goes through: an invocation holds 2³ elements.
const MOST_STEPS: usize = 3;
/// Elements that one invocation adds in a row. The shaders have the same number.
const RUN: usize = 64;

/// The arguments' places. Scratch: rows by score; weights of both classes, then their sums up to each row; such sums of runs, of runs of
/// runs and so on up to one; each row's share of the area; what a sum of those needs.
const PAIRS: usize = 4;
const SUMS: usize = 5;

impl RocAuc {
    fn n_padded(&self) -> usize {
        self.n.next_power_of_two()
    }

    /// Sums of runs, level by level; the first are the rows' own, the last is one.
    fn levels(&self) -> Vec<usize> {
        let mut levels = vec![self.n_padded()];
        while let Some(&last) = levels.last()
            && last > 1
        {
            levels.push(last.div_ceil(RUN));
        }
        levels
    }

    fn sum(&self) -> Reduce {
        Reduce::all(self.n_padded(), ReduceOp::Sum)
    }
}

impl Kernel for RocAuc {
    fn name(&self) -> &'static str {
        "roc_auc"
    }

    fn args(&self) -> Vec<Arg> {
        let m = self.n_padded();
        let mut args = vec![
            Arg::read("scores", DType::F32, self.n),
            Arg::read("labels", DType::F32, self.n),
            Arg::read("weights", DType::F32, self.n),
            Arg::write("y", DType::F32, 1),
            Arg::scratch("pairs", DType::U32, 2 * m),
        ];
        args.extend(self.levels().into_iter().map(|len| Arg::scratch("sums", DType::F32, 2 * len)));
        args.push(Arg::scratch("shares", DType::F32, m));
        args.extend(self.sum().args().into_iter().skip(2));
        args
    }

    fn check(&self) -> Result<(), Error> {
        if self.n > 1 << 30 {
            return Err(Error::Size { kernel: self.name(), size: "n", found: self.n, expected: "at most 2^30" });
        }
        check_sizes(self, &[("n", self.n)])
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let (m, levels) = (self.n_padded(), self.levels());
        let dispatch = |wgsl, n_lanes: usize, params: [usize; 4], reads: &[usize], write| {
            Ok(Dispatch {
                label: "kernels.roc_auc",
                wgsl,
                entry: "main",
                constants: vec![],
                params: bytemuck::cast_slice(&params.map(|word| word as u32)).to_vec(),
                reads: reads.to_vec(),
                writes: vec![write],
                workgroups: fold_workgroups(self.name(), n_lanes.div_ceil(64))?,
            })
        };
        let pairs = module!("roc_auc_pairs.wgsl");
        let mut dispatches = vec![dispatch(pairs, m, [m, self.n, 0, 0], &[0, 1, 2], PAIRS)?];

        // Blocks of twice the size each time, sorted up and down in turn, by exchanges over half of it, a quarter and so on.
        for log_block in 1..=m.ilog2() as usize {
            let mut log_distance = log_block;
            while log_distance > 0 {
                let n_steps = log_distance.min(MOST_STEPS);
                log_distance -= n_steps;
                let sort = module!("roc_auc_sort.wgsl");
                let n_lanes = m >> n_steps;
                let mut dispatch = dispatch(sort, n_lanes, [n_lanes, log_block, log_distance, 0], &[], PAIRS)?;
                dispatch.constants = vec![("STEPS", n_steps as f64)];
                dispatches.push(dispatch);
            }
        }

        let weights = module!("roc_auc_weights.wgsl");
        dispatches.push(dispatch(weights, m, [m, 0, 0, 0], &[PAIRS], SUMS)?);
        for (level, pair) in levels.windows(2).enumerate() {
            let up = module!("roc_auc_sums.wgsl");
            dispatches.push(dispatch(up, pair[1], [pair[0], pair[1], 0, 0], &[SUMS + level], SUMS + level + 1)?);
        }
        for (level, pair) in levels.windows(2).enumerate().rev() {
            let down = module!("roc_auc_scan.wgsl");
            dispatches.push(dispatch(down, pair[1], [pair[0], pair[1], 0, 0], &[SUMS + level + 1], SUMS + level)?);
        }

        let shares = SUMS + levels.len();
        let nan = f32::NAN.to_bits() as usize;
        let of_rows = module!("roc_auc_shares.wgsl");
        dispatches.push(dispatch(of_rows, m, [m, nan, 0, 0], &[PAIRS, SUMS], shares)?);
        // The sum's arguments are the shares, the result, and parts that follow the shares.
        let place = |arg: usize| match arg {
            0 => shares,
            1 => 3,
            part => shares + part - 1,
        };
        dispatches.extend(self.sum().dispatches(adapter)?.into_iter().map(|sum| Dispatch {
            reads: sum.reads.iter().copied().map(place).collect(),
            writes: sum.writes.iter().copied().map(place).collect(),
            ..sum
        }));
        Ok(dispatches)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        args.write::<f32>(3)[0] = roc_auc_cpu::run(args.read(0), args.read(1), args.read(2));
    }

    fn cost(&self) -> Cost {
        let n = self.n as u64;
        Cost { flops: 2 * n * u64::from(self.n_padded().ilog2()), bytes: 12 * n }
    }
}
