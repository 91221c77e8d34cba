//! What communication will cost on machines that are not here.

use std::time::Duration;

use crate::ZeroStage;

/// A network between ranks: the time of a message is its latency and its bytes at the bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// From one rank to another, of the smallest message.
    pub latency: Duration,
    /// Of one rank, each way.
    pub bytes_per_s: f64,
}

/// How values go round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// `2 (N - 1)` messages of an `N`th: the least bytes, the most messages.
    Ring,
    /// Halving and doubling (Rabenseifner): the same bytes in `2 log2 N` messages.
    Tree,
}

/// A step of training on one rank, as measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// From the batch to the end of the forward pass.
    pub forward: Duration,
    /// The backward pass, the gradients of the buckets coming evenly in it.
    pub backward: Duration,
    /// The optimizer's part.
    pub update: Duration,
    /// Bytes of each bucket of gradients, in the order of their reduction.
    pub bucket_bytes: Vec<usize>,
}

impl Link {
    /// The time of an all-reduce of `n_bytes` over `n_ranks`: `2 (N - 1) / N` of the bytes each way, whatever the algorithm.
    ///
    /// # Reference
    /// Thakur, Rabenseifner & Gropp 2005, *Optimization of collective communication operations in MPICH*.
    pub fn all_reduce(&self, n_ranks: usize, n_bytes: usize, algorithm: Algorithm) -> Duration {
        2 * self.one_way(n_ranks, n_bytes, algorithm)
    }

    /// The time of a reduce-scatter, or of an all-gather: half an all-reduce.
    pub fn one_way(&self, n_ranks: usize, n_bytes: usize, algorithm: Algorithm) -> Duration {
        if n_ranks < 2 {
            return Duration::ZERO;
        }
        let n_messages = match algorithm {
            Algorithm::Ring => n_ranks - 1,
            Algorithm::Tree => n_ranks.next_power_of_two().trailing_zeros() as usize,
        };
        let share = (n_ranks - 1) as f64 / n_ranks as f64;
        self.latency * n_messages as u32 + Duration::from_secs_f64(n_bytes as f64 * share / self.bytes_per_s)
    }
}

impl Step {
    /// The time of the step on one rank alone.
    pub fn alone(&self) -> Duration {
        self.forward + self.backward + self.update
    }

    /// The time of the step on each of `n_ranks`, buckets being reduced one after the other on the link while the rest of backward runs.
    ///
    /// By stage: gradients are all-reduced, or reduce-scattered and the new parameters gathered behind the update, which each rank does for its shard;
    /// with the parameters sharded they are gathered ahead of both passes instead, each bucket's while the one before is computed.
    pub fn predicted(&self, n_ranks: usize, stage: ZeroStage, link: Link, algorithm: Algorithm) -> Duration {
        let n = self.bucket_bytes.len().max(1) as u32;
        let n_bytes: usize = self.bucket_bytes.iter().sum();
        let reduced = |n_bytes: usize| match stage {
            ZeroStage::Replicated => link.all_reduce(n_ranks, n_bytes, algorithm),
            _ => link.one_way(n_ranks, n_bytes, algorithm),
        };
        let gathered = |n_bytes: usize| match stage {
            ZeroStage::Parameters => link.one_way(n_ranks, n_bytes, algorithm),
            _ => Duration::ZERO,
        };
        if self.bucket_bytes.is_empty() {
            return self.alone();
        }
        // Parameters come one bucket after the other, and each is computed with once they are there.
        let (mut computed, mut link_free) = (Duration::ZERO, Duration::ZERO);
        for &n_bytes in self.bucket_bytes.iter().rev() {
            link_free += gathered(n_bytes);
            computed = computed.max(link_free) + self.forward / n;
        }
        // Those of the next bucket are sent for ahead of the gradients of this one.
        link_free = computed + gathered(self.bucket_bytes[0]);
        let mut there = link_free;
        for (i, &n_bytes) in self.bucket_bytes.iter().enumerate() {
            let begin = if stage == ZeroStage::Parameters { computed.max(there) } else { computed };
            link_free += self.bucket_bytes.get(i + 1).map_or(Duration::ZERO, |&next| gathered(next));
            there = link_free;
            computed = begin + self.backward / n;
            link_free = link_free.max(computed) + reduced(n_bytes);
        }
        let done = computed.max(link_free);
        let update = if stage == ZeroStage::Replicated { self.update } else { self.update / n_ranks.max(1) as u32 };
        let gathered_behind = match stage {
            ZeroStage::Optimizer | ZeroStage::Gradients => link.one_way(n_ranks, n_bytes, algorithm),
            ZeroStage::Replicated | ZeroStage::Parameters => Duration::ZERO,
        };
        done + update + gathered_behind
    }

    /// How much of `n_ranks` times the speed of one rank is reached, each with its own batch: 1 is all.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use brisk_replicate::{Algorithm, Link, Step, ZeroStage};
    ///
    /// let ms = Duration::from_millis;
    /// let step = Step { forward: ms(10), backward: ms(20), update: ms(1), bucket_bytes: vec![4 << 20; 10] };
    /// let ethernet = Link { latency: Duration::from_micros(50), bytes_per_s: 1.25e9 };
    /// let efficiency = step.efficiency(64, ZeroStage::Replicated, ethernet, Algorithm::Tree);
    /// assert!((0.3..0.5).contains(&efficiency), "{efficiency}: 42 MB take some 66 ms");
    /// ```
    pub fn efficiency(&self, n_ranks: usize, stage: ZeroStage, link: Link, algorithm: Algorithm) -> f64 {
        self.alone().as_secs_f64() / self.predicted(n_ranks, stage, link, algorithm).as_secs_f64()
    }
}
