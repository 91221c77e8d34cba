use memmap2::MmapMut;

/// Memory for rows, in 8-byte words, in large pages if the system supports them: rows are gathered from it at random, which would
/// otherwise miss the TLB as often as the cache.
#[derive(Debug)]
pub(super) enum Memory {
    Pages(MmapMut),
    /// If the system refuses an anonymous map.
    Heap(Vec<u64>),
}

impl Memory {
    pub(super) fn new(n_words: usize) -> Self {
        let Ok(pages) = MmapMut::map_anon(n_words * size_of::<u64>()) else { return Self::Heap(vec![0; n_words]) };
        // A hint; some systems do not support it.
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
