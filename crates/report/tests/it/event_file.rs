//! Event files: complete records, in files that TensorBoard finds, and read by TensorBoard itself if it is installed.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use brisk_report::{Error, EventWriter};

/// The events of each record of a file. The last one may be cut off.
fn records(path: &Path) -> Vec<Vec<u8>> {
    let bytes = fs::read(path).expect("an event file");
    let (mut rest, mut records) = (&bytes[..], Vec::new());
    while let Some((length, after)) = rest.split_first_chunk::<8>() {
        let length = u64::from_le_bytes(*length) as usize;
        let Some(event) = after.get(4..4 + length) else { break };
        records.push(event.to_vec());
        rest = after.get(8 + length..).unwrap_or_default();
    }
    records
}

fn contains(bytes: &[u8], text: &str) -> bool {
    bytes.windows(text.len()).any(|window| window == text.as_bytes())
}

#[test]
fn each_value_is_in_the_file_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut events = EventWriter::create(folder.path().join("run")).expect("a file in a new folder");
    let path = events.path().to_owned();
    assert!(contains(&records(&path)[0], "brain.Event:2"), "the version comes first");
    for step in 0..3 {
        events.scalar("loss", step, 0.5).expect("written");
        let records = records(&path);
        assert_eq!(records.len(), step as usize + 2, "one record more");
        assert!(contains(&records[step as usize + 1], "loss"), "its tag");
    }
    let other = EventWriter::create(folder.path().join("run")).expect("another file");
    assert_ne!(other.path(), path, "two writers never share a file");
    let name = path.file_name().expect("a name").to_string_lossy().into_owned();
    assert!(name.starts_with("events.out.tfevents."), "{name}");
}

#[test]
fn what_cannot_be_shown_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut events = EventWriter::create(folder.path()).expect("a file");
    let error = events.histogram("weights", 1, &[f32::NAN, f32::INFINITY]).expect_err("nothing finite");
    assert!(matches!(&error, Error::NoFiniteValue { tag, n_values: 2 } if tag == "weights"), "{error}");
    let error = events.image("picture", 1, [2, 3], &[0; 13]).expect_err("a byte too many");
    assert!(matches!(error, Error::ImagePixels { height: 2, width: 3, found: 13, .. }), "{error}");
    assert!(events.image("picture", 1, [0, 3], &[]).is_err(), "no pixels");
    assert!(events.image("picture", 1, [usize::MAX, 3], &[0]).is_err(), "an overflow");
    assert_eq!(records(events.path()).len(), 1, "nothing was written");
    let error = EventWriter::create(events.path()).expect_err("a file is no folder");
    assert!(matches!(error, Error::Io { .. }), "{error}");
}

/// `BRISK_TEST_TENSORBOARD` is a Python with the packages `tensorboard` and `pillow`, which then reads the files; without it they
/// are only written.
#[test]
fn tensorboard_reads_the_files() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut events = EventWriter::create(folder.path()).expect("a file");
    let loss = |step: u64| 1.0 / (1 + step) as f64;
    for step in 0..9 {
        events.scalar("loss/train", step, loss(step)).expect("written");
    }
    // The process was killed while it wrote the last record.
    let killed = events.path().to_owned();
    let length = fs::metadata(&killed).expect("a file").len();
    fs::OpenOptions::new().write(true).open(&killed).and_then(|file| file.set_len(length - 7)).expect("cut off");
    assert_eq!(records(&killed).len(), 9, "the version and steps 0 to 7");

    let mut events = EventWriter::resume(folder.path(), 6).expect("another file");
    for step in 6..12 {
        events.scalar("loss/train", step, loss(step)).expect("written");
    }
    events.metric("valid_loss", 11, 0.25).expect("written");
    events.scalar("odd", 0, f64::NAN).expect("written");
    events.scalar("odd", 1, f64::INFINITY).expect("written");
    let values: Vec<f32> = (0..500).map(|i| ((i * 37 % 101) as f32 - 50.0) / 1000.0).collect();
    events.histogram("gradients", 11, &[&values[..], &[f32::NAN]].concat()).expect("written");
    let pixels: Vec<u8> = (0..45).map(|i| 3 * i).collect();
    events.image("grey", 11, [3, 5], &pixels[..15]).expect("written");
    events.image("rgb", 11, [3, 5], &pixels).expect("written");
    assert_eq!(records(events.path()).len(), 2 + 6 + 3 + 1 + 2, "all records");

    let Some(python) = std::env::var_os("BRISK_TEST_TENSORBOARD") else {
        // Not `eprintln!`, whose output the test harness captures.
        drop(writeln!(
            std::io::stderr(),
            "\nTENSORBOARD DOES NOT READ THE EVENT FILES: BRISK_TEST_TENSORBOARD is not set to a Python that has it"
        ));
        return;
    };
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/read_events.py");
    let output = Command::new(python).arg(script).arg(folder.path()).output().expect("Python starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}
