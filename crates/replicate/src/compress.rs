use half::{bf16, f16};

use crate::{Collective, CollectiveExt, Element, Error, ReduceOp};

/// In what gradients travel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Wire {
    /// As they are.
    #[default]
    F32,
    /// In half the bytes. What is beyond 65504 becomes infinite, so sums of scaled gradients may.
    F16,
    /// In half the bytes, with the range of f32 and 8 bits of precision.
    Bf16,
}

/// An all-reduce of f32 whose values travel in fewer bits, and what was rounded away joins the next one.
///
/// Without that, a gradient far smaller than the rounding of its neighbours is lost in every step; with it the sum over steps is right, a step late.
/// It pays where the network is slower than the conversion: between hosts below some 2 GB/s, not between threads.
///
/// # Reference
/// Seide et al. 2014, *1-bit SGD*, for the error's feedback; `torch.distributed.algorithms.ddp_comm_hooks` for the hooks without it.
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
/// // Rounded alone, each of the 1000 would have been 1.
/// assert!((sums[0] - 1001.0).abs() < 0.1);
/// # Ok::<(), Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Compressed {
    wire: Wire,
    /// What has been rounded away so far; none for f32.
    lost: Vec<f32>,
    f16: Vec<f16>,
    bf16: Vec<bf16>,
}

impl Compressed {
    /// For buffers of `len` elements. Takes 4 bytes an element for what was rounded away and 2 for what travels; nothing for [`Wire::F32`].
    pub fn new(wire: Wire, len: usize) -> Self {
        let n = |of: Wire| if wire == of { len } else { 0 };
        let lost = vec![0.0; if wire == Wire::F32 { 0 } else { len }];
        Self { wire, lost, f16: vec![f16::ZERO; n(Wire::F16)], bf16: vec![bf16::ZERO; n(Wire::Bf16)] }
    }

    /// In what values travel.
    pub fn wire(&self) -> Wire {
        self.wire
    }

    /// Replaces `values` on every rank by their reduction over all ranks.
    ///
    /// # Errors
    /// [`Error::Length`] if there are more or fewer values than it was made for; those of [`Collective::all_reduce_values`].
    pub fn all_reduce(
        &mut self,
        collective: &mut (impl Collective + ?Sized),
        values: &mut [f32],
        reduce: ReduceOp,
    ) -> Result<(), Error> {
        if self.wire == Wire::F32 {
            return collective.all_reduce(values, reduce);
        }
        if values.len() != self.lost.len() {
            let rule = "as many as the buffer was made for";
            let (rank, expected) = (collective.rank(), self.lost.len());
            return Err(Error::Length { op: "all_reduce", rank, arg: "values", expected, found: values.len(), rule });
        }
        match self.wire {
            Wire::F32 => Ok(()),
            Wire::F16 => through(collective, values, &mut self.lost, &mut self.f16, reduce),
            Wire::Bf16 => through(collective, values, &mut self.lost, &mut self.bf16, reduce),
        }
    }
}

fn through<T: Element<Sum = f32>>(
    collective: &mut (impl Collective + ?Sized),
    values: &mut [f32],
    lost: &mut [f32],
    sent: &mut [T],
    reduce: ReduceOp,
) -> Result<(), Error> {
    for ((value, lost), sent) in values.iter().zip(&mut *lost).zip(&mut *sent) {
        let whole = value + *lost;
        *sent = T::narrow(whole);
        let error = whole - sent.widen();
        // What is infinite or not a number is not carried on: it is told to everyone by the values themselves.
        *lost = if error.is_finite() { error } else { 0.0 };
    }
    collective.all_reduce(sent, reduce)?;
    values.iter_mut().zip(sent).for_each(|(value, sent)| *value = sent.widen());
    Ok(())
}
