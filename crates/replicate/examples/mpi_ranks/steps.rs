//! A run of sixty steps that contains only what makes it survive a lost rank.
//!
//! Each step sums numbers that depend on the step only, over eight shards that are distributed over the ranks: the result is the
//! same for 1, 2, 4 and 8 ranks. Rank 0 writes it to `--out` every ten steps, and `--resume auto` continues from there. `--kill`
//! and `--stop` lose a rank in a run that was not resumed.

use std::fs;
use std::path::Path;
use std::process::{Command, exit, id};
use std::time::Duration;

use brisk_replicate::{Collective, CollectiveExt, Error, Mpi, ReduceOp};

use crate::options::Steps;

const N_STEPS: u64 = 60;
const N_SHARDS: usize = 8;

pub(crate) fn run(replica: &mut Mpi, options: &Steps) -> Result<(), Error> {
    let rank = replica.rank();
    let resumes = options.resume.is_some();
    let lost = options.kill.map(|at| (at, "KILL")).or(options.stop.map(|at| (at, "STOP")));
    println!("rank {rank} is process {}", id());
    // Rank 0 reads the file and broadcasts it, so that all ranks begin at the same step.
    let mut kept = [0_u32; 2];
    if let (0, true, Some(out)) = (rank, resumes, &options.out) {
        kept = load(out).unwrap_or_default();
        println!("resumed at step {} with {} ranks", kept[0], replica.world_size());
    }
    replica.broadcast(&mut kept, 0)?;
    let [first_step, mut sum] = kept;
    for step in u64::from(first_step)..N_STEPS {
        replica.at_step(step);
        if let Some((at, signal)) = lost
            && at == (rank, step)
            && !resumes
        {
            send_self(signal);
        }
        let mut values = vec![0_u32; 1000];
        let n = replica.world_size();
        for shard in (0..N_SHARDS).filter(|shard| shard % n == rank) {
            values.iter_mut().for_each(|value| *value = value.wrapping_add((shard as u32 + 1).wrapping_mul(step as u32 + 1)));
        }
        replica.all_reduce(&mut values, ReduceOp::Sum)?;
        sum = values.iter().fold(sum, |sum, value| sum.wrapping_mul(31).wrapping_add(*value));
        std::thread::sleep(Duration::from_millis(5));
        if let (0, Some(out), 0) = (rank, &options.out, (step + 1) % 10) {
            keep(out, [step as u32 + 1, sum]);
        }
    }
    if rank == 0 {
        println!("{N_STEPS} steps: {sum:08x}");
    }
    Ok(())
}

/// The step and the sum in the file, if there is one.
fn load(out: &Path) -> Option<[u32; 2]> {
    let text = fs::read_to_string(out.join("kept")).ok()?;
    let (step, sum) = text.split_once(' ')?;
    Some([step.parse().ok()?, sum.parse().ok()?])
}

/// Writes the file under another name and renames it, so that it is complete or absent.
fn keep(out: &Path, [step, sum]: [u32; 2]) {
    let kept = fs::write(out.join("kept.new"), format!("{step} {sum}"))
        .and_then(|()| fs::rename(out.join("kept.new"), out.join("kept")));
    if let Err(error) = kept {
        eprintln!("error: {}: {error}", out.display());
        exit(1);
    }
}

/// Sends this process a signal that ends or stops it.
fn send_self(signal: &str) {
    let sent = Command::new("sh").args(["-c", &format!("kill -{signal} {}", id())]).status();
    assert!(sent.is_ok_and(|status| status.success()), "a shell sends signals");
    // A stopped process may be continued; it hangs nevertheless.
    std::thread::sleep(Duration::from_secs(3600));
}
