//! A program that is started, disturbed and watched to its end.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

/// How long a program may take; undisturbed, each takes a second at most.
const LIMIT: Duration = Duration::from_secs(60);

/// How much of a program's output is read.
const MAX_PRINTED_BYTES: usize = 8 << 20;

/// The variable that identifies the processes of one run, including the ranks of an MPI job.
const MARK: &str = "BRISK_ATTACK";

/// Limits the program to 4 GiB of address space and to files of 256 MiB, so that one that requests all memory does not slow the
/// machine down. Writing past the limit is an error, as on a full disk.
const BOUNDED: &str = r#"ulimit -v 4194304; ulimit -f 262144; trap '' XFSZ; exec "$0" "$@""#;

/// A program with its arguments, not started yet.
#[derive(Clone, Debug)]
pub(crate) struct Run {
    name: String,
    words: Vec<OsString>,
    dir: PathBuf,
    env: Vec<(OsString, OsString)>,
    scratch: PathBuf,
    stdout: Option<PathBuf>,
    limit: Duration,
}

impl Run {
    pub(crate) fn new(program: PathBuf, dir: &Path, scratch: &Path) -> Self {
        let name = program.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let words = vec![program.into_os_string()];
        let run = Self { name, words, dir: dir.into(), env: Vec::new(), scratch: scratch.into(), stdout: None, limit: LIMIT };
        // Without a runtime folder the Vulkan loader prints an error message.
        run.env("BRISK_DEVICE", "cpu").env("XDG_RUNTIME_DIR", scratch).env("RUST_BACKTRACE", "0")
    }

    pub(crate) fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.words.push(arg.as_ref().to_owned());
        self
    }

    pub(crate) fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.words.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// With a different value of an option, or with the option if it was not given.
    pub(crate) fn replaced(mut self, option: &str, value: impl AsRef<OsStr>) -> Self {
        match self.words.iter().position(|word| word == option) {
            Some(at) if at + 1 < self.words.len() => self.words[at + 1] = value.as_ref().to_owned(),
            _ => self.words.extend([OsString::from(option), value.as_ref().to_owned()]),
        }
        self
    }

    pub(crate) fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.env.push((name.into(), value.as_ref().to_owned()));
        self
    }

    /// The program and its arguments.
    pub(crate) fn words(&self) -> &[OsString] {
        &self.words
    }

    /// Redirects standard output to this path.
    pub(crate) fn stdout(mut self, path: impl Into<PathBuf>) -> Self {
        self.stdout = Some(path.into());
        self
    }

    pub(crate) fn limit(mut self, limit: Duration) -> Self {
        self.limit = limit;
        self
    }

    /// Starts it through another program, such as `sh -c SCRIPT`, to whose arguments the words of this one are appended.
    pub(crate) fn by<A: AsRef<OsStr>>(mut self, words: impl IntoIterator<Item = A>) -> Self {
        let mut all: Vec<OsString> = words.into_iter().map(|word| word.as_ref().to_owned()).collect();
        all.append(&mut self.words);
        self.words = all;
        self
    }

    /// With limits on memory and on the size of files.
    pub(crate) fn bounded(self) -> Self {
        self.by(["sh", "-c", BOUNDED])
    }

    /// The command, as a user would type it.
    pub(crate) fn line(&self) -> String {
        self.words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn start(self) -> Result<Running> {
        static N_STARTED: AtomicU64 = AtomicU64::new(0);
        let id = format!("{}-{}", std::process::id(), N_STARTED.fetch_add(1, Ordering::Relaxed));
        let line = self.line();
        let printed = |what: &str| self.scratch.join(format!("printed-{id}.{what}"));
        let (out, err) = (printed("out"), printed("err"));
        let mut command = Command::new(&self.words[0]);
        command.args(&self.words[1..]).current_dir(&self.dir).stdin(Stdio::null()).env(MARK, &id);
        command.envs(self.env.iter().map(|(name, value)| (name, value)));
        let stdout = match &self.stdout {
            None => File::create(&out),
            Some(path) => File::options().write(true).open(path),
        };
        command.stdout(stdout.context("cannot open the program's standard output")?);
        command.stderr(File::create(&err).context("cannot make a file for standard error")?);
        // In a separate process group, the program can be killed together with everything that it starts.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let child = command.spawn().with_context(|| format!("cannot start {line}"))?;
        let started = Instant::now();
        Ok(Running {
            child,
            name: self.name,
            line,
            id,
            out,
            err,
            started,
            limit: self.limit,
            was_killed: false,
            killed: Vec::new(),
        })
    }
}

/// A running program.
#[derive(Debug)]
pub(crate) struct Running {
    child: Child,
    name: String,
    line: String,
    id: String,
    out: PathBuf,
    err: PathBuf,
    started: Instant,
    limit: Duration,
    was_killed: bool,
    /// Its processes at the time when it was killed.
    killed: Vec<u32>,
}

impl Running {
    pub(crate) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits until `moment` after the start; returns whether it is still running then.
    pub(crate) fn runs_at(&mut self, moment: Duration) -> bool {
        while self.is_running() {
            let left = moment.saturating_sub(self.started.elapsed());
            if left.is_zero() {
                return true;
            }
            std::thread::sleep(left.min(Duration::from_millis(5)));
        }
        false
    }

    /// Waits until `happened` returns true; returns whether it did before the program ended.
    pub(crate) fn runs_until(&mut self, mut happened: impl FnMut(&Self) -> bool) -> bool {
        while self.is_running() && self.started.elapsed() < self.limit {
            if happened(self) {
                return true;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        false
    }

    /// Whether it has written this to standard error.
    pub(crate) fn has_said(&self, word: &str) -> bool {
        text(&self.err).contains(word)
    }

    /// Sends SIGKILL to the program and everything it has started.
    pub(crate) fn kill(&mut self) {
        self.was_killed = true;
        self.killed = marked(&self.id).map(|(process, _)| process).collect();
        kill_group(&self.child);
    }

    /// The processes of this run whose program is called `name`.
    pub(crate) fn processes(&self, name: &str) -> Vec<u32> {
        marked(&self.id).filter(|(_, program)| program == name).map(|(process, _)| process).collect()
    }

    /// Sends a signal to the program itself.
    pub(crate) fn signal(&self, signal: Signal) {
        send(self.child.id(), signal);
    }

    /// Waits for the end, and kills the program if it takes too long.
    pub(crate) fn wait(mut self) -> Result<Ended> {
        let mut timed_out = false;
        let status = loop {
            if let Some(status) = self.child.try_wait().context("cannot wait for a program")? {
                break status;
            }
            if self.started.elapsed() > self.limit {
                timed_out = true;
                kill_group(&self.child);
                break self.child.wait().context("cannot wait for a program")?;
            }
            std::thread::sleep(Duration::from_millis(1));
        };
        let elapsed = self.started.elapsed();
        // Processes that it left running would disturb later cases.
        let left: Vec<u32> = marked(&self.id).map(|(process, _)| process).collect();
        left.iter().for_each(|process| send(*process, Signal::Kill));
        // A killed process holds its locks for a moment; a container is only started again when none is left.
        self.killed.iter().chain(&left).for_each(|process| wait_for_end(*process));
        Ok(Ended {
            name: std::mem::take(&mut self.name),
            line: std::mem::take(&mut self.line),
            status,
            timed_out,
            was_killed: self.was_killed,
            elapsed,
            stdout: text(&self.out),
            stderr: text(&self.err),
        })
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.is_running() {
            kill_group(&self.child);
            drop(self.child.wait());
        }
        drop(fs::remove_file(&self.out));
        drop(fs::remove_file(&self.err));
    }
}

/// How a program ended, and what it printed.
#[derive(Clone, Debug)]
pub(crate) struct Ended {
    pub(crate) name: String,
    pub(crate) line: String,
    status: ExitStatus,
    pub(crate) timed_out: bool,
    pub(crate) was_killed: bool,
    pub(crate) elapsed: Duration,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Ended {
    pub(crate) fn success(&self) -> bool {
        self.status.success()
    }

    pub(crate) fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// The signal that ended it, if any.
    pub(crate) fn signal(&self) -> Option<i32> {
        #[cfg(unix)]
        return std::os::unix::process::ExitStatusExt::signal(&self.status);
        #[cfg(not(unix))]
        None
    }

    /// Where it panicked, or how it crashed.
    pub(crate) fn panic(&self) -> Option<String> {
        if let Some((_, after)) = self.stderr.split_once("panicked at ") {
            return Some(after.lines().next().unwrap_or_default().trim_end_matches(':').to_owned());
        }
        if self.stderr.contains("memory allocation of") {
            return Some("no memory for an allocation".to_owned());
        }
        // SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE, SIGSEGV.
        let by_itself = self.signal().filter(|signal| [4, 5, 6, 7, 8, 11].contains(signal));
        by_itself.map(|signal| format!("signal {signal}")).or_else(|| (self.code() == Some(101)).then(|| "status 101".to_owned()))
    }

    /// The first control character in its output, if there is one.
    pub(crate) fn control_character(&self) -> Option<String> {
        let is_raw = |c: &char| c.is_control() && !matches!(c, '\n' | '\t');
        let found = |stream: &str, text: &str| text.chars().find(is_raw).map(|c| format!("{c:?} on standard {stream}"));
        found("output", &self.stdout).or_else(|| found("error", &self.stderr))
    }
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let end = if self.timed_out { "killed after the time limit".to_owned() } else { self.status.to_string() };
        writeln!(f, "{}", self.line)?;
        write!(f, "{end}, after {:.2} s", self.elapsed.as_secs_f64())?;
        let lines: Vec<&str> = self.stderr.lines().collect();
        for line in &lines[lines.len().saturating_sub(4)..] {
            let shown: String = line.chars().take(400).flat_map(char::escape_debug).collect();
            write!(f, "\n| {shown}")?;
        }
        Ok(())
    }
}

/// The signals that the attack sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Signal {
    Hang,
    Interrupt,
    Kill,
    Terminate,
}

impl Signal {
    /// The signals that request a program to stop.
    pub(crate) const REQUESTS: [Self; 3] = [Self::Interrupt, Self::Terminate, Self::Hang];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Hang => "HUP",
            Self::Interrupt => "INT",
            Self::Kill => "KILL",
            Self::Terminate => "TERM",
        }
    }

    pub(crate) const fn number(self) -> i32 {
        match self {
            Self::Hang => 1,
            Self::Interrupt => 2,
            Self::Kill => 9,
            Self::Terminate => 15,
        }
    }
}

#[cfg(unix)]
pub(crate) fn send(process: u32, signal: Signal) {
    use rustix::process::{Pid, kill_process};

    let process = i32::try_from(process).ok().and_then(Pid::from_raw);
    // An error means that it has ended meanwhile.
    let _ = process.map(|process| kill_process(process, of_rustix(signal)));
}

#[cfg(unix)]
fn kill_group(child: &Child) {
    use rustix::process::{Pid, kill_process_group};

    let _ = kill_process_group(Pid::from_child(child), of_rustix(Signal::Kill));
}

#[cfg(unix)]
fn of_rustix(signal: Signal) -> rustix::process::Signal {
    match signal {
        Signal::Hang => rustix::process::Signal::HUP,
        Signal::Interrupt => rustix::process::Signal::INT,
        Signal::Kill => rustix::process::Signal::KILL,
        Signal::Terminate => rustix::process::Signal::TERM,
    }
}

#[cfg(not(unix))]
pub(crate) fn send(_: u32, _: Signal) {}

#[cfg(not(unix))]
fn kill_group(_: &Child) {}

/// The processes of the run with this mark, and the names of their programs.
fn marked(id: &str) -> impl Iterator<Item = (u32, String)> {
    let mark = format!("{MARK}={id}");
    let processes = fs::read_dir("/proc").into_iter().flatten().flatten();
    processes.filter_map(move |entry| {
        let process = entry.file_name().to_str()?.parse().ok()?;
        let environ = fs::read(entry.path().join("environ")).ok()?;
        environ.split(|&byte| byte == 0).find(|variable| *variable == mark.as_bytes())?;
        let program = fs::read_link(entry.path().join("exe")).ok()?;
        Some((process, program.file_name()?.to_string_lossy().into_owned()))
    })
}

/// Waits, for a few seconds at most, until a killed process has closed its files: until none of its threads runs, since the first
/// may end before the others.
fn wait_for_end(process: u32) {
    let runs = |stat: String| {
        // The state follows the name of the program, which is in brackets and may contain some itself.
        stat.rsplit_once(')').is_some_and(|(_, state)| !state.trim_start().starts_with(['Z', 'X']))
    };
    let any_runs = || {
        let threads = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        threads.filter_map(|thread| fs::read_to_string(thread.path().join("stat")).ok()).any(runs)
    };
    let begin = Instant::now();
    while any_runs() && begin.elapsed() < Duration::from_secs(5) {
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The printed text, up to a limit.
fn text(path: &Path) -> String {
    let mut bytes = fs::read(path).unwrap_or_default();
    bytes.truncate(MAX_PRINTED_BYTES);
    String::from_utf8_lossy(&bytes).into_owned()
}

/// A word quoted for a shell; long ones are shortened, for display only.
pub(crate) fn quoted(word: &OsStr) -> String {
    let text = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./,=:+".contains(c);
    if text.len() > 200 {
        let start: String = text.chars().take(20).flat_map(char::escape_debug).collect();
        return format!("'{start}…' ({} bytes)", word.len());
    }
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.into_owned();
    }
    if word.to_str().is_some() && !text.contains(|c: char| c.is_control()) {
        return format!("'{}'", text.replace('\'', r"'\''"));
    }
    let escaped = word.as_encoded_bytes().iter().map(|&byte| match byte {
        b'\'' | b'\\' => format!("\\{}", char::from(byte)),
        0x20..=0x7e => char::from(byte).to_string(),
        _ => format!("\\x{byte:02x}"),
    });
    format!("$'{}'", escaped.collect::<String>())
}
