//! A run of sixty steps with nothing in it but what makes it survive: `steps [--out FOLDER] [--resume auto] [--kill RANK@STEP] [--stop RANK@STEP]`.
//!
//! Each step sums numbers that follow from the step alone, over eight shards that the ranks divide among them: the result is the same for 1, 2, 4 and 8
//! ranks. Rank 0 keeps it every ten steps in FOLDER; what is told `--resume auto` goes on from there, and begins at the start where there
//! is nothing. A run that is not resumed loses RANK at STEP: killed, or stopped so that it hangs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit, id};
use std::time::Duration;

use brisk_replicate::{Collective, CollectiveExt, Error, Mpi, ReduceOp};

const N_STEPS: u64 = 60;
const N_SHARDS: usize = 8;

#[derive(Default)]
struct Options {
    out: Option<PathBuf>,
    resumes: bool,
    /// Rank, step, and the signal that the rank gets there.
    lost: Option<(usize, u64, &'static str)>,
}

pub(crate) fn run(replica: &mut Mpi, args: &[String]) -> Result<(), Error> {
    let rank = replica.rank();
    let options = read(args).unwrap_or_else(|| {
        eprintln!("error: steps [--out FOLDER] [--resume auto] [--kill RANK@STEP] [--stop RANK@STEP]");
        exit(1)
    });
    println!("rank {rank} is process {}", id());
    // Rank 0 reads and tells: no rank begins elsewhere than its peers.
    let mut kept = [0_u32; 2];
    if let (0, true, Some(out)) = (rank, options.resumes, &options.out) {
        kept = load(out).unwrap_or_default();
        println!("resumed at step {} with {} ranks", kept[0], replica.world_size());
    }
    replica.broadcast(&mut kept, 0)?;
    let [first_step, mut sum] = kept;
    for step in u64::from(first_step)..N_STEPS {
        replica.at_step(step);
        if let Some((lost, at, signal)) = options.lost
            && (lost, at) == (rank, step)
            && !options.resumes
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

fn read(args: &[String]) -> Option<Options> {
    let mut options = Options::default();
    for pair in args.chunks(2) {
        let [name, value] = pair else { return None };
        let lost = |signal| value.split_once('@').and_then(|(rank, step)| Some((rank.parse().ok()?, step.parse().ok()?, signal)));
        match name.as_str() {
            "--out" => options.out = Some(value.into()),
            "--resume" if value == "auto" => options.resumes = true,
            "--kill" => options.lost = Some(lost("KILL")?),
            "--stop" => options.lost = Some(lost("STOP")?),
            _ => return None,
        }
    }
    Some(options)
}

/// What is kept of step and sum, where there is something.
fn load(out: &Path) -> Option<[u32; 2]> {
    let text = fs::read_to_string(out.join("kept")).ok()?;
    let (step, sum) = text.split_once(' ')?;
    Some([step.parse().ok()?, sum.parse().ok()?])
}

/// Complete or not at all: the file gets its name when it is written.
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
    // One that was stopped may be told to go on; it hangs all the same.
    std::thread::sleep(Duration::from_secs(3600));
}
