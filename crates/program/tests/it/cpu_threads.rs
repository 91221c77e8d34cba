use std::sync::Barrier;
use std::thread;

use brisk_program::kernels::DType;
use brisk_program::{Device, Executable, Persistent, Program, Selection};

use crate::gpu::devices;
use crate::mlp::{Mlp, Sizes};
use crate::toy::{Bump, Mix};

fn cpu(n_threads: usize) -> Device {
    Device::builder().selection(Selection::Cpu).threads(n_threads).open().expect("threads can be started")
}

#[test]
fn the_same_bits_for_any_number_of_threads() {
    let mlp = Mlp::new(Sizes { n_rows: 300, n_inputs: 28, n_hidden: 130, n_steps: 12 }).expect("it is well formed");
    let (weights, losses) = mlp.train(&cpu(1), 12).expect("it trains");
    assert!(losses[11] < losses[0], "it learns: {losses:?}");
    for n_threads in [2, 3, 7] {
        let (others, other_losses) = mlp.train(&cpu(n_threads), 12).expect("it trains");
        let bits = |values: &[f32]| values.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
        assert!(bits(&others) == bits(&weights), "weights differ with {n_threads} threads");
        assert_eq!(bits(&other_losses), bits(&losses), "losses with {n_threads} threads");
    }
}

#[test]
fn large_buffers_are_read_by_several_threads_also_from_a_pool() {
    let device = cpu(3);
    let values: Vec<u32> = (0..9_000_001).collect();
    let buffer = Persistent::new("large", DType::U32, values.len());
    device.write(&buffer, &values).expect("there is room");
    assert!(device.read::<u32>(&buffer).expect("it was written") == values);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads can be started");
    let read = || {
        let mut found = vec![0; values.len()];
        device.read_into(&buffer, &mut found).map(|()| found)
    };
    let (first, second) = pool.install(|| rayon::join(read, read));
    assert!(first.expect("it was written") == values && second.expect("it was written") == values);
}

/// Two programs that use the same buffers in opposite order.
fn crossing(x: &Persistent, y: &Persistent) -> [Program; 2] {
    [[x, y], [y, x]].map(|[first, second]| {
        let mut program = Program::new("crossing");
        let (first, second) = (program.persistent(first), program.persistent(second));
        let mixed = program.transient("mixed", DType::U32, 64);
        program.push(Mix { n: 64, salt: 3 }, &[first, second, mixed]).expect("a mix");
        program.push(Bump { n: 64 }, &[first]).expect("a bump");
        program.push(Bump { n: 64 }, &[second]).expect("a bump");
        program
    })
}

#[test]
fn shared_buffers_from_two_threads() {
    for device in devices() {
        let [x, y] = ["x", "y"].map(|name| Persistent::new(name, DType::U32, 64));
        let executables = crossing(&x, &y).map(|program| device.compile(&program).expect("it compiles"));
        let n_runs = if device.info().kind.executor() == "cpu" { 500 } else { 20 };
        let start = Barrier::new(2);
        let drive = |executable: &Executable| {
            start.wait();
            for _ in 0..n_runs {
                executable.run(2).expect("it runs");
                assert_eq!(device.read::<u32>(&x).expect("x").len(), 64, "read meanwhile");
            }
        };
        thread::scope(|scope| executables.iter().for_each(|executable| drop(scope.spawn(|| drive(executable)))));
        let bumped = (0..4 * n_runs).fold(0_u32, |x, _| x.wrapping_mul(5).wrapping_add(1));
        assert_eq!(device.read::<u32>(&y).expect("y"), [bumped; 64], "every bump of both, on {}", device.info());
    }
}

/// A rayon worker that waits takes up other jobs of its pool, and here each of those is a run on the same device.
#[test]
fn runs_from_within_a_rayon_pool() {
    let device = cpu(2);
    let [x, y] = ["x", "y"].map(|name| Persistent::new(name, DType::U32, 64));
    let executables = crossing(&x, &y).map(|program| device.compile(&program).expect("it compiles"));
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().expect("threads can be started");
    pool.scope(|scope| {
        for i in 0..64 {
            let executable = &executables[i % 2];
            scope.spawn(move |_| executable.run(3).expect("it runs"));
        }
    });
    let bumped = (0..64 * 3).fold(0_u32, |x, _| x.wrapping_mul(5).wrapping_add(1));
    assert_eq!(device.read::<u32>(&y).expect("y"), [bumped; 64], "every bump");
}

#[test]
fn devices_and_executables_travel() {
    fn assert_send_sync<T: Send + Sync>() {}
    assert_send_sync::<Device>();
    assert_send_sync::<Executable>();
    assert_send_sync::<Program>();
    assert_send_sync::<Persistent>();
}
