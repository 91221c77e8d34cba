use std::ops::Range;

use brisk_kernels::DType;
use brisk_kernels::bytemuck::Pod;
use brisk_program::{Device, Persistent};

use crate::error::Error;

/// A table on a device, split into as many buffers as necessary, because an adapter limits the bytes of one binding, to 128 MiB
/// on some.
///
/// Each buffer is a window that holds consecutive rows. [`Graph::gather`](crate::Graph::gather) gathers a batch from all of them.
///
/// # Examples
/// ```
/// use brisk_tensor::{DType, Windows};
///
/// // Ten rows of 12 bytes, 50 bytes at most in a buffer.
/// let table = Windows::new("table", DType::F32, 10, 3, 50);
/// assert_eq!(table.buffers().iter().map(|window| window.len_bytes()).collect::<Vec<_>>(), [48, 48, 24]);
/// ```
#[derive(Debug, Clone)]
pub struct Windows {
    buffers: Vec<Persistent>,
    dtype: DType,
    n_rows: usize,
    n_cols: usize,
    window_rows: usize,
}

/// Rows of one window: their range within the window, and within the table.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    window: usize,
    first: usize,
    rows: Range<usize>,
}

impl Windows {
    /// Buffers for `n_rows` rows of `n_cols`, each of at most `max_bytes`, usually `Device::max_binding_bytes`; a row
    /// is never split, so each row that is longer gets its own window.
    pub fn new(name: &str, dtype: DType, n_rows: usize, n_cols: usize, max_bytes: usize) -> Self {
        let row_bytes = n_cols.saturating_mul(dtype.size_bytes()).max(1);
        // Devices hold whole words, and index elements with u32.
        let max_bytes = (max_bytes - max_bytes % 4).min(u32::MAX as usize / 4 * 4 * dtype.size_bytes());
        let window_rows = (max_bytes / row_bytes).clamp(1, n_rows.max(1));
        let n_windows = n_rows.div_ceil(window_rows);
        let window = |i: usize| {
            let rows = window_rows.min(n_rows - i * window_rows);
            let name = if n_windows == 1 { name.to_owned() } else { format!("{name}.{i}") };
            Persistent::new(name, dtype, rows.saturating_mul(n_cols))
        };
        Self { buffers: (0..n_windows).map(window).collect(), dtype, n_rows, n_cols, window_rows }
    }

    /// A table in a single buffer, with rows of `n_cols`.
    ///
    /// # Errors
    /// [`Error::Shape`] if the buffer does not consist of whole rows.
    pub fn whole(table: &Persistent, n_cols: usize) -> Result<Self, Error> {
        let len = table.len();
        if n_cols == 0 || !len.is_multiple_of(n_cols) {
            let expected = format!("a multiple of the {n_cols} columns");
            return Err(Error::Shape { op: "gather", arg: "table", expected, found: vec![len] });
        }
        let n_rows = len / n_cols;
        Ok(Self { buffers: vec![table.clone()], dtype: table.dtype(), n_rows, n_cols, window_rows: n_rows.max(1) })
    }

    /// Rows of the table.
    pub fn n_rows(&self) -> usize {
        self.n_rows
    }

    /// Columns of the table.
    pub fn n_cols(&self) -> usize {
        self.n_cols
    }

    /// Element type.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// The windows, in order.
    pub fn buffers(&self) -> &[Persistent] {
        &self.buffers
    }

    /// Rows of every window but the last, which may have fewer.
    pub fn window_rows(&self) -> usize {
        self.window_rows
    }

    /// Bytes of all windows.
    pub fn len_bytes(&self) -> usize {
        self.buffers.iter().map(Persistent::len_bytes).fold(0, usize::saturating_add)
    }

    /// Calls `f(window, index of its first element, values)` for each window that contains some of the rows from `first` on.
    ///
    /// # Errors
    /// [`Error::Shape`] if `values` are not whole rows, or reach beyond the table; those of `f`.
    pub fn each_window<'a, T, E: From<Error>>(
        &'a self,
        first: usize,
        values: &'a [T],
        mut f: impl FnMut(&'a Persistent, usize, &'a [T]) -> Result<(), E>,
    ) -> Result<(), E> {
        let n = values.len().checked_div(self.n_cols).unwrap_or(0);
        if n * self.n_cols != values.len() || first.saturating_add(n) > self.n_rows {
            let expected = format!("whole rows of {}, from row {first} to at most {}", self.n_cols, self.n_rows);
            return Err(Error::Shape { op: "write", arg: "values", expected, found: vec![values.len()] }.into());
        }
        if values.is_empty() {
            return Ok(());
        }
        for Part { window, first: at, rows } in self.parts(first..first + n) {
            let values = &values[(rows.start - first) * self.n_cols..(rows.end - first) * self.n_cols];
            f(&self.buffers[window], at * self.n_cols, values)?;
        }
        Ok(())
    }

    /// Sets the rows from `first` on.
    ///
    /// # Errors
    /// As [`each_window`](Self::each_window); [`Error::Program`] if the device does not have enough memory.
    pub fn write<T: Pod>(&self, device: &Device, first: usize, values: &[T]) -> Result<(), Error> {
        self.each_window(first, values, |window, at, values| Ok(device.write_at(window, at, values)?))
    }

    /// Each window with the row of the table that it starts with.
    pub(crate) fn by_first_row(&self) -> impl Iterator<Item = (usize, &Persistent)> {
        self.buffers.iter().enumerate().map(|(i, window)| (i * self.window_rows, window))
    }

    fn parts(&self, rows: Range<usize>) -> impl Iterator<Item = Part> {
        let window_rows = self.window_rows;
        (rows.start / window_rows..rows.end.div_ceil(window_rows)).map(move |window| {
            let (start, end) = (window * window_rows, (window + 1) * window_rows);
            let rows = rows.start.max(start)..rows.end.min(end);
            Part { window, first: rows.start - start, rows }
        })
    }
}
