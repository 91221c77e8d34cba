//! Batch normalisation with the statistics of all replicas.

use std::error::Error as StdError;
use std::fmt::Debug;
use std::sync::Arc;

use brisk_kernels::{Arg, DType};
use brisk_program::{HostArgs, HostStep};

use crate::Graph;

type Failure = Box<dyn StdError + Send + Sync>;

/// How replicas of a model exchange the statistics of their batches.
pub trait AllGather: Debug + Send + Sync + 'static {
    /// The values of all replicas, concatenated by rank. All replicas have equally many.
    ///
    /// # Errors
    /// Any error; it ends the run.
    fn all_gather(&self, mine: &[f32]) -> Result<Vec<f32>, Failure>;
}

impl Graph {
    /// From here on, batches are normalised by the statistics of the rows of all replicas, not only of this one, whose statistics are noisy if it has few rows. Each
    /// normalisation then waits for all replicas twice per step, in the forward and in the backward pass. Ghost groups are not affected.
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

/// Replaces `(mean, 1 / √(var + ε))` of this replica's rows by that of all replicas, and updates the running statistics.
#[derive(Debug)]
pub(crate) struct SyncStats {
    pub(crate) replicas: Arc<dyn AllGather>,
    pub(crate) n_channels: usize,
    /// Rows of this replica.
    pub(crate) n_rows: usize,
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
        std::iter::once(Arg::read_write("stats", DType::F32, 2 * c)).chain(running).collect()
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let c = self.n_channels;
        let mut mine = vec![0.0_f32; 2 * c + 1];
        args.read(0, 0, &mut mine[..2 * c])?;
        mine[2 * c] = self.n_rows as f32;
        let all = self.replicas.all_gather(&mine)?;
        let eps = f64::from(self.eps);

        // Chan, Golub & LeVeque 1983, in the order of ranks, so that the results are bit-identical on all replicas.
        let (mut n, mut mean, mut squares) = (0.0_f64, vec![0.0_f64; c], vec![0.0_f64; c]);
        for theirs in all.chunks_exact(2 * c + 1) {
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
        }
        let inv_std = squares.iter().map(|squares| 1.0 / (squares / n + eps).sqrt());
        let stats: Vec<f32> = mean.iter().copied().chain(inv_std).map(|value| value as f32).collect();
        args.write(0, 0, &stats)?;

        let unbiased: Vec<f64> = squares.iter().map(|squares| squares / (n - 1.0)).collect();
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

/// Replaces the sums that the gradient of the input needs by those of all replicas, scaled to the number of rows of this replica.
#[derive(Debug)]
pub(crate) struct SyncSums {
    pub(crate) replicas: Arc<dyn AllGather>,
    pub(crate) n_channels: usize,
    pub(crate) n_rows: usize,
}

impl HostStep for SyncSums {
    fn name(&self) -> &'static str {
        "sync_batch_norm_sums"
    }

    fn args(&self) -> Vec<Arg> {
        vec![Arg::read_write("sums", DType::F32, 2 * self.n_channels)]
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Failure> {
        let c = self.n_channels;
        let mut mine = vec![0.0_f32; 2 * c + 1];
        args.read(0, 0, &mut mine[..2 * c])?;
        mine[2 * c] = self.n_rows as f32;
        let all = self.replicas.all_gather(&mine)?;
        let mut sums = vec![0.0_f64; 2 * c + 1];
        for theirs in all.chunks_exact(2 * c + 1) {
            sums.iter_mut().zip(theirs).for_each(|(sum, &theirs)| *sum += f64::from(theirs));
        }
        // The kernel divides by this replica's rows.
        let share = self.n_rows as f64 / sums[2 * c];
        let sums: Vec<f32> = sums[..2 * c].iter().map(|sum| (sum * share) as f32).collect();
        args.write(0, 0, &sums)?;
        Ok(())
    }
}
