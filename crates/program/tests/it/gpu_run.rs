use brisk_program::{Device, Selection};

use crate::gpu::gpu;
use crate::mlp::{Mlp, Sizes};
use crate::random_program::RandomProgram;

#[test]
fn a_network_trains_as_on_the_cpu() {
    let Some(gpu) = gpu() else { return };
    let mlp = Mlp::new(Sizes { n_rows: 33, n_inputs: 7, n_hidden: 20, n_steps: 30 }).expect("it is well formed");
    let (weights, losses) = mlp.train(&gpu, 30).expect("it trains");
    let (cpu_weights, cpu_losses) = mlp.train(&Device::cpu().expect("threads"), 30).expect("it trains");
    // Rounding errors accumulate over thirty steps: a hundred times the tolerance of one f32 operation.
    let close = |found: &f32, expected: &f32| (found - expected).abs() <= 1e-4 + 1e-3 * expected.abs();
    assert!(weights.iter().zip(&cpu_weights).all(|(a, b)| close(a, b)), "weights: {weights:?}, on the cpu {cpu_weights:?}");
    assert!(losses.iter().zip(&cpu_losses).all(|(a, b)| close(a, b)), "losses: {losses:?}, on the cpu {cpu_losses:?}");
    assert!(losses[29] < 0.5 * losses[0], "it learns: {losses:?}");
}

/// Integers, so bit-identical; with scratch, slices, updates in place and buffers that share memory.
#[test]
fn random_programs_compute_what_they_say() {
    let Some(gpu) = gpu() else { return };
    let cpu = Device::builder().selection(Selection::Cpu).threads(1).open().expect("a thread");
    for seed in 1000..1020 {
        let random = RandomProgram::new(seed);
        let start = random.start(seed);
        for device in [&gpu, &cpu] {
            for (persistent, values) in random.persistents.iter().zip(&start) {
                device.write(persistent, values).expect("it fits");
            }
            device.compile(&random.program).expect("it compiles").run(3).expect("it runs");
        }
        for (persistent, expected) in random.persistents.iter().zip(random.expected(&start, 3)) {
            let [on_gpu, on_cpu] = [&gpu, &cpu].map(|device| device.read::<u32>(persistent).expect("a buffer"));
            assert_eq!(on_gpu, expected, "seed {seed}, {} on {}", persistent.name(), gpu.info());
            assert_eq!(on_cpu, expected, "seed {seed}, {} on the cpu", persistent.name());
        }
    }
}

/// More dispatches than fit into one submit, and more submits than may be in flight at once.
#[test]
fn replays_in_many_submits() {
    let Some(gpu) = gpu() else { return };
    let random = (0..).map(RandomProgram::new).find(|random| random.program.n_kernels() >= 16).expect("one of them is long");
    let n = 3 * 512 / random.program.n_kernels() + 5;
    let start = random.start(0);
    let executable = gpu.compile(&random.program).expect("it compiles");
    for n_runs in [1, 7, n] {
        for (persistent, values) in random.persistents.iter().zip(&start) {
            gpu.write(persistent, values).expect("it fits");
        }
        // One call of n, and n calls of one.
        let calls = if n_runs == 7 { vec![1; 7] } else { vec![n_runs] };
        calls.into_iter().for_each(|n| executable.run(n).expect("it runs"));
        for (persistent, expected) in random.persistents.iter().zip(random.expected(&start, n_runs)) {
            assert_eq!(gpu.read::<u32>(persistent).expect("a buffer"), expected, "{n_runs} replays");
        }
    }
}
