//! What was planned is what is held: known before anything runs, and never more.

use std::sync::{Arc, Mutex};

use brisk_nn::tensor::Graph;
use brisk_program::Device;
use brisk_train::{Error, Outputs, TrainerConfig};

use crate::gpu::{cpu, gpu};
use crate::run::{Setting, after_each_epoch, quiet};

fn check(device: &Device, batch_rows: usize) -> Result<(), Error> {
    let default = Setting::default();
    let config = TrainerConfig { batch_rows, ..default.config };
    let ready = Setting { n_rows: 333, n_valid: 101, hidden: vec![24, 9], config, ..default }.ready();
    assert_eq!(device.allocated_bytes(), 0, "nothing is held yet");

    let trainer = ready.trainer(device)?;
    let planned = Graph::planned_peak_bytes(&trainer.graphs())?;
    assert!(device.allocated_bytes() <= planned, "{} held before the run, {planned} planned", device.allocated_bytes());

    let held = Arc::new(Mutex::new(Vec::new()));
    let progress = after_each_epoch({
        let (device, held) = (device.clone(), held.clone());
        move || held.lock().expect("no test thread has panicked").push(device.allocated_bytes())
    });
    trainer.fit(&mut Outputs { progress, ..quiet() })?;
    let held = held.lock().expect("no test thread has panicked").clone();
    assert_eq!(held, [planned; 3], "after each epoch");
    assert_eq!(device.allocated_bytes(), planned, "after the run");

    drop(trainer);
    drop(ready);
    assert_eq!(device.allocated_bytes(), 0, "all is given back");
    Ok(())
}

#[test]
fn a_run_holds_what_was_planned() -> Result<(), Error> {
    for batch_rows in [1, 50, 333, 5000] {
        check(&cpu(2), batch_rows)?;
    }
    Ok(())
}

#[test]
fn a_run_on_a_gpu_holds_what_was_planned() -> Result<(), Error> {
    gpu().map_or(Ok(()), |device| check(&device, 100))
}
