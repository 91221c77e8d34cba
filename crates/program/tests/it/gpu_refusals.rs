use brisk_program::kernels::{self, DType, Map};
use brisk_program::{Device, Error, Persistent, Program};

use crate::gpu::own_gpu;
use crate::toy::{BROKEN_LEN, Broken, Bump};

/// Checks that the device works as before after an error.
#[track_caller]
fn check_goes_on(device: &Device) {
    let x = Persistent::new("x", DType::U32, 3);
    let mut program = Program::new("bump");
    let slice = program.persistent(&x);
    program.push(Bump { n: 3 }, &[slice]).expect("a bump");
    device.compile(&program).expect("it compiles").run(2).expect("it runs");
    assert_eq!(device.read::<u32>(&x).expect("x"), [6; 3], "two bumps");
}

#[test]
fn a_kernel_that_the_adapter_refuses() {
    let Some(gpu) = own_gpu() else { return };
    for broken in [Broken::Syntax, Broken::NoEntry, Broken::Bindings, Broken::Workgroups] {
        let x = Persistent::new("x", DType::U32, BROKEN_LEN);
        let mut program = Program::new("step");
        let slice = program.persistent(&x);
        program.push(broken, &[slice]).expect("recording looks at no wgsl");
        let error = gpu.compile(&program).expect_err("the kernel is broken");
        let message = error.to_string();
        match error {
            Error::Kernel(kernels::Error::Workgroups { found: [1, 70_000, 1], .. }) if broken == Broken::Workgroups => {}
            Error::Kernel(kernels::Error::Pipeline { .. }) => {
                assert!(message.contains("broken") && message.contains(&gpu.info().name), "{broken:?}: {message}");
            }
            _ => panic!("{broken:?}: {message}"),
        }
        drop((program, x));
        assert_eq!(gpu.allocated_bytes(), 0, "nothing is kept");
        check_goes_on(&gpu);
    }
}

#[test]
fn a_slice_off_the_grain() {
    let Some(gpu) = own_gpu() else { return };
    let (all, y) = (Persistent::new("all", DType::F32, 64), Persistent::new("y", DType::F32, 4));
    let mut program = Program::new("step");
    let (all_, y_) = (program.persistent(&all), program.persistent(&y));
    program.push(Map::binary(4, |a, b| a + b), &[all_.slice(0..4), all_.slice(3..7), y_]).expect("recording knows no adapter");
    let error = gpu.compile(&program).expect_err("byte 12 is on no adapter's grain");
    for word in ["step", "`map`", "`all`", "`x1`", "byte 12", "256", &gpu.info().name] {
        assert!(error.to_string().contains(word), "`{word}` is not in: {error}");
    }
    assert!(matches!(error, Error::SliceOffset { offset_bytes: 12, .. }), "{error:?}");
    check_goes_on(&gpu);
}

#[test]
fn a_buffer_beyond_the_limit() {
    let Some(gpu) = own_gpu() else { return };
    let limit = |len_bytes: usize| {
        let huge = Persistent::new("huge", DType::U8, len_bytes);
        let mut program = Program::new("step");
        program.persistent(&huge);
        match gpu.compile(&program).expect_err("no adapter has that") {
            error @ Error::BufferLimit { limit_bytes, .. } => {
                let message = error.to_string();
                assert!(message.contains("`huge`") && message.contains(&gpu.info().name), "{message}");
                limit_bytes
            }
            error => panic!("{error}"),
        }
    };
    let limit_bytes = limit(usize::MAX);
    assert_eq!(limit(limit_bytes as usize + 1), limit_bytes, "one byte more than it says");
    assert_eq!(gpu.allocated_bytes(), 0, "nothing is kept");
    check_goes_on(&gpu);
}

/// On most adapters the largest argument is smaller than the largest buffer; it is checked before anything is allocated.
#[test]
fn an_argument_beyond_the_binding_limit() {
    let Some(gpu) = own_gpu() else { return };
    let n = 1 << 40;
    let mut program = Program::new("step");
    let x = program.persistent(&Persistent::new("x", DType::U32, n));
    program.push(Bump { n }, &[x]).expect("recording knows no adapter");
    let error = gpu.compile(&program).expect_err("no adapter binds that");
    let message = error.to_string();
    assert!(matches!(error, Error::Kernel(kernels::Error::BindingLimit { .. })), "{message}");
    assert!(message.contains("bump") && message.contains("`x`") && message.contains(&gpu.info().name), "{message}");
    check_goes_on(&gpu);
}

/// A transient's error names the transient.
#[test]
fn a_transient_beyond_the_limit() {
    let Some(gpu) = own_gpu() else { return };
    let mut program = Program::new("step");
    let [x, y] = ["x", "activations"].map(|name| program.transient(name, DType::U32, 1 << 50));
    let input = program.persistent(&Persistent::new("input", DType::U32, 64));
    for large in [x, y] {
        program.push(crate::toy::Mix { n: 64, salt: 0 }, &[input, input, large.slice(0..64)]).expect("a mix");
    }
    program.push(crate::toy::Mix { n: 64, salt: 0 }, &[x.slice(0..64), y.slice(0..64), input]).expect("a mix");
    let error = gpu.compile(&program).expect_err("no adapter has that");
    assert!(matches!(&error, Error::BufferLimit { buffer, .. } if buffer == "x"), "{error:?}");
}
