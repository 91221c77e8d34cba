use std::panic::{AssertUnwindSafe, catch_unwind};

use brisk_program::kernels::{Advance, DType, Epilogue, Map, MapInPlace, Matmul, STATE_LEN, StoreRows, Transpose};
use brisk_program::{Device, Error, Persistent, Program};

use crate::gpu::devices;
use crate::mlp::{Mlp, Sizes};
use crate::random_program::RandomProgram;
use crate::toy::{BROKEN_LEN, Broken, Bump};

#[test]
fn a_sum() {
    let [a, b, y] = ["a", "b", "y"].map(|name| Persistent::new(name, DType::F32, 3));
    let mut program = Program::new("sum");
    let args = [&a, &b, &y].map(|buffer| program.persistent(buffer));
    program.push(Map::binary(3, |a, b| a + b), &args).expect("an add");
    for device in devices() {
        device.write(&a, &[1.0_f32, 2.0, 3.0]).expect("a fits");
        device.write(&b, &[10.0_f32, 20.0, 30.0]).expect("b fits");
        device.compile(&program).expect("it compiles").run(1).expect("it runs");
        assert_eq!(device.read::<f32>(&y).expect("y"), [11.0, 22.0, 33.0], "{}", device.info());
    }
}

#[test]
fn replays_go_on_from_the_state_on_the_device() {
    let (x, rows) = (Persistent::new("x", DType::U32, 2), Persistent::new("rows", DType::F32, 10));
    let (ones, sum) = (Persistent::new("ones", DType::F32, 2), Persistent::new("sum", DType::F32, 2));
    let state = Persistent::new("state", DType::U32, STATE_LEN);
    let mut program = Program::new("counting");
    let [x_, rows_, ones_, sum_, state_] = [&x, &rows, &ones, &sum, &state].map(|buffer| program.persistent(buffer));
    let next = program.transient("next", DType::F32, 2);
    let zero = program.persistent(&Persistent::new("zero", DType::F32, 2));
    program.push(Map::binary(2, |a, b| a + b), &[sum_, ones_, next]).expect("an add");
    program.push(Map::binary(2, |a, b| a + b), &[next, zero, sum_]).expect("an add");
    program.push(StoreRows { n: 1, n_cols: 2, n_total: 5 }, &[sum_, state_, rows_]).expect("a store");
    program.push(Bump { n: 2 }, &[x_]).expect("a bump");
    program.push(Advance, &[state_]).expect("an advance");
    for device in devices() {
        device.write(&ones, &[1.0_f32, -1.0]).expect("ones fit");
        let executable = device.compile(&program).expect("it compiles");
        for n in [1, 0, 2, 1] {
            executable.run(n).expect("it runs");
        }
        let expected = [1.0, -1.0, 2.0, -2.0, 3.0, -3.0, 4.0, -4.0, 0.0, 0.0];
        assert_eq!(device.read::<f32>(&rows).expect("rows"), expected, "{}", device.info());
        assert_eq!(device.read::<u32>(&state).expect("state"), [4, 4, 0, 0], "{}", device.info());
        assert_eq!(device.read::<u32>(&x).expect("x"), [156, 156], "1, 6, 31, 156");
    }
}

#[test]
fn slices_of_one_persistent() {
    let all = Persistent::new("all", DType::F32, 192);
    let y = Persistent::new("y", DType::F32, 128);
    let mut program = Program::new("slices");
    let (all_, y_) = (program.persistent(&all), program.persistent(&y));
    program.push(Map::binary(64, |a, b| a + b), &[all_.slice(0..64), all_.slice(128..192), y_.slice(0..64)]).expect("an add");
    program.push(Map::binary(64, |a, b| a + b), &[all_.slice(64..128), all_.slice(64..128), y_.slice(64..128)]).expect("an add");
    let values: Vec<f32> = (0..192_u8).map(f32::from).collect();
    let expected: Vec<f32> =
        (0..64_u8).map(|i| f32::from(i) + f32::from(i + 128)).chain((64..128_u8).map(|i| 2.0 * f32::from(i))).collect();
    for device in devices() {
        device.write(&all, &values).expect("it fits");
        device.compile(&program).expect("it compiles").run(2).expect("it runs");
        assert_eq!(device.read::<f32>(&y).expect("y"), expected, "{}", device.info());
    }
}

#[test]
fn any_slice_on_the_cpu() {
    let (x, y) = (Persistent::new("x", DType::F32, 10), Persistent::new("y", DType::F32, 3));
    let mut program = Program::new("slices");
    let (x_, y_) = (program.persistent(&x), program.persistent(&y));
    program.push(Map::binary(3, |a, b| a + b), &[x_.slice(1..4), x_.slice(7..10), y_]).expect("an add");
    let device = Device::cpu().expect("threads");
    device.write(&x, &[0.0_f32, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]).expect("it fits");
    device.compile(&program).expect("it compiles").run(1).expect("it runs");
    assert_eq!(device.read::<f32>(&y).expect("y"), [8.0, 10.0, 12.0], "1 + 7, 2 + 8, 3 + 9");
}

#[test]
fn programs_share_persistent_buffers() {
    let x = Persistent::new("x", DType::U32, 4);
    let bump = |name| {
        let mut program = Program::new(name);
        let x = program.persistent(&x);
        program.push(Bump { n: 4 }, &[x]).expect("a bump");
        program
    };
    let (first, second) = (bump("first"), bump("second"));
    for device in devices() {
        let (first, second) = (device.compile(&first).expect("compiles"), device.compile(&second).expect("compiles"));
        first.run(1).expect("runs");
        second.run(1).expect("runs");
        first.run(1).expect("runs");
        assert_eq!(device.read::<u32>(&x).expect("x"), [31; 4], "0, 1, 6, 31 on {}", device.info());
    }
}

/// The planned program against a model in which no two buffers share memory.
#[test]
fn random_programs_compute_what_they_say() {
    let device = Device::cpu().expect("threads");
    for seed in 0..200 {
        let random = RandomProgram::new(seed);
        let start = random.start(seed);
        for (persistent, values) in random.persistents.iter().zip(&start) {
            device.write(persistent, values).expect("it fits");
        }
        device.compile(&random.program).expect("it compiles").run(3).expect("it runs");
        for (persistent, expected) in random.persistents.iter().zip(random.expected(&start, 3)) {
            assert_eq!(device.read::<u32>(persistent).expect("a buffer"), expected, "seed {seed}, {}", persistent.name());
        }
    }
}

#[test]
fn a_small_network_learns() {
    let mlp = Mlp::new(Sizes { n_rows: 64, n_inputs: 8, n_hidden: 32, n_steps: 100 }).expect("it is well formed");
    let (_, losses) = mlp.train(&Device::cpu().expect("threads"), 100).expect("it trains");
    assert!(losses[99] < 0.2 * losses[0], "the loss goes from {} to {}", losses[0], losses[99]);
}

#[test]
fn nothing_is_run_by_an_empty_program() {
    for device in devices() {
        let executable = device.compile(&Program::new("empty")).expect("it compiles");
        executable.run(1_000_000).expect("it runs");
        assert_eq!(executable.plan().peak_bytes(), 0, "no buffers");
    }
}

#[test]
fn host_values_of_another_length() {
    let x = Persistent::new("x", DType::F32, 4);
    for device in devices() {
        let refused = [
            device.write(&x, &[0.0_f32; 3]),
            device.write(&x, &[0.0_f32; 5]),
            device.read::<[u8; 3]>(&x).map(|_| ()),
            device.read::<()>(&x).map(|_| ()),
            device.read_into(&x, &mut [0.0_f32; 3]),
        ];
        for refused in refused {
            let error = refused.expect_err("it does not fit");
            assert!(matches!(error, Error::HostLen { .. }), "{error:?}");
            assert!(error.to_string().contains("`x` holds 16 bytes (4 x F32)"), "{error}");
        }
        for (start, n) in [(2, 3), (5, 0), (usize::MAX, 1)] {
            let error = device.write_at(&x, start, &vec![0.0_f32; n]).expect_err("it does not fit");
            let expected = format!("`x` holds 4 x F32, and {} bytes from element {start} on reach beyond the last", 4 * n);
            assert!(error.to_string().starts_with(&expected), "{error}");
        }
        device.write_at(&x, 4, &[0.0_f32; 0]).expect("nothing, at the end");
    }
}

#[test]
fn buffers_beyond_the_memory_of_the_host_are_not_read() {
    for device in devices() {
        for len in [1 << 50, usize::MAX] {
            let huge = Persistent::new("huge", DType::F32, len);
            for error in [device.read::<f32>(&huge).map(drop), device.read_bytes(&huge).map(drop)] {
                assert!(matches!(&error, Err(Error::HostMemory { buffer, .. }) if buffer == "huge"), "{error:?}");
            }
        }
    }
}

#[test]
fn empty_buffers_get_no_memory() {
    let empty = Persistent::new("empty", DType::F32, 0);
    let mut program = Program::new("step");
    program.persistent(&empty);
    for device in devices() {
        let refused =
            [device.write::<f32>(&empty, &[]), device.read::<f32>(&empty).map(|_| ()), device.compile(&program).map(|_| ())];
        for refused in refused {
            assert_eq!(refused, Err(Error::EmptyBuffer { buffer: "empty".to_owned() }), "{}", device.info());
        }
    }
}

/// Weights are kept in the order in which they are multiplied, but not after they have changed: by the host, by another program,
/// in a program that writes them itself.
#[test]
fn products_read_the_newest_weights() {
    let (m, n, k) = (4, 5, 6);
    let [x, w, y, step] =
        [("x", m * k), ("w", n * k), ("y", m * n), ("step", n * k)].map(|(name, len)| Persistent::new(name, DType::F32, len));
    let product = || Matmul { n_batch: 1, m, n, k, transpose: Transpose::B, epilogue: Epilogue::none() };
    let mut predict = Program::new("predict");
    let args = [&x, &w, &y].map(|buffer| predict.persistent(buffer));
    predict.push(product(), &args).expect("a product");
    let mut change = Program::new("change");
    let [w_, step_] = [&w, &step].map(|buffer| change.persistent(buffer));
    let sum = Map::binary(n * k, |w, step| w + step);
    change.push(MapInPlace { map: sum.clone(), input: 0 }, &[step_, w_]).expect("a sum");
    let mut both = Program::new("both");
    let args = [&x, &w, &y, &step].map(|buffer| both.persistent(buffer));
    both.push(product(), &args[..3]).expect("a product");
    both.push(MapInPlace { map: sum, input: 0 }, &[args[3], args[1]]).expect("a sum");

    for device in devices() {
        let [predict, change, both] = [&predict, &change, &both].map(|program| device.compile(program).expect("it compiles"));
        device.write(&x, &vec![1.0_f32; m * k]).expect("x fits");
        device.write(&w, &vec![1.0_f32; n * k]).expect("w fits");
        device.write(&step, &vec![0.5_f32; n * k]).expect("step fits");
        let check = |weight: f32, when: &str| {
            let found = device.read::<f32>(&y).expect("y");
            assert_eq!(found, vec![weight * k as f32; m * n], "{when} on {}", device.info());
        };
        predict.run(2).expect("it runs");
        check(1.0, "at first");
        change.run(1).expect("it runs");
        predict.run(1).expect("it runs");
        check(1.5, "after another program");
        device.write(&w, &vec![3.0_f32; n * k]).expect("w fits");
        predict.run(1).expect("it runs");
        check(3.0, "after a write");
        both.run(3).expect("it runs");
        check(4.0, "in the third replay of a program that changes them");
        predict.run(1).expect("it runs");
        check(4.5, "after that program");
    }
}

/// A panic of a twin reaches the caller of `run`; the device and its buffers stay usable.
#[test]
fn a_panicking_twin_loses_nothing() {
    let (x, other) = (Persistent::new("x", DType::U32, BROKEN_LEN), Persistent::new("other", DType::U32, 1));
    let mut panics = Program::new("panics");
    let (x_, other_) = (panics.persistent(&x), panics.persistent(&other));
    panics.push(Bump { n: 1 }, &[other_]).expect("a bump");
    panics.push(Broken::Panics, &[x_]).expect("it is well formed");
    let mut bump = Program::new("bump");
    let x_ = bump.persistent(&x);
    bump.push(Bump { n: BROKEN_LEN }, &[x_]).expect("a bump");

    let device = Device::cpu().expect("threads");
    device.write(&x, &[7_u32; BROKEN_LEN]).expect("it fits");
    let (panics, bump) = (device.compile(&panics).expect("compiles"), device.compile(&bump).expect("compiles"));
    let allocated_bytes = device.allocated_bytes();
    for n in 1..3_u32 {
        let caught = catch_unwind(AssertUnwindSafe(|| panics.run(1))).expect_err("the twin panics");
        assert_eq!(caught.downcast_ref::<&str>(), Some(&"a twin that panics"), "its own words");
        assert_eq!(device.read::<u32>(&other).expect("other"), [if n == 1 { 1 } else { 6 }], "what ran before it stays");
    }
    let mut expected = [7; BROKEN_LEN];
    expected[0] = 99;
    assert_eq!(device.read::<u32>(&x).expect("x"), expected, "as far as the twin got");
    bump.run(1).expect("the device goes on");
    assert_eq!(device.read::<u32>(&x).expect("x")[..2], [496, 36], "5 * 99 + 1, 5 * 7 + 1");
    assert_eq!(device.allocated_bytes(), allocated_bytes, "no memory is lost");
}

#[test]
fn more_than_there_is() {
    let device = Device::cpu().expect("threads");
    for len in [1 << 60, usize::MAX] {
        let huge = Persistent::new("huge", DType::F32, len);
        let mut program = Program::new("step");
        program.persistent(&huge);
        let error = device.compile(&program).expect_err("no machine has that much memory");
        assert!(matches!(error, Error::OutOfMemory { .. }), "{error:?}");
        assert!(error.to_string().contains("`huge`") && error.to_string().contains("cpu"), "{error}");
    }
    assert_eq!(device.allocated_bytes(), 0, "nothing was taken");
}
