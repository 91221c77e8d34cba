use memmap2::MmapMut;

/// Words of memory for rows, in large pages where the system has them: rows are gathered from it at random, which misses the table of pages as
/// often as the cache.
#[derive(Debug)]
pub(super) enum Memory {
    Pages(MmapMut),
    /// Where the system grants no pages of our own.
    Heap(Vec<u64>),
}

impl Memory {
    pub(super) fn new(n_words: usize) -> Self {
        let Ok(pages) = MmapMut::map_anon(n_words * size_of::<u64>()) else { return Self::Heap(vec![0; n_words]) };
        // A hint; some systems have none.
        #[cfg(target_os = "linux")]
        let _ = pages.advise(memmap2::Advice::HugePage);
        Self::Pages(pages)
    }

    pub(super) fn n_words(&self) -> usize {
        self.words().len()
    }

    pub(super) fn words(&self) -> &[u64] {
        match self {
            Self::Pages(pages) => bytemuck::cast_slice(pages),
            Self::Heap(words) => words,
        }
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        match self {
            Self::Pages(pages) => bytemuck::cast_slice_mut(pages),
            Self::Heap(words) => words,
        }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::Heap(Vec::new())
    }
}
