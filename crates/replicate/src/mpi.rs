//! Replicas that are processes, on one host or many, by MPI.
#![expect(unsafe_code, reason = "MPI is a C library; what it is called with is checked here, and what it returns")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use mpi_sys as ffi;

use crate::call::{Call, Encoded, How};
use crate::collective::{check_reduce, check_same, check_shards, typed, typed_mut};
use crate::element::with_element;
use crate::tree::{part, reduce_into};
use crate::watch::Watch;
use crate::{Collective, Element, ElementType, Error, ReduceOp, Values, ValuesMut};

/// A replica among processes that `mpirun` or `srun` has started. A program started without either is a world of one.
///
/// Lengths, types and the order of calls are compared between ranks before each operation ([`Error::Mismatch`]), which costs a small message; every
/// return code of the library is looked at. One handle a process; it may be moved to another thread, such as a [`CommThread`](crate::CommThread).
///
/// A rank that fails, by [`fail`](Collective::fail), a panic or being dropped without [`finish`](Collective::finish), ends the job: every process is
/// terminated with exit status [`PEER_FAILED`](Self::PEER_FAILED), what it wrote last to standard error being the reason. A rank that waits for longer than
/// [`MpiConfig::timeout`] ends itself in the same way, and so the job; it says in which operation, and in which step if it was told
/// ([`at_step`](Collective::at_step)).
#[derive(Debug)]
pub struct Mpi {
    comm: ffi::MPI_Comm,
    rank: usize,
    world_size: usize,
    engine: String,
    in_place: *mut c_void,
    order: SumOrder,
    watch: Watch,
    finished: bool,
}

/// How an [`Mpi`] works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MpiConfig {
    /// How sums of f32 are taken.
    pub order: SumOrder,
    /// How long an operation may take; minutes, since a first step compiles shaders and a checkpoint is written meanwhile.
    pub timeout: Duration,
}

/// In which order floats of ranks are added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SumOrder {
    /// Along the binary tree that [`Threads`](crate::Threads) takes: the same bits on every engine, in every run, but for which of several NaN a sum is. Of more than two ranks
    /// parts are sent to the rank that adds them, and gathered; two numbers can be added in one order alone.
    Fixed,
    /// As the library likes: f32 by its own all-reduce, the faster, whose order may differ between versions, sizes and numbers of ranks. Halves are added as by `Fixed`.
    Engine,
}

impl Default for MpiConfig {
    /// Fixed order, ten minutes.
    fn default() -> Self {
        Self { order: SumOrder::Fixed, timeout: Duration::from_secs(600) }
    }
}

// SAFETY: the library was started with at least MPI_THREAD_SERIALIZED, and `&mut self` serialises the calls.
unsafe impl Send for Mpi {}

static STARTED: AtomicBool = AtomicBool::new(false);

/// Bytes sent in one call: larger ones were slower, over shared memory and over TCP.
const PIECE_BYTES: usize = 1 << 20;

impl Mpi {
    /// The exit status of a job one of whose ranks failed: starting again from the last checkpoint may help.
    pub const PEER_FAILED: i32 = 75;

    /// Starts the library, once a process.
    ///
    /// # Errors
    /// [`Error::Engine`] with what it says; if it was started before, or lets only one thread call it.
    pub fn start(config: MpiConfig) -> Result<Self, Error> {
        const OP: &str = "start";
        let own = |text: &str| Error::Engine { op: OP, code: 0, text: text.to_owned() };
        if STARTED.swap(true, Ordering::SeqCst) {
            return Err(own("MPI was started in this process before, and may be only once"));
        }
        let (mut level, mut rank, mut world_size) = (0, 0, 0);
        // SAFETY: called once a process; null for the program's arguments is allowed since MPI-2; the others are places for results.
        let comm = unsafe {
            let wanted = ffi::RSMPI_THREAD_SERIALIZED;
            checked(OP, ffi::MPI_Init_thread(std::ptr::null_mut(), std::ptr::null_mut(), wanted, &mut level))?;
            if level < wanted {
                return Err(own("this MPI lets only one thread call it (no MPI_THREAD_SERIALIZED); take another build of it"));
            }
            // A communicator of our own: no clash with a caller's messages.
            let mut comm = ffi::RSMPI_COMM_NULL;
            checked(OP, ffi::MPI_Comm_dup(ffi::RSMPI_COMM_WORLD, &mut comm))?;
            checked(OP, ffi::MPI_Comm_set_errhandler(comm, ffi::RSMPI_ERRORS_RETURN))?;
            checked(OP, ffi::MPI_Comm_rank(comm, &mut rank))?;
            checked(OP, ffi::MPI_Comm_size(comm, &mut world_size))?;
            comm
        };
        let (rank, world_size) = (rank as usize, world_size as usize);
        let engine = library_version()?;
        let in_place = in_place(&engine).ok_or_else(|| own(&format!("`{engine}` is an MPI that nobody has tried here")))?;
        let watch = Watch::start(rank, config.timeout);
        Ok(Self { comm, rank, world_size, engine, in_place, order: config.order, watch, finished: false })
    }

    /// Whether this process was started by a launcher of MPI (`mpirun`, `srun --mpi`).
    pub fn was_launched() -> bool {
        ["OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK"].iter().any(|name| std::env::var_os(name).is_some())
    }

    /// Compares the call with the others', and watches the time until the operation is over.
    fn begin(&self, call: Call) -> Result<Watching<'_>, Error> {
        self.watch.enter(call.op);
        let watching = Watching(&self.watch);
        if self.world_size == 1 {
            return Ok(watching);
        }
        let mine = call.encode();
        // The largest of each number and of its complement: both are this rank's own, everywhere, if all are the same.
        let mut extremes = [0_u32; 12];
        for (i, number) in mine.iter().enumerate() {
            (extremes[i], extremes[6 + i]) = (*number, !*number);
        }
        let sent = extremes;
        // SAFETY: both buffers have 12 numbers.
        checked(call.op, unsafe {
            let (from, to) = (sent.as_ptr().cast(), extremes.as_mut_ptr().cast());
            ffi::MPI_Allreduce(from, to, 12, ffi::RSMPI_UINT32_T, ffi::RSMPI_MAX, self.comm)
        })?;
        if extremes == sent {
            return Ok(watching);
        }
        Err(self.mismatch(mine)?)
    }

    /// Who called what, once it is known that not all called the same.
    fn mismatch(&self, mine: Encoded) -> Result<Error, Error> {
        let mut all = vec![mine; self.world_size];
        // SAFETY: 6 numbers are sent, and as many received from each rank.
        checked("compare", unsafe {
            let (from, to) = (mine.as_ptr().cast(), all.as_mut_ptr().cast());
            ffi::MPI_Allgather(from, 6, ffi::RSMPI_UINT32_T, to, 6, ffi::RSMPI_UINT32_T, self.comm)
        })?;
        let other = all.iter().position(|call| *call != all[0]).unwrap_or(0);
        let text = |rank: usize| Call::decode(all[rank]).to_string();
        Ok(Error::Mismatch { rank: 0, mine: text(0), other, theirs: text(other) })
    }

    /// Each rank is sent its part of a piece by all, reduces it along the tree, and all parts are gathered.
    fn all_reduce_in_order<T: Element>(&self, values: &mut [T], reduce: ReduceOp) -> Result<(), Error> {
        const OP: &str = "all_reduce";
        let size = size_of::<T>();
        let mut received = vec![T::zeroed(); (PIECE_BYTES / size).min(values.len())];
        for piece in values.chunks_mut(PIECE_BYTES / size) {
            let parts: Vec<_> = (0..self.world_size).map(|rank| part(piece.len(), self.world_size, rank)).collect();
            let counts: Vec<c_int> = parts.iter().map(|part| (part.len() * size) as c_int).collect();
            let places: Vec<c_int> = parts.iter().map(|part| (part.start * size) as c_int).collect();
            let mine = parts[self.rank].clone();
            let incoming = vec![counts[self.rank]; self.world_size];
            let incoming_places: Vec<c_int> = (0..self.world_size).map(|rank| (rank * mine.len() * size) as c_int).collect();
            received.resize(received.len().max(mine.len() * self.world_size), T::zeroed());
            // SAFETY: counts and places lie within `piece`, whose parts they are, and within `received`, which has room for this rank's part from each.
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
        Ok(())
    }

    /// The library's own all-reduce.
    fn all_reduce_by_engine(&self, values: ValuesMut<'_>, reduce: ReduceOp) -> Result<(), Error> {
        let element = values.element();
        // SAFETY: constants of the library, there once it has been started.
        let (datatype, op) = unsafe {
            let datatype = match element {
                ElementType::F32 => ffi::RSMPI_FLOAT,
                ElementType::U8 => ffi::RSMPI_UINT8_T,
                _ => ffi::RSMPI_UINT32_T,
            };
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
                // Whole numbers have no mean, which was checked.
                let share = 1.0 / self.world_size as f32;
                bytemuck::cast_slice_mut::<u8, f32>(piece).iter_mut().for_each(|sum| *sum *= share);
            }
        }
        Ok(())
    }

    fn reduce_scatter_in_order<T: Element>(&self, input: &[T], shard: &mut [T], reduce: ReduceOp) -> Result<(), Error> {
        let mut received = vec![T::zeroed(); input.len()];
        let count = self.count("reduce_scatter", "shard", size_of_val(shard))?;
        // SAFETY: `count` bytes go to and come from each rank: both buffers are as long as all shards.
        checked("reduce_scatter", unsafe {
            let (from, to) = (input.as_ptr().cast(), received.as_mut_ptr().cast());
            ffi::MPI_Alltoall(from, count, ffi::RSMPI_UINT8_T, to, count, ffi::RSMPI_UINT8_T, self.comm)
        })?;
        let inputs: Vec<&[T]> = (0..self.world_size).map(|from| &received[from * shard.len()..][..shard.len()]).collect();
        reduce_into(&inputs, reduce, shard);
        Ok(())
    }

    /// A number of bytes as the library takes it.
    fn count(&self, op: &'static str, arg: &'static str, n_bytes: usize) -> Result<c_int, Error> {
        let rule = "bytes at most; send it in parts";
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
        // SAFETY: the library was started, and has not been ended: that is when `finished` is set.
        unsafe { ffi::MPI_Abort(self.comm, Self::PEER_FAILED) };
        std::process::exit(Self::PEER_FAILED)
    }
}

/// The time during which an operation is watched.
struct Watching<'a>(&'a Watch);

impl Drop for Watching<'_> {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Drop for Mpi {
    fn drop(&mut self) {
        if !self.finished {
            // Ending the library here would wait for the others for ever.
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

    fn all_reduce_values(&mut self, values: ValuesMut<'_>, reduce: ReduceOp) -> Result<(), Error> {
        const OP: &str = "all_reduce";
        let (element, len) = (values.element(), values.len());
        check_reduce(OP, self.rank, element, reduce)?;
        let _watching = self.begin(Call { op: OP, element, len, how: How::By(reduce) })?;
        // The largest of floats is ours to find, since the library's does not say what becomes of NaN; so are sums of halves, which it does not know.
        let is_whole = !element.is_float();
        // Two numbers can be added in one order alone.
        let any_order = self.order == SumOrder::Engine || self.world_size == 2;
        let by_engine = is_whole || (element == ElementType::F32 && reduce != ReduceOp::Max && any_order);
        // Sums of bytes wrap in the library as well.
        if by_engine {
            return self.all_reduce_by_engine(values, reduce);
        }
        with_element!(element, T => self.all_reduce_in_order::<T>(typed_mut(values), reduce))
    }

    fn reduce_scatter_values(&mut self, input: Values<'_>, shard: ValuesMut<'_>, reduce: ReduceOp) -> Result<(), Error> {
        const OP: &str = "reduce_scatter";
        let (element, len) = (input.element(), input.len());
        check_reduce(OP, self.rank, element, reduce)?;
        check_same(OP, self.rank, element, shard.element())?;
        check_shards(OP, (self.rank, self.world_size), shard.len(), ("input", len))?;
        let _watching = self.begin(Call { op: OP, element, len, how: How::By(reduce) })?;
        with_element!(element, T => self.reduce_scatter_in_order::<T>(typed(input), typed_mut(shard), reduce))
    }

    fn all_gather_values(&mut self, shard: Values<'_>, output: ValuesMut<'_>) -> Result<(), Error> {
        const OP: &str = "all_gather";
        let (element, len) = (shard.element(), shard.len());
        check_same(OP, self.rank, element, output.element())?;
        check_shards(OP, (self.rank, self.world_size), len, ("output", output.len()))?;
        let count = self.count(OP, "shard", shard.bytes().len())?;
        let _watching = self.begin(Call { op: OP, element, len, how: How::Plainly })?;
        // SAFETY: `count` bytes are sent, and as many received from each rank: the output is as long as all shards.
        checked(OP, unsafe {
            let (from, to) = (shard.bytes().as_ptr().cast(), output.into_bytes().as_mut_ptr().cast());
            ffi::MPI_Allgather(from, count, ffi::RSMPI_UINT8_T, to, count, ffi::RSMPI_UINT8_T, self.comm)
        })
    }

    fn broadcast_values(&mut self, values: ValuesMut<'_>, root: usize) -> Result<(), Error> {
        const OP: &str = "broadcast";
        let (rank, world_size) = (self.rank, self.world_size);
        if root >= world_size {
            return Err(Error::Root { op: OP, rank, root, world_size });
        }
        let (element, len) = (values.element(), values.len());
        let _watching = self.begin(Call { op: OP, element, len, how: How::From(root) })?;
        for piece in values.into_bytes().chunks_mut(PIECE_BYTES) {
            // SAFETY: the piece's bytes are read on the root and written elsewhere; pieces are alike on all ranks, since lengths are.
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

    fn fail(&mut self, why: &str) {
        self.abort(why);
    }

    fn finish(mut self: Box<Self>) -> Result<(), Error> {
        self.meet("finish")?;
        self.finished = true;
        // SAFETY: the communicator is ours and not used again; the library was started, and is ended once.
        unsafe {
            checked("finish", ffi::MPI_Comm_free(&mut self.comm))?;
            checked("finish", ffi::MPI_Finalize())
        }
    }
}

impl Mpi {
    fn meet(&self, op: &'static str) -> Result<(), Error> {
        let _watching = self.begin(Call { op, element: ElementType::U8, len: 0, how: How::Plainly })?;
        // SAFETY: the communicator is alive.
        checked(op, unsafe { ffi::MPI_Barrier(self.comm) })
    }
}

/// What a return code means.
fn checked(op: &'static str, code: c_int) -> Result<(), Error> {
    if code == ffi::MPI_SUCCESS as c_int {
        return Ok(());
    }
    let mut text = [0 as c_char; ffi::MPI_MAX_ERROR_STRING as usize + 1];
    let mut len = 0;
    // SAFETY: the buffer is as long as the library wants it, and one more, which stays 0.
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
    // SAFETY: the buffer is as long as the library wants it, and one more, which stays 0.
    let text = unsafe {
        checked("start", ffi::MPI_Get_library_version(text.as_mut_ptr(), &mut len))?;
        CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned()
    };
    // What comes behind is how it was built.
    Ok(text.lines().next().unwrap_or_default().split(',').next().unwrap_or_default().trim().to_owned())
}

/// What the macro MPI_IN_PLACE is, by which library: its header says so as a cast, which does not come through to other languages.
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
