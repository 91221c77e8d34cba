use brisk_program::kernels::{self, DType, Epilogue, Map, Matmul, StoreRows, Transpose};
use brisk_program::{Error, Persistent, Program};

use crate::toy::{BROKEN_LEN, Broken};

/// The message has each of these words, and nothing has been recorded.
#[track_caller]
fn check(pushed: Result<(), Error>, program: &Program, words: &[&str]) -> Error {
    let error = pushed.expect_err("the push is refused");
    let message = error.to_string();
    for word in words {
        assert!(message.contains(word), "`{word}` is not in: {message}");
    }
    assert_eq!(program.n_kernels(), 0, "nothing is recorded on an error");
    error
}

#[test]
fn wrong_number_of_slices() {
    let mut program = Program::new("step");
    let x = program.transient("x", DType::F32, 8);
    let pushed = program.push(Map::binary(8, |a, b| a + b), &[x, x]);
    let error = check(pushed, &program, &["step", "`map`", "takes 3", "got 2", "x0, x1, y0", "give"]);
    assert!(matches!(error, Error::ArgCount { expected: 3, found: 2, .. }), "{error:?}");
}

#[test]
fn scratch_is_not_given() {
    let mut program = Program::new("step");
    let x = program.transient("x", DType::F32, 8);
    let y = program.transient("y", DType::F32, 4);
    let sum = kernels::MapReduce::of(kernels::Reducer::Sum, &[2, 4], &[0]);
    let pushed = program.push(sum.clone(), &[x, y, y]);
    check(pushed, &program, &["takes 2", "got 3", "x0, y"]);
    program.push(sum, &[x, y]).expect("two slices are right");
}

#[test]
fn wrong_length() {
    let mut program = Program::new("step");
    let [a, b] = ["a", "b"].map(|name| program.transient(name, DType::F32, 8));
    let y = program.transient("result", DType::F32, 9);
    let pushed = program.push(Map::binary(8, |a, b| a + b), &[a, b, y]);
    let error = check(pushed, &program, &["step", "`map`", "wants 8 F32", "`y0`", "got 9 F32", "`result`", "give a slice"]);
    assert!(matches!(error, Error::Arg { expected_len: 8, found_len: 9, .. }), "{error:?}");
    program.push(Map::binary(8, |a, b| a + b), &[a, b, y.slice(0..8)]).expect("eight of the nine will do");
}

#[test]
fn wrong_dtype() {
    let mut program = Program::new("step");
    let [a, b] = ["a", "b"].map(|name| program.transient(name, DType::F32, 8));
    let y = program.transient("result", DType::U32, 8);
    let pushed = program.push(Map::binary(8, |a, b| a + b), &[a, b, y]);
    check(pushed, &program, &["wants 8 F32", "got 8 U32", "`result`"]);
}

#[test]
fn empty_slice() {
    let mut program = Program::new("step");
    let x = program.transient("x", DType::F32, 8);
    let pushed = program.push(Map::binary(8, |a, b| a + b), &[x, x, x.slice(3..3)]);
    check(pushed, &program, &["wants 8 F32", "got 0 F32"]);
}

#[test]
fn argument_of_nothing() {
    let mut program = Program::new("step");
    let x = program.transient("x", DType::U32, 8);
    let pushed = program.push(Broken::Nothing, &[x.slice(0..0)]);
    let error = check(pushed, &program, &["step", "`broken`", "`x`", "leave"]);
    assert!(matches!(error, Error::EmptyArg { .. }), "{error:?}");
}

#[test]
fn argument_whose_sizes_overflow() {
    let mut program = Program::new("step");
    let x = program.transient("x", DType::U32, 8);
    check(program.push(Broken::Overflow, &[x]), &program, &["broken: x is 18446744073709551615", "memory can hold"]);
    let product =
        Matmul { n_batch: 1, m: usize::MAX, n: 3, k: usize::MAX / 2, transpose: Transpose::None, epilogue: Epilogue::none() };
    check(program.push(product, &[x, x, x]), &program, &["matmul: m is 18446744073709551615, expected 1 to 2^32 - 1"]);
}

#[test]
fn written_buffer_given_twice() {
    let mut program = Program::new("step");
    let [a, b] = ["first", "second"].map(|name| program.transient(name, DType::F32, 8));
    for args in [[a, b, a], [b, a, a]] {
        let pushed = program.push(Map::binary(8, |a, b| a + b), &args);
        let error = check(pushed, &program, &["step", "`map`", "`first`", "`y0`", "use another buffer"]);
        assert!(matches!(error, Error::Alias { .. }), "{error:?}");
    }
    // Slices that do not overlap still belong to the same buffer.
    let pushed = program.push(Map::binary(4, |a, b| a + b), &[a.slice(0..4), b.slice(0..4), a.slice(4..8)]);
    check(pushed, &program, &["`first`"]);
    program.push(Map::binary(8, |a, b| a + b), &[a, a, b]).expect("a buffer may be read twice");
}

#[test]
fn slice_of_another_program() {
    let mut other = Program::new("other");
    let foreign = other.transient("x", DType::F32, 8);
    let mut program = Program::new("step");
    let x = program.transient("x", DType::F32, 8);
    let pushed = program.push(Map::binary(8, |a, b| a + b), &[x, foreign, x]);
    let error = check(pushed, &program, &["step", "`map`", "`x1`", "another program", "`Persistent`"]);
    assert!(matches!(error, Error::ForeignSlice { .. }), "{error:?}");
}

#[test]
fn kernels_own_check() {
    let mut program = Program::new("step");
    let x = program.transient("x", DType::U32, BROKEN_LEN);
    let pushed = program.push(Broken::Refuses, &[x]);
    let error = check(pushed, &program, &["broken", "n is 7", "an even number"]);
    assert!(matches!(error, Error::Kernel(kernels::Error::Size { .. })), "{error:?}");
}

#[test]
fn scratch_before_an_argument() {
    let mut program = Program::new("step");
    let x = program.transient("x", DType::U32, BROKEN_LEN);
    let pushed = program.push(Broken::ScratchFirst, &[x]);
    let error = check(pushed, &program, &["step", "`broken`", "`x`", "scratch comes last"]);
    assert!(matches!(error, Error::ScratchOrder { .. }), "{error:?}");
}

#[test]
#[should_panic(expected = "6..9 of a slice of 8 elements")]
fn slice_beyond_the_end() {
    let mut program = Program::new("step");
    let _ = program.transient("x", DType::F32, 8).slice(6..9);
}

#[test]
fn slices_of_slices() {
    let mut program = Program::new("step");
    let x = program.transient("x", DType::F32, 100);
    assert_eq!(x.slice(10..50).slice(5..10), x.slice(15..20), "ranges are relative to the slice");
    assert!(x.slice(7..7).is_empty() && x.slice(100..100).is_empty(), "empty at any place");
}

#[test]
fn a_persistent_bound_twice_is_one_slice() {
    let weights = Persistent::new("weights", DType::F32, 8);
    let mut program = Program::new("step");
    let first = program.persistent(&weights);
    assert_eq!(first, program.persistent(&weights.clone()), "clones are the same buffer");
    assert_ne!(first, program.persistent(&Persistent::new("weights", DType::F32, 8)), "a name is only a name");
}

#[test]
fn what_a_program_tells_of_itself() {
    let mut program = Program::new("step");
    let [a, b] = ["a", "b"].map(|name| program.transient(name, DType::F32, 8));
    let state = Persistent::new("state", DType::U32, kernels::STATE_LEN);
    let state = program.persistent(&state);
    let losses = program.transient("losses", DType::F32, 80);
    program.push(Map::binary(8, |a, b| a + b), &[a, a, b]).expect("an add");
    program.push(StoreRows { n: 1, n_cols: 8, n_total: 10 }, &[b, state, losses]).expect("a store");
    assert_eq!((program.name(), program.n_kernels()), ("step", 2), "name and length");
    assert_eq!(program.kernel_names().collect::<Vec<_>>(), ["map", "store_rows"], "names in order");
    let add = kernels::Kernel::cost(&Map::binary(8, |a, b| a + b));
    let store = kernels::Kernel::cost(&StoreRows { n: 1, n_cols: 8, n_total: 10 });
    assert_eq!(program.cost(), kernels::Cost { flops: add.flops + store.flops, bytes: add.bytes + store.bytes }, "the sum");
}
