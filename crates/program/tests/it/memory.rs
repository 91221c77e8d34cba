use brisk_program::kernels::DType;
use brisk_program::{Counters, Persistent, Program, Upload, planned_peak_bytes};

use crate::gpu::{devices, own_gpu};
use crate::mlp::{Mlp, Sizes};
use crate::toy::{Bump, Mix};

const SMALL: Sizes = Sizes { n_rows: 16, n_inputs: 5, n_hidden: 9, n_steps: 3 };

#[test]
fn what_was_planned_is_what_is_held() {
    for device in devices() {
        let mlp = Mlp::new(SMALL).expect("it is well formed");
        let odd = Persistent::new("odd", DType::U8, 7);
        let mut eval = Program::new("eval");
        let (state, y) = (eval.persistent(&mlp.state), eval.transient("y", DType::U32, 4));
        eval.persistent(&odd);
        eval.push(Mix { n: 4, salt: 1 }, &[state, state, y]).expect("a mix");

        let planned = mlp.program.plan().expect("in order").peak_bytes();
        let train = device.compile(&mlp.program).expect("it compiles");
        assert_eq!(device.allocated_bytes(), planned, "one program on {}", device.info());
        mlp.reset(&device).expect("values fit");
        train.run(3).expect("it runs");
        device.read::<f32>(&mlp.losses).expect("losses");
        assert_eq!(device.allocated_bytes(), planned, "after writing, running, reading");

        let both = planned_peak_bytes(&[&mlp.program, &eval]).expect("in order");
        let eval_executable = device.compile(&eval).expect("it compiles");
        assert_eq!(device.allocated_bytes(), both, "shared buffers once");
        drop(eval_executable);
        assert_eq!(device.allocated_bytes(), planned + 8, "its slots are free, its persistent buffer is not");
        drop((eval, odd));
        assert_eq!(device.allocated_bytes(), planned, "now it is");
        drop((train, mlp));
        assert_eq!(device.allocated_bytes(), 0, "and all the rest");
    }
}

#[test]
fn what_the_host_does_is_counted() {
    for device in devices() {
        let mlp = Mlp::new(SMALL).expect("it is well formed");
        assert_eq!(device.counters(), Counters::default(), "nothing yet on {}", device.info());
        let train = device.compile(&mlp.program).expect("it compiles");
        let compiled = device.counters();
        assert!(compiled.n_allocations > 0 && compiled.n_reads + compiled.n_writes == 0, "{compiled:?} on {}", device.info());
        mlp.reset(&device).expect("values fit");
        let written = device.counters() - compiled;
        assert!(written.n_writes > 0 && written.written_bytes >= 4 * written.n_writes, "{written:?} on {}", device.info());
        assert_eq!((written.n_reads, written.n_allocations), (0, 0), "on {}", device.info());

        let before = device.counters();
        train.run(3).expect("it runs");
        assert_eq!(device.counters() - before, Counters::default(), "replays on {}", device.info());
        let losses = device.read::<f32>(&mlp.losses).expect("losses");
        let read = device.counters() - before;
        assert_eq!((read.n_reads, read.read_bytes), (1, 4 * losses.len() as u64), "on {}", device.info());
        let mut uploads = device.uploads(64, 2).expect("staging memory");
        let before = device.counters();
        uploads.write(&[Upload::new(&mlp.losses, 0, &[1.0_f32]), Upload::new(&mlp.losses, 2, &[2.0_f32])]).expect("values");
        let streamed = device.counters() - before;
        assert_eq!((streamed.n_writes, streamed.written_bytes), (2, 8), "on {}", device.info());
    }
}

#[test]
fn an_executable_keeps_what_it_uses() {
    for device in devices() {
        let x = Persistent::new("x", DType::U32, 64);
        let mut program = Program::new("bump");
        let slice = program.persistent(&x);
        program.push(Bump { n: 64 }, &[slice]).expect("a bump");
        let executable = device.compile(&program).expect("it compiles");
        drop((x, program));
        assert_eq!(device.allocated_bytes(), 256, "still bound on {}", device.info());
        executable.run(2).expect("it runs");
        device.wait().expect("it is done");
        drop(executable);
        assert_eq!(device.allocated_bytes(), 0, "freed on {}", device.info());
    }
}

/// A buffer on two devices is freed on both: neither device counts as an owner for the other.
#[test]
fn one_buffer_on_several_devices() {
    let (first, second) = (devices(), devices());
    let x = Persistent::new("x", DType::U32, 64);
    for (i, device) in (0_u32..).zip(first.iter().chain(&second)) {
        device.write(&x, &[i; 64]).expect("it fits");
    }
    for (i, device) in (0_u32..).zip(first.iter().chain(&second)) {
        assert_eq!(device.read::<u32>(&x).expect("x"), [i; 64], "each its own memory");
        assert_eq!(device.allocated_bytes(), 256, "{}", device.info());
    }
    drop(x);
    for device in first.iter().chain(&second) {
        assert_eq!(device.allocated_bytes(), 0, "{}", device.info());
    }
}

#[test]
fn a_thousand_steps_take_no_more_than_one() {
    for device in devices() {
        let mlp = Mlp::new(SMALL).expect("it is well formed");
        let executable = device.compile(&mlp.program).expect("it compiles");
        mlp.reset(&device).expect("values fit");
        let before = device.allocated_bytes();
        assert_eq!(before, mlp.program.plan().expect("in order").peak_bytes(), "as was known before");
        for i in 0..1000 {
            executable.run(1).expect("it runs");
            assert_eq!(device.allocated_bytes(), before, "after run {i} on {}", device.info());
        }
        for _ in 0..100 {
            drop(device.compile(&mlp.program).expect("it compiles again"));
            assert_eq!(device.allocated_bytes(), before, "after compiling again on {}", device.info());
        }
    }
}

/// As reported by the driver's allocator instead of our own count: including constants and staging memory.
#[test]
fn a_thousand_steps_leave_nothing_in_the_driver() {
    let Some(gpu) = own_gpu() else { return };
    let mlp = Mlp::new(SMALL).expect("it is well formed");
    let executable = gpu.compile(&mlp.program).expect("it compiles");
    mlp.reset(&gpu).expect("values fit");
    let step = || {
        executable.run(1).expect("it runs");
        gpu.read::<f32>(&mlp.losses).expect("losses");
    };
    let cycle = || drop(gpu.compile(&mlp.program).expect("it compiles again"));
    // Memory that was in use is freed one submission later.
    let settled = || {
        (0..2).for_each(|_| drop(gpu.read::<f32>(&mlp.losses).expect("losses")));
        gpu.driver_bytes()
    };
    (0..3).for_each(|_| step());
    (0..3).for_each(|_| cycle());
    let Some(before) = settled() else { return crate::gpu::say(&format!("{} counts nothing: NO LEAK CHECK RUNS", gpu.info())) };
    assert!(before >= gpu.allocated_bytes() as u64, "{before} bytes hold {}", gpu.allocated_bytes());
    (0..1000).for_each(|_| step());
    assert!(settled() <= Some(before), "{:?} after 1000 steps, {before} before", settled());
    (0..100).for_each(|_| cycle());
    assert!(settled() <= Some(before), "{:?} after 100 compiled and dropped, {before} before", settled());
}
