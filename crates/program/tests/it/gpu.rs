//! One GPU device for all tests of this process.
//!
//! `BRISK_TEST_GPU`: `auto` (the default) uses an adapter if there is one, a software one too; `require` fails without; `off`
//! uses none.

use std::io::Write;
use std::sync::{Mutex, OnceLock};

use brisk_program::{Device, Selection};

/// The device; `None` where GPU checks do not run, which has been reported.
pub(crate) fn gpu() -> Option<Device> {
    static GPU: OnceLock<Option<Device>> = OnceLock::new();
    GPU.get_or_init(open).clone()
}

/// A device that no other test shares, for those that count bytes or break it.
pub(crate) fn own_gpu() -> Option<Device> {
    gpu().and_then(|_| open())
}

/// The CPU executor, and the GPU where there is one.
pub(crate) fn devices() -> Vec<Device> {
    let cpu = Device::builder().selection(Selection::Cpu).threads(2).open().expect("threads can be started");
    std::iter::once(cpu).chain(own_gpu()).collect()
}

fn open() -> Option<Device> {
    let wish = std::env::var("BRISK_TEST_GPU").unwrap_or_else(|_| "auto".to_owned());
    assert!(["off", "auto", "require"].contains(&wish.as_str()), "BRISK_TEST_GPU is `{wish}`, expected off, auto or require");
    if wish == "off" {
        say("BRISK_TEST_GPU=off: NO GPU CHECK RUNS, only the cpu executor is tested");
        return None;
    }
    if Device::list().is_empty() {
        assert!(wish == "auto", "BRISK_TEST_GPU=require, and there is no adapter; install Mesa's lavapipe or a driver");
        say("no adapter: NO GPU CHECK RUNS, only the cpu executor is tested");
        return None;
    }
    let device = Device::builder().selection(Selection::Index(0)).open().expect("the first adapter opens");
    say(&format!("GPU checks run on {}", device.info()));
    Some(device)
}

/// Prints each message once, directly to the terminal, since the test harness captures the output of passing tests.
pub(crate) fn say(what: &str) {
    static SAID: Mutex<Vec<String>> = Mutex::new(Vec::new());
    let mut said = SAID.lock().expect("nothing panics while it is held");
    if !said.iter().any(|other| other == what) {
        let _ = writeln!(std::io::stderr(), "{what}");
        said.push(what.to_owned());
    }
}
