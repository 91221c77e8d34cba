use std::ops::Range;
use std::sync::Arc;

use brisk_kernels::{Arg, DType, Runs};
use brisk_tensor::AllGather;
use brisk_tensor::program::{HostArgs, HostStep};

/// Puts together matrices of a bucket of sharded parameters, of which each replica has the elements in its own piece. All
/// replicas run it, for the same bucket.
///
/// # Shapes
/// An input for each range of `own`; then an output `[n_runs, len]` for each of `wanted`.
#[derive(Debug)]
pub(crate) struct GatherMatrices {
    pub(crate) replicas: Arc<dyn AllGather>,
    /// The length of the pieces of all replicas.
    pub(crate) piece_len: usize,
    /// What this replica has, within its piece.
    pub(crate) own: Vec<Range<usize>>,
    /// The matrices that this replica needs, within the bucket: those of a shape together.
    pub(crate) wanted: Vec<Runs>,
}

impl HostStep for GatherMatrices {
    fn name(&self) -> &'static str {
        "gather_matrices"
    }

    fn args(&self) -> Vec<Arg> {
        let own = self.own.iter().map(|range| Arg::read("own", DType::F32, range.len()));
        own.chain(self.wanted.iter().map(|runs| Arg::write("matrices", DType::F32, runs.n_elements()))).collect()
    }

    fn run(&self, args: &mut HostArgs<'_>) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let mut piece = vec![0.0_f32; self.piece_len];
        for (arg, range) in self.own.iter().enumerate() {
            args.read(arg, 0, &mut piece[range.clone()])?;
        }
        let bucket = self.replicas.all_gather(&piece)?;
        for (arg, runs) in (self.own.len()..).zip(&self.wanted) {
            for (run, &start) in runs.starts.iter().enumerate() {
                args.write(arg, run * runs.len, &bucket[start..start + runs.len])?;
            }
        }
        Ok(())
    }
}
