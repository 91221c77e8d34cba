//! How rows reach a device: all of them before the run, or chunk by chunk during it.
//!
//! A streamed feed has one chunk on the device, not two. wgpu has one queue, whose barriers hold a copy back until earlier
//! kernels are done, so a second chunk would hide nothing.

mod chunks;
mod config;
mod probe;
mod resident;
mod row_weights;
mod source_rows;
mod table;

use std::cell::RefCell;
use std::ops::{ControlFlow, Range};
use std::rc::Rc;

use brisk_loader::{Batching, Lanes, Order, Shard, Shuffle};
use brisk_nn::Augment;
use brisk_nn::tensor::program::{self, Device, Uploads};
use brisk_nn::tensor::{DType, Graph, Persistent, Tensor};
use chunks::{Chunks, OpenChunks, SourceChunks};
use resident::check_on_devices;
use row_weights::BatchWeights;
use source_rows::{DigestRows, SourceRows};
use table::{Chunk, DeviceTable, EpochOrder};

use crate::error::Error;
use crate::host_memory;
use crate::rows::inspect::{check_unchanged, layout_of};
use crate::rows::{FeedRows, RowLayout};
use crate::standardisation::Standardisation;

pub(crate) use config::check_batch;
pub use config::{FeedChoice, FeedConfig, FeedReason};
pub use probe::FeedProbe;
pub use resident::ResidentRows;
pub(crate) use row_weights::RowWeights;
pub use table::{BatchTensors, PartnerLabels};

/// Batches of a source's rows on a device: resident there, or streamed, with the same batches in the same order.
///
/// A streamed feed holds one chunk of many batches on the device. While the device trains on it, threads gather the next chunks
/// on the host; then a chunk is copied through mapped staging memory. Clones are the same feed.
#[derive(Debug, Clone)]
pub struct Feed<'a> {
    table: DeviceTable,
    n_rows: usize,
    batch_rows: usize,
    order: Order,
    fact: FeedReason,
    stream: Option<Stream<'a>>,
    /// Whether a short last batch is left out.
    drops_last: bool,
    /// How batches of training are made, unless by gathering rows.
    augment: Option<Rc<dyn Augment + 'a>>,
    /// The rows as they are in the source; `None` where only those on the device are known.
    source: Option<Rc<dyn DigestRows + 'a>>,
}

#[derive(Debug, Clone)]
struct Stream<'a> {
    /// The part of each batch that is read.
    rank: Shard,
    chunks: Rc<dyn Chunks + 'a>,
    chunk_batches: usize,
    /// The weights of whole batches, if rows have weights and parts are read.
    weights: Option<BatchWeights>,
    uploads: Rc<RefCell<Uploads>>,
    /// Of the device.
    max_binding_bytes: usize,
}

/// A feed whose threads, if it has any, are running; [`Feed::open`] lends it.
pub struct OpenFeed<'f> {
    feed: &'f Feed<'f>,
    device: &'f Device,
    chunks: Option<&'f mut dyn OpenChunks>,
}

/// The batch from which a run's state counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CountFrom {
    /// The start of the epoch.
    Epoch,
    /// The start of each range of batches, where the caller sets it to 0.
    Range,
}

/// Batches that are ready on the device and can be replayed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchRange {
    /// The first of them, counted within the epoch.
    pub first_batch: usize,
    /// How many.
    pub n_batches: usize,
    /// How many rows they have, without the padding of the last batch.
    pub n_rows: usize,
}

impl<'a> Feed<'a> {
    /// Makes rows resident or streams them, as `config` says or depending on whether they fit. `config.order` is ignored in
    /// favour of `order`. Of streamed rows without weights, only the part of [`FeedConfig::rank`] is read.
    ///
    /// # Errors
    /// [`Error::Setting`] for batches of 0 rows, for a [rank](FeedConfig::rank) without a part of each batch, and for
    /// [lanes](Order::Lanes) of batches of another size; [`Error::RowSet`], [`Error::Value`], [`Error::Rows`] for rows that
    /// cannot be used; [`Error::Setting`] if rows must be resident in an order that devices do not compute; [`Error::Tensor`] if
    /// the device has no room even for a chunk.
    pub fn new<S: FeedRows>(
        device: &Device,
        set: &'static str,
        source: &'a S,
        order: Order,
        batch_rows: usize,
        config: &FeedConfig,
    ) -> Result<Self, Error> {
        Wanted { device, set, source, order, batch_rows, config, weights: &RowWeights::Unknown }.feed()
    }

    /// Batches of rows that are on the device already.
    pub fn of_resident(rows: &ResidentRows, order: Order, batch_rows: usize) -> Self {
        let fact = FeedReason::ResidentAsked { len_bytes: rows.len_bytes() };
        Self::of(rows.table.clone(), rows.n_rows(), order, batch_rows, fact)
    }

    /// All batches of the rows in a table.
    fn of(table: DeviceTable, n_rows: usize, order: Order, batch_rows: usize, fact: FeedReason) -> Self {
        let batch_rows = batch_rows.clamp(1, n_rows.max(1));
        Self { table, n_rows, batch_rows, order, fact, stream: None, drops_last: false, augment: None, source: None }
    }

    /// The same rows, with batches that `augment` makes. Random numbers of brisk's own augmentations depend on the row and the
    /// epoch, so that they are the same on any number of replicas, after a run is resumed, and for resident and streamed rows. If
    /// an order draws a row several times in an epoch, it is augmented in the same way each time.
    ///
    /// Recording a batch of a streamed feed is an error if `augment` mixes rows, since a partner may be any row of the epoch.
    pub fn augmented(self, augment: Rc<dyn Augment + 'a>) -> Self {
        let table = match &self.stream {
            Some(stream) => self.table.with_ids(stream.max_binding_bytes),
            None => self.table,
        };
        Self { table, augment: Some(augment), ..self }
    }

    /// The same rows without the last batch of an epoch, if that is short: its rows take part in the epochs whose order puts them
    /// elsewhere. A short batch is otherwise padded by its own rows with weight 0, which losses and
    /// [statistics of a batch](Graph::set_row_weights) treat as absent.
    ///
    /// # Reference
    /// `drop_last` of `torch.utils.data.DataLoader`.
    pub fn drop_last(self) -> Self {
        Self { drops_last: true, ..self }
    }

    /// A feed of one batch, for a step that is recorded and not compiled.
    pub(crate) fn recorded_only(layout: RowLayout, batch_rows: usize) -> Self {
        let table = DeviceTable::new(usize::MAX, "recorded", layout, batch_rows);
        let fact = FeedReason::ResidentAsked { len_bytes: table.len_bytes() };
        Self::of(table, batch_rows, Order::Sequential, batch_rows, fact)
    }

    /// The same rows in sequential order, in batches of a different size, as they are evaluated: without augmentation.
    pub(crate) fn in_batches(&self, batch_rows: usize) -> Self {
        let batch_rows = batch_rows.clamp(1, self.n_rows);
        Self { batch_rows, order: Order::Sequential, drops_last: false, augment: None, ..self.clone() }
    }

    /// The first `n_rows` rows of a feed in sequential order.
    pub(crate) fn first_rows(self, n_rows: usize) -> Self {
        Self { n_rows: self.n_rows.min(n_rows), ..self }
    }

    /// Checks that the rows are on `device`: another one has zeros in their place.
    pub(crate) fn check_on(&self, device: &Device) -> Result<(), Error> {
        match self.table.device() {
            Some(own) if !own.is_same(device) => {
                let found = format!("{}, which is not the device that the feed's rows are on", device.info().name);
                Err(Error::setting("device", found, "that device, or a clone of it; or create the feed on this one"))
            }
            _ => Ok(()),
        }
    }

    /// Whether both have the same batches of the same rows, as clones do.
    pub(crate) fn is_same(&self, other: &Self) -> bool {
        let batches = |feed: &Self| (feed.n_rows, feed.batch_rows, feed.drops_last);
        self.table.is_same(&other.table) && batches(self) == batches(other) && self.order == other.order
    }

    /// How many rows an epoch has.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// How many columns there are.
    pub fn n_cols(&self) -> usize {
        self.table.n_cols()
    }

    /// The rows as they are in the source; `None` for rows that were on the device before there was a feed.
    pub(crate) fn source(&self) -> Option<&dyn DigestRows> {
        self.source.as_deref().map(|source| source as &dyn DigestRows)
    }

    /// The rows of each batch that are read: all of them, or those of one rank.
    pub(crate) fn read_part(&self) -> Range<usize> {
        self.stream.as_ref().map_or(0..self.batch_rows, |stream| stream.rank.part(self.batch_rows))
    }

    /// The rank and the number of ranks, if it reads only its part of each batch.
    pub(crate) fn rank_of_parts(&self) -> Option<[usize; 2]> {
        let rank = self.stream.as_ref()?.rank;
        (rank.world() > 1).then(|| [rank.rank(), rank.world()])
    }

    /// The row at each position of an epoch, if rows come from lanes, each in the order of the source.
    pub(crate) fn lane_rows(&self) -> Option<Vec<u32>> {
        let Order::Lanes(Lanes { seed: None, .. }) = self.order else { return None };
        // Row numbers are `u32`.
        let n_rows = self.n_rows as u32;
        let mut rows: Vec<u32> = (0..n_rows).collect();
        self.order.of_epoch(n_rows, 0).permute(&mut rows);
        Some(rows)
    }

    /// The same rows, streamed for the reason given.
    pub(crate) fn because(self, fact: FeedReason) -> Self {
        Self { fact, ..self }
    }

    /// Rows of a batch.
    pub fn batch_rows(&self) -> usize {
        self.batch_rows
    }

    /// The order in which the rows are taken.
    pub fn order(&self) -> &Order {
        &self.order
    }

    /// How many batches an epoch has; the last may be short, unless it is [left out](Self::drop_last).
    pub fn n_batches(&self) -> usize {
        if self.drops_last { self.n_rows / self.batch_rows } else { self.n_rows.div_ceil(self.batch_rows) }
    }

    /// How rows reach the device, and why.
    pub fn fact(&self) -> &FeedReason {
        &self.fact
    }

    /// Bytes of rows on the device: those of all rows, or of a chunk.
    pub fn len_bytes(&self) -> usize {
        self.table.len_bytes()
    }

    /// The maximum number of batches that are on the device together.
    pub(crate) fn range_batches(&self) -> usize {
        self.stream.as_ref().map_or(self.n_batches(), |stream| stream.chunk_batches)
    }

    /// Records the gathering of the batch whose index is in `state`: of its rows that are read, those of [`FeedConfig::rank`] if
    /// only that part is streamed.
    ///
    /// # Errors
    /// [`Shape`](brisk_nn::Error::Shape) if `scale` has a different number of columns.
    pub fn record(&self, graph: &Graph, scale: &Standardisation, state: &Persistent) -> BatchTensors {
        self.record_part(graph, scale, state, self.read_part())
    }

    /// The same for the rows `part` of each batch, such as those of one replica.
    #[track_caller]
    pub(crate) fn record_part(
        &self,
        graph: &Graph,
        scale: &Standardisation,
        state: &Persistent,
        part: Range<usize>,
    ) -> BatchTensors {
        let read = self.read_part();
        if self.rank_of_parts().is_some() && part != read {
            let found = format!("rows {part:?} of each batch, of which rows {read:?} are read");
            let expected = "the part of `FeedConfig::rank`, or a feed that reads whole batches";
            graph.fail(brisk_nn::Error::Refused { op: "record_part", found, expected });
            return self.table.record_part(graph, scale, state, read, self.augment.as_deref());
        }
        self.table.record_part(graph, scale, state, part, self.augment.as_deref())
    }

    /// Records the weight of each row of the whole batch, `[batch_rows]`. The losses of some of the rows, weighted by
    /// [shares](Tensor::shares) of these weights and summed, are what these rows add to the mean over the batch.
    pub(crate) fn record_weights(&self, graph: &Graph, scale: &Standardisation, state: &Persistent) -> Tensor {
        self.table.record_weights(graph, scale, state, self.batch_rows)
    }

    pub(crate) fn has_weights(&self) -> bool {
        self.table.has_weights()
    }

    /// Runs the threads of a streamed feed while `f` runs. A resident one has none.
    ///
    /// # Errors
    /// Those of `f`; [`Error::Setting`] if `device` is not the one that the feed was created on, which has its rows.
    pub fn open<T>(&self, device: &Device, f: impl FnOnce(&mut OpenFeed<'_>) -> Result<T, Error>) -> Result<T, Error> {
        self.check_on(device)?;
        let Some(stream) = &self.stream else {
            return f(&mut OpenFeed { feed: self, device, chunks: None });
        };
        let (mut f, mut result) = (Some(f), None);
        stream.chunks.open(&mut |chunks| {
            if let Some(f) = f.take() {
                result = Some(f(&mut OpenFeed { feed: self, device, chunks: Some(chunks) })?);
            }
            Ok(())
        })?;
        Ok(result.expect("an open feed calls back once"))
    }
}

/// A feed to be made.
#[derive(Clone)]
pub(crate) struct Wanted<'w, 'a, S> {
    pub(crate) device: &'w Device,
    pub(crate) set: &'static str,
    pub(crate) source: &'a S,
    pub(crate) order: Order,
    pub(crate) batch_rows: usize,
    pub(crate) config: &'w FeedConfig,
    /// What is known of the weights of the rows: if they are known or not used, streamed rows are always read by part.
    pub(crate) weights: &'w RowWeights,
}

impl<'a, S: FeedRows> Wanted<'_, 'a, S> {
    pub(crate) fn feed(self) -> Result<Feed<'a>, Error> {
        let Self { set, source, .. } = self;
        let n_rows = source.n_rows();
        let layout = self.weights.in_layout(RowLayout { labels: self.config.labels, ..layout_of(set, source)? });
        if self.batch_rows == 0 {
            return Err(Error::setting("batch_rows", "0", "at least one row"));
        }
        self.config.check_parts(&self.order, self.batch_rows)?;
        let feed = self.by_choice(layout)?;
        check_unchanged(set, source, n_rows)?;
        Ok(Feed { source: Some(Rc::new(SourceRows { set, source })), ..feed })
    }

    /// The feed without rows on the device, for a step that is recorded only to plan its memory.
    pub(crate) fn planned(self) -> Result<Feed<'a>, Error> {
        let Self { device, set, source, order, batch_rows, config, .. } = self;
        let layout = RowLayout { labels: config.labels, ..layout_of(set, source)? };
        let n_rows = source.n_rows();
        let batch_rows = batch_rows.min(n_rows).max(1);
        let n_resident = match config.choice {
            FeedChoice::Streamed => (config.chunk_bytes / (batch_rows * layout.row_bytes())).max(1) * batch_rows,
            _ => n_rows,
        };
        let table = DeviceTable::new(device.max_binding_bytes(), set, layout, n_resident.min(n_rows));
        let fact = FeedReason::ResidentAsked { len_bytes: table.len_bytes() };
        Ok(Feed::of(table, n_rows, order, batch_rows, fact))
    }

    /// Resident or streamed, as the configuration says or depending on whether the rows fit.
    fn by_choice(self, layout: RowLayout) -> Result<Feed<'a>, Error> {
        let len_bytes = ResidentRows::len_bytes_of(layout, self.source.n_rows());
        match self.config.choice {
            FeedChoice::Streamed => return self.streamed(layout, |chunk_bytes| FeedReason::StreamedAsked { chunk_bytes }),
            FeedChoice::Resident => {
                check_on_devices(&self.order)?;
                return self.resident(layout, FeedReason::ResidentAsked { len_bytes });
            }
            FeedChoice::Auto if check_on_devices(&self.order).is_err() => {
                return self.streamed(layout, |chunk_bytes| FeedReason::StreamedForOrder { chunk_bytes });
            }
            FeedChoice::Auto => {}
        }
        let budget_bytes = self.config.budget_bytes.or_else(|| host_budget_bytes(self.device));
        if let Some(budget_bytes) = budget_bytes.filter(|&budget_bytes| len_bytes > budget_bytes) {
            return self.streamed(layout, |chunk_bytes| FeedReason::StreamedBeyondBudget {
                len_bytes,
                budget_bytes,
                chunk_bytes,
            });
        }
        match self.resident(layout, FeedReason::ResidentFits { len_bytes, budget_bytes }) {
            Err(error) if is_out_of_memory(&error) => {
                self.streamed(layout, |chunk_bytes| FeedReason::StreamedDeviceFull { len_bytes, chunk_bytes })
            }
            feed => feed,
        }
    }

    fn resident(&self, layout: RowLayout, fact: FeedReason) -> Result<Feed<'a>, Error> {
        let rows = ResidentRows::upload_as(self.device, self.set, self.source, layout)?;
        let n_rows = rows.n_rows();
        Ok(Feed::of(rows.table, n_rows, self.order.clone(), self.batch_rows, fact))
    }

    /// `fact` is given the bytes of a chunk.
    fn streamed(&self, layout: RowLayout, fact: impl FnOnce(usize) -> FeedReason) -> Result<Feed<'a>, Error> {
        let &Self { device, set, source, ref order, config, weights, .. } = self;
        // An epoch of drawn rows has one row per draw.
        let n_rows = order.of_epoch(source.n_rows() as u32, 0).n_positions() as usize;
        let batch_rows = self.batch_rows.min(source.n_rows()).clamp(1, n_rows.max(1));
        let weights = weights.of_batches(layout, order).filter(|_| config.rank.world() > 1);
        let is_whole = config.rank.world() == 1 || (layout.has_weights && weights.is_none());
        let rank = if is_whole { Shard::WHOLE } else { config.rank };
        check_batch(batch_rows, rank.world())?;
        // The largest part, so that chunks have the same number of batches on all ranks.
        let weight_bytes = if weights.is_some() { batch_rows * DType::F32.size_bytes() } else { 0 };
        let batch_bytes = batch_rows.div_ceil(rank.world()).saturating_mul(layout.row_bytes()).saturating_add(weight_bytes);
        let chunk_batches = (config.chunk_bytes / batch_bytes).clamp(1, n_rows.div_ceil(batch_rows).max(1));
        let chunk_rows = chunk_batches * rank.part(batch_rows).len();
        let max_binding_bytes = device.max_binding_bytes();
        let table = DeviceTable::new(max_binding_bytes, set, layout, chunk_rows).on(device);
        let n_weights = if weights.is_some() { chunk_batches * batch_rows } else { 0 };
        let table = if rank.world() > 1 { table.of_parts(max_binding_bytes, n_weights) } else { table };
        let shard = rank.of_n_batches(chunk_batches);
        let batching = Batching { order: order.clone(), shard, ..Batching::of(chunk_batches * batch_rows) };
        let chunks = Rc::new(SourceChunks::new(set, source, layout, batching, chunk_batches, config.ahead)?);
        let chunk_bytes = table.len_bytes();
        // One slot is filled while the device reads the other. With room for row numbers, for augmented batches.
        let slot_bytes = chunk_bytes + chunk_rows * DType::U32.size_bytes();
        let uploads = Rc::new(RefCell::new(device.uploads(slot_bytes, 2)?));
        let stream = Some(Stream { rank, chunks, chunk_batches, weights, uploads, max_binding_bytes });
        Ok(Feed { stream, ..Feed::of(table, n_rows, order.clone(), batch_rows, fact(chunk_bytes)) })
    }
}

impl OpenFeed<'_> {
    /// Calls `f` for the batches of an epoch, at most `most` at a time, when they are ready on the device. `f` replays the
    /// recorded program and says whether to continue.
    ///
    /// # Errors
    /// Those of `f`; [`Error::Stream`] names the batches for which the source failed; [`Error::Value`] for streamed rows that
    /// were not checked before; [`Error::Tensor`] if the device fails.
    pub fn for_each_range(
        &mut self,
        epoch: u32,
        cursor: CountFrom,
        most: usize,
        f: impl FnMut(BatchRange) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        self.for_each_range_from(0, epoch, cursor, most, f)
    }

    /// The same, starting at a batch within the epoch.
    pub(crate) fn for_each_range_from(
        &mut self,
        from: usize,
        epoch: u32,
        cursor: CountFrom,
        most: usize,
        mut f: impl FnMut(BatchRange) -> Result<ControlFlow<()>, Error>,
    ) -> Result<(), Error> {
        let Self { feed, device, chunks } = self;
        let (n_batches, most) = (feed.n_batches(), most.max(1));
        let Some((chunks, stream)) = chunks.as_mut().zip(feed.stream.as_ref()) else {
            let shuffle = feed.order.shuffle(feed.n_rows as u32, epoch);
            let order = feed.order_of(epoch, shuffle.as_ref(), feed.n_rows);
            let set_order = |offset| feed.table.set_order(device, &order, offset);
            return feed.turns_of(0..n_batches, from, most, cursor, set_order, &mut f).map(|_| ());
        };
        if from >= n_batches {
            return Ok(());
        }
        chunks.each_chunk(epoch, from / stream.chunk_batches, &mut |index, chunk| {
            let first = index * stream.chunk_batches;
            if first >= n_batches {
                return Ok(ControlFlow::Break(()));
            }
            let batches = first..(first + stream.chunk_batches).min(n_batches);
            let n_real = (stream.chunk_batches * feed.batch_rows).min(feed.n_rows - first * feed.batch_rows);
            let first_row = first * feed.batch_rows;
            let weights = stream.weights.as_ref().map(|weights| weights.at(epoch, first_row..first_row + n_real));
            let chunk = Chunk { batch_weights: weights.as_deref().unwrap_or_default(), ..chunk };
            feed.table.write(&mut stream.uploads.borrow_mut(), 0, chunk)?;
            let order = feed.order_of(epoch, None, n_real);
            let set_order = |offset| feed.table.set_order(device, &order, offset);
            feed.turns_of(batches, from, most, cursor, set_order, &mut f)
        })
    }
}

impl Feed<'_> {
    fn order_of<'s>(&self, epoch: u32, shuffle: Option<&'s Shuffle>, n_rows: usize) -> EpochOrder<'s> {
        EpochOrder { epoch, shuffle, n_rows, batch_rows: self.batch_rows, part: self.read_part() }
    }

    /// The turns of batches that are on the device, where row 0 is the first of `batches`, starting at batch `from`.
    fn turns_of(
        &self,
        batches: Range<usize>,
        from: usize,
        most: usize,
        cursor: CountFrom,
        set_order: impl Fn(u32) -> Result<(), Error>,
        f: &mut impl FnMut(BatchRange) -> Result<ControlFlow<()>, Error>,
    ) -> Result<ControlFlow<()>, Error> {
        let rows_before = |batch: usize| (batch * self.batch_rows).min(self.n_rows);
        let first_turn = batches.start.max(from);
        for first_batch in (first_turn..batches.end).step_by(most) {
            let n_batches = most.min(batches.end - first_batch);
            let counted_from = if cursor == CountFrom::Epoch { 0 } else { first_batch };
            if cursor == CountFrom::Range || first_batch == first_turn {
                // Batches from the first on the device to batch 0 of the state; negative if that is before it.
                set_order((counted_from as u32).wrapping_sub(batches.start as u32))?;
            }
            let n_rows = rows_before(first_batch + n_batches) - rows_before(first_batch);
            if f(BatchRange { first_batch, n_batches, n_rows })?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

impl std::fmt::Debug for OpenFeed<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenFeed").field("feed", self.feed).finish_non_exhaustive()
    }
}

/// The fraction of free memory that rows may take; the rest is for activations, staging and other processes.
const SHARE_OF_FREE_MEMORY: f64 = 0.7;

/// Bytes that rows may take on a device whose memory is the host's, if the system says how much is free.
fn host_budget_bytes(device: &Device) -> Option<usize> {
    let available = host_memory::available_bytes().filter(|_| host_memory::is_used_by(device))?;
    Some((available as f64 * SHARE_OF_FREE_MEMORY) as usize)
}

fn is_out_of_memory(error: &Error) -> bool {
    use program::Error as ProgramError;
    if matches!(error, Error::Memory { .. }) {
        return true;
    }
    let Error::Tensor(brisk_nn::Error::Program(error)) = error else { return false };
    matches!(error, ProgramError::OutOfMemory { .. } | ProgramError::BufferLimit { .. } | ProgramError::MemoryLimit { .. })
}
