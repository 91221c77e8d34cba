//! Memory is planned before anything is executed: a run takes what was planned, and one that does not fit is refused.

use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use brisk_loader::{Layout, RowBuffers, RowSelection, RowSource};
use brisk_nn::tensor::Graph;
use brisk_program::{Device, Selection};
use brisk_train::{DataParallelConfig, Error, Outputs, ResidentRows, TrainerConfig, ZeroStage};

use crate::example::built;
use crate::gpu::{cpu, gpu};
use crate::replicas::{CONFIG, replicated};
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

/// Trains a network with these hidden layers on `device`, or returns the error.
fn refused(device: &Device, hidden: &[usize]) -> Error {
    let started = Instant::now();
    let ready = Setting { hidden: hidden.to_vec(), ..Setting::default() }.ready();
    let error = ready.trainer(device).expect_err("there is not so much memory");
    assert_eq!(device.allocated_bytes(), 0, "nothing was allocated");
    assert!(started.elapsed() < Duration::from_secs(20), "nothing was computed");
    error
}

#[test]
fn a_network_that_no_machine_has_memory_for_is_refused_before_it_is_allocated() {
    let error = refused(&cpu(1), &[1 << 20, 1 << 20]);
    let Error::Memory { needed_bytes, available_bytes, n_replicas: 1, .. } = &error else { panic!("{error}") };
    // Values, gradients, two moments of Adam and the best values so far.
    assert!(*needed_bytes > 5 << 42, "{needed_bytes}");
    assert!(*available_bytes < 1 << 42, "{available_bytes}");
    let said = error.to_string();
    let words = [
        "training takes 20.0 TiB of memory (parameters 4.0 TiB, gradients 4.0 TiB, optimizer state 8.0 TiB, copies of parameters",
        " available; the largest parameter is `layers.1.weight` [1048576, 1048576] with 4.0 TiB: make the layers",
    ];
    assert!(words.iter().all(|words| said.contains(words)), "{said}");
}

#[test]
fn the_programs_refuse_such_a_network_with_an_error() {
    for (name, more) in [("higgs", &["--device", "cpu"][..]), ("data_parallel", &["--replicas", "2"])] {
        let dir = tempfile::tempdir().expect("a folder for a while");
        let hidden = ["65536"; 24].join(",");
        let mut program = Command::new(built(name));
        program.current_dir(&dir).env("BRISK_DEVICE", "cpu").args(["--rows", "200", "--hidden", &hidden]).args(more);
        let output = program.output().expect("the program starts");
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{name}: {said}");
        let words =
            ["error: training takes ", " TiB of memory", " available; the largest parameter is `layers.1.weight` [65536, 65536]"];
        assert!(words.iter().all(|words| said.contains(words)), "{name}: {said}");
    }
}

#[test]
fn sizes_beyond_all_numbers_are_refused() {
    for hidden in [&[1 << 40, 1 << 40][..], &[usize::MAX, 1], &[usize::MAX / 4]] {
        let error = refused(&cpu(1), hidden).to_string();
        assert!(error.contains("elements, expected a smaller model"), "{error}");
    }
}

#[test]
fn a_limit_of_the_device_is_a_limit_of_the_run() {
    let limited = |bytes| Device::builder().selection(Selection::Cpu).threads(2).memory_limit(bytes).open().expect("threads");
    let error = refused(&limited(1 << 20), &[1024, 1024]).to_string();
    assert!(error.starts_with("training takes 16.1 MiB of memory (parameters 4.0 MiB, gradients 4.0 MiB, "), "{error}");
    assert!(
        error.contains("), but the limited memory of device `cpu, 2 threads` has 1.0 MiB available; the largest parameter is `layers.1.weight`"),
        "{error}"
    );
}

#[test]
fn activations_that_do_not_fit_are_refused_before_they_are_allocated() -> Result<(), Error> {
    // The state of the network takes a few KiB, a batch of all rows a few MiB.
    let default = Setting::default();
    let config = TrainerConfig { batch_rows: 20_000, ..default.config };
    let ready = Setting { n_rows: 20_000, hidden: vec![64, 64], config, ..default }.ready();
    let device = Device::builder().selection(Selection::Cpu).memory_limit(4 << 20).open()?;
    let error = ready.trainer(&device).expect_err("there is no room for the activations");
    let Error::Memory { parts, .. } = &error else { panic!("{error}") };
    let (activations, state): (Vec<_>, Vec<_>) = parts.iter().partition(|(what, _)| *what == "activations");
    let sum = |parts: &[&(&str, usize)]| parts.iter().map(|(_, n_bytes)| n_bytes).sum::<usize>();
    assert!(sum(&activations) > 4 << 20 && sum(&state) < 1 << 20, "{parts:?}");
    assert!(error.to_string().contains("activations "), "{error}");
    Ok(())
}

#[test]
fn what_replicas_of_one_machine_take_is_added_up() {
    for zero in [ZeroStage::Replicated, ZeroStage::Parameters] {
        let config = DataParallelConfig { zero, ..CONFIG };
        let setting = Setting { hidden: vec![1 << 20, 1 << 20], ..Setting::default() };
        let error = replicated(2, config, || cpu(1), || setting.ready()).expect_err("there is not so much memory");
        let Error::Memory { n_replicas: 2, needed_bytes, parts, .. } = &error else { panic!("{error}") };
        assert!(*needed_bytes >= 2 * parts[..4].iter().map(|(_, n_bytes)| n_bytes).sum::<usize>(), "{error}");
        // Two replicas keep everything twice, or once together.
        let n = if zero == ZeroStage::Replicated { 2 } else { 1 };
        let expected = (5 * n) << 42;
        assert!((expected..expected + (1 << 40)).contains(needed_bytes), "{zero:?}: {needed_bytes}");
    }
}

#[test]
fn rows_that_no_machine_has_memory_for_are_refused() {
    let wide = Wide { n_rows: 1 << 20, n_cols: 1 << 24 };
    let error = ResidentRows::upload(&cpu(1), "test", &wide).expect_err("there is not so much memory");
    let Error::Memory { needed_bytes, available_bytes, .. } = error else { panic!("{error}") };
    assert!(needed_bytes > 1 << 46 && available_bytes < 1 << 46, "{needed_bytes}, {available_bytes}");
    let said = error.to_string();
    assert!(
        said.starts_with("keeping the test rows on the device takes 64.0 TiB of memory, but this machine has ")
            && said.ends_with("or stream them"),
        "{said}"
    );
}

/// Rows that are never read.
struct Wide {
    n_rows: usize,
    n_cols: usize,
}

impl RowSource for Wide {
    type Feature = f32;
    type Error = std::io::Error;

    fn layout(&self) -> Layout {
        Layout::new(self.n_rows, self.n_cols)
    }

    fn gather(&self, _: RowSelection<'_>, _: RowBuffers<'_, f32>) -> Result<(), Self::Error> {
        Err(std::io::Error::other("rows were read"))
    }
}
