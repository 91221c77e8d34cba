//! The adapter for tests of this process.
//!
//! `BRISK_TEST_GPU`: `auto` (the default) uses an adapter if there is one, even a software one; `require` fails without one;
//! `off` uses none.

use std::sync::OnceLock;

use brisk_program::{Device, Selection};

use crate::say::say;

/// A device that no other test shares; `None`, after a message, if GPU checks do not run.
pub(crate) fn gpu() -> Option<Device> {
    static IS_THERE: OnceLock<bool> = OnceLock::new();
    let is_there = *IS_THERE.get_or_init(|| {
        look().is_some_and(|device| {
            say(&format!("GPU checks run on {}", device.info()));
            true
        })
    });
    is_there.then(first_adapter)
}

fn look() -> Option<Device> {
    let wish = std::env::var("BRISK_TEST_GPU").unwrap_or_else(|_| "auto".to_owned());
    assert!(["off", "auto", "require"].contains(&wish.as_str()), "BRISK_TEST_GPU is `{wish}`, expected off, auto or require");
    if wish == "off" {
        say("BRISK_TEST_GPU=off: NO GPU CHECK RUNS, only the CPU executor is tested");
        return None;
    }
    if Device::list().is_empty() {
        assert!(wish == "auto", "BRISK_TEST_GPU=require, and there is no adapter; install Mesa's lavapipe or a driver");
        say("no adapter: NO GPU CHECK RUNS, only the CPU executor is tested");
        return None;
    }
    Some(first_adapter())
}

/// Opens the first adapter, after [`gpu`] has said that there is one: for tests with several devices.
pub(crate) fn first_adapter() -> Device {
    Device::builder().selection(Selection::Index(0)).open().expect("the first adapter opens")
}

/// The CPU executor with this number of threads.
pub(crate) fn cpu(n_threads: usize) -> Device {
    Device::builder().selection(Selection::Cpu).threads(n_threads).open().expect("threads can be started")
}
