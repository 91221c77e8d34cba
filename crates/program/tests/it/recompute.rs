use brisk_program::kernels::{DType, Map};
use brisk_program::{Device, Persistent, Program, Slice};

use crate::random::Random;
use crate::toy::Bump;

const N: usize = 256;
const BYTES: usize = 4 * N;

fn tanh(program: &mut Program, x: Slice) -> Slice {
    let y = program.transient("tanh", DType::F32, N);
    program.push(Map::unary(N, |x| x.tanh()), &[x, y]).expect("a well-formed step");
    y
}

fn add(program: &mut Program, a: Slice, b: Slice) -> Slice {
    let y = program.transient("sum", DType::F32, N);
    program.push(Map::binary(N, |a, b| a + b), &[a, b, y]).expect("a well-formed step");
    y
}

/// Eight links, then all of them added up from the last, as a backward pass reads activations. Links in `segments` are computed
/// again.
fn chain(x: &Persistent, y: &Persistent, segments: &[std::ops::Range<usize>]) -> Program {
    let mut program = Program::new("chain");
    let mut links = vec![program.persistent(x)];
    for i in 0..8 {
        links.push(tanh(&mut program, links[i]));
    }
    let mut segments: Vec<_> = segments.iter().map(|kernels| program.segment(kernels.clone())).collect();
    let mut sum = links[8];
    for &link in links[1..8].iter().rev() {
        let link = segments.iter_mut().fold(link, |link, segment| program.recomputed(segment, link));
        sum = add(&mut program, sum, link);
    }
    let y = program.persistent(y);
    program.push(Map::unary(N, |x| x), &[sum, y]).expect("a well-formed step");
    program
}

#[test]
fn segments_take_less_memory_and_give_the_same_bits() {
    let [x, y] = ["x", "y"].map(|name| Persistent::new(name, DType::F32, N));
    let device = Device::cpu().expect("the cpu is there");
    let run = |segments: &[std::ops::Range<usize>]| {
        let program = chain(&x, &y, segments);
        device.write(&x, &Random::new(1).floats(N)).expect("it fits");
        device.compile(&program).expect("it compiles").run(2).expect("it runs");
        let values: Vec<f32> = device.read(&y).expect("a buffer");
        (values, program.plan().expect("in order").transient_bytes(), program.n_kernels())
    };
    let (plain, plain_bytes, plain_kernels) = run(&[]);
    let (again, again_bytes, again_kernels) = run(&[0..4, 4..8]);
    assert_eq!(plain.iter().map(|v| v.to_bits()).collect::<Vec<_>>(), again.iter().map(|v| v.to_bits()).collect::<Vec<_>>());
    // Links 1 to 3 of the first segment, whose fourth the second starts from, and 5 to 7 of the second, whose last is read at
    // once.
    assert_eq!(again_kernels, plain_kernels + 6);
    assert_eq!(plain_bytes, 9 * BYTES, "all links, and a sum");
    assert!(again_bytes <= 6 * BYTES, "the fourth link, a segment's three, two sums; planned were {again_bytes} bytes");
}

#[test]
fn only_what_is_read_is_computed_again_and_once() {
    let x = Persistent::new("x", DType::F32, N);
    let mut program = Program::new("branches");
    let x = program.persistent(&x);
    let a = tanh(&mut program, x);
    let b = tanh(&mut program, a);
    let other = tanh(&mut program, a);
    let mut segment = program.segment(0..3);
    let b_again = program.recomputed(&mut segment, b);
    assert_eq!(program.n_kernels(), 5, "a, then b");
    assert_eq!(program.recomputed(&mut segment, b), b_again);
    assert_eq!(program.recomputed(&mut segment, b.slice(0..64)), b_again.slice(0..64), "a part of it");
    assert_eq!(program.n_kernels(), 5, "it has been recomputed already");
    assert_ne!(program.recomputed(&mut segment, other), other);
    assert_eq!(program.n_kernels(), 6, "a has been recomputed already");
    assert_eq!(program.recomputed(&mut segment, x), x, "it is not of the segment");
}

#[test]
fn what_cannot_run_twice_is_kept() {
    let counter = Persistent::new("counter", DType::U32, N);
    let y = Persistent::new("y", DType::F32, N);
    let mut program = Program::new("effects");
    let counter = program.persistent(&counter);
    program.push(Bump { n: N }, &[counter]).expect("a well-formed step");
    let y = program.persistent(&y);
    let a = tanh(&mut program, y);
    let b = tanh(&mut program, a);
    program.push(Map::unary(N, |x| x.relu()), &[b, y]).expect("a well-formed step");
    let mut segment = program.segment(0..4);
    assert_eq!(program.recomputed(&mut segment, counter), counter, "it outlives the run");
    assert_eq!(program.recomputed(&mut segment, y), y, "likewise");
    assert_eq!(program.recomputed(&mut segment, a), a, "its input has changed since");
    assert_ne!(program.recomputed(&mut segment, b), b, "of a, which is kept");
    assert_eq!(program.n_kernels(), 5);
}
