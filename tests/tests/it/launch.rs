//! The example `launch` with a script as mpirun, which writes down its arguments and then runs the program.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tempfile::TempDir;

use crate::example::built;

/// The script that replaces mpirun.
const MPIRUN: &str = "#!/bin/sh
printf '%s\\n' \"$*\" >> calls
while [ \"$1\" != /bin/sh ]; do shift; done
exec \"$@\"
";

/// A folder to run in, which contains the script.
struct Place(TempDir);

/// The result of a command.
struct Ended {
    status: Option<i32>,
    said: String,
    /// The arguments of each call of mpirun, without the program.
    calls: Vec<String>,
}

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().expect("a temporary folder"));
        let script = place.0.path().join("mpirun");
        fs::write(&script, MPIRUN).expect("the folder can be written to");
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).expect("its owner can change its mode");
        place
    }

    /// `launch OPTIONS /bin/sh rank.sh`, where `rank` is the script.
    fn start(&self, options: &str, rank: &str) -> Child {
        fs::write(self.0.path().join("rank.sh"), rank).expect("the folder can be written to");
        let mut launch = self.launch();
        launch.args(options.split_whitespace()).args(["/bin/sh", "rank.sh"]).spawn().expect("launch starts")
    }

    /// `launch`, where the script is found as mpirun.
    fn launch(&self) -> Command {
        let path = format!("{}:{}", self.0.path().display(), std::env::var("PATH").unwrap_or_default());
        let mut launch = Command::new(built("launch"));
        launch.current_dir(self.0.path()).env("PATH", path).stdout(Stdio::null()).stderr(Stdio::piped());
        launch
    }

    fn end(&self, started: Child) -> Ended {
        let output = started.wait_with_output().expect("launch ends");
        let calls = self.read("calls").replace(" rank.sh", "").lines().map(String::from).collect();
        Ended { status: output.status.code(), said: String::from_utf8_lossy(&output.stderr).into_owned(), calls }
    }

    fn run(&self, options: &str, rank: &str) -> Ended {
        self.end(self.start(options, rank))
    }

    fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.path().join(name)).unwrap_or_default()
    }

    /// Waits until the script has written its file `pids`, and returns them.
    fn pids(&self) -> Vec<String> {
        let begin = Instant::now();
        while !self.read("pids").ends_with(".\n") {
            assert!(begin.elapsed() < Duration::from_secs(20), "the script has not started");
            std::thread::sleep(Duration::from_millis(10));
        }
        self.read("pids").split_whitespace().filter(|word| *word != ".").map(String::from).collect()
    }
}

/// A rank with a process in another session, which ignores SIGTERM.
const STUBBORN: &str = "trap '' TERM
setsid sleep 600 &
echo $$ $! . > pids
rank_said
while :; do sleep 1; done
";

#[track_caller]
fn check_gone(pids: &[String]) {
    assert_eq!(pids.len(), 2, "{pids:?}");
    for pid in pids {
        // A process whose parent has not waited for it yet is a zombie, with an empty command line.
        let line = fs::read(Path::new("/proc").join(pid).join("cmdline")).unwrap_or_default();
        assert!(line.is_empty(), "{pid} is still running: {}", String::from_utf8_lossy(&line));
    }
}

#[test]
fn the_exit_status_is_that_of_the_job() {
    let ended = Place::new().run("-n 2", "exit 0");
    assert_eq!((ended.status, ended.calls.as_slice()), (Some(0), &["-n 2 /bin/sh".to_owned()][..]));
    let ended = Place::new().run("-n 3 --hosts a:2,b:1 --restarts 2", "exit 1");
    assert_eq!(ended.status, Some(1));
    assert_eq!(ended.calls, ["-n 3 --host a:2,b:1 /bin/sh"], "an error of the user does not restart the job");
    assert!(
        ended.said.contains("the job ended with status 1 after ") && ended.said.ends_with(" s: the program reported an error\n"),
        "{}",
        ended.said
    );
}

#[test]
fn a_lost_rank_restarts_the_job_with_fewer() {
    let lost_twice = "echo x >> starts; [ $(wc -l < starts) -gt 2 ] || exit 75";
    let ended = Place::new().run("-n 4 --restart-ranks 2,1", lost_twice);
    assert_eq!(ended.status, Some(0), "{}", ended.said);
    assert_eq!(ended.calls, ["-n 4 /bin/sh", "-n 2 /bin/sh --resume auto", "-n 1 /bin/sh --resume auto"]);
    assert!(ended.said.contains("restart 2 of 2: -n 1, `--resume auto`"), "{}", ended.said);
    // The last number is used for all further restarts.
    let ended = Place::new().run("-n 4 --restart-ranks 2 --restarts 3", "exit 75");
    assert_eq!(ended.calls.iter().map(|call| &call[..4]).collect::<Vec<_>>(), ["-n 4", "-n 2", "-n 2", "-n 2"]);
}

#[test]
fn a_signal_restarts_the_job_at_most_as_often_as_requested() {
    let killed = "echo 'process rank 1 with PID 0 on node here exited on signal 9 (Killed).' >&2; kill -9 $$";
    let ended = Place::new().run("-n 2 --restarts 1", killed);
    assert_eq!((ended.status, ended.calls.len()), (Some(137), 2));
    assert!(ended.said.contains("rank 1 on here was killed by signal 9 (Killed)\nrestart 1 of 1"), "{}", ended.said);
}

#[test]
fn a_job_that_does_not_end_is_killed() {
    let place = Place::new();
    let said = "echo 'rank 0 waited 1s in barrier: why; the run ends, start again from the last checkpoint' >&2";
    let ended = place.run("-n 2 --grace 0.2", &STUBBORN.replace("rank_said", said));
    assert_eq!(ended.status, Some(75), "{}", ended.said);
    assert!(ended.said.contains("rank 0 waited 1s in barrier for rank 1, which said nothing"), "{}", ended.said);
    check_gone(&place.pids());

    let place = Place::new();
    let ended = place.run("-n 2 --timeout 0.3 --restarts 5", &STUBBORN.replace("rank_said", ""));
    assert_eq!((ended.status, ended.calls.len()), (Some(124), 1), "{}", ended.said);
    check_gone(&place.pids());
}

#[test]
fn a_signal_ends_every_process() {
    let place = Place::new();
    let started = place.start("-n 2 --restarts 5", &STUBBORN.replace("rank_said", ""));
    let pids = place.pids();
    kill_process(Pid::from_child(&started), Signal::TERM).expect("launch is running");
    let ended = place.end(started);
    assert_eq!((ended.status, ended.calls.len()), (Some(128 + 15), 1), "{}", ended.said);
    assert!(ended.said.contains("stopped by signal 15"), "{}", ended.said);
    check_gone(&pids);
}

#[test]
fn a_wrong_command_line_is_an_error_before_anything_starts() {
    let place = Place::new();
    let check = |options: &str, status: i32, words: &str| {
        let output = place.launch().args(options.split(' ')).output().expect("launch starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(status) && said.contains(words), "{options}: {said}");
    };
    check("-n 2 no/such/program", 1, "error: there is no program no/such/program");
    check("-n 2", 2, "<PROGRAM>");
    check("/bin/sh", 2, "-n <RANKS>");
    check("-n 0 /bin/sh", 2, "expected a whole number from 1");
    check("-n 2 --restart-ranks 2, /bin/sh", 2, "--restart-ranks");
    check("-n 2 --timeout=-1 /bin/sh", 2, "expected a number above 0");
    check("-n 2 --restart 1 /bin/sh", 2, "a similar argument exists: '--restarts'");
    for resume in ["--resume run/step-9", "--resume=run/step-9", "--resume"] {
        check(&format!("-n 2 --restarts 1 /bin/sh {resume}"), 2, "a restart resumes with `--resume auto`");
    }
    check("-n 2 nosuch-program", 1, "error: there is no program nosuch-program, here or in a folder of PATH");
    assert_eq!(place.read("calls"), "");
}

/// Not those that look like options of `launch`, nor an empty one, nor one that is not UTF-8.
#[test]
fn arguments_reach_the_program_unchanged() {
    let place = Place::new();
    let args: [&[u8]; 6] = [b"-n", b"9", b"--", b"--help", b"", b"runs/\xff"];
    let mut launch = place.launch();
    launch.args(["-n", "1", "/bin/sh", "rank.sh"]).args(args.map(OsStr::from_bytes));
    fs::write(place.0.path().join("rank.sh"), "printf '%s\\n' \"$@\" > args").expect("the folder can be written to");
    let ended = place.end(launch.spawn().expect("launch starts"));
    assert_eq!(ended.status, Some(0), "{}", ended.said);
    assert_eq!(fs::read(place.0.path().join("args")).expect("the rank wrote them"), [&args.join(&b'\n')[..], b"\n"].concat());
}
