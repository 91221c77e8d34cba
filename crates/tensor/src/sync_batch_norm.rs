//! Batch normalisation with the statistics of all replicas.

use std::sync::Arc;

use brisk_kernels::{Arg, DType};
use brisk_program::{HostArgs, HostStep};

use crate::graph::Graph;
use crate::graph::all_gather::{AllGather, Failure};

impl Graph {
    /// From here on, batches are normalised by the statistics of the rows of all replicas, not only of this one, whose statistics
    /// are noisy if it has few rows. Each normalisation then waits for all replicas twice per step, in the forward and in the
    /// backward pass. Ghost groups are not affected.
    ///
    /// # Reference
    /// `torch.nn.SyncBatchNorm`.
    pub fn synchronise_batch_norm(&self, replicas: Arc<dyn AllGather>) {
        self.inner_mut().replicas = Some(replicas);
    }

    pub(crate) fn replicas(&self) -> Option<Arc<dyn AllGather>> {
        self.inner().replicas.clone()
    }
}

/// The rows of this replica in a normalisation by the statistics of all.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SyncedRows {
    pub(crate) n_rows: usize,
    /// The number of their weights, each of which is that of equally many rows; 0 if all rows count alike.
    pub(crate) n_weights: usize,
}

impl SyncedRows {
    /// The argument of a host step that has the weights.
    fn arg(self) -> Option<Arg> {
        (self.n_weights > 0).then(|| Arg::read("row_weights", DType::F32, self.n_weights))
    }

    /// The sum of the weights of the rows, and that of their squares; `arg` is the number of the argument with the weights.
    fn total(self, args: &mut HostArgs<'_>, arg: usize) -> Result<[f64; 2], Failure> {
        if self.n_weights == 0 {
            return Ok([self.n_rows as f64; 2]);
        }
        let mut weights = vec![0.0_f32; self.n_weights];
        args.read(arg, 0, &mut weights)?;
        let weight_rows = (self.n_rows / self.n_weights) as f64;
        Ok([1, 2].map(|power| weight_rows * weights.iter().map(|&weight| f64::from(weight).powi(power)).sum::<f64>()))
    }
}

/// Replaces `(mean, 1 / √(var + ε))` of this replica's rows by that of all replicas, and updates the running statistics.
#[derive(Debug)]
pub(crate) struct SyncStats {
    pub(crate) replicas: Arc<dyn AllGather>,
    pub(crate) n_channels: usize,
    pub(crate) rows: SyncedRows,
    pub(crate) eps: f32,
    pub(crate) momentum: f32,
}

impl HostStep for SyncStats {
    fn name(&self) -> &'static str {
        "sync_batch_norm_stats"
    }

    fn args(&self) -> Vec<Arg> {
        let c = self.n_channels;
        let running = ["running_mean", "running_var"].map(|name| Arg::read_write(name, DType::F32, c));
        std::iter::once(Arg::read_write("stats", DType::F32, 2 * c)).chain(running).chain(self.rows.arg()).collect()
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let c = self.n_channels;
        let mut mine = vec![0.0_f32; 2 * c + 2];
        args.read(0, 0, &mut mine[..2 * c])?;
        mine[2 * c..].copy_from_slice(&self.rows.total(args, 3)?.map(|total| total as f32));
        let all = self.replicas.all_gather(&mine)?;
        let eps = f64::from(self.eps);

        // Chan, Golub & LeVeque 1983, in the order of ranks, so that the results are bit-identical on all replicas.
        let (mut n, mut squared, mut mean, mut squares) = (0.0_f64, 0.0_f64, vec![0.0_f64; c], vec![0.0_f64; c]);
        for theirs in all.chunks_exact(2 * c + 2).filter(|theirs| theirs[2 * c] > 0.0) {
            let n_theirs = f64::from(theirs[2 * c]);
            let share = n_theirs / (n + n_theirs);
            for channel in 0..c {
                let (their_mean, inv_std) = (f64::from(theirs[channel]), f64::from(theirs[c + channel]));
                let their_var = (1.0 / (inv_std * inv_std) - eps).max(0.0);
                let off = their_mean - mean[channel];
                squares[channel] += n_theirs * their_var + off * off * n * share;
                mean[channel] += off * share;
            }
            n += n_theirs;
            squared += f64::from(theirs[2 * c + 1]);
        }
        let inv_std = squares.iter().map(|squares| if n > 0.0 { 1.0 / (squares / n + eps).sqrt() } else { 0.0 });
        let stats: Vec<f32> = mean.iter().copied().chain(inv_std).map(|value| value as f32).collect();
        args.write(0, 0, &stats)?;

        let n_unbiased = n - squared / n;
        // NaN if no row has a weight above 0.
        if n_unbiased.is_nan() || n_unbiased <= 0.0 {
            return Ok(());
        }
        let unbiased: Vec<f64> = squares.iter().map(|squares| squares / n_unbiased).collect();
        for (arg, new) in [(1, &mean), (2, &unbiased)] {
            let mut running = vec![0.0_f32; c];
            args.read(arg, 0, &mut running)?;
            for (running, &new) in running.iter_mut().zip(new) {
                *running = (1.0 - self.momentum) * *running + self.momentum * new as f32;
            }
            args.write(arg, 0, &running)?;
        }
        Ok(())
    }
}

/// Replaces the sums that the gradient of the input needs by those of all replicas, scaled to the rows of this replica.
#[derive(Debug)]
pub(crate) struct SyncSums {
    pub(crate) replicas: Arc<dyn AllGather>,
    pub(crate) n_channels: usize,
    pub(crate) rows: SyncedRows,
}

impl HostStep for SyncSums {
    fn name(&self) -> &'static str {
        "sync_batch_norm_sums"
    }

    fn args(&self) -> Vec<Arg> {
        std::iter::once(Arg::read_write("sums", DType::F32, 2 * self.n_channels)).chain(self.rows.arg()).collect()
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let c = self.n_channels;
        let mut mine = vec![0.0_f32; 2 * c + 1];
        args.read(0, 0, &mut mine[..2 * c])?;
        let [total, _] = self.rows.total(args, 1)?;
        mine[2 * c] = total as f32;
        let all = self.replicas.all_gather(&mine)?;
        let mut sums = vec![0.0_f64; 2 * c + 1];
        for theirs in all.chunks_exact(2 * c + 1) {
            sums.iter_mut().zip(theirs).for_each(|(sum, &theirs)| *sum += f64::from(theirs));
        }
        // The kernel divides by the rows of this replica, or their weights.
        let share = if total > 0.0 { total / sums[2 * c] } else { 0.0 };
        let sums: Vec<f32> = sums[..2 * c].iter().map(|sum| (sum * share) as f32).collect();
        args.write(0, 0, &sums)?;
        Ok(())
    }
}
