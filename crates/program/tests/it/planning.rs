use brisk_program::kernels::{DType, Map, MapReduce, Reducer};
use brisk_program::{Error, Persistent, Program, Slice, planned_peak_bytes};

const N: usize = 256;
const BYTES: usize = 4 * N;

fn relu(program: &mut Program, x: Slice, y: Slice) {
    program.push(Map::unary(x.len(), |x| x.relu()), &[x, y]).expect("a well-formed step");
}

fn transients<const COUNT: usize>(program: &mut Program) -> [Slice; COUNT] {
    std::array::from_fn(|i| program.transient(format!("t{i}"), DType::F32, N))
}

fn chain(input: &Persistent, n: usize) -> Program {
    let mut program = Program::new("chain");
    let mut x = program.persistent(input);
    for i in 0..n {
        let y = program.transient(format!("t{i}"), DType::F32, N);
        relu(&mut program, x, y);
        x = y;
    }
    program
}

#[test]
fn a_chain_needs_two_slots() {
    let input = Persistent::new("input", DType::F32, N);
    for n in [2, 3, 10] {
        let plan = chain(&input, n).plan().expect("a chain is in order");
        assert_eq!(plan.transient_bytes(), 2 * BYTES, "a link and the next, of {n}");
        assert_eq!(plan.unshared_bytes(), n * BYTES, "each its own, of {n}");
        assert_eq!(plan.peak_bytes(), 3 * BYTES, "with the input");
    }
}

#[test]
fn what_is_read_last_is_kept() {
    // Like activations: the first is read again at the end, so it shares with none.
    let input = Persistent::new("input", DType::F32, N);
    let mut program = Program::new("skip");
    let x = program.persistent(&input);
    let [a, b, c, d] = transients(&mut program);
    relu(&mut program, x, a);
    relu(&mut program, a, b);
    relu(&mut program, b, c);
    program.push(Map::binary(N, |a, b| a + b), &[a, c, d]).expect("an add");
    assert_eq!(program.plan().expect("in order").transient_bytes(), 3 * BYTES, "a; b and d; c");
}

#[test]
fn the_small_lie_where_the_large_was() {
    let input = Persistent::new("input", DType::F32, 4 * N);
    let mut program = Program::new("one after the other");
    let x = program.persistent(&input);
    let small = program.transient("small", DType::F32, N);
    let middle = program.transient("middle", DType::F32, N);
    let large = program.transient("large", DType::F32, 4 * N);
    relu(&mut program, x.slice(0..N), small);
    relu(&mut program, small, middle);
    relu(&mut program, x, large);
    let plan = program.plan().expect("in order");
    assert_eq!(plan.transient_bytes(), 5 * BYTES, "large lies where small or middle was");
}

/// Four small transients, alive at once, in the place of an earlier one as large as all of them: no kernel writes one and reads
/// another.
#[test]
fn the_small_lie_beside_each_other() {
    let input = Persistent::new("input", DType::F32, 4 * N);
    let mut program = Program::new("beside");
    let x = program.persistent(&input);
    let [large, other] = ["large", "other"].map(|name| program.transient(name, DType::F32, 4 * N));
    relu(&mut program, x, large);
    relu(&mut program, large, other);
    let small: [Slice; 4] = transients(&mut program);
    for y in small {
        relu(&mut program, x.slice(0..N), y);
    }
    let y = program.persistent(&Persistent::new("y", DType::F32, N));
    for pair in [[0, 1], [2, 3]] {
        program.push(Map::binary(N, |a, b| a + b), &[small[pair[0]], small[pair[1]], y]).expect("an add");
    }
    let plan = program.plan().expect("in order");
    assert_eq!(
        (plan.transient_bytes(), plan.least_transient_bytes()),
        (8 * BYTES, 8 * BYTES),
        "the small are where the large was"
    );
}

/// A GPU binds a whole buffer for either reading or writing, so the transients that one kernel reads and writes are in two slots.
#[test]
fn what_one_kernel_reads_and_writes_lies_apart() {
    let input = Persistent::new("input", DType::F32, 4 * N);
    let mut program = Program::new("apart");
    let x = program.persistent(&input);
    let large = program.transient("large", DType::F32, 4 * N);
    relu(&mut program, x, large);
    let [a, b, c] = transients(&mut program);
    relu(&mut program, x.slice(0..N), a);
    relu(&mut program, a, b);
    program.push(Map::binary(N, |a, b| a + b), &[a, b, c]).expect("an add");
    let plan = program.plan().expect("in order");
    assert_eq!((plan.transient_bytes(), plan.least_transient_bytes()), (6 * BYTES, 4 * BYTES), "one where the large was");
}

#[test]
fn scratch_shares_too() {
    let input = Persistent::new("input", DType::F32, 128 * N);
    let mut program = Program::new("sums");
    let x = program.persistent(&input);
    let [a, b] = transients(&mut program);
    let sum = MapReduce::of(Reducer::Sum, &[128, N], &[0]);
    program.push(sum.clone(), &[x, a]).expect("a sum");
    let one = program.plan().expect("in order").transient_bytes();
    program.push(sum, &[x, b]).expect("a sum");
    assert_eq!(program.plan().expect("in order").transient_bytes(), one, "neither sum is read: all is shared");
}

#[test]
fn unused_buffers_take_no_room() {
    let mut program = Program::new("unused");
    let _ = transients::<4>(&mut program);
    assert_eq!(program.plan().expect("nothing is in order").peak_bytes(), 0, "no kernel names them");
}

#[test]
fn lengths_are_rounded_as_a_device_allocates() {
    let odd = Persistent::new("odd", DType::U8, 5);
    let mut program = Program::new("odd");
    program.persistent(&odd);
    assert_eq!((odd.len_bytes(), program.plan().expect("in order").persistent_bytes()), (5, 8), "whole words");
}

#[test]
fn read_before_write() {
    let mut program = Program::new("step");
    let [a, b, c] = transients(&mut program);
    let input = program.persistent(&Persistent::new("input", DType::F32, N));
    relu(&mut program, input, a);
    program.push(Map::binary(N, |a, b| a + b), &[a, b, c]).expect("recording does not look at order");
    let error = program.plan().expect_err("t1 was not written");
    for word in ["step", "`map`", "`t1`", "`x1`", "persistent"] {
        assert!(error.to_string().contains(word), "`{word}` is not in: {error}");
    }
    assert!(matches!(error, Error::ReadBeforeWrite { .. }), "{error:?}");
}

#[test]
fn part_of_a_buffer_is_read_before_it_is_written() {
    let read = |written: &[std::ops::Range<usize>], read: std::ops::Range<usize>| {
        let mut program = Program::new("step");
        let input = program.persistent(&Persistent::new("input", DType::F32, 8));
        let [x, y] = ["x", "y"].map(|name| program.transient(name, DType::F32, 8));
        let mut push = |from: Slice, to: Slice| {
            program.push(Map::unary(to.len(), |x| x), &[from, to]).expect("recording does not look at order");
        };
        for range in written {
            push(input.slice(0..range.len()), x.slice(range.clone()));
        }
        push(x.slice(read.clone()), y.slice(read));
        program.plan().map(|_| ())
    };
    let missing = |result| match result {
        Err(Error::ReadBeforeWrite { buffer, element, .. }) if buffer == "x" => element,
        other => panic!("x is not written: {other:?}"),
    };
    assert_eq!(missing(read(&[0..2, 2..4], 4..8)), 4);
    assert_eq!(missing(read(&[0..2, 2..4], 2..6)), 4);
    assert_eq!(missing(read(&[2..4, 6..8], 0..8)), 0);
    assert_eq!(missing(read(&[2..4, 6..8, 0..2], 0..8)), 4);
    assert_eq!(missing(read(&[0..2, 3..8], 1..8)), 2);
    assert_eq!(read(&[4..8, 0..2, 2..4], 0..8), Ok(()), "in any order");
    assert_eq!(read(&[2..6, 4..8, 1..7, 3..4], 1..8), Ok(()), "with overlaps");
    assert_eq!(read(&[0..2, 6..8], 6..8), Ok(()), "all that is read");
    assert_eq!(missing(read(&[], 2..4)), 2);
}

#[test]
fn in_place_needs_a_value() {
    let mut program = Program::new("step");
    let x = program.transient("x", DType::U32, 8);
    program.push(crate::toy::Bump { n: 8 }, &[x]).expect("recording does not look at order");
    assert!(matches!(program.plan(), Err(Error::ReadBeforeWrite { .. })), "an update in place reads");
}

#[test]
fn programs_side_by_side() {
    let shared = Persistent::new("shared", DType::F32, N);
    let (train, eval) = (chain(&shared, 3), chain(&shared, 2));
    let other = chain(&Persistent::new("other", DType::F32, N), 2);
    assert_eq!(planned_peak_bytes(&[&train, &eval]), Ok(5 * BYTES), "one shared buffer, two slots each");
    assert_eq!(planned_peak_bytes(&[&train, &eval, &other]), Ok(8 * BYTES), "and one of another");
    assert_eq!(planned_peak_bytes(&[]), Ok(0), "nothing");
}

#[test]
fn absurd_lengths_do_not_overflow() {
    let huge = Persistent::new("huge", DType::F32, usize::MAX / 2);
    let mut program = Program::new("huge");
    let x = program.persistent(&huge);
    let y = program.transient("y", DType::F32, N);
    relu(&mut program, x.slice(0..N), y);
    assert_eq!(program.plan().expect("in order").peak_bytes(), usize::MAX, "the sum saturates");
}

#[test]
fn a_plan_in_words() {
    let small = chain(&Persistent::new("input", DType::F32, N), 3).plan().expect("in order").to_string();
    assert_eq!(small, "peak 3.0 KiB: 1.0 persistent, 2.0 transient in 2 slots (at least 2.0, unshared 3.0)");
    let input = Persistent::new("input", DType::F32, 1 << 18);
    let mut program = Program::new("step");
    let x = program.persistent(&input);
    let y = program.transient("y", DType::F32, 1 << 18);
    relu(&mut program, x, y);
    let words = program.plan().expect("in order").to_string();
    assert_eq!(words, "peak 2.0 MiB: 1.0 persistent, 1.0 transient in 1 slots (at least 1.0, unshared 1.0)");
}
