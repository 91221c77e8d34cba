//! A rank that comes late, and what the others know of it: for threads and for processes.

use std::time::{Duration, Instant};

use brisk_replicate::{Collective, CollectiveExt, Error, ReduceOp};

/// Operations before each of which the last rank sleeps.
const N: u32 = 3;
const SLEEP: Duration = Duration::from_millis(100);

/// Checks that every rank knows who came late and for about how long. A busy machine may delay any rank for a while, but not all
/// the time.
pub(crate) fn check(replica: &mut impl Collective) -> Result<(), Error> {
    let last = replica.world_size() - 1;
    let since = Instant::now();
    replica.barrier()?;
    replica.take_waits();
    for few in [true, false, true] {
        if replica.rank() == last {
            std::thread::sleep(SLEEP);
        }
        replica.all_reduce(&mut vec![1.0_f32; if few { 10 } else { 100_000 }], ReduceOp::Mean)?;
    }
    let waits = replica.take_waits();
    assert_eq!(waits.len(), last + 1, "one of each rank");
    assert!(waits[last] > N * SLEEP / 2 && waits[last] <= since.elapsed(), "{waits:?}");
    assert!(waits[..last].iter().all(|&wait| wait < waits[last]), "{waits:?}");
    assert!(replica.take_waits().iter().all(Duration::is_zero), "they were taken");
    replica.barrier()
}
