//! One run of mpirun, from its start until nothing of it is left.

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

use super::PEER_FAILED;
use super::options::Options;
use super::words::Words;

/// How long mpirun has to obey, before it is killed: it waits for ever for a host that is gone.
const OBEY: Duration = Duration::from_secs(3);

/// How often everything is looked at.
const TICK: Duration = Duration::from_millis(20);

/// The variable by which processes of a job are found again.
const MARK: &str = "BRISK_MPI_JOB";

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    /// By itself; a signal counts as 128 and its number.
    Status(u8),
    /// Since a signal asked for it.
    Stopped(u8),
    /// It took too long.
    TimedOut,
    /// One rank had failed, and the rest did not end.
    Stuck,
}

impl End {
    pub(super) fn status(self) -> u8 {
        match self {
            Self::Status(status) => status,
            Self::Stopped(signal) => 128 + signal,
            // As `timeout` has it.
            Self::TimedOut => 124,
            Self::Stuck => PEER_FAILED,
        }
    }

    pub(super) fn restart_helps(self) -> bool {
        matches!(self, Self::Stuck | Self::Status(PEER_FAILED | 128..))
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Status(_) if self.restart_helps() => write!(f, "no rank said why"),
            Self::Status(_) => write!(f, "the program's own error"),
            Self::Stopped(signal) => write!(f, "stopped by signal {signal}"),
            Self::TimedOut => write!(f, "it took longer than --timeout"),
            Self::Stuck => write!(f, "a rank had failed, and the rest did not end within --grace"),
        }
    }
}

/// Whether a signal has asked to stop, and which.
#[derive(Debug)]
pub(super) struct Stop(Arc<AtomicUsize>);

impl Stop {
    pub(super) fn on_signals() -> Result<Self> {
        let signal = Arc::new(AtomicUsize::new(0));
        for number in [SIGHUP, SIGINT, SIGTERM] {
            signal_hook::flag::register_usize(number, signal.clone(), number as usize).context("cannot watch for signals")?;
        }
        Ok(Self(signal))
    }

    fn signal(&self) -> Option<u8> {
        u8::try_from(self.0.load(Ordering::Relaxed)).ok().filter(|&signal| signal != 0)
    }
}

/// The command of a job. Settings are variables: Open MPI reads them, and other libraries take no notice.
pub(super) fn mpirun(n_ranks: usize, options: &Options, program: &Path) -> Command {
    let mut mpirun = Command::new("mpirun");
    mpirun.args(["-n", &n_ranks.to_string()]);
    mpirun.envs([
        // It refuses root otherwise, and root is who runs in containers.
        ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
        ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
        ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        // Two ranks or fewer would be bound to a core each, and their threads with them.
        ("OMPI_MCA_hwloc_base_binding_policy", "none"),
        ("OMPI_MCA_mpi_yield_when_idle", "1"),
        // Containers forbid reading another process's memory.
        ("OMPI_MCA_btl_vader_single_copy_mechanism", "none"),
    ]);
    if let Some(hosts) = &options.hosts {
        let names = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        let ours = names.filter(|name| ["BRISK_", "RUST_", "RAYON_"].iter().any(|prefix| name.starts_with(prefix)));
        mpirun.args(["--host", hosts]).env("OMPI_MCA_mca_base_env_list", ours.collect::<Vec<_>>().join(";"));
    }
    mpirun.arg(program);
    mpirun
}

/// Runs `command` until it, and everything it started on this host, has ended.
pub(super) fn run(command: &mut Command, grace: Duration, until: Option<Instant>, stop: &Stop) -> Result<(End, Words)> {
    let id = format!("{}-{}", std::process::id(), std::time::UNIX_EPOCH.elapsed().unwrap_or_default().as_nanos());
    // A group of its own: Ctrl-C reaches us alone, and we end the rest in order.
    let started = command.env(MARK, &id).process_group(0).stdin(Stdio::null()).stderr(Stdio::piped()).spawn();
    let mut mpirun = started.context("could not start `mpirun`")?;
    let words = Arc::new(Mutex::new(Words::default()));
    let hearing = mpirun.stderr.take().map(|stderr| {
        let words = words.clone();
        std::thread::spawn(move || hear(stderr, &words))
    });
    let failing_since = || words.lock().unwrap_or_else(PoisonError::into_inner).failing_since;

    let end = loop {
        if let Some(status) = mpirun.try_wait().context("could not wait for `mpirun`")? {
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
    // What was said last is on its way; a process of another host may hold the pipe open, and is not waited for.
    if let Some(hearing) = hearing {
        wait_until(Duration::from_secs(1), || hearing.is_finished());
    }
    let words = std::mem::take(&mut *words.lock().unwrap_or_else(PoisonError::into_inner));
    Ok((end, words))
}

/// Passes on what comes as it comes, and line by line to `words`.
fn hear(mut stderr: ChildStderr, words: &Mutex<Words>) {
    let (mut bytes, mut line) = ([0; 4096], Vec::new());
    while let Ok(n @ 1..) = stderr.read(&mut bytes) {
        // Where our own standard error is gone, the job goes on.
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

/// Asks mpirun to end, which then ends its ranks; kills its group where it does not.
fn stop_group(mpirun: &mut Child) {
    let group = Pid::from_child(mpirun);
    // Errors say that it has ended meanwhile.
    let _ = kill_process_group(group, Signal::TERM);
    if !wait_until(OBEY, || matches!(mpirun.try_wait(), Ok(Some(_)))) {
        let _ = kill_process_group(group, Signal::KILL);
        drop(mpirun.wait());
    }
}

/// Kills what is left of a job, such as ranks of an mpirun that was killed: they are in groups of their own.
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

/// Whether it came true in time.
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
