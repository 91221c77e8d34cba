//! Ranks that differ: the first operation reports the difference, and the exit status is that of an error that a restart does not
//! fix.

use super::run;

#[track_caller]
fn check(case: &str, said: &str) {
    let ended = run(3, case);
    assert_eq!(ended.status, Some(1), "{}", ended.stderr);
    // The first rank that reports it ends the others, which would report the same.
    let told = (0..3).any(|rank| ended.stderr.contains(&format!("error on rank {rank}: {said}")));
    assert!(told, "{}", ended.stderr);
}

#[test]
fn a_length() {
    check(
        "length",
        "rank 0 called all_reduce(10 F32, Sum) where rank 2 called all_reduce(11 F32, Sum): every rank must make the same calls",
    );
}

#[test]
fn a_type() {
    check("type", "rank 0 called broadcast(4 F32, root 0) where rank 2 called broadcast(4 U32, root 0): every rank");
}

#[test]
fn the_order_of_calls() {
    check("order", "rank 0 called barrier() where rank 2 called all_reduce(4 F32, Sum): every rank");
}

#[test]
fn few_values_and_many() {
    let ended = run(3, "few-and-many");
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    let pairs = [
        ["all_reduce(4096 F32, Sum)", "all_reduce(4097 F32, Sum)"],
        ["all_reduce(7 U8, Max)", "all_reduce(100000 U32, Max)"],
        ["all_gather(1 F32)", "broadcast(4097 F32, root 0)"],
        ["barrier()", "reduce_scatter(6000 F32, Sum)"],
    ];
    let said = |[few, many]: [&str; 2]| format!("{few} and {many}");
    // First the last rank sends few, then the others do.
    let expected: Vec<String> = pairs.map(|[few, many]| said([many, few])).into_iter().chain(pairs.map(said)).collect();
    assert_eq!(ended.stdout.lines().collect::<Vec<_>>(), expected);
}

#[test]
fn the_shape_of_a_parameter() {
    check("shape", "`layers.0.weight` differs between rank 0 and rank 2: [256, 28] f32 against [300, 28] f32; start all ranks");
}

#[test]
fn the_version_that_they_were_built_with() {
    let version = env!("CARGO_PKG_VERSION");
    check(
        "version",
        &format!("`the version of brisk-replicate` differs between rank 0 and rank 2: {version} against 0.0.1; start all ranks"),
    );
}

#[test]
fn an_unknown_case_is_refused_before_mpi_starts() {
    let ended = run(2, "nonsense");
    assert_eq!(ended.status, Some(2), "{}", ended.stderr);
    assert!(ended.stderr.contains("error: unrecognized subcommand 'nonsense'"), "{}", ended.stderr);
}
