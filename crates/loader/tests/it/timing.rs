use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use brisk_loader::{Ahead, Batching, Bottleneck, Error, Key, Loader, Row, Stage, StageReport, StageTimer};

use crate::source::{Before, numbered};

const PAUSE: Duration = Duration::from_millis(4);

/// Pauses while a batch is gathered, transformed and consumed: the report names the slowest. On a busy machine other threads may
/// be slower at times, so there are several reports.
#[track_caller]
fn check(gather: Duration, transform: Duration, consumer: Duration, workers: usize, expected: Bottleneck) {
    let reports: Vec<_> = (0..8).map(|_| report(gather, transform, consumer, workers)).collect();
    for report in &reports {
        assert_eq!(report.n_batches, 10, "{report}");
        // A thread sleeps at least as long as requested.
        assert!(report.gather >= gather * 10 && report.transform >= transform * 10, "{report}");
    }
    let n_expected = reports.iter().filter(|report| report.bottleneck() == expected).count();
    assert!(n_expected >= reports.len() / 2, "{n_expected} of {} reports: {}", reports.len(), reports[0]);
}

fn report(gather: Duration, transform: Duration, consumer: Duration, workers: usize) -> StageReport {
    let source = Before(numbered(100, 1), || thread::sleep(gather));
    let timer = Arc::new(StageTimer::default());
    let map = |row: Row<'_>, _: Key, _: &mut [f32]| {
        // One row per batch of ten.
        if row.id.is_multiple_of(10) {
            thread::sleep(transform);
        }
        Ok::<(), Infallible>(())
    };
    let mut loader = Loader::new(&source, Batching::of(10)).unwrap().map_rows(1, map).unwrap().timed(Arc::clone(&timer));
    if workers == 0 {
        let mut batches = loader.epoch(0);
        while batches.next_batch().unwrap().is_some() {
            thread::sleep(consumer);
        }
    } else {
        thread::scope(|scope| {
            let mut ahead = loader.prefetch(scope, Ahead { depth: 2, workers });
            let mut batches = ahead.epoch(0);
            while batches.next_batch().unwrap().is_some() {
                thread::sleep(consumer);
            }
        });
    }
    timer.report()
}

#[test]
fn the_bottleneck_is_named() {
    const NONE: Duration = Duration::ZERO;
    check(PAUSE, NONE, NONE, 0, Bottleneck::Producer(Stage::Gather));
    check(PAUSE, NONE, NONE, 1, Bottleneck::Producer(Stage::Gather));
    check(NONE, PAUSE, NONE, 0, Bottleneck::Producer(Stage::Transform));
    check(NONE, PAUSE, NONE, 2, Bottleneck::Producer(Stage::Transform));
    check(NONE, NONE, PAUSE, 1, Bottleneck::Consumer);
}

#[test]
fn a_report_is_one_line() {
    let timer = StageTimer::default();
    let expected = "bottleneck: gather; batches are waited for (0 batches: gather 0.0ns, transform 0.0ns, workers waited 0.0ns for the \
                    consumer, the consumer 0.0ns for batches)";
    assert_eq!(timer.report().to_string(), expected);
}

#[track_caller]
fn check_timed_out(result: Result<Option<brisk_loader::Batch<'_>>, Error>, expected_stage: Stage) {
    match result {
        Err(Error::TimedOut { batch: 0, waited, stage }) => {
            assert!(waited >= PAUSE, "waited {waited:?}");
            assert_eq!(stage, Some(expected_stage), "the worker's stage");
        }
        other => panic!("expected a time-out, found {other:?}"),
    }
}

/// The gate is closed during one stage; then it opens, and nothing is lost.
#[track_caller]
fn check_gate(stage: Stage) {
    let (in_source, in_transform) = (Mutex::new(()), Mutex::new(()));
    let source = Before(numbered(30, 1), || drop(in_source.lock()));
    let map = |_: Row<'_>, _: Key, _: &mut [f32]| {
        drop(in_transform.lock());
        Ok::<(), Infallible>(())
    };
    let gate: &Mutex<()> = if stage == Stage::Gather { &in_source } else { &in_transform };
    let held: MutexGuard<'_, ()> = gate.lock().unwrap();
    let loader = Loader::new(&source, Batching::of(10)).unwrap().map_rows(1, map).unwrap();
    thread::scope(|scope| {
        let mut ahead = loader.prefetch(scope, Ahead { depth: 1, workers: 1 });
        let mut batches = ahead.epoch(0);
        // A worker must reach the stage first.
        while let Err(Error::TimedOut { stage: found, .. }) = batches.next_batch_within(PAUSE) {
            if found == Some(stage) {
                break;
            }
        }
        check_timed_out(batches.next_batch_within(PAUSE), stage);
        drop(held);
        for index in 0..3 {
            assert_eq!(batches.next_batch_within(Duration::from_secs(60)).unwrap().unwrap().index, index, "nothing is lost");
        }
        assert!(batches.next_batch_within(PAUSE).unwrap().is_none(), "the end");
    });
}

#[test]
fn a_stage_that_hangs_is_named() {
    check_gate(Stage::Gather);
    check_gate(Stage::Transform);
    let error = Error::TimedOut { batch: 7, waited: Duration::from_secs(5), stage: Some(Stage::Gather) };
    assert_eq!(error.to_string(), "batch 7 is not ready after 5s: its worker is at stage `gather`");
}
