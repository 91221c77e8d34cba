use std::io::{self, Read, Seek, SeekFrom};

/// The number of bytes of rows that are transposed at a time.
const STRIP_BYTES: usize = 16 << 20;

/// An array in Fortran order, read as if it were in C order: in strips of rows, each gathered from all columns.
pub(super) struct Transposed<F> {
    file: F,
    /// The byte at which the values start.
    start: u64,
    n_rows: u64,
    row_shape: Vec<usize>,
    n_bytes: usize,
    /// The number of rows that have been transposed.
    done: u64,
    strip: Vec<u8>,
    at: usize,
    column: Vec<u8>,
}

impl<F: Read + Seek> Transposed<F> {
    /// An array of values of `n_bytes` each, which start at `start` and are complete.
    pub(super) fn new(file: F, start: u64, n_rows: u64, row_shape: &[usize], n_bytes: usize) -> Self {
        let row_shape = row_shape.to_vec();
        Self { file, start, n_rows, row_shape, n_bytes, done: 0, strip: Vec::new(), at: 0, column: Vec::new() }
    }

    fn turn_strip(&mut self) -> io::Result<()> {
        let (n_cols, n_bytes) = (self.row_shape.iter().product::<usize>(), self.n_bytes);
        let row_bytes = n_cols * n_bytes;
        let n = usize::try_from(self.n_rows - self.done).unwrap_or(usize::MAX).min((STRIP_BYTES / row_bytes).max(1));
        self.strip.resize(n * row_bytes, 0);
        self.column.resize(n * n_bytes, 0);
        for col in 0..n_cols {
            let before = self.column_major(col) * self.n_rows + self.done;
            self.file.seek(SeekFrom::Start(self.start + before * n_bytes as u64))?;
            self.file.read_exact(&mut self.column)?;
            let values = self.column.chunks_exact(n_bytes);
            for (row, value) in self.strip.chunks_exact_mut(row_bytes).zip(values) {
                row[col * n_bytes..][..n_bytes].copy_from_slice(value);
            }
        }
        self.done += n as u64;
        self.at = 0;
        Ok(())
    }

    /// The number of columns that come before this one in the file; in a row, `col` columns come before it.
    fn column_major(&self, mut col: usize) -> u64 {
        // The last index of a row changes fastest in `col`, and slowest in the file.
        let mut place = 0;
        let mut indices = vec![0; self.row_shape.len()];
        for (index, &n) in indices.iter_mut().zip(&self.row_shape).rev() {
            (*index, col) = (col % n, col / n);
        }
        for (index, &n) in indices.iter().zip(&self.row_shape).rev() {
            place = place * n as u64 + *index as u64;
        }
        place
    }
}

impl<F: Read + Seek> Read for Transposed<F> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        if self.at == self.strip.len() && self.done < self.n_rows {
            self.turn_strip()?;
        }
        let n = buf.len().min(self.strip.len() - self.at);
        buf[..n].copy_from_slice(&self.strip[self.at..self.at + n]);
        self.at += n;
        Ok(n)
    }
}
