//! One job of mpirun, from its start until none of its processes is left.

use std::ffi::OsStr;
use std::fmt;
use std::io::{Read, Write as _};
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::PEER_FAILED;
use crate::words::Words;

/// How long mpirun has to end after SIGTERM before it is killed. It waits forever for a host that is lost.
const TERM_LIMIT: Duration = Duration::from_secs(3);

/// The interval of polling.
const TICK: Duration = Duration::from_millis(20);

/// The environment variable that identifies the processes of a job.
const MARK: &str = "BRISK_MPI_JOB";

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// It ended by itself with this status: 128 plus the number for a signal.
    Status(u8),
    /// This process received this signal.
    Stopped(u8),
    /// It took longer than --timeout.
    TimedOut,
    /// A rank had failed, and the others did not end within --grace.
    Stuck,
}

impl End {
    pub(crate) fn status(self) -> u8 {
        match self {
            Self::Status(status) => status,
            Self::Stopped(signal) => 128 + signal,
            // As the command `timeout` does.
            Self::TimedOut => 124,
            Self::Stuck => PEER_FAILED,
        }
    }

    pub(crate) fn restart_helps(self) -> bool {
        matches!(self, Self::Stuck | Self::Status(PEER_FAILED | 128..))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(_) if self.restart_helps() => write!(f, "no rank reported a reason"),
            Self::Status(_) => write!(f, "the program reported an error"),
            Self::Stopped(signal) => write!(f, "stopped by signal {signal}"),
            Self::TimedOut => write!(f, "it took longer than --timeout"),
            Self::Stuck => write!(f, "a rank had failed, and the others did not end within --grace"),
        }
    }
}

/// The signal that asked this process to stop, if any.
#[derive(Debug)]
pub(crate) struct Stop(Arc<AtomicUsize>);

impl Stop {
    pub(crate) fn on_signals() -> Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register_usize(number, signal.clone(), number as usize)
                .context("cannot install a signal handler")?;
        }
        Ok(Self(signal))
    }

    fn signal(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
    }
}

/// The command of a job. Settings are environment variables, which Open MPI reads and other libraries ignore.
pub(crate) fn mpirun(n_ranks: usize, hosts: Option<&OsStr>, program: &Path) -> Command {
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["-n", &n_ranks.to_string()]);
    mpirun.envs([
        // Containers run as root, which Open MPI refuses by default.
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        // By default, each of two or fewer ranks is bound to one core, with all its threads.
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        // Containers forbid reading the memory of another process.
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ]);
    if let Some(hosts) = hosts {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let ours = names.filter(|name| ["BRISK_", "RUST_", "RAYON_"].iter().any(|prefix| name.starts_with(prefix)));
        mpirun.arg("--host").arg(hosts).env("OMPI_MCA_mca_base_env_list", ours.collect::<Vec<_>>().join(";"));
    }
    mpirun.arg(program);
    mpirun
}

/// Runs `command` until it and every process that it started on this host have ended.
pub(crate) fn run(command: &mut Command, grace: Duration, until: Option<Instant>, stop: &Stop) -> Result<(End, Words)> {
    let id = format!("{}-{}", std::process::id(), std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos());
    // A process group of its own, so that Ctrl-C reaches only this one, which then ends the job in order.
    let started = command.env(MARK, &id).process_group(0).stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut mpirun = started.context("cannot start `mpirun`; install Open MPI or MPICH")?;
    let words = Arc::new(Mutex::new(Words::default()));
    let hearing = mpirun.stderr.take().map(|stderr| {
        let words = words.clone();
        std::thread::spawn(move || hear(stderr, &words))
    });
    let failing_since = || words.lock().unwrap_or_else(PoisonError::into_inner).failing_since;

    let end = loop {
        if let Some(status) = mpirun.try_wait().context("cannot wait for `mpirun`")? {
            let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
            break End::Status(code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1));
        } else if let Some(signal) = stop.signal() {
            break End::Stopped(signal);
        } else if until.is_some_and(|until| Instant::now() > until) {
            break End::TimedOut;
        } else if failing_since().is_some_and(|since| since.elapsed() > grace) {
            break End::Stuck;
        }
        std::thread::sleep(TICK);
    };
    if !matches!(end, End::Status(_)) {
        stop_group(&mut mpirun);
    }
    kill_marked(&id);
    // The last lines may still be in the pipe. A process that holds it open is not waited for.
    if let Some(hearing) = hearing {
        wait_until(Duration::from_secs(1), || hearing.is_finished());
    }
    let words = std::mem::take(&mut *words.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((end, words))
}

/// Copies standard error as it arrives, and passes it line by line to `words`.
fn hear(mut stderr: ChildStderr, words: &Mutex<Words>) {
    let (mut bytes, mut line) = ([0; 4096], Vec::new());
    while let Ok(n @ 1..) = stderr.read(&mut bytes) {
        // The job continues if our own standard error is closed.
        drop(std::io::stderr().write_all(&bytes[..n]));
        for &byte in &bytes[..n] {
            if byte == b'\n' {
                words.lock().unwrap_or_else(PoisonError::into_inner).hear(&String::from_utf8_lossy(&line));
                line.clear();
            } else {
                line.push(byte);
            }
        }
    }
}

/// Asks mpirun to end, which then ends its ranks; kills its process group if it does not end.
fn stop_group(mpirun: &mut Child) {
    let group = Pid::from_child(mpirun);
    // An error means that it has already ended.
    let _ = kill_process_group(group, Signal::TERM);
    if !wait_until(TERM_LIMIT, || matches!(mpirun.try_wait(), Ok(Some(_)))) {
        let _ = kill_process_group(group, Signal::KILL);
        drop(mpirun.wait());
    }
}

/// Kills what is left of a job, such as ranks of an mpirun that was killed, which are in other process groups.
fn kill_marked(id: &str) {
    let mark = format!("{MARK}={id}");
    let is_marked = |process: &Path| {
        std::fs::read(process.join("environ"))
            .is_ok_and(|environ| environ.split(|&byte| byte == 0).any(|variable| variable == mark.as_bytes()))
    };
    for process in
        std::fs::read_dir("/proc").into_iter().flatten().flatten().map(|entry| entry.path()).filter(|path| is_marked(path))
    {
        let pid = process.file_name().and_then(|name| name.to_str()).and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        let _ = pid.map(|pid| kill_process(pid, Signal::KILL));
    }
}

/// Whether the condition became true within `limit`.
fn wait_until(limit: Duration, mut is_true: impl FnMut() -> bool) -> bool {
    let begin = Instant::now();
    while !is_true() {
        if begin.elapsed() > limit {
            return false;
        }
        std::thread::sleep(TICK);
    }
    true
}
