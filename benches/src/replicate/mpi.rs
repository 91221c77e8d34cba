//! Ranks that are processes: this program, started again by `mpirun`.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::SUITE;
use crate::options::{Options, Scale};
use crate::row::{Better, Row};

/// The argument that starts this program as a rank.
pub(crate) const RANK: &str = "--as-a-rank";

/// All-reduce between processes, compared with the library's own on the same buffers in the same processes.
pub(super) fn run(options: &Options) -> Result<Vec<Row>> {
    let scale = if options.scale == Scale::Smoke { "smoke" } else { "full" };
    let mut rows = Vec::new();
    for (n_ranks, order) in [(2, "engine"), (2, "fixed"), (4, "engine"), (4, "fixed")] {
        for line in started(n_ranks, &["all-reduce", order, scale, &options.n_rounds.to_string()])?.lines() {
            let mut parts = line.split('|');
            let case = parts.next().unwrap_or_default();
            let mut figures =
                || parts.next().unwrap_or_default().split(' ').map(|word| word.parse::<f64>()).collect::<Result<Vec<_>, _>>();
            let read = || -> Result<_> { Ok([figures()?, figures()?, figures()?]) };
            let [ours, whole, pieces] = { read }().with_context(|| format!("a rank printed `{line}`"))?;
            let theirs = whole.iter().zip(&pieces).map(|(&whole, &pieces)| whole.min(pieces)).collect();
            rows.push(Row {
                suite: SUITE,
                case: format!("all-reduce of {case}, order {order}, {n_ranks} processes"),
                ours,
                unit: "s",
                reference: Some(("MPI_Allreduce in place, whole or 1 MiB".to_owned(), theirs)),
                target: (order == "engine" && n_ranks == 2).then_some(0.9),
                better: Better::Less,
            });
        }
    }
    Ok(rows)
}

/// The output of `n_ranks` of this program.
pub(crate) fn started(n_ranks: usize, args: &[&str]) -> Result<String> {
    if cfg!(not(feature = "mpi")) {
        bail!("this program was built without MPI; `cargo xtask bench SUITE --peers` builds it with");
    }
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["-n", &n_ranks.to_string()]).arg(std::env::current_exe()?).arg(RANK).args(args);
    // What Open MPI requires for root, and on a machine with fewer cores than ranks; MPICH ignores it.
    mpirun.envs([
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
    ]);
    let output = mpirun.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("cannot start `mpirun`")?;
    if !output.status.success() {
        bail!("{n_ranks} ranks ended with {}", output.status);
    }
    Ok(String::from_utf8(output.stdout)?)
}

#[cfg(not(feature = "mpi"))]
pub(crate) fn rank(_: &[String]) -> Result<()> {
    bail!("this program was built without MPI, and cannot be a rank")
}

#[cfg(feature = "mpi")]
pub(crate) use ranks::rank;

#[cfg(feature = "mpi")]
mod ranks {
    #![expect(unsafe_code, reason = "the library is called directly, for the comparison")]

    use std::cell::RefCell;

    use anyhow::{Result, bail};
    use brisk_replicate::{Collective, CollectiveExt, Error, Mpi, MpiConfig, ReduceOp, SumOrder};
    use mpi_sys as ffi;

    use crate::replicate::together::{n_calls, rounds, size, together};

    type Work<'a> = &'a dyn Fn(&mut Mpi, &mut [f32]) -> Result<(), Error>;

    /// The options of this rank, from the arguments after [`RANK`](super::RANK).
    pub(crate) fn rank(args: &[String]) -> Result<()> {
        let args: Vec<&str> = args.iter().map(String::as_str).collect();
        if let ["limited", args @ ..] = &args[..] {
            return crate::scaling::limited(args);
        }
        let [kind, order, rest @ ..] = &args[..] else { bail!("a rank wants to know what to do, and in which order to add") };
        let order = if *order == "engine" { SumOrder::Engine } else { SumOrder::Fixed };
        let mut replica = Mpi::start(MpiConfig { order, ..MpiConfig::default() })?;
        match (*kind, rest) {
            ("all-reduce", [scale, n_rounds]) => all_reduce(&mut replica, *scale == "smoke", n_rounds.parse()?)?,
            ("step", [scale, n_calls]) => return crate::scaling::rank(replica, scale, n_calls.parse()?),
            ("train", [url, caches]) => return crate::scaling::train(replica, url, caches),
            _ => bail!("a rank cannot do `{}`", args.join(" ")),
        }
        Ok(Box::new(replica).finish()?)
    }

    /// Prints one line per size: its name, and the seconds of brisk, of one call of the library, and of one call per MiB.
    #[expect(clippy::print_stdout, reason = "the process that started the ranks reads it")]
    fn all_reduce(replica: &mut Mpi, smoke: bool, n_rounds: usize) -> Result<()> {
        const MIB: usize = 1 << 20;
        let sizes: &[usize] = if smoke { &[4096] } else { &[1 << 10, 64 << 10, MIB, 4 * MIB, 16 * MIB, 64 * MIB] };
        let is_first = replica.rank() == 0;
        let plain = Plain::of(replica);
        for &n_bytes in sizes {
            // One buffer for all sides: the address of a large buffer affects the time more than the difference that is measured.
            let values = RefCell::new(vec![1.0_f32; n_bytes / 4]);
            // One call on few values takes about as long as the clock is precise.
            let n_repeats = ((64 << 10) / n_bytes).clamp(1, 32) as i32;
            let timed = |replica: &mut Mpi, work: Work<'_>| {
                let mut values = values.borrow_mut();
                values.fill(1.0);
                let seconds = together(replica, |replica| (0..n_repeats).try_for_each(|_| work(replica, &mut values)))?;
                let sum = plain.n_ranks.powi(n_repeats);
                assert!(values.iter().all(|&value| value == sum), "sums of ones are powers of their number");
                Ok(seconds / f64::from(n_repeats))
            };
            let turns = (n_rounds, if smoke { 1 } else { n_calls(n_bytes) });
            let figures = rounds(
                replica,
                turns,
                [
                    &mut |replica| timed(replica, &|replica, values| replica.all_reduce(values, ReduceOp::Sum)),
                    &mut |replica| timed(replica, &|_, values| plain.all_reduce(values, n_bytes)),
                    &mut |replica| timed(replica, &|_, values| plain.all_reduce(values, MIB)),
                ],
            )?;
            if is_first {
                let words = figures.map(|side| side.iter().map(f64::to_string).collect::<Vec<_>>().join(" "));
                println!("{}|{}", size(n_bytes), words.join("|"));
            }
        }
        Ok(())
    }

    /// The library, called as it is.
    struct Plain {
        in_place: *mut std::ffi::c_void,
        n_ranks: f32,
    }

    impl Plain {
        fn of(replica: &Mpi) -> Self {
            // The value of MPI_IN_PLACE in the header, a cast that the bindings do not include.
            let number: isize = if replica.engine().starts_with("Open MPI") { 1 } else { -1 };
            Self { in_place: std::ptr::without_provenance_mut(number as usize), n_ranks: replica.world_size() as f32 }
        }

        fn all_reduce(&self, values: &mut [f32], piece_bytes: usize) -> Result<(), Error> {
            for piece in values.chunks_mut(piece_bytes / 4) {
                let count = piece.len() as std::ffi::c_int;
                // SAFETY: the library was started by `Mpi::start` and has not been finalized; the call works in place on the
                // `count` elements of `piece`.
                let code = unsafe {
                    let (datatype, op) = (ffi::RSMPI_FLOAT, ffi::RSMPI_SUM);
                    ffi::MPI_Allreduce(self.in_place, piece.as_mut_ptr().cast(), count, datatype, op, ffi::RSMPI_COMM_WORLD)
                };
                assert_eq!(code, ffi::MPI_SUCCESS as i32, "MPI_Allreduce");
            }
            Ok(())
        }
    }
}
