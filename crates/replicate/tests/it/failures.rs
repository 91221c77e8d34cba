//! What the other replicas see when one fails: an error that names it, and never a hang.

use std::time::Duration;

use brisk_replicate::{Collective, CollectiveExt, Error, ReduceOp, Threads, ThreadsConfig, run_replicas};

#[track_caller]
fn check_fails(n: usize, replica: impl Fn(&mut Threads) -> Result<(), Error> + Sync, expected: &Error) {
    let failed = run_replicas(n, replica).expect_err("a replica fails");
    assert_eq!(&failed, expected, "of {n} replicas");
}

fn sum_once(replica: &mut Threads) -> Result<(), Error> {
    replica.all_reduce(&mut [1.0_f32; 10], ReduceOp::Sum)
}

#[test]
fn a_panic() {
    let expected = Error::PeerFailed { rank: 2, why: "no 7 today".to_owned() };
    let replica = |replica: &mut Threads| {
        assert!(replica.rank() != 2, "no {} today", 7);
        sum_once(replica)
    };
    check_fails(4, replica, &expected);
    assert_eq!(expected.to_string(), "rank 2 failed: no 7 today; the run ends, start again from the last checkpoint");
}

#[test]
fn an_error_of_one_is_the_error_of_all() {
    let own = Error::Closed { op: "this" };
    let replica = |replica: &mut Threads| if replica.rank() == 1 { Err(Error::Closed { op: "this" }) } else { sum_once(replica) };
    check_fails(3, replica, &own);
}

#[test]
fn others_are_told_by_whom() {
    let seen = std::sync::Mutex::new(Vec::new());
    let result = run_replicas(3, |replica| {
        if replica.rank() == 0 {
            return Err(Error::Closed { op: "this" });
        }
        let ended = sum_once(replica);
        seen.lock().expect("no panic").push(ended.clone());
        ended
    });
    assert_eq!(result, Err(Error::Closed { op: "this" }));
    let told = Error::PeerFailed { rank: 0, why: Error::Closed { op: "this" }.to_string() };
    assert_eq!(*seen.lock().expect("no panic"), [Err(told.clone()), Err(told)]);
}

#[test]
fn a_dropped_handle() {
    let mut handles = Threads::group(ThreadsConfig::new(2));
    drop(handles.pop());
    let failed = handles[0].barrier();
    assert_eq!(failed, Err(Error::PeerFailed { rank: 1, why: "it left without `finish`".to_owned() }));
    assert_eq!(handles[0].barrier(), failed, "the group stays dead");
}

#[test]
fn calls_that_differ() {
    let by_length = |replica: &mut Threads| replica.all_reduce(&mut vec![1.0_f32; 10 + replica.rank() / 2], ReduceOp::Sum);
    let text = run_replicas(4, by_length).expect_err("lengths differ").to_string();
    assert!(
        text.starts_with("rank 0 called all_reduce(10 F32, Sum) where rank 2 called all_reduce(11 F32, Sum): every rank"),
        "{text}"
    );

    let by_type = |replica: &mut Threads| match replica.rank() {
        0 => replica.broadcast(&mut [1.0_f32; 4], 0),
        _ => replica.broadcast(&mut [1_u32; 4], 0),
    };
    let text = run_replicas(2, by_type).expect_err("types differ").to_string();
    assert!(text.starts_with("rank 0 called broadcast(4 F32, root 0) where rank 1 called broadcast(4 U32, root 0)"), "{text}");

    let by_operation = |replica: &mut Threads| if replica.rank() == 0 { replica.barrier() } else { sum_once(replica) };
    let text = run_replicas(2, by_operation).expect_err("operations differ").to_string();
    assert!(text.starts_with("rank 0 called barrier() where rank 1 called all_reduce(10 F32, Sum)"), "{text}");
}

#[test]
fn one_that_returns_early() {
    let replica = |replica: &mut Threads| if replica.rank() == 0 { Ok(()) } else { sum_once(replica) };
    let text = run_replicas(2, replica).expect_err("rank 0 has not called it").to_string();
    assert!(text.starts_with("rank 0 has returned where rank 1 called all_reduce(10 F32, Sum): every rank"), "{text}");
}

#[test]
fn what_differs_is_not_touched() {
    let result = run_replicas(2, |replica| {
        let mut values = vec![1.0_f32; 10 + replica.rank()];
        let ended = replica.all_reduce(&mut values, ReduceOp::Sum);
        assert!(matches!(ended, Err(Error::Mismatch { .. })), "{ended:?}");
        assert!(values.iter().all(|&value| value == 1.0), "{values:?}");
        ended
    });
    assert!(matches!(result, Err(Error::Mismatch { .. })), "{result:?}");
}

#[test]
fn one_that_does_not_come() {
    let config = ThreadsConfig { timeout: Duration::from_millis(50), ..ThreadsConfig::new(3) };
    let mut handles = Threads::group(config);
    let late = handles.remove(1);
    let ends: Vec<_> = std::thread::scope(|scope| {
        let waiting: Vec<_> = handles.iter_mut().map(|handle| scope.spawn(|| handle.barrier())).collect();
        waiting.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let timeout = Error::Timeout { op: "barrier", missing: vec![1], waited: Duration::from_millis(50) };
    let said = "barrier: waited 50ms for rank 1, which did not respond in time; restart the run from the last checkpoint";
    assert_eq!(timeout.to_string(), said);
    assert_eq!(ends, [Err(timeout.clone()), Err(timeout)]);
    drop(late);
}

#[test]
fn what_cannot_be_is_refused_before_anybody_is_asked() {
    let mut alone = Threads::group(ThreadsConfig::new(1)).remove(0);
    let length = alone.all_gather(&[1.0_f32; 3], &mut [0.0; 4]).expect_err("3 is not 4").to_string();
    assert_eq!(
        length,
        "all_gather on rank 0: `output` has 4 elements, expected 3: the length of a shard times the number of ranks"
    );
    let root = alone.broadcast(&mut [1_u8], 1).expect_err("there is no rank 1").to_string();
    assert_eq!(root, "broadcast on rank 0: root 1 of a world of 1; ranks count from 0 to world_size - 1");
    let mean = alone.all_reduce(&mut [1_u32], ReduceOp::Mean).expect_err("a mean of whole numbers").to_string();
    assert_eq!(mean, "all_reduce on rank 0: Mean of U32 is not defined; reduce floats, or use a sum");
    assert_eq!(alone.all_reduce(&mut [1_u32], ReduceOp::Sum), Ok(()), "the group can go on");
    assert_eq!(Box::new(alone).finish(), Ok(()));
}

#[test]
fn starting_again_helps_where_a_rank_was_lost() {
    let lost = run_replicas(2, |replica| if replica.rank() == 1 { panic!("on purpose") } else { sum_once(replica) });
    assert!(lost.expect_err("a replica panics").restart_helps(), "the panic may have been a device that went away");
    let different = run_replicas(2, |replica| replica.all_reduce(&mut vec![1.0_f32; replica.rank()], ReduceOp::Sum));
    assert!(!different.expect_err("lengths differ").restart_helps(), "they will differ the next time");
}
