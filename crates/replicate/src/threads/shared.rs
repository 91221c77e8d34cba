//! Operations of replicas on each other's buffers, without intermediate copies.
#![expect(unsafe_code, reason = "replicas read and write each other's buffers while all of them are inside one operation")]

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::meeting::Meeting;
use crate::call::{Call, How};
use crate::element::{Element, ElementType};
use crate::error::Error;
use crate::reduce_op::ReduceOp;
use crate::tree;
use crate::tree::part;
use crate::waits::Waits;

/// The state that the replicas of a group share.
#[derive(Debug)]
pub(super) struct Shared {
    meeting: Meeting<Offer>,
    /// What each rank has counted.
    waits: Vec<Mutex<Waits>>,
    n_ranks: usize,
    limit: Duration,
}

/// The call of one replica, and the buffer that the others may access during the call.
#[derive(Debug, Clone)]
struct Offer {
    call: Call,
    since: Instant,
    address: *mut u8,
}

// SAFETY: the address is only used between two meetings, during which the buffer's owner waits inside the operation; see
// `Offer::read`.
unsafe impl Send for Offer {}

impl Offer {
    /// Elements `at..at + len` of the buffer.
    ///
    /// # Safety
    /// Only inside a [`Section`], within a buffer of `T`, while no replica writes these elements.
    unsafe fn read<T: Element>(&self, at: usize, len: usize) -> &[T] {
        // SAFETY: as the caller promises; the buffer's owner took the address from a slice of `T`, and waits.
        unsafe { std::slice::from_raw_parts(self.address.cast::<T>().add(at), len) }
    }

    /// As [`read`](Self::read), but mutable.
    ///
    /// # Safety
    /// As [`read`](Self::read); the buffer was offered from a mutable slice, and no other replica reads or writes these elements.
    #[expect(clippy::mut_from_ref, reason = "the exclusive access is the buffer owner's, who waits")]
    unsafe fn write<T: Element>(&self, at: usize, len: usize) -> &mut [T] {
        // SAFETY: as the caller promises.
        unsafe { std::slice::from_raw_parts_mut(self.address.cast::<T>().add(at), len) }
    }
}

/// The time between the two meetings of an operation. Dropping it is the second meeting, on every path out.
struct Section<'a> {
    shared: &'a Shared,
    rank: usize,
    offers: Vec<Offer>,
}

impl Drop for Section<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.shared.fail(self.rank, "it panicked inside a collective");
        }
        self.shared.meeting.leave();
    }
}

impl Shared {
    pub(super) fn new(n_ranks: usize, limit: Duration) -> Self {
        let waits = (0..n_ranks).map(|_| Mutex::new(Waits::new(n_ranks))).collect();
        Self { meeting: Meeting::new(n_ranks), waits, n_ranks, limit }
    }

    pub(super) fn n_ranks(&self) -> usize {
        self.n_ranks
    }

    /// As [`take_waits`](crate::Collective::take_waits) of `rank`.
    pub(super) fn take_waits(&self, rank: usize) -> Vec<Duration> {
        self.waits[rank].lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Ends the group on behalf of `rank`.
    pub(super) fn fail(&self, rank: usize, why: &str) {
        self.meeting.kill(Error::PeerFailed { rank, why: why.to_owned() });
    }

    /// The error that ended the group, if one did.
    pub(super) fn dead(&self) -> Option<Error> {
        self.meeting.dead()
    }

    /// Each replica reduces its part of the elements from all buffers into all buffers: each element is read and written once.
    pub(super) fn all_reduce<T: Element>(&self, rank: usize, values: &mut [T], reduce: ReduceOp) -> Result<(), Error> {
        if self.n_ranks == 1 {
            return self.dead().map_or(Ok(()), Err);
        }
        let call = Call { op: "all_reduce", element: T::TYPE, len: values.len(), how: How::By(reduce) };
        let section = self.open(rank, call, values.as_mut_ptr().cast())?;
        let mine = part(values.len(), self.n_ranks, rank);
        // SAFETY: inside the section, in range: all buffers are of `T` and equally long, offered from mutable slices. Only this
        // replica touches this part of each.
        let own = |offer| unsafe { Offer::write::<T>(offer, mine.start, mine.len()) };
        tree::reduce_in_place(&mut section.offers.iter().map(own).collect::<Vec<_>>(), reduce);
        Ok(())
    }

    /// Each replica reduces its own shard from all inputs.
    pub(super) fn reduce_scatter<T: Element>(
        &self,
        rank: usize,
        input: &[T],
        shard: &mut [T],
        reduce: ReduceOp,
    ) -> Result<(), Error> {
        let call = Call { op: "reduce_scatter", element: T::TYPE, len: input.len(), how: How::By(reduce) };
        let section = self.open(rank, call, input.as_ptr().cast_mut().cast())?;
        // SAFETY: inside the section; inputs are all as long as this one, of `T`, and no replica writes them.
        let read = |offer| unsafe { Offer::read::<T>(offer, rank * shard.len(), shard.len()) };
        let inputs: Vec<&[T]> = section.offers.iter().map(read).collect();
        tree::reduce_into(&inputs, reduce, shard);
        Ok(())
    }

    /// Each replica copies all shards.
    pub(super) fn all_gather<T: Element>(&self, rank: usize, shard: &[T], output: &mut [T]) -> Result<(), Error> {
        let call = Call { op: "all_gather", element: T::TYPE, len: shard.len(), how: How::Plainly };
        let section = self.open(rank, call, shard.as_ptr().cast_mut().cast())?;
        for (out, offer) in output.chunks_mut(shard.len().max(1)).zip(&section.offers) {
            // SAFETY: inside the section; shards are all as long as this one, of `T`, and no replica writes them.
            out.copy_from_slice(unsafe { offer.read::<T>(0, shard.len()) });
        }
        Ok(())
    }

    /// Each replica except `root` copies the values of `root`.
    pub(super) fn broadcast<T: Element>(&self, rank: usize, values: &mut [T], root: usize) -> Result<(), Error> {
        let call = Call { op: "broadcast", element: T::TYPE, len: values.len(), how: How::From(root) };
        let section = self.open(rank, call, values.as_mut_ptr().cast())?;
        if rank != root {
            // SAFETY: inside the section; the root's buffer is of `T`, as long as this one, and no replica writes it.
            values.copy_from_slice(unsafe { section.offers[root].read::<T>(0, values.len()) });
        }
        Ok(())
    }

    pub(super) fn barrier(&self, rank: usize, op: &'static str) -> Result<(), Error> {
        let call = Call { op, element: ElementType::U8, len: 0, how: How::Plainly };
        self.open(rank, call, std::ptr::null_mut()).map(drop)
    }

    /// Meets the other replicas and checks that all make the same call.
    fn open(&self, rank: usize, call: Call, address: *mut u8) -> Result<Section<'_>, Error> {
        let offers = self.meeting.enter(rank, call.op, Offer { call, since: Instant::now(), address }, self.limit)?;
        let section = Section { shared: self, rank, offers };
        if let Some(first) = section.offers.iter().map(|offer| offer.since).min() {
            let mut waits = self.waits[rank].lock().unwrap_or_else(PoisonError::into_inner);
            waits.add(section.offers.iter().map(|offer| offer.since - first));
        }
        // Compared with the first rank, so that all ranks report the same two.
        let first = section.offers[0].call;
        match section.offers.iter().position(|offer| offer.call != first) {
            None => Ok(section),
            Some(other) => {
                let theirs = section.offers[other].call.to_string();
                Err(self.meeting.kill(Error::Mismatch { rank: 0, mine: first.to_string(), other, theirs }))
            }
        }
    }
}
