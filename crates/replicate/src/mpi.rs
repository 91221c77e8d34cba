//! Replicas that are processes, on one host or several, connected by MPI.
#![expect(unsafe_code, reason = "MPI is a C library; its arguments and return codes are checked here")]

mod opening;
mod pairs;

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use mpi_sys as ffi;
use opening::Opening;

use crate::call::{Call, How};
use crate::collective::{Collective, DynSlice, DynSliceMut, check_reduce, check_same, check_shards, typed, typed_mut};
use crate::element::{Element, ElementType, with_element};
use crate::error::Error;
use crate::reduce_op::ReduceOp;
use crate::tree::{part, reduce_into};
use crate::waits::Waits;
use crate::watch::{Message, Peers, Watch, Watching};

/// One of the replicas that `mpirun` or `srun` has started as processes. A program started without either has a world size of 1.
///
/// Lengths, types and the order of calls are compared between ranks before each operation ([`Error::Mismatch`]), which costs a
/// small message. It also carries the values if they are few, up to 16 KiB with four ranks and 8 KiB with eight, and then nothing
/// else is sent. Every return code of the library is checked. A process has one handle; it may be moved to another thread, such
/// as a [`CommThread`](crate::CommThread).
///
/// A rank that fails, by [`fail`](Collective::fail), a panic or being dropped without [`finish`](Collective::finish), ends the
/// job: every process is terminated with exit status [`PEER_FAILED`](Self::PEER_FAILED), after the reason has been written to
/// standard error. A rank that waits for longer than [`MpiConfig::timeout`] ends itself in the same way, and so the job. It
/// reports the operation, the step if it was set ([`at_step`](Collective::at_step)), and the rank that it waited for: the ranks
/// ask each other, and one that has stopped does not answer. With an MPI library without `MPI_THREAD_MULTIPLE` they cannot ask,
/// and the rank is not named.
#[derive(Debug)]
pub struct Mpi {
    comm: ffi::MPI_Comm,
    rank: usize,
    world_size: usize,
    engine: String,
    in_place: *mut c_void,
    order: SumOrder,
    opening: Opening,
    /// Received values. It is kept, since new memory is mapped page by page.
    received: Vec<u32>,
    /// When the opening of the last operation ended.
    opened: Option<Instant>,
    waits: Waits,
    watch: Watch,
    finished: bool,
}

/// Settings of an [`Mpi`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiConfig {
    /// The order in which f32 are summed.
    pub order: SumOrder,
    /// How long an operation may take; minutes, since other ranks may compile shaders or write a checkpoint meanwhile.
    pub timeout: Duration,
}

/// The order in which floats of different ranks are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SumOrder {
    /// Along the same binary tree as [`Threads`](crate::Threads): bit-identical on every engine and in every run, except for the
    /// payload of a NaN. With a power of two of ranks, f32 are added in pairs of ranks, which takes about as long as the
    /// library's own sum; otherwise each rank receives one part from all and adds it, and the parts are gathered.
    Fixed,
    /// Chosen by the library: f32 by its own all-reduce, which is faster, and whose order may differ between versions, sizes and
    /// numbers of ranks. f16 and bf16, and values that are few, are added as with `Fixed`.
    Engine,
}

impl Default for MpiConfig {
    /// Fixed order, ten minutes.
    fn default() -> Self {
        Self { order: SumOrder::Fixed, timeout: Duration::from_secs(600) }
    }
}

// SAFETY: the library was started with at least MPI_THREAD_SERIALIZED, and `&mut self` serialises the calls; those of the watch
// are made with MPI_THREAD_MULTIPLE only.
unsafe impl Send for Mpi {}

/// Messages of the watching threads, on a separate communicator.
#[derive(Debug)]
struct WatchMessages {
    comm: ffi::MPI_Comm,
    world_size: usize,
}

// SAFETY: made only where the library was started with MPI_THREAD_MULTIPLE, which lets any thread call it.
unsafe impl Send for WatchMessages {}

/// Numbers of a message: its kind, whether its sender is in an operation, and its step plus one, or 0.
type WatchMessage = [u64; 3];

impl Peers for WatchMessages {
    fn world_size(&self) -> usize {
        self.world_size
    }

    fn send(&self, to: usize, message: Message) {
        let numbers: WatchMessage = match message {
            Message::Ask => [0, 0, 0],
            Message::Answer { is_inside, step } => [1, u64::from(is_inside), step.map_or(0, |step| step.saturating_add(1))],
        };
        // The library may read the buffer until the message is sent, if it ever is, so it is leaked. Messages are few, and sent
        // when the job is about to end.
        let numbers: &'static WatchMessage = Box::leak(Box::new(numbers));
        // SAFETY: the buffer lives forever; the request is freed at once, which does not cancel the message.
        unsafe {
            let mut request = ffi::RSMPI_REQUEST_NULL;
            let n_bytes = size_of::<WatchMessage>() as c_int;
            let from = numbers.as_ptr().cast();
            let sent = ffi::MPI_Isend(from, n_bytes, ffi::RSMPI_UINT8_T, to as c_int, 0, self.comm, &mut request);
            // A message that cannot be sent gets no answer, so its error needs no handling here.
            if checked("ask", sent).is_ok() {
                drop(checked("ask", ffi::MPI_Request_free(&mut request)));
            }
        }
    }

    fn receive(&self) -> Option<(usize, Message)> {
        let mut numbers = WatchMessage::default();
        // SAFETY: a status is plain numbers, for which zeros are valid; the buffer has room for a message, all of which are of
        // one length.
        let from = unsafe {
            let mut status: ffi::MPI_Status = std::mem::zeroed();
            let mut is_there = 0;
            let any = (ffi::RSMPI_ANY_SOURCE, ffi::RSMPI_ANY_TAG);
            checked("ask", ffi::MPI_Iprobe(any.0, any.1, self.comm, &mut is_there, &mut status)).ok()?;
            if is_there == 0 {
                return None;
            }
            let (to, n_bytes) = (numbers.as_mut_ptr().cast(), size_of::<WatchMessage>() as c_int);
            let received = ffi::MPI_Recv(
                to,
                n_bytes,
                ffi::RSMPI_UINT8_T,
                status.MPI_SOURCE,
                status.MPI_TAG,
                self.comm,
                ffi::RSMPI_STATUS_IGNORE,
            );
            checked("ask", received).ok()?;
            status.MPI_SOURCE as usize
        };
        let message = match numbers {
            [0, ..] => Message::Ask,
            [_, is_inside, step] => Message::Answer { is_inside: is_inside != 0, step: step.checked_sub(1) },
        };
        Some((from, message))
    }
}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Bytes sent in one call: larger ones were slower, over shared memory and over TCP.
const PIECE_BYTES: usize = 1 << 20;

/// Up to this many bytes, each rank reduces all values: half as many messages as if it reduces its part of them.
const WHOLE_BYTES: usize = 16 << 10;

impl Mpi {
    /// The exit status of a job in which a rank failed: restarting from the last checkpoint may help.
    pub const PEER_FAILED: i32 = crate::watch::PEER_FAILED;

    /// Starts the library, once per process.
    ///
    /// # Errors
    /// [`Error::Engine`] with the library's message, if it was started before, or if it lets only one thread call it.
    pub fn start(config: MpiConfig) -> Result<Self, Error> {
        const OP: &str = "start";
        let own = |text: &str| Error::Engine { op: OP, code: 0, text: text.to_owned() };
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(own("MPI was started in this process before, and may be only once"));
        }
        let (mut level, mut rank, mut world_size) = (0, 0, 0);
        // SAFETY: called once per process; null for the program's arguments is allowed since MPI-2; the other arguments receive
        // results.
        let (comm, watch_comm) = unsafe {
            let wanted = ffi::RSMPI_THREAD_MULTIPLE;
            checked(OP, ffi::MPI_Init_thread(std::ptr::null_mut(), std::ptr::null_mut(), wanted, &mut level))?;
            if level < ffi::RSMPI_THREAD_SERIALIZED {
                return Err(own("this MPI lets only one thread call it (no MPI_THREAD_SERIALIZED); use another build of it"));
            }
            // Separate communicators: messages of the caller, of operations and of the watch do not mix.
            let [mut comm, mut watch_comm] = [ffi::RSMPI_COMM_NULL; 2];
            for comm in [&mut comm, &mut watch_comm] {
                checked(OP, ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, comm))?;
                checked(OP, ffi::MPI_Comm_set_errhandler(*comm, ffi::RSMPI_ERRORS_RETURN))?;
            }
            checked(OP, ffi::MPI_Comm_rank(comm, &mut rank))?;
            checked(OP, ffi::MPI_Comm_size(comm, &mut world_size))?;
            let watch_comm = (level >= ffi::RSMPI_THREAD_MULTIPLE).then_some(watch_comm);
            (comm, watch_comm)
        };
        let (rank, world_size) = (rank as usize, world_size as usize);
        let engine = library_version()?;
        let in_place = in_place(&engine)
            .ok_or_else(|| own(&format!("`{engine}` is not supported; use Open MPI, MPICH or one derived from it")))?;
        // The watch calls the library while another thread is inside an operation.
        let peers = watch_comm.map(|comm| Box::new(WatchMessages { comm, world_size }) as Box<dyn Peers>);
        let watch = Watch::start(rank, config.timeout, peers);
        let (opening, waits) = (Opening::new(rank, world_size), Waits::new(world_size));
        let order = config.order;
        let received = Vec::new();
        Ok(Self {
            comm,
            rank,
            world_size,
            engine,
            in_place,
            order,
            opening,
            received,
            opened: None,
            waits,
            watch,
            finished: false,
        })
    }

    /// Compares the call with those of the other ranks, and watches the time until the operation ends. `values` are sent too if
    /// they are few.
    fn begin(&mut self, call: Call, values: &[u8]) -> Result<Watching, Error> {
        let watching = self.watch.enter(call.op);
        // All ranks have opened the last operation at one time, up to that of a message, so these times show who comes last.
        let busy = self.opened.map_or(Duration::ZERO, |opened| watching.since - opened);
        self.opening.put(call.encode(), u32::try_from(busy.as_micros()).unwrap_or(u32::MAX), values);
        while let Some(round) = self.opening.round() {
            let (n_sent, n_at_most) = (round.sent.len() as c_int, round.received.len() as c_int);
            // SAFETY: two separate buffers of these lengths. What is received is no longer than its buffer: that has room for the
            // longest slots.
            checked(call.op, unsafe {
                ffi::MPI_Sendrecv(
                    round.sent.as_ptr().cast(),
                    n_sent,
                    ffi::RSMPI_UINT32_T,
                    round.to as c_int,
                    0,
                    round.received.as_mut_ptr().cast(),
                    n_at_most,
                    ffi::RSMPI_UINT32_T,
                    round.from as c_int,
                    0,
                    self.comm,
                    ffi::RSMPI_STATUS_IGNORE,
                )
            })?;
            if !self.opening.take_in() {
                let text = "a rank sent something else than a call; start all ranks with the same program".to_owned();
                return Err(Error::Engine { op: call.op, code: 0, text });
            }
        }
        self.opened = Some(Instant::now());
        self.waits.add((0..self.world_size).map(|rank| Duration::from_micros(self.opening.busy_us(rank).into())));
        let Some(other) = self.opening.other() else { return Ok(watching) };
        let text = |rank: usize| Call::decode(self.opening.call(rank)).to_string();
        Err(Error::Mismatch { rank: 0, mine: text(0), other, theirs: text(other) })
    }

    /// Each rank receives its part of a piece from all ranks and reduces it along the tree; then all parts are gathered.
    fn all_reduce_in_order<T: Element>(&mut self, values: &mut [T], reduce: ReduceOp) -> Result<(), Error> {
        const OP: &str = "all_reduce";
        let size = size_of::<T>();
        let mut memory = std::mem::take(&mut self.received);
        for piece in values.chunks_mut(PIECE_BYTES / size) {
            let parts: Vec<_> = (0..self.world_size).map(|rank| part(piece.len(), self.world_size, rank)).collect();
            let counts: Vec<c_int> = parts.iter().map(|part| (part.len() * size) as c_int).collect();
            let places: Vec<c_int> = parts.iter().map(|part| (part.start * size) as c_int).collect();
            let mine = parts[self.rank].clone();
            let incoming = vec![counts[self.rank]; self.world_size];
            let incoming_places: Vec<c_int> = (0..self.world_size).map(|rank| (rank * mine.len() * size) as c_int).collect();
            let received: &mut [T] = room(&mut memory, mine.len() * self.world_size);
            // SAFETY: counts and places lie within `piece`, whose parts they are, and within `received`, which has room for this
            // rank's part from each.
            checked(OP, unsafe {
                ffi::MPI_Alltoallv(
                    piece.as_ptr().cast(),
                    counts.as_ptr(),
                    places.as_ptr(),
                    ffi::RSMPI_UINT8_T,
                    received.as_mut_ptr().cast(),
                    incoming.as_ptr(),
                    incoming_places.as_ptr(),
                    ffi::RSMPI_UINT8_T,
                    self.comm,
                )
            })?;
            let inputs: Vec<&[T]> = (0..self.world_size).map(|from| &received[from * mine.len()..][..mine.len()]).collect();
            reduce_into(&inputs, reduce, &mut piece[mine]);
            // SAFETY: in place: every rank's part of `piece` is sent from, and received to, where it belongs.
            checked(OP, unsafe {
                ffi::MPI_Allgatherv(
                    self.in_place,
                    0,
                    ffi::RSMPI_UINT8_T,
                    piece.as_mut_ptr().cast(),
                    counts.as_ptr(),
                    places.as_ptr(),
                    ffi::RSMPI_UINT8_T,
                    self.comm,
                )
            })?;
        }
        self.received = memory;
        Ok(())
    }

    /// Sends values to another rank, which sends as many as there is room for.
    fn exchange<T: Element>(&self, peer: usize, sent: &[T], received: &mut [T]) -> Result<(), Error> {
        // SAFETY: two separate buffers of these lengths, of a piece or less.
        checked("all_reduce", unsafe {
            ffi::MPI_Sendrecv(
                sent.as_ptr().cast(),
                size_of_val(sent) as c_int,
                ffi::RSMPI_UINT8_T,
                peer as c_int,
                0,
                received.as_mut_ptr().cast(),
                size_of_val(received) as c_int,
                ffi::RSMPI_UINT8_T,
                peer as c_int,
                0,
                self.comm,
                ffi::RSMPI_STATUS_IGNORE,
            )
        })
    }

    /// The library's own all-reduce.
    fn all_reduce_by_engine(&self, values: DynSliceMut<'_>, reduce: ReduceOp) -> Result<(), Error> {
        let element = values.element();
        // SAFETY: constants of the library, which are valid once it has been started.
        let (datatype, op) = unsafe {
            let datatype = if element == ElementType::F32 { ffi::RSMPI_FLOAT } else { ffi::RSMPI_UINT32_T };
            (datatype, if reduce == ReduceOp::Max { ffi::RSMPI_MAX } else { ffi::RSMPI_SUM })
        };
        let bytes = values.into_bytes();
        for piece in bytes.chunks_mut(PIECE_BYTES) {
            let count = (piece.len() / element.size_bytes()) as c_int;
            // SAFETY: in place over `count` elements of `piece`.
            checked("all_reduce", unsafe {
                ffi::MPI_Allreduce(self.in_place, piece.as_mut_ptr().cast(), count, datatype, op, self.comm)
            })?;
            if reduce == ReduceOp::Mean {
                // It is f32: `check_reduce` has refused means of integers.
                let share = 1.0 / self.world_size as f32;
                bytemuck::cast_slice_mut::<u8, f32>(piece).iter_mut().for_each(|sum| *sum *= share);
            }
        }
        Ok(())
    }

    fn reduce_scatter_in_order<T: Element>(&mut self, input: &[T], shard: &mut [T], reduce: ReduceOp) -> Result<(), Error> {
        let mut memory = std::mem::take(&mut self.received);
        let received: &mut [T] = room(&mut memory, input.len());
        let count = self.count("reduce_scatter", "shard", size_of_val(shard))?;
        // SAFETY: `count` bytes go to and come from each rank: both buffers are as long as all shards.
        checked("reduce_scatter", unsafe {
            let (from, to) = (input.as_ptr().cast(), received.as_mut_ptr().cast());
            ffi::MPI_Alltoall(from, count, ffi::RSMPI_UINT8_T, to, count, ffi::RSMPI_UINT8_T, self.comm)
        })?;
        let inputs: Vec<&[T]> = (0..self.world_size).map(|from| &received[from * shard.len()..][..shard.len()]).collect();
        reduce_into(&inputs, reduce, shard);
        self.received = memory;
        Ok(())
    }

    /// A number of bytes as the library's integer type.
    fn count(&self, op: &'static str, arg: &'static str, n_bytes: usize) -> Result<c_int, Error> {
        let rule = "the maximum number of bytes; send it in parts";
        c_int::try_from(n_bytes).map_err(|_| Error::Length {
            op,
            rank: self.rank,
            arg,
            expected: c_int::MAX as usize,
            found: n_bytes,
            rule,
        })
    }

    /// Ends the job, with the reason on standard error.
    fn abort(&self, why: &str) -> ! {
        crate::watch::say(&format!("rank {} failed: {why}; the run ends, start again from the last checkpoint", self.rank));
        // SAFETY: the library was started, and has not been finalized, which happens only after `finished` is set.
        unsafe { ffi::MPI_Abort(self.comm, Self::PEER_FAILED) };
        std::process::exit(Self::PEER_FAILED)
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if !self.finished {
            // Finalizing the library here would wait for the other ranks forever.
            self.abort(if std::thread::panicking() { "its thread panicked" } else { "it left without `finish`" });
        }
    }
}

impl Collective for Mpi {
    fn rank(&self) -> usize {
        self.rank
    }

    fn world_size(&self) -> usize {
        self.world_size
    }

    fn engine(&self) -> &str {
        &self.engine
    }

    fn all_reduce_values(&mut self, values: DynSliceMut<'_>, reduce: ReduceOp) -> Result<(), Error> {
        const OP: &str = "all_reduce";
        let (element, len) = (values.element(), values.len());
        check_reduce(OP, self.rank, element, reduce)?;
        let few = self.opening.has_room_for(values.bytes.len());
        let call = Call { op: OP, element, len, how: How::By(reduce) };
        let _watching = self.begin(call, if few { values.bytes } else { &[] })?;
        if few {
            with_element!(element, T => self.opening.reduce::<T>(0, reduce, typed_mut(values)));
            return Ok(());
        }
        // Maxima of floats are computed here, since the library does not define them for NaN; so are sums of f16 and bf16, which
        // it does not support, and of bytes, which wrap around here and in Open MPI with AVX stay at 255.
        let is_f32 = element == ElementType::F32;
        // With two ranks there is only one summation order.
        let any_order = self.order == SumOrder::Engine || (self.world_size == 2 && values.bytes.len() > WHOLE_BYTES);
        let is_by_engine = is_f32 && reduce != ReduceOp::Max && any_order;
        if element == ElementType::U32 || is_by_engine {
            return self.all_reduce_by_engine(values, reduce);
        }
        // Partial sums of 16-bit floats are f32; two ranks have none.
        let is_in_pairs = match self.world_size {
            2 => values.bytes.len() <= WHOLE_BYTES || is_f32,
            n_ranks => n_ranks.is_power_of_two() && is_f32,
        };
        match is_in_pairs {
            true => with_element!(element, T => self.all_reduce_in_pairs::<T>(typed_mut(values), reduce)),
            false => with_element!(element, T => self.all_reduce_in_order::<T>(typed_mut(values), reduce)),
        }
    }

    fn reduce_scatter_values(&mut self, input: DynSlice<'_>, shard: DynSliceMut<'_>, reduce: ReduceOp) -> Result<(), Error> {
        const OP: &str = "reduce_scatter";
        let (element, len) = (input.element(), input.len());
        check_reduce(OP, self.rank, element, reduce)?;
        check_same(OP, self.rank, element, shard.element())?;
        check_shards(OP, (self.rank, self.world_size), shard.len(), ("input", len))?;
        let few = self.opening.has_room_for(input.bytes().len());
        let call = Call { op: OP, element, len, how: How::By(reduce) };
        let _watching = self.begin(call, if few { input.bytes() } else { &[] })?;
        if few {
            let at = self.rank * shard.len();
            with_element!(element, T => self.opening.reduce::<T>(at, reduce, typed_mut(shard)));
            return Ok(());
        }
        with_element!(element, T => self.reduce_scatter_in_order::<T>(typed(input), typed_mut(shard), reduce))
    }

    fn all_gather_values(&mut self, shard: DynSlice<'_>, output: DynSliceMut<'_>) -> Result<(), Error> {
        const OP: &str = "all_gather";
        let (element, len) = (shard.element(), shard.len());
        check_same(OP, self.rank, element, output.element())?;
        check_shards(OP, (self.rank, self.world_size), len, ("output", output.len()))?;
        let count = self.count(OP, "shard", shard.bytes().len())?;
        let few = self.opening.has_room_for(shard.bytes().len());
        let _watching = self.begin(Call { op: OP, element, len, how: How::Plainly }, if few { shard.bytes() } else { &[] })?;
        if few {
            let parts = output.into_bytes().chunks_exact_mut(shard.bytes().len().max(1));
            parts.enumerate().for_each(|(rank, part)| part.copy_from_slice(self.opening.values(rank)));
            return Ok(());
        }
        // SAFETY: `count` bytes are sent, and as many received from each rank: the output is as long as all shards.
        checked(OP, unsafe {
            let (from, to) = (shard.bytes().as_ptr().cast(), output.into_bytes().as_mut_ptr().cast());
            ffi::MPI_Allgather(from, count, ffi::RSMPI_UINT8_T, to, count, ffi::RSMPI_UINT8_T, self.comm)
        })
    }

    fn broadcast_values(&mut self, values: DynSliceMut<'_>, root: usize) -> Result<(), Error> {
        const OP: &str = "broadcast";
        let (rank, world_size) = (self.rank, self.world_size);
        if root >= world_size {
            return Err(Error::Root { op: OP, rank, root, world_size });
        }
        let (element, len) = (values.element(), values.len());
        let few = self.opening.has_room_for(values.bytes.len());
        let call = Call { op: OP, element, len, how: How::From(root) };
        let _watching = self.begin(call, if few && rank == root { values.bytes } else { &[] })?;
        if few {
            values.bytes.copy_from_slice(self.opening.values(root));
            return Ok(());
        }
        for piece in values.into_bytes().chunks_mut(PIECE_BYTES) {
            // SAFETY: the piece's bytes are read on the root and written on the other ranks; pieces have the same lengths on all
            // ranks, since the values do.
            checked(OP, unsafe {
                let n_bytes = piece.len() as c_int;
                ffi::MPI_Bcast(piece.as_mut_ptr().cast(), n_bytes, ffi::RSMPI_UINT8_T, root as c_int, self.comm)
            })?;
        }
        Ok(())
    }

    fn barrier(&mut self) -> Result<(), Error> {
        self.meet("barrier")
    }

    fn at_step(&mut self, step: u64) {
        self.watch.at_step(step);
    }

    fn take_waits(&mut self) -> Vec<Duration> {
        self.waits.take()
    }

    fn fail(&mut self, why: &str) {
        self.abort(why);
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.meet("finish")?;
        self.finished = true;
        // The watch must not call the library after it is finalized.
        self.watch.stop();
        // SAFETY: the communicator is ours and not used again; the library was started, and is finalized once.
        unsafe {
            checked("finish", ffi::MPI_Comm_free(&mut self.comm))?;
            checked("finish", ffi::MPI_Finalize())
        }
    }
}

impl Mpi {
    /// Waits for all ranks: none has what all sent before all have sent it.
    fn meet(&mut self, op: &'static str) -> Result<(), Error> {
        self.begin(Call { op, element: ElementType::U8, len: 0, how: How::Plainly }, &[]).map(drop)
    }
}

/// At least `len` elements in memory that grows to the most that was ever needed.
fn room<T: Element>(memory: &mut Vec<u32>, len: usize) -> &mut [T] {
    memory.resize(memory.len().max((len * size_of::<T>()).div_ceil(size_of::<u32>())), 0);
    bytemuck::cast_slice_mut(memory)
}

/// Turns a return code into a `Result`.
fn checked(op: &'static str, code: c_int) -> Result<(), Error> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: the buffer has the length that the library requires, plus one byte, which stays 0.
    let text = unsafe {
        ffi::MPI_Error_string(code, text.as_mut_ptr(), &mut len);
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    Err(Error::Engine { op, code, text })
}

/// `Open MPI v4.1.4`, `MPICH Version: 4.0.2`.
fn library_version() -> Result<String, Error> {
    let mut text = [0 as c_char; ffi::MPI_MAX_LIBRARY_VERSION_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: the buffer has the length that the library requires, plus one byte, which stays 0.
    let text = unsafe {
        checked("start", ffi::MPI_Get_library_version(text.as_mut_ptr(), &mut len))?;
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    // The rest describes the build.
    Ok(text.lines().next().unwrap_or_default().split(',').next().unwrap_or_default().trim().to_owned())
}

/// The value of the macro MPI_IN_PLACE, by library: headers define it as a cast, which bindings cannot express.
fn in_place(engine: &str) -> Option<*mut c_void> {
    const LIKE_MPICH: [&str; 4] = ["MPICH", "Intel(R) MPI", "MVAPICH", "CRAY MPICH"];
    let number: isize = if engine.starts_with("Open MPI") {
        1
    } else if LIKE_MPICH.iter().any(|name| engine.starts_with(name)) {
        -1
    } else {
        return None;
    };
    Some(std::ptr::without_provenance_mut(number as usize))
}
