use std::io::{self, Read, Seek, SeekFrom};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A file that counts the bytes read from it.
pub(crate) struct Counted<R> {
    inner: R,
    n_read: Arc<AtomicU64>,
}

impl<R> Counted<R> {
    pub(crate) fn new(inner: R, n_read: &Arc<AtomicU64>) -> Self {
        Self { inner, n_read: Arc::clone(n_read) }
    }
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let n = self.inner.read(buf)?;
        self.n_read.fetch_add(n as u64, Ordering::Relaxed);
        Ok(n)
    }
}

impl<R: Seek> Seek for Counted<R> {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.inner.seek(to)
    }
}
