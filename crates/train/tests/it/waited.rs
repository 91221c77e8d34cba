//! A replica that comes late in every step: the report of the run and the last line of its progress say which one.

use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brisk_loader::Rows;
use brisk_nn::tensor::Activation;
use brisk_nn::tensor::program::{Device, Selection};
use brisk_nn::{Adam, Mlp, MlpConfig, ParametersBuilder};
use brisk_train::{
    Binary, Callback, DataParallelConfig, Error, FeedConfig, Outputs, Progress, ReportFile, RunView, StepEnd, StepLog, Trainable,
    Trainer, TrainerConfig, run_threads,
};

/// Sleeps after every step, and after one of them for longer.
struct Late;

const LONGER: usize = 5;

impl Callback for Late {
    fn every_n_steps(&self) -> usize {
        1
    }

    fn on_step_end(&mut self, _: &RunView<'_>, step: &StepEnd) -> Result<(), Error> {
        std::thread::sleep(Duration::from_millis(if step.step == LONGER { 600 } else { 30 }));
        Ok(())
    }
}

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no panic").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn the_results_name_the_replica_that_the_others_wait_for() -> Result<(), Error> {
    let (lines, folder) = (Lines::default(), tempfile::tempdir().expect("a temporary folder"));
    let [log, page] = ["batches.csv", "report.html"].map(|name| folder.path().join(name));
    let reports = run_threads(2, &DataParallelConfig::default(), |replicas| {
        let mut builder = ParametersBuilder::new();
        let sizes = MlpConfig { n_inputs: 1, hidden: vec![], n_outputs: 1, activation: Activation::relu() };
        let model = Mlp::new(&mut builder, &sizes);
        let params = builder.build(0);
        let optimizer = Adam::new(&params);
        let numbers: Vec<f32> = (0..32).map(|row| row as f32).collect();
        let labels: Vec<f32> = (0..32).map(|row| (row % 2) as f32).collect();
        let rows = Rows::new(numbers, labels, 1).expect("a label a row");
        let config = TrainerConfig { batch_rows: 4, max_epochs: 1, ..TrainerConfig::default() };
        let device = Device::builder().selection(Selection::Cpu).threads(1).open()?;
        let feed = FeedConfig::default();
        let trainer = Trainer::new(&device).config(config).feed(&feed).replicas(replicas).prepare(
            Trainable::new(&model, &params, &optimizer),
            &Binary::new(),
            &rows,
            &rows,
        )?;
        let mut outputs = Outputs { progress: Progress::lines(1, 32, lines.clone()), ..Outputs::default() };
        outputs.callbacks.push(Box::new(StepLog::new(&log)));
        outputs.callbacks.push(Box::new(ReportFile::new(&page, &Binary::new(), Vec::new())));
        if replicas.rank() == 1 {
            outputs.callbacks.push(Box::new(Late));
        }
        trainer.fit(&mut outputs)
    })?;
    for report in &reports {
        let waited = report.waited.as_ref().expect("several replicas");
        // The sleep after step 5, from 1, is before step 5, from 0.
        assert_eq!((waited.rank(), waited.worst_rank, waited.worst_step), (1, 1, LONGER as u64), "{waited}");
        assert!(waited.worst >= Duration::from_millis(300) && waited.worst >= waited.median, "{waited}");
        assert!(waited.shares[1] > 0.3 && waited.shares[1] > waited.shares[0], "{waited}");
    }
    let said = String::from_utf8(lines.0.lock().expect("no panic").clone()).expect("text");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("waited for rank 1: ") && last.ends_with("for rank 1 at step 5"), "{said}");
    let log = std::fs::read_to_string(log).expect("a log");
    let cells = log.lines().skip(1).map(|line| line.split(',').collect::<Vec<_>>());
    let waits: Vec<(f64, &str)> = cells.map(|cells| (cells[4].parse().expect("seconds"), cells[5])).collect();
    assert_eq!(waits.len(), 8, "{log}");
    let worst = waits.iter().enumerate().max_by(|a, b| a.1.0.total_cmp(&b.1.0)).expect("eight");
    assert!(worst.0 == LONGER && worst.1.0 >= 0.3 && worst.1.1 == "1", "{log}");
    let page = std::fs::read_to_string(page).expect("a report");
    assert!(page.contains("Wait for the last replica") && page.contains("for rank 1 at step 5"), "{page}");
    Ok(())
}

#[test]
fn a_single_replica_waits_for_none() -> Result<(), Error> {
    let waited = run_threads(1, &DataParallelConfig::default(), |replica| {
        for step in 0..4 {
            replica.at_step(step);
            replica.all_gather(vec![1.0])?;
        }
        Ok::<_, Error>(replica.waited())
    })?;
    assert_eq!(waited, [None]);
    Ok(())
}
