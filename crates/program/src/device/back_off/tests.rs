use super::{Attempts, with_back_off};

/// Fails `n_failures` times, and compares the result and the pauses in ms.
#[track_caller]
fn check(n_attempts: u32, n_failures: u32, expected: Result<u32, String>, failed: &[&str], pauses_ms: &[u128]) {
    let mut n_calls = 0;
    let mut pauses = Vec::new();
    let (found, told) = with_back_off(
        Attempts(n_attempts),
        |pause| pauses.push(pause.as_millis()),
        || {
            n_calls += 1;
            if n_calls > n_failures { Ok(n_calls) } else { Err(format!("busy {n_calls}")) }
        },
    );
    assert_eq!(found, expected, "the last attempt");
    assert_eq!((told, pauses), (failed.iter().map(ToString::to_string).collect(), pauses_ms.to_vec()), "errors and pauses");
}

#[test]
fn attempts() {
    check(5, 0, Ok(1), &[], &[]);
    check(1, 0, Ok(1), &[], &[]);
    check(5, 2, Ok(3), &["busy 1", "busy 2"], &[50, 100]);
    check(3, 2, Ok(3), &["busy 1", "busy 2"], &[50, 100]);
    check(3, 9, Err("busy 3".to_owned()), &["busy 1", "busy 2"], &[50, 100]);
    check(1, 9, Err("busy 1".to_owned()), &[], &[]);
}

#[test]
fn pauses_stay_below_five_seconds() {
    let mut longest = std::time::Duration::ZERO;
    let (result, failed) = with_back_off(Attempts(40), |pause| longest = longest.max(pause), || Err::<(), _>("busy"));
    assert_eq!((result, failed.len(), longest.as_secs()), (Err("busy"), 39, 5));
}
