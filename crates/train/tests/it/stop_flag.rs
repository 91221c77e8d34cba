//! Signals and the flag that they set, tested in child processes: this test program started again.

use std::io::{BufRead, BufReader, Lines, Write};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use brisk_train::{Error, StopFlag, StopSignal};

const CHILD: &str = "BRISK_TRAIN_TEST_CHILD";

/// A run that is asked to stop and ends slowly. Does nothing unless one of the tests below has started it.
#[test]
fn child() {
    let Some(role) = std::env::var_os(CHILD) else { return };
    let say = |text: &str| {
        let mut out = std::io::stdout();
        writeln!(out, "\nchild: {text}").and_then(|()| out.flush()).expect("the parent listens");
    };
    if role == "handles SIGTERM itself" {
        let other = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
        signal_hook::flag::register(signal_hook::consts::SIGTERM, other).expect("a handler");
        let error = StopFlag::on_signals().expect_err("SIGTERM has a handler");
        assert!(matches!(&error, Error::Setting { name: "signal", found, .. } if found.starts_with("SIGTERM: ")), "{error}");
        return say(&error.to_string());
    }
    let stop = StopFlag::on_signals().expect("no handlers yet");
    let same = StopFlag::on_signals().expect("the same handlers");
    say("running");
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(30) {
        if let (Some(signal), true) = (stop.signal(), same.is_requested()) {
            say(&format!("stopping for {signal}, status {}", signal.exit_status()));
            std::thread::sleep(Duration::from_secs(30));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    /// The child test, run by a shell after it has carried out `setting`.
    fn start(setting: &str, role: &str) -> Self {
        let mut command = Command::new("sh");
        command.arg("-c").arg(format!("{setting}\nexec \"$0\" --exact stop_flag::child --nocapture"));
        command.arg(std::env::current_exe().expect("this program")).env(CHILD, role);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("there is a shell");
        let lines = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, lines }
    }

    #[track_caller]
    fn says(&mut self, text: &str) {
        let expected = format!("child: {text}");
        assert!(self.lines.any(|line| line.expect("text").starts_with(&expected)), "never said: {text}");
    }

    fn send(&self, signal: &str) {
        let status = Command::new("kill").args([signal, &self.child.id().to_string()]).status().expect("there is `kill`");
        assert!(status.success(), "{signal}: the child is running");
    }

    #[track_caller]
    fn ends_with(mut self, status: i32) {
        assert_eq!(self.child.wait().expect("it ends").code(), Some(status), "the status of a second signal");
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The child may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A delay after which a signal counts as a second one.
fn wait() {
    std::thread::sleep(Duration::from_millis(400));
}

#[test]
fn the_first_signal_requests_the_stop_and_the_second_ends_the_process() {
    for (first, name, second, status) in
        [("-INT", "SIGINT", "-INT", 130), ("-TERM", "SIGTERM", "-TERM", 143), ("-HUP", "SIGHUP", "-TERM", 143)]
    {
        let mut running = Running::start("", "run");
        running.says("running");
        running.send(first);
        running.says(&format!("stopping for {name}"));
        wait();
        running.send(second);
        running.ends_with(status);
    }
}

#[test]
fn signals_that_arrive_together_and_repeated_hangups_are_one_request() {
    let mut running = Running::start("", "run");
    running.says("running");
    running.send("-TERM");
    running.send("-TERM");
    running.says("stopping for SIGTERM, status 143");
    wait();
    running.send("-HUP");
    wait();
    assert_eq!(running.child.try_wait().expect("it can be asked"), None, "it is still running");
    running.send("-INT");
    running.ends_with(130);
}

#[test]
fn ignored_signals_stay_ignored() {
    for (setting, ignored, heard, name) in
        [("trap '' INT", "-INT", "-TERM", "SIGTERM"), ("trap '' HUP", "-HUP", "-INT", "SIGINT")]
    {
        let mut running = Running::start(setting, "run");
        running.says("running");
        running.send(ignored);
        wait();
        running.send(heard);
        running.says(&format!("stopping for {name}"));
    }
    let mut running = Running::start("trap '' INT TERM HUP", "run");
    running.says("running");
    ["-INT", "-TERM", "-HUP"].iter().for_each(|signal| running.send(signal));
    wait();
    assert_eq!(running.child.try_wait().expect("it can be asked"), None, "it is still running");
}

#[test]
fn another_handler_is_an_error_that_names_the_signal() {
    let mut running = Running::start("", "handles SIGTERM itself");
    running.says(
        "signal: found SIGTERM: other code of this process handles it, expected to handle it; have the existing handler call",
    );
    running.ends_with(0);
}

#[test]
fn a_request_by_the_program_has_no_signal() {
    let stop = StopFlag::new();
    stop.request();
    assert_eq!((stop.is_requested(), stop.signal()), (true, None), "requested");
    stop.clear();
    assert!(!stop.is_requested(), "withdrawn");
    assert_eq!((StopSignal::Terminate.to_string(), StopSignal::Hangup.exit_status()), ("SIGTERM".to_owned(), 129), "names");
}
