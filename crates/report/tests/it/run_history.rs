use std::time::Duration;

use brisk_metrics::Scored;
use brisk_report::{BatchWait, EpochMetrics, Error, KernelTime, RunFacts, RunHistory};

fn metrics(epoch: usize, batch: usize, valid_loss: f64) -> EpochMetrics {
    EpochMetrics { epoch, batch, values: vec![("valid_loss".to_owned(), valid_loss), ("valid_auc".to_owned(), f64::NAN)] }
}

fn history() -> RunHistory {
    let validations = vec![metrics(1, 2, 0.5), metrics(1, 4, 0.25)];
    let warnings = vec!["the learning rate is high".to_owned()];
    let mut history = RunHistory { validations, best: Some((1, 2)), warnings, seconds: 1.5, ..RunHistory::default() };
    history.add_batches(4, &[0.9, 0.8, 0.7], &[0.1, 0.2, 0.3], &[]).expect("batches");
    history
}

#[test]
fn batches_after_a_checkpoint_are_replaced() {
    let mut history = history();
    history.add_batches(6, &[0.6, 0.5], &[0.4, 0.5], &[]).expect("batches");
    assert_eq!((history.first_batch, &history.losses[..]), (4, &[0.9, 0.8, 0.6, 0.5][..]), "from batch 6 on");
    assert_eq!(history.learning_rates, [0.1, 0.2, 0.4, 0.5], "the same");
}

/// The batches before a run resumed have none.
#[test]
fn waits_are_those_of_the_last_batches() {
    let wait = |ms| Some(BatchWait { time: Duration::from_millis(ms), rank: 1 });
    let mut history = history();
    history.add_batches(7, &[0.6, 0.5, 0.4], &[0.1; 3], &[wait(250), None, wait(500)]).expect("batches");
    assert!(history.waits[0] == 0.25 && history.waits[1].is_nan() && history.waits[2] == 0.5, "{:?}", history.waits);
    history.add_batches(9, &[0.3], &[0.1], &[wait(750)]).expect("batches");
    assert_eq!((history.losses.len(), history.waits.len(), history.waits[2]), (6, 3, 0.75), "the last is replaced");
    let facts = RunFacts { n_batches: 4, waited: Some("waited for rank 1".to_owned()), ..RunFacts::default() };
    let html = history.report(&facts).expect("a page").to_html();
    assert!(html.contains("Wait for the last replica") && html.contains("waited for rank 1"), "{html}");
}

#[test]
fn batches_are_not_shifted() {
    let mut history = history();
    let error = history.add_batches(7, &[0.5; 3], &[0.1], &[]).expect_err("one learning rate");
    assert!(matches!(error, Error::BatchCounts { n_losses: 3, n_rates: 1, n_waits: 0 }), "{error}");
    let error = history.add_batches(9, &[0.5], &[0.1], &[]).expect_err("batches 7 and 8 are missing");
    assert!(matches!(error, Error::BatchGap { last: 6, first: 9, .. }), "{error}");
    assert_eq!((history.losses.len(), history.learning_rates.len()), (3, 3), "unchanged");
    history.add_batches(2, &[0.5], &[0.1], &[]).expect("batches");
    assert_eq!((history.first_batch, &history.losses[..]), (2, &[0.5][..]), "all of the later ones are replaced");
}

#[test]
fn unknown_waits_are_nan() {
    let wait = Some(BatchWait { time: Duration::from_millis(250), rank: 1 });
    let mut history = history();
    history.add_batches(7, &[0.6; 2], &[0.1; 2], &[wait]).expect("batches");
    history.add_batches(9, &[0.6], &[0.1], &[]).expect("batches");
    assert_eq!((history.losses.len(), history.waits.len(), history.waits[0]), (6, 3, 0.25), "one for each of the last three");
    assert!(history.waits[1..].iter().all(|wait| wait.is_nan()), "{:?}", history.waits);
}

#[test]
fn a_history_parses_back() {
    let history = history();
    let found: RunHistory = history.to_json(2.5).parse().expect("what was written");
    assert!(found.validations[1].get("valid_auc").is_some_and(f64::is_nan), "JSON has no NaN");
    assert_eq!((found.first_batch, found.best, found.seconds), (4, Some((1, 2)), 2.5), "the numbers");
    assert_eq!((found.validations[0].get("valid_loss"), &found.warnings), (Some(0.5), &history.warnings), "the rest");
    for seconds in [f64::NAN, f64::INFINITY] {
        let found: RunHistory = history.to_json(seconds).parse().expect("what was written");
        assert_eq!(found.seconds.to_string(), seconds.to_string(), "JSON has no NaN");
    }
    for text in ["", "{}", "[1]", "{\"first_batch\": -1}"] {
        text.parse::<RunHistory>().expect_err(text);
    }
}

#[test]
fn a_page_has_what_is_known() {
    let history = history();
    let facts = RunFacts { n_batches: 4, ended: "stopped".to_owned(), device: "cpu".to_owned(), ..RunFacts::default() };
    let html = history.report(&facts).expect("a page").to_html();
    assert!(html.contains("1.75 epochs on cpu, stopped, shown from 1 on"), "the position: {html}");
    assert!(html.contains("<dt>Best epoch</dt><dd>0.5</dd>") && html.contains("the learning rate is high"), "{html}");
    assert!(!html.contains("Validation rows") && !html.contains("Profile"), "nothing is known of them");

    let kernel = KernelTime {
        kernel: "matmul".to_owned(),
        variant: "matmul_tiled".to_owned(),
        us: 12.25,
        n_calls: 1,
        gb_per_s: 3.0,
        gflop_per_s: 40.0,
        roofline_share: 0.5,
    };
    let last = metrics(2, 3, 0.125);
    let facts = RunFacts {
        watched: Some("valid_auc"),
        last: Some(&last),
        classification: Some(Scored::binary(&[-1.0, 1.0], &[0.0, 1.0])),
        kernels: &[kernel],
        ..facts
    };
    let html = history.report(&facts).expect("a page").to_html();
    for part in ["ROC curve", "Time per batch by kernel", "12.2 µs in 1 call, 3.0 GB/s, 40.0 GFLOP/s, 50 % of the roofline"] {
        assert!(html.contains(part), "{part}");
    }
    let refused = RunFacts { regression: Some(Scored::classes(&[1.0, 2.0], 2, &[0.5])), ..RunFacts::default() };
    history.report(&refused).expect_err("two predictions of one label");
}
