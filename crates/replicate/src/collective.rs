use std::fmt::Debug;
use std::time::Duration;

use crate::element::{Element, ElementType};
use crate::error::Error;
use crate::reduce_op::ReduceOp;

/// The collective operations between replicas, over host memory.
///
/// Every rank must make the same calls in the same order, with the same lengths and types; an engine that detects a difference
/// returns [`Error::Mismatch`]. On return the results are bit-identical on all ranks. The trait is dyn-compatible: its methods
/// take [`DynSlice`], whose element type is known at run time; [`CollectiveExt`] has the same operations on slices.
///
/// Dropping a handle without [`finish`](Collective::finish) is a failure for the other ranks.
pub trait Collective: Debug + Send {
    /// The index of this replica, from 0.
    fn rank(&self) -> usize;

    /// The number of replicas.
    fn world_size(&self) -> usize;

    /// The name of the transport, for messages: `threads`, `Open MPI 4.1.4`.
    fn engine(&self) -> &str;

    /// Replaces `values` on every rank by their reduction over all ranks.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; [`Error::Mismatch`], [`Error::PeerFailed`], [`Error::Timeout`].
    fn all_reduce_values(&mut self, values: DynSliceMut<'_>, reduce: ReduceOp) -> Result<(), Error>;

    /// Reduces `input` over all ranks and stores part `rank` of the result in `shard`: `input` is as long as all shards together.
    ///
    /// # Errors
    /// As [`all_reduce_values`](Self::all_reduce_values); [`Error::Length`].
    fn reduce_scatter_values(&mut self, input: DynSlice<'_>, shard: DynSliceMut<'_>, reduce: ReduceOp) -> Result<(), Error>;

    /// Concatenates the shards of all ranks into `output`, which is as long as all shards together.
    ///
    /// # Errors
    /// [`Error::Length`]; [`Error::Mismatch`], [`Error::PeerFailed`], [`Error::Timeout`].
    fn all_gather_values(&mut self, shard: DynSlice<'_>, output: DynSliceMut<'_>) -> Result<(), Error>;

    /// Replaces `values` on every rank by those of rank `root`.
    ///
    /// # Errors
    /// [`Error::Root`]; [`Error::Mismatch`], [`Error::PeerFailed`], [`Error::Timeout`].
    fn broadcast_values(&mut self, values: DynSliceMut<'_>, root: usize) -> Result<(), Error>;

    /// Returns once every rank has called it.
    ///
    /// # Errors
    /// [`Error::Mismatch`], [`Error::PeerFailed`], [`Error::Timeout`].
    fn barrier(&mut self) -> Result<(), Error>;

    /// Sets the step of the run that comes next, for the message of a rank that waits too long. Engines whose errors do not
    /// contain the step ignore it.
    fn at_step(&mut self, _step: u64) {}

    /// By rank, how long the other ranks waited for it in the operations since this was last called, on average over them: in
    /// each operation, all wait for the rank that calls it last. The same on all ranks, up to the time of a message; no clocks of
    /// different machines are compared. Empty if the engine does not measure it.
    fn take_waits(&mut self) -> Vec<Duration> {
        Vec::new()
    }

    /// Tells the other ranks that this one has failed: the operations they wait in return [`Error::PeerFailed`].
    fn fail(&mut self, why: &str);

    /// Ends the group cleanly; every rank must call it.
    ///
    /// # Errors
    /// As [`barrier`](Self::barrier).
    fn finish(self: Box<Self>) -> Result<(), Error>;
}

/// A slice whose element type is known at run time.
#[derive(Debug, Clone, Copy)]
pub struct DynSlice<'a> {
    pub(crate) element: ElementType,
    pub(crate) bytes: &'a [u8],
}

/// A mutable slice whose element type is known at run time.
#[derive(Debug)]
pub struct DynSliceMut<'a> {
    pub(crate) element: ElementType,
    pub(crate) bytes: &'a mut [u8],
}

impl<'a> DynSlice<'a> {
    /// From a slice.
    pub fn of<T: Element>(values: &'a [T]) -> Self {
        Self { element: T::TYPE, bytes: bytemuck::cast_slice(values) }
    }

    /// The element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.element.size_bytes()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes of the elements, in native byte order.
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl<'a> DynSliceMut<'a> {
    /// From a mutable slice.
    pub fn of<T: Element>(values: &'a mut [T]) -> Self {
        Self { element: T::TYPE, bytes: bytemuck::cast_slice_mut(values) }
    }

    /// The element type.
    pub fn element(&self) -> ElementType {
        self.element
    }

    /// The number of elements.
    pub fn len(&self) -> usize {
        self.bytes.len() / self.element.size_bytes()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// The bytes of the elements, in native byte order.
    pub fn into_bytes(self) -> &'a mut [u8] {
        self.bytes
    }
}

/// The operations of [`Collective`] on slices.
///
/// # Examples
/// ```
/// use brisk_replicate::{CollectiveExt, ReduceOp, run_replicas};
///
/// let sums = run_replicas(4, |replica| {
///     let mut grads = [replica.rank() as f32, 1.0];
///     replica.all_reduce(&mut grads, ReduceOp::Mean)?;
///     Ok::<_, brisk_replicate::Error>(grads)
/// })?;
/// assert_eq!(sums, [[1.5, 1.0]; 4]);
/// # use brisk_replicate::Collective;
/// # Ok::<(), brisk_replicate::Error>(())
/// ```
pub trait CollectiveExt: Collective {
    /// Replaces `values` on every rank by their reduction over all ranks.
    ///
    /// # Errors
    /// As [`Collective::all_reduce_values`].
    /// # Reference
    /// `torch.distributed.all_reduce`.
    fn all_reduce<T: Element>(&mut self, values: &mut [T], reduce: ReduceOp) -> Result<(), Error> {
        self.all_reduce_values(DynSliceMut::of(values), reduce)
    }

    /// Reduces `input` over all ranks and stores part `rank` of the result in `shard`.
    ///
    /// # Errors
    /// As [`Collective::reduce_scatter_values`].
    /// # Reference
    /// `torch.distributed.reduce_scatter_tensor`.
    fn reduce_scatter<T: Element>(&mut self, input: &[T], shard: &mut [T], reduce: ReduceOp) -> Result<(), Error> {
        self.reduce_scatter_values(DynSlice::of(input), DynSliceMut::of(shard), reduce)
    }

    /// Concatenates the shards of all ranks into `output`.
    ///
    /// # Errors
    /// As [`Collective::all_gather_values`].
    /// # Reference
    /// `torch.distributed.all_gather_into_tensor`.
    fn all_gather<T: Element>(&mut self, shard: &[T], output: &mut [T]) -> Result<(), Error> {
        self.all_gather_values(DynSlice::of(shard), DynSliceMut::of(output))
    }

    /// Replaces `values` on every rank by those of rank `root`.
    ///
    /// # Errors
    /// As [`Collective::broadcast_values`].
    /// # Reference
    /// `torch.distributed.broadcast`.
    fn broadcast<T: Element>(&mut self, values: &mut [T], root: usize) -> Result<(), Error> {
        self.broadcast_values(DynSliceMut::of(values), root)
    }
}

impl<C: Collective + ?Sized> CollectiveExt for C {}

/// Checks that all shards together are as long as the whole buffer; every engine does so before it sends.
pub(crate) fn check_shards(
    op: &'static str,
    (rank, world_size): (usize, usize),
    shard_len: usize,
    (arg, whole_len): (&'static str, usize),
) -> Result<(), Error> {
    let expected = shard_len * world_size;
    if whole_len == expected {
        return Ok(());
    }
    Err(Error::Length { op, rank, arg, expected, found: whole_len, rule: "the length of a shard times the number of ranks" })
}

/// Checks that `reduce` is defined for `element`.
pub(crate) fn check_reduce(op: &'static str, rank: usize, element: ElementType, reduce: ReduceOp) -> Result<(), Error> {
    if reduce == ReduceOp::Mean && !element.is_float() {
        return Err(Error::Unsupported { op, rank, reduce, element });
    }
    Ok(())
}

/// The elements as a slice of `T`, which they were created from.
pub(crate) fn typed<T: Element>(values: DynSlice<'_>) -> &[T] {
    bytemuck::cast_slice(values.bytes)
}

/// The elements as a mutable slice of `T`, which they were created from.
pub(crate) fn typed_mut<T: Element>(values: DynSliceMut<'_>) -> &mut [T] {
    bytemuck::cast_slice_mut(values.into_bytes())
}

/// Checks that the two buffers of a call have the same element type; with the slices of [`CollectiveExt`] they always do.
pub(crate) fn check_same(op: &'static str, rank: usize, a: ElementType, b: ElementType) -> Result<(), Error> {
    if a == b {
        return Ok(());
    }
    let (mine, theirs) = (format!("{op} of {a:?}"), format!("{op} into {b:?}"));
    Err(Error::Mismatch { rank, mine, other: rank, theirs })
}
