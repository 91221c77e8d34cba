use brisk_loader::{Order, for_each_chunk};
use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{Graph, Persistent};

use super::table::{BatchTensors, Chunk, DeviceTable, EpochOrder};
use crate::error::Error;
use crate::host_memory;
use crate::rows::inspect::{CheckedValues, failed, layout_of};
use crate::rows::{FeedRows, RowLayout, Sealed};
use crate::standardisation::Standardisation;

/// A table that is resident on the device: the recorded step gathers its batches from it, and the host sends nothing.
///
/// A table larger than a binding of the device ([`Device::max_binding_bytes`]) is in several buffers; `u8` features stay bytes.
#[derive(Debug, Clone)]
pub struct ResidentRows {
    pub(crate) table: DeviceTable,
}

/// Bytes of each of the two slots of staging memory.
const SLOT_BYTES: usize = 16 << 20;

impl ResidentRows {
    /// Copies all rows of `source` to `device`, with their categories and weights, if they have any.
    ///
    /// # Errors
    /// [`Error::RowSet`]; [`Error::Value`] names a row and a column that hold NaN or infinity, or a weight that is negative or
    /// not finite; [`Error::Rows`] if the source fails; [`Error::Memory`], [`Error::Tensor`] if the device has no room.
    pub fn upload<S: FeedRows>(device: &Device, name: &'static str, source: &S) -> Result<Self, Error> {
        Self::upload_as(device, name, source, layout_of(name, source)?)
    }

    /// The same with labels of the layout's dtype: f32, or u32 for class numbers; and without weights, if it has none.
    pub(crate) fn upload_as<S: FeedRows>(
        device: &Device,
        name: &'static str,
        source: &S,
        layout: RowLayout,
    ) -> Result<Self, Error> {
        let needed_bytes = Self::len_bytes_of(layout, source.n_rows());
        let available_bytes = host_memory::available_bytes().filter(|_| host_memory::is_used_by(device));
        if let Some(available_bytes) = available_bytes.filter(|&available_bytes| needed_bytes > available_bytes) {
            return Err(Error::Memory {
                what: format!("keeping the {name} rows on the device"),
                needed_bytes,
                available_bytes,
                place: "this machine".to_owned(),
                n_replicas: 1,
                parts: Vec::new(),
                way_out: "use fewer rows, or stream them".into(),
            });
        }
        let table = DeviceTable::new(device.max_binding_bytes(), name, layout, source.n_rows()).on(device);
        let slot_bytes = table.len_bytes().min(SLOT_BYTES);
        let mut uploads = device.uploads(slot_bytes, 2)?;
        for_each_chunk(
            source,
            |error| failed(name, &error),
            |read| {
                let values = CheckedValues { features: read.features, labels: read.labels, weights: read.weights };
                values.check(name, source, layout, |row| read.first + row)?;
                let features = S::Feature::features(read.features);
                let (labels, categories, weights) = (read.labels, read.categories, read.weights);
                table.write(
                    &mut uploads,
                    read.first,
                    Chunk { features, labels, categories, weights, batch_weights: &[], ids: &[] },
                )
            },
        )?;
        let rows = Self { table };
        rows.set_order(device, Order::Sequential, 0, 1)?;
        Ok(rows)
    }

    pub(crate) fn len_bytes_of(layout: RowLayout, n_rows: usize) -> usize {
        n_rows.saturating_mul(layout.row_bytes())
    }

    /// How many rows there are.
    pub fn n_rows(&self) -> usize {
        self.table.n_rows()
    }

    /// How many columns there are.
    pub fn n_cols(&self) -> usize {
        self.table.n_cols()
    }

    /// The number of batches of `batch_rows` rows in an epoch; the last may be short.
    pub fn n_batches(&self, batch_rows: usize) -> usize {
        self.n_rows().div_ceil(batch_rows)
    }

    /// Bytes on the device.
    pub fn len_bytes(&self) -> usize {
        self.table.len_bytes()
    }

    /// Sets the order of rows for the next epoch: sixteen numbers, whatever the length of the table.
    ///
    /// # Errors
    /// [`Error::Setting`] for an order that has no kernel; [`Error::Tensor`] if the device has failed.
    pub fn set_order(&self, device: &Device, order: Order, epoch: u32, batch_rows: usize) -> Result<(), Error> {
        check_on_devices(&order)?;
        let n_rows = self.n_rows();
        let shuffle = order.shuffle(n_rows as u32, epoch);
        let order = EpochOrder { epoch, shuffle: shuffle.as_ref(), n_rows, batch_rows, part: 0..batch_rows };
        self.table.set_order(device, &order, 0)
    }

    /// Records the gathering of the batch whose index is in `state`.
    ///
    /// # Errors
    /// [`Shape`](brisk_nn::Error::Shape) if `scale` has another number of columns.
    pub fn record(&self, graph: &Graph, scale: &Standardisation, state: &Persistent, batch_rows: usize) -> BatchTensors {
        self.table.record_part(graph, scale, state, 0..batch_rows, None)
    }
}

/// Checks that a kernel computes the order; otherwise the host does.
pub(super) fn check_on_devices(order: &Order) -> Result<(), Error> {
    match order {
        Order::Sequential | Order::Shuffled { .. } => Ok(()),
        _ => Err(Error::setting(
            "order",
            format!("`{order}` for rows that stay on the device"),
            "in order or shuffled; or stream them",
        )),
    }
}
