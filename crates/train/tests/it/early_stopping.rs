use brisk_train::StopReason::{DivergenceThreshold, NonFiniteMetric, PatienceExhausted, StoppingThreshold};
use brisk_train::metrics::Direction;
use brisk_train::{EarlyStopping, EarlyStoppingState, Error, StopReason};

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

/// Checks that the last value stops with `expected`, or that no value stops.
#[track_caller]
fn check(early_stopping: EarlyStopping, values: &[f64], expected: Option<StopReason>) -> EarlyStopping {
    let mut early_stopping = early_stopping;
    for (index, &value) in values.iter().enumerate() {
        let is_last = index + 1 == values.len();
        let reason = early_stopping.check(value);
        assert_eq!(reason, expected.filter(|_| is_last), "check {index}, of {value}, in {early_stopping:?}");
    }
    assert_eq!(early_stopping.state.stopped, expected, "what the state remembers");
    early_stopping
}

fn min() -> EarlyStopping {
    EarlyStopping::new(Direction::Minimize)
}

fn max() -> EarlyStopping {
    EarlyStopping::new(Direction::Maximize)
}

#[test]
fn patience_counts_checks_in_a_row() {
    check(min(), &[1.0, 1.0, 1.0, 1.0], Some(PatienceExhausted));
    check(min(), &[1.0, 2.0, 2.0, 0.9, 2.0, 2.0], None);
    check(max(), &[1.0, 0.9, 1.0, 0.8], Some(PatienceExhausted));
    check(max(), &[0.1, 0.2, 0.3, 0.4, 0.5], None);
}

#[test]
fn patience_zero_and_one_stop_at_the_first_check_without_improvement() {
    for patience in [0, 1] {
        check(EarlyStopping { patience, ..min() }, &[3.0, 2.0, 1.0, 1.0], Some(PatienceExhausted));
        check(EarlyStopping { patience, ..max() }, &[1.0, 0.5], Some(PatienceExhausted));
    }
}

#[test]
fn a_change_of_exactly_min_delta_is_none() {
    for min_delta in [0.25, -0.25] {
        let once = |mode| EarlyStopping { min_delta, patience: 1, ..EarlyStopping::new(mode) };
        check(once(Direction::Minimize), &[1.0, 0.75], Some(PatienceExhausted));
        check(once(Direction::Minimize), &[1.0, 0.7499], None);
        check(once(Direction::Maximize), &[1.0, 1.25], Some(PatienceExhausted));
        check(once(Direction::Maximize), &[1.0, 1.2501], None);
    }
}

#[test]
fn many_small_changes_add_up() {
    let early_stopping = check(EarlyStopping { min_delta: 0.25, ..min() }, &[1.0, 0.875, 0.75, 0.625], None);
    assert_eq!(
        (early_stopping.state.best, early_stopping.state.wait_count),
        (Some(0.625), 0),
        "measured from the best, not the last"
    );
}

#[test]
fn thresholds_are_strict() {
    let threshold = |mode| EarlyStopping { stopping_threshold: Some(0.5), ..EarlyStopping::new(mode) };
    check(threshold(Direction::Minimize), &[0.6, 0.5], None);
    check(threshold(Direction::Minimize), &[0.6, 0.4999], Some(StoppingThreshold));
    check(threshold(Direction::Maximize), &[0.4, 0.5], None);
    check(threshold(Direction::Maximize), &[0.4, 0.5001], Some(StoppingThreshold));
    let threshold = |mode| EarlyStopping { divergence_threshold: Some(0.5), ..EarlyStopping::new(mode) };
    check(threshold(Direction::Minimize), &[0.4, 0.5], None);
    check(threshold(Direction::Minimize), &[0.4, 0.5001], Some(DivergenceThreshold));
    check(threshold(Direction::Maximize), &[0.6, 0.5], None);
    check(threshold(Direction::Maximize), &[0.6, 0.4999], Some(DivergenceThreshold));
}

#[test]
fn a_metric_that_is_not_finite_stops() {
    for value in [NAN, INF, -INF] {
        check(min(), &[1.0, value], Some(NonFiniteMetric));
        check(max(), &[value], Some(NonFiniteMetric));
    }
}

#[test]
fn unchecked_a_metric_that_is_not_finite_is_no_improvement() {
    let unchecked = EarlyStopping { check_finite: false, patience: 2, ..min() };
    check(unchecked.clone(), &[1.0, NAN, INF], Some(PatienceExhausted));
    check(unchecked.clone(), &[NAN, 1.0, NAN, 0.5], None);
    let thresholds = EarlyStopping { stopping_threshold: Some(0.0), divergence_threshold: Some(9.0), ..unchecked };
    check(thresholds.clone(), &[NAN, NAN], Some(PatienceExhausted));
    check(thresholds.clone(), &[-INF], Some(StoppingThreshold));
    check(thresholds, &[INF], Some(DivergenceThreshold));
}

#[test]
fn the_checks_come_in_order() {
    // -1 meets all conditions at once.
    let all = EarlyStopping { stopping_threshold: Some(0.0), divergence_threshold: Some(-2.0), patience: 1, ..min() };
    check(all.clone(), &[-1.0], Some(StoppingThreshold));
    check(all.clone(), &[-INF], Some(NonFiniteMetric));
    let diverging = EarlyStopping { stopping_threshold: None, ..all };
    check(diverging, &[-1.0], Some(DivergenceThreshold));
}

#[test]
fn only_the_last_check_touches_best_and_count() {
    let thresholds = EarlyStopping { stopping_threshold: Some(0.0), divergence_threshold: Some(9.0), ..min() };
    for value in [NAN, -1.0, 10.0] {
        let mut early_stopping = check(thresholds.clone(), &[1.0, 2.0], None);
        early_stopping.check(value);
        assert_eq!((early_stopping.state.best, early_stopping.state.wait_count), (Some(1.0), 1), "after {value}");
    }
}

#[test]
fn a_resumed_run_stops_where_the_other_would_have() {
    let values = [0.9, 0.7, 0.8, 0.71, 0.7000001];
    for cut in 0..values.len() {
        let before = check(min(), &values[..cut], None);
        let state: EarlyStoppingState = before.state.to_string().parse().expect("its own text");
        assert_eq!(state, before.state, "{state}");
        check(EarlyStopping { state, ..min() }, &values[cut..], Some(PatienceExhausted));
    }
}

#[test]
fn a_state_is_read_back_to_the_bit() {
    for best in [None, Some(0.1), Some(1.0 / 3.0), Some(5e-324), Some(f64::MAX), Some(INF), Some(-INF), Some(-0.0)] {
        for stopped in [None, Some(NonFiniteMetric), Some(StoppingThreshold), Some(DivergenceThreshold), Some(PatienceExhausted)]
        {
            let state = EarlyStoppingState { wait_count: 7, best, stopped };
            let read: EarlyStoppingState = state.to_string().parse().expect("its own text");
            assert_eq!((read.best.map(f64::to_bits), read), (best.map(f64::to_bits), state), "{state}");
        }
    }
    for text in ["", "wait_count=1", "wait_count=1 best=x stopped=no", "wait_count=1 best=1 stopped=no more"] {
        let error = text.parse::<EarlyStoppingState>();
        assert!(matches!(error, Err(Error::Setting { name: "early stopping state", .. })), "{text:?}: {error:?}");
    }
}

#[test]
fn reasons_are_explained() {
    let early_stopping = check(EarlyStopping { patience: 2, ..max() }, &[0.81, 0.8, 0.8], Some(PatienceExhausted));
    let sentence = early_stopping.explain(PatienceExhausted, "auc", 0.8);
    assert_eq!(sentence, "auc has not risen above 0.81 in 2 checks in a row", "patience");
    let sentence = early_stopping.explain(NonFiniteMetric, "auc", NAN);
    assert_eq!(sentence, "auc is NaN, no longer a finite number; the best was 0.81", "not finite");
}
