use crate::Shuffle;

/// In which order an epoch takes the rows. The same for every thread, worker, rank and device.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Order {
    /// As they lie.
    #[default]
    Sequential,
    /// Another order each epoch, a pure function of (seed, epoch): see [`Shuffle`].
    Shuffled {
        /// The run's seed.
        seed: u64,
    },
}

impl Order {
    /// The bijection of `epoch`; `None` where position `i` is row `i`. A device that gathers by itself is given its keys.
    pub fn shuffle(&self, n_rows: u32, epoch: u32) -> Option<Shuffle> {
        match self {
            Self::Sequential => None,
            Self::Shuffled { seed } => Some(Shuffle::new(n_rows, *seed, epoch)),
        }
    }
}
