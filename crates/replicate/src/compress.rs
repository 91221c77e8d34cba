use half::{bf16, f16};
use serde::{Deserialize, Serialize};

use crate::collective::{Collective, CollectiveExt};
use crate::element::Element;
use crate::error::Error;
use crate::reduce_op::ReduceOp;

/// The type in which gradients are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wire {
    /// f32, unchanged.
    #[default]
    F32,
    /// f16: half the bytes. Values beyond 65504 become infinite, which sums of scaled gradients may reach.
    F16,
    /// bfloat16: half the bytes, with the range of f32 and 8 bits of precision.
    Bf16,
}

/// A reduction of f32 values that are sent in fewer bits, with error feedback: the rounding error of a call is added to the next.
///
/// Without error feedback, the part of a gradient below its rounding step is lost in every step; with it the sum over steps is
/// right, one step late. It pays off where the network is slower than the conversion: between hosts below about 2 GB/s, not
/// between threads.
///
/// # Reference
/// Seide et al. 2014, *1-bit SGD*, for error feedback; `torch.distributed.algorithms.ddp_comm_hooks` for hooks without it.
/// # Examples
/// ```
/// use brisk_replicate::{Compressed, Error, ReduceOp, Wire, run_replicas};
///
/// let sums = run_replicas(2, |replica| {
///     let mut compressed = Compressed::new(Wire::Bf16, 1);
///     let mut sum = 0.0;
///     for _ in 0..1000 {
///         let mut grad = [1.001_f32];
///         compressed.all_reduce(replica, &mut grad, ReduceOp::Mean)?;
///         sum += grad[0];
///     }
///     Ok::<_, Error>(sum)
/// })?;
/// // Without error feedback, each of the 1000 would have been rounded to 1.
/// assert!((sums[0] - 1001.0).abs() < 0.1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Compressed {
    wire: Wire,
    /// The accumulated rounding error of each element; empty for f32.
    lost: Vec<f32>,
    f16: Vec<f16>,
    bf16: Vec<bf16>,
}

impl Compressed {
    /// For buffers of `len` elements. Uses 4 bytes per element for the rounding error and 2 for the sent values; none for
    /// [`Wire::F32`].
    pub fn new(wire: Wire, len: usize) -> Self {
        let n = |of: Wire| if wire == of { len } else { 0 };
        let lost = vec![0.0; if wire == Wire::F32 { 0 } else { len }];
        Self { wire, lost, f16: vec![f16::ZERO; n(Wire::F16)], bf16: vec![bf16::ZERO; n(Wire::Bf16)] }
    }

    /// The type in which values are sent.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// The rounding error of each element, which the next call adds to its values; empty for [`Wire::F32`]. What is fed back is
    /// the sum over all ranks, so a checkpoint that is to resume with the same results has those of each rank.
    pub fn errors(&self) -> &[f32] {
        &self.lost
    }

    /// The rounding error of each element, as [`errors`](Self::errors), to be replaced, such as by those of a checkpoint.
    pub fn errors_mut(&mut self) -> &mut [f32] {
        &mut self.lost
    }

    /// Replaces `values` on every rank by their reduction over all ranks.
    ///
    /// # Errors
    /// [`Error::Length`] if the number of values is not the `len` given to [`new`](Self::new); those of
    /// [`Collective::all_reduce_values`].
    pub fn all_reduce(
        &mut self,
        collective: &mut (impl Collective + ?Sized),
        values: &mut [f32],
        reduce: ReduceOp,
    ) -> Result<(), Error> {
        if self.wire == Wire::F32 {
            return collective.all_reduce(values, reduce);
        }
        self.check("all_reduce", "values", collective.rank(), values.len())?;
        let Self { lost, f16, bf16, .. } = self;
        match self.wire {
            Wire::F32 => Ok(()),
            Wire::F16 => all_reduce(collective, values, lost, f16, reduce),
            Wire::Bf16 => all_reduce(collective, values, lost, bf16, reduce),
        }
    }

    /// Reduces `input` over all ranks and stores part `rank` of the result in `shard`; it is bit-identical to that part of what
    /// [`all_reduce`](Self::all_reduce) returns.
    ///
    /// # Errors
    /// [`Error::Length`] if the length of `input` is not the `len` given to [`new`](Self::new); those of
    /// [`Collective::reduce_scatter_values`].
    pub fn reduce_scatter(
        &mut self,
        collective: &mut (impl Collective + ?Sized),
        input: &[f32],
        shard: &mut [f32],
        reduce: ReduceOp,
    ) -> Result<(), Error> {
        if self.wire == Wire::F32 {
            return collective.reduce_scatter(input, shard, reduce);
        }
        self.check("reduce_scatter", "input", collective.rank(), input.len())?;
        let Self { lost, f16, bf16, .. } = self;
        match self.wire {
            Wire::F32 => Ok(()),
            Wire::F16 => reduce_scatter(collective, input, shard, lost, f16, reduce),
            Wire::Bf16 => reduce_scatter(collective, input, shard, lost, bf16, reduce),
        }
    }

    fn check(&self, op: &'static str, arg: &'static str, rank: usize, found: usize) -> Result<(), Error> {
        let expected = self.lost.len();
        let rule = "the length that `Compressed::new` was given";
        if found == expected { Ok(()) } else { Err(Error::Length { op, rank, arg, expected, found, rule }) }
    }
}

fn all_reduce<T: Element<Sum = f32>>(
    collective: &mut (impl Collective + ?Sized),
    values: &mut [f32],
    lost: &mut [f32],
    sent: &mut [T],
    reduce: ReduceOp,
) -> Result<(), Error> {
    let sent = &mut sent[..values.len()];
    narrow(values, lost, sent);
    collective.all_reduce(sent, reduce)?;
    values.iter_mut().zip(sent).for_each(|(value, sent)| *value = sent.widen());
    Ok(())
}

fn reduce_scatter<T: Element<Sum = f32>>(
    collective: &mut (impl Collective + ?Sized),
    input: &[f32],
    shard: &mut [f32],
    lost: &mut [f32],
    sent: &mut Vec<T>,
    reduce: ReduceOp,
) -> Result<(), Error> {
    // The shard arrives after what is sent, in memory that the first call allocates.
    sent.resize(input.len() + shard.len(), T::zeroed());
    let (sent, reduced) = sent.split_at_mut(input.len());
    narrow(input, lost, sent);
    collective.reduce_scatter(sent, reduced, reduce)?;
    shard.iter_mut().zip(reduced).for_each(|(value, reduced)| *value = reduced.widen());
    Ok(())
}

/// Rounds the values with their accumulated errors to what is sent, and keeps the new errors.
fn narrow<T: Element<Sum = f32>>(values: &[f32], lost: &mut [f32], sent: &mut [T]) {
    for ((value, lost), sent) in values.iter().zip(lost).zip(sent) {
        let whole = value + *lost;
        *sent = T::narrow(whole);
        let error = whole - sent.widen();
        // Infinities and NaN are not carried over: the values themselves already show them to every rank.
        *lost = if error.is_finite() { error } else { 0.0 };
    }
}
