//! Operations that are started and waited for later.

use brisk_replicate::{CommThread, Error, ReduceOp, Threads, ThreadsConfig};

/// The results of `n` replicas, each with a communication thread.
fn run<T: Send + 'static>(n: usize, replica: fn(CommThread) -> T) -> Vec<T> {
    let handles = Threads::group(ThreadsConfig::new(n));
    let threads: Vec<_> =
        handles.into_iter().map(|handle| std::thread::spawn(move || replica(CommThread::new(Box::new(handle))))).collect();
    threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
}

#[test]
fn waited_for_out_of_order() {
    let ends = run(3, |communication| {
        let rank = communication.rank();
        let [first, second, third] = [100, 1, 5000].map(|len| communication.all_reduce(vec![1.0_f32; len], ReduceOp::Sum));
        let gathered = communication.all_gather(vec![rank as u32], vec![0; 3]);
        assert_eq!(gathered.wait()?.0, [0, 1, 2]);
        assert_eq!(third.wait()?, [3.0; 5000]);
        assert_eq!(first.wait()?, [3.0; 100]);
        assert_eq!(second.wait()?, [3.0]);
        let (shard, input) = communication.reduce_scatter(vec![1_u32; 6], vec![0; 2], ReduceOp::Sum).wait()?;
        assert_eq!((shard, input), (vec![3, 3], vec![1; 6]));
        assert_eq!(communication.broadcast(vec![rank as u8], 2).wait()?, [2]);
        communication.barrier().wait()?;
        communication.finish()
    });
    assert_eq!(ends, [Ok(()), Ok(()), Ok(())]);
}

#[test]
fn a_failure_reaches_what_was_started() {
    let ends = run(2, |communication| {
        if communication.rank() == 1 {
            drop(communication.fail("it stopped"));
            return Ok(vec![]);
        }
        communication.all_reduce(vec![1.0_f32], ReduceOp::Sum).wait()
    });
    assert_eq!(ends, [Err(Error::PeerFailed { rank: 1, why: "it stopped".to_owned() }), Ok(vec![])]);
}

#[test]
fn leaving_without_finish_is_a_failure() {
    let ends = run(2, |communication| match communication.rank() {
        0 => communication.barrier().wait(),
        _ => Ok(()),
    });
    assert_eq!(ends[0], Err(Error::PeerFailed { rank: 1, why: "it left without `finish`".to_owned() }));
}

#[test]
fn a_panic_of_an_operation_is_a_failure_with_its_message() {
    let ends = run(2, |communication| {
        let started = match communication.rank() {
            0 => communication.start("this", |_| panic!("no {} today", 7)),
            _ => communication.barrier(),
        };
        [started.wait(), communication.barrier().wait(), communication.finish()]
    });
    let failed = || Err(Error::PeerFailed { rank: 0, why: "no 7 today".to_owned() });
    assert_eq!(ends, [[failed(), failed(), failed()], [failed(), failed(), failed()]], "on all ranks");
}

#[test]
fn a_thread_that_has_finished_takes_no_operations() {
    let communication = CommThread::new(Box::new(Threads::group(ThreadsConfig::new(1)).remove(0)));
    assert_eq!(communication.finish(), Ok(()));
    let late = communication.barrier().wait().expect_err("it has ended");
    assert_eq!(late.to_string(), "barrier: the communication thread has ended, because `finish` was called before");
    assert_eq!(communication.finish(), Err(Error::Closed { op: "finish" }));
    assert!(!late.restart_helps(), "it would be called again");
}
