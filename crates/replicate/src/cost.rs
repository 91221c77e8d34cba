//! Predicts the cost of communication on other machines and networks.

use std::time::Duration;

use crate::shards::ZeroStage;

/// A network between ranks: a message takes the latency plus its bytes divided by the bandwidth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Link {
    /// Time of the smallest message from one rank to another.
    pub latency: Duration,
    /// Bandwidth of one rank, in each direction.
    pub bytes_per_s: f64,
}

/// The algorithm of an all-reduce.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// `2 (N - 1)` messages of `1 / N` of the bytes: the fewest bytes, the most messages.
    Ring,
    /// Halving and doubling (Rabenseifner): the same bytes in `2 log2 N` messages.
    Tree,
}

/// A step of training on one rank, as measured.
#[derive(Debug, Clone, PartialEq)]
pub struct StepCost {
    /// From the batch to the end of the forward pass.
    pub forward: Duration,
    /// The backward pass. Its time is distributed over the buckets in proportion to their bytes: a bucket's gradients are ready
    /// when its share of the time, and that of the buckets before it, has passed. Likewise in the forward pass.
    pub backward: Duration,
    /// The optimizer's update.
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

    /// Estimates the link from two measured all-reduces, each given as its bytes and its time; [`all_reduce`](Self::all_reduce)
    /// then predicts others.
    ///
    /// The latency is zero if the shorter one takes less time than the bandwidth allows. `None` if the longer one takes no more
    /// time than the shorter, or has no more bytes, and for fewer than two ranks.
    pub fn of_all_reduces(n_ranks: usize, algorithm: Algorithm, [short, long]: [(usize, Duration); 2]) -> Option<Self> {
        let n_bytes = long.0.checked_sub(short.0).filter(|&n_bytes| n_bytes > 0)? as f64;
        let n_messages = 2 * algorithm.n_messages(n_ranks);
        if n_messages == 0 || long.1 <= short.1 {
            return None;
        }
        let s_per_byte = (long.1 - short.1).as_secs_f64() / n_bytes;
        let latency = (short.1.as_secs_f64() - short.0 as f64 * s_per_byte).max(0.0) / n_messages as f64;
        Some(Self { latency: Duration::from_secs_f64(latency), bytes_per_s: 2.0 * others(n_ranks) / s_per_byte })
    }

    /// The time of a reduce-scatter, or of an all-gather: half an all-reduce.
    fn one_way(&self, n_ranks: usize, n_bytes: usize, algorithm: Algorithm) -> Duration {
        if n_ranks < 2 {
            return Duration::ZERO;
        }
        let n_messages = algorithm.n_messages(n_ranks) as u32;
        self.latency * n_messages + Duration::from_secs_f64(n_bytes as f64 * others(n_ranks) / self.bytes_per_s)
    }
}

impl Algorithm {
    /// The number of messages sent one after the other in half an all-reduce.
    fn n_messages(self, n_ranks: usize) -> usize {
        match self {
            Self::Ring => n_ranks.saturating_sub(1),
            Self::Tree => n_ranks.next_power_of_two().trailing_zeros() as usize,
        }
    }
}

/// The fraction of the bytes that belongs to the other ranks.
fn others(n_ranks: usize) -> f64 {
    (n_ranks - 1) as f64 / n_ranks as f64
}

impl StepCost {
    /// The time of the step on a single rank.
    pub fn alone(&self) -> Duration {
        self.forward + self.backward + self.update
    }

    /// The time of the step on each of `n_ranks`, where buckets are reduced one after the other over the link while the rest of
    /// the backward pass runs.
    ///
    /// Depending on the stage, gradients are all-reduced, or they are reduce-scattered, each rank updates its shard, and the new
    /// parameters are gathered after the update. Sharded parameters are gathered before both passes instead, those of a bucket
    /// while the bucket before it is computed, which needs memory for two buckets; those of the last layers are kept from the
    /// forward to the backward pass. On the link, the gather of the next bucket precedes the reduction of the gradients that are
    /// computed meanwhile.
    ///
    /// Not modelled: that computing slows down where it shares memory or cores with communication, and that ranks may be late.
    pub fn predicted(&self, n_ranks: usize, stage: ZeroStage, link: Link, algorithm: Algorithm) -> Duration {
        let n_bytes: usize = self.bucket_bytes.iter().sum();
        if n_bytes == 0 || n_ranks < 2 {
            return self.alone();
        }
        let one_way = |n_bytes: usize| link.one_way(n_ranks, n_bytes, algorithm);
        let part_of = |pass: Duration, bucket: usize| pass.mul_f64(bucket as f64 / n_bytes as f64);
        let is_gathered = stage == ZeroStage::Parameters;
        let gathered = |bucket: Option<&usize>| bucket.filter(|_| is_gathered).map_or(Duration::ZERO, |&bucket| one_way(bucket));

        // The forward pass begins with the bucket that is reduced last.
        let mut there = gathered(self.bucket_bytes.last());
        let mut computed = Duration::ZERO;
        for (i, &bucket) in self.bucket_bytes.iter().enumerate().rev() {
            let begin = computed.max(there);
            there = begin + gathered(i.checked_sub(1).and_then(|next| self.bucket_bytes.get(next)));
            computed = begin + part_of(self.forward, bucket);
        }

        let mut link_free = computed;
        let mut there = computed;
        for (i, &bucket) in self.bucket_bytes.iter().enumerate() {
            let begin = computed.max(there);
            link_free = link_free.max(begin) + gathered(self.bucket_bytes.get(i + 1));
            there = link_free;
            computed = begin + part_of(self.backward, bucket);
            let reduced = if stage == ZeroStage::Replicated { 2 * one_way(bucket) } else { one_way(bucket) };
            link_free = link_free.max(computed) + reduced;
        }
        let done = computed.max(link_free);
        match stage {
            ZeroStage::Replicated => done + self.update,
            ZeroStage::Optimizer | ZeroStage::Gradients => done + self.update / n_ranks as u32 + one_way(n_bytes),
            ZeroStage::Parameters => done + self.update / n_ranks as u32,
        }
    }

    /// The scaling efficiency: the speed of `n_ranks` ranks, each with its own batch, relative to `n_ranks` times the speed of
    /// one. 1 is ideal.
    ///
    /// # Examples
    /// ```
    /// use std::time::Duration;
    /// use brisk_replicate::{Algorithm, Link, StepCost, ZeroStage};
    ///
    /// let ms = Duration::from_millis;
    /// let step = StepCost { forward: ms(10), backward: ms(20), update: ms(1), bucket_bytes: vec![4 << 20; 10] };
    /// let ethernet = Link { latency: Duration::from_micros(50), bytes_per_s: 1.25e9 };
    /// let efficiency = step.efficiency(64, ZeroStage::Replicated, ethernet, Algorithm::Tree);
    /// assert!((0.3..0.5).contains(&efficiency), "{efficiency}: 42 MB take some 66 ms");
    /// ```
    pub fn efficiency(&self, n_ranks: usize, stage: ZeroStage, link: Link, algorithm: Algorithm) -> f64 {
        self.alone().as_secs_f64() / self.predicted(n_ranks, stage, link, algorithm).as_secs_f64()
    }
}
