use std::fmt;
use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};

use bytemuck::Pod;
use memmap2::{MmapMut, MmapOptions};

use crate::error::Error;
use crate::rows::Rows;
use crate::source::Feature;

/// Values in memory for which the system is asked to use huge pages, for [`Rows`] that are gathered in random order.
///
/// With ordinary pages of 4 KiB, a table has more pages than the processor's TLB has entries, so that each row costs a page walk
/// in addition to the cache miss itself. With pages of 2 MiB, all pages fit into the TLB.
///
/// Linux supports this if `/sys/kernel/mm/transparent_hugepage/enabled` is `madvise` or `always`; on other systems this is
/// ordinary memory.
pub struct HugePages<T> {
    map: MmapMut,
    values: PhantomData<T>,
}

impl<T: Pod> HugePages<T> {
    /// Copies `values`.
    pub(crate) fn copy_of(values: &[T]) -> Result<Self, Error> {
        let mut copy = Self::zeroed(values.len())?;
        copy.copy_from_slice(values);
        Ok(copy)
    }

    /// `len` values whose bytes are all zero.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is not enough memory.
    pub fn zeroed(len: usize) -> Result<Self, Error> {
        let n_bytes = len.saturating_mul(size_of::<T>());
        let map = MmapOptions::new().len(n_bytes).map_anon().map_err(|cause| Error::Memory { n_bytes, cause })?;
        // Before the first write, which is when pages are allocated. An error means that the kernel has no huge pages and uses
        // small ones.
        #[cfg(target_os = "linux")]
        let _ = map.advise(memmap2::Advice::HugePage);
        Ok(Self { map, values: PhantomData })
    }
}

impl<T: Pod> Deref for HugePages<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        // A map is page-aligned, and so is aligned for any value.
        bytemuck::cast_slice(&self.map)
    }
}

impl<T: Pod> DerefMut for HugePages<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.map)
    }
}

impl<T> fmt::Debug for HugePages<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HugePages").field("n_bytes", &self.map.len()).finish()
    }
}

impl<T: Feature + Pod, F: Deref<Target = [T]>, L: Deref<Target = [f32]>> Rows<F, L> {
    /// Copies the rows into [`HugePages`] and drops the original memory.
    ///
    /// # Errors
    /// [`Error::Memory`] if there is not enough memory for both.
    ///
    /// # Examples
    /// ```
    /// use brisk_loader::{Batching, Loader, Rows};
    ///
    /// let rows = Rows::new(vec![0.5; 1000 * 28], vec![1.0; 1000], 28)?.into_huge_pages()?;
    /// let mut loader = Loader::new(&rows, Batching::of(64).shuffled(42))?;
    /// assert_eq!(loader.epoch(0).next_batch()?.expect("the first batch").labels, [1.0; 64]);
    /// # Ok::<(), brisk_loader::Error>(())
    /// ```
    pub fn into_huge_pages(self) -> Result<Rows<HugePages<T>, HugePages<f32>>, Error> {
        self.try_map_storage(|features| HugePages::copy_of(&features), |labels| HugePages::copy_of(&labels))
    }
}
