use std::io::{self, Write};
use std::sync::{Arc, Mutex};

use brisk_train::Progress;

/// A writer whose output can be read while it is in use.
#[derive(Clone, Default)]
struct Screen(Arc<Mutex<Vec<u8>>>);

impl Screen {
    fn lines(&self) -> Vec<String> {
        let bytes = self.0.lock().expect("no writer panicked").clone();
        String::from_utf8(bytes).expect("text").lines().map(str::to_owned).collect()
    }
}

impl Write for Screen {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().expect("no writer panicked").write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Standard error that has been closed.
struct Broken;

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::ErrorKind::BrokenPipe.into())
    }

    fn flush(&mut self) -> io::Result<()> {
        Err(io::ErrorKind::BrokenPipe.into())
    }
}

fn run(mut progress: Progress, epochs: std::ops::Range<usize>) {
    for epoch in epochs {
        progress.epoch_started(epoch);
        progress.advance(600);
        progress.advance(400);
        progress.epoch_finished(&[("loss", 0.412_345), ("rate", 1e-5), ("best", 2.0)]);
    }
    progress.note("stopping after this step");
    progress.finished();
}

#[test]
fn a_line_an_epoch() {
    let screen = Screen::default();
    run(Progress::lines(3, 1000, screen.clone()), 1..3);
    let lines = screen.lines();
    assert_eq!(lines.len(), 3, "{lines:?}");
    assert!(lines[0].starts_with("epoch 2/3  loss 0.4123  rate 1.000e-5  best 2  "), "{lines:?}");
    assert!(lines[1].starts_with("epoch 3/3  ") && lines[1].contains(" rows/s with validation  "), "{lines:?}");
    assert_eq!(lines[2], "stopping after this step", "the note");
}

#[test]
fn a_line_a_validation_within_an_epoch() {
    let screen = Screen::default();
    let mut progress = Progress::lines(3, 1000, screen.clone());
    progress.epoch_started(1);
    progress.validated(25, 100, &[("valid_loss", 0.412_345)]);
    assert_eq!(screen.lines(), ["epoch 2/3, batch 25/100  valid_loss 0.4123"]);
}

#[test]
fn nobody_looking_is_no_reason_to_stop() {
    run(Progress::lines(2, 1000, Broken), 0..2);
    run(Progress::quiet(), 0..2);
    // In tests, standard error may be a terminal or not.
    Progress::stderr(2, 1000).finished();
}
