use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::sync::Arc;

use crate::entry::Entry;
use crate::init::Init;

/// The initial values of parameters. They are drawn when they are requested, so that a model takes no memory before it is known
/// to fit.
#[derive(Debug, Clone)]
pub(crate) struct Initial {
    seed: u64,
    inits: Vec<Init>,
    /// Values that were set, by the index of the parameter.
    replaced: BTreeMap<usize, Arc<[f32]>>,
}

impl Initial {
    pub(crate) fn new(seed: u64, inits: Vec<Init>) -> Self {
        Self { seed, inits, replaced: BTreeMap::new() }
    }

    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    pub(crate) fn replace(&mut self, index: usize, values: &[f32]) {
        self.replaced.insert(index, values.into());
    }

    /// The elements `range` of the flat layout; 0 for the padding between parameters.
    pub(crate) fn fill(&self, entries: &[Entry], range: &Range<usize>, values: &mut [f32]) {
        values.fill(0.0);
        let first = entries.partition_point(|entry| entry.range.end <= range.start);
        for (index, entry) in entries.iter().enumerate().skip(first) {
            let within = range.start.max(entry.range.start)..range.end.min(entry.range.end);
            if entry.range.start >= range.end {
                return;
            }
            let values = &mut values[within.start - range.start..within.end - range.start];
            let first = within.start - entry.range.start;
            match self.replaced.get(&index) {
                Some(replaced) => values.copy_from_slice(&replaced[first..][..values.len()]),
                None => self.inits[index].fill(self.seed, index as u32, first, values),
            }
        }
    }

    /// A number that differs if the values do, computed without drawing any.
    pub(crate) fn fingerprint(&self, entries: &[Entry]) -> u64 {
        let mut hasher = DefaultHasher::new();
        self.seed.hash(&mut hasher);
        format!("{:?}", self.inits).hash(&mut hasher);
        for entry in entries {
            (&entry.name, &entry.shape).hash(&mut hasher);
        }
        for (index, values) in &self.replaced {
            index.hash(&mut hasher);
            values.iter().for_each(|value| value.to_bits().hash(&mut hasher));
        }
        hasher.finish()
    }
}
