use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use brisk_train::StopFlag;

const CHILD: &str = "BRISK_TRAIN_TEST_CHILD";

/// A run that is asked to stop and takes its time. Only does so in the process that the test below starts.
#[test]
fn child() {
    if std::env::var_os(CHILD).is_none() {
        return;
    }
    let say = |text: &str| {
        let mut out = std::io::stdout();
        writeln!(out, "\nchild: {text}").and_then(|()| out.flush()).expect("the parent listens");
    };
    let stop = StopFlag::on_ctrl_c().expect("no handler yet");
    let same = StopFlag::on_ctrl_c().expect("the same handler");
    say("running");
    let started = Instant::now();
    while started.elapsed() < Duration::from_secs(30) {
        if stop.is_requested() && same.is_requested() {
            say("finishing the step");
            std::thread::sleep(Duration::from_secs(30));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn the_first_ctrl_c_asks_and_the_second_ends() {
    let mut child = Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "stop_flag::child", "--nocapture"])
        .env(CHILD, "1")
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program again");
    let mut lines = BufReader::new(child.stdout.take().expect("piped")).lines().map(|line| line.expect("text"));
    let interrupt = || {
        let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill(1)");
        assert!(status.success(), "the child is there");
    };
    assert!(lines.any(|line| line == "child: running"), "it starts");
    interrupt();
    assert!(lines.any(|line| line == "child: finishing the step"), "it is asked to stop, and goes on");
    interrupt();
    let status = child.wait().expect("it ends");
    assert_eq!(status.code(), Some(130), "at once, as interrupted");
}
