//! Failures while a device works: every later call returns an error that says what was in progress, and none panics.

use brisk_program::kernels::{DType, wgpu};
use brisk_program::{Device, Error, Executable, Persistent, Program, Upload};

use crate::gpu::own_gpu;
use crate::toy::Bump;

fn bump(device: &Device, x: &Persistent) -> Executable {
    let mut program = Program::new("step 7");
    let slice = program.persistent(x);
    program.push(Bump { n: x.len() }, &[slice]).expect("a bump");
    device.compile(&program).expect("it compiles")
}

#[track_caller]
fn check_failed(what: &str, found: Result<(), Error>, words: &[&str]) {
    let error = found.expect_err(what);
    assert!(matches!(error, Error::DeviceFailed { .. }), "{what}: {error}");
    for word in words {
        assert!(error.to_string().contains(word), "{what}: `{word}` is not in: {error}");
    }
}

/// Everything that can be called on a device that is lost.
#[track_caller]
fn check_all_fail(gpu: &Device, x: &Persistent, executable: &Executable, words: &[&str]) {
    let mut other = Program::new("another");
    let slice = other.persistent(x);
    other.push(Bump { n: x.len() }, &[slice]).expect("a bump");
    for turn in ["once", "again"] {
        check_failed(turn, gpu.wait(), words);
        check_failed(turn, executable.run(3), words);
        check_failed(turn, gpu.read::<u32>(x).map(drop), words);
        check_failed(turn, gpu.write(x, &vec![1_u32; x.len()]), words);
        check_failed(turn, gpu.compile(&other).map(drop), words);
        check_failed(turn, gpu.uploads(1024, 2).map(drop), words);
    }
}

#[test]
fn a_device_that_is_destroyed() {
    let Some(gpu) = own_gpu() else { return };
    let x = Persistent::new("x", DType::U32, 8);
    let executable = bump(&gpu, &x);
    executable.run(2).expect("it runs");
    gpu.wgpu().expect("a gpu").0.destroy();
    check_all_fail(&gpu, &x, &executable, &[&gpu.info().name, "destroyed", "`step 7`", "checkpoint"]);
    // The adapter opens again, with none of the lost buffers.
    let again = own_gpu().expect("it opened before");
    bump(&again, &x).run(1).expect("it runs");
    assert_eq!(again.read::<u32>(&x).expect("x"), [1; 8], "from zeros");
}

/// The first call after the failure reports it, whichever call that is.
#[test]
fn each_call_may_be_the_first_to_see_it() {
    type Call = fn(&Device, &Persistent, &Executable) -> Result<(), Error>;
    let calls: [(&str, Call); 3] = [
        ("read", |gpu, x, _| gpu.read::<u32>(x).map(drop)),
        ("many runs", |gpu, _, executable| executable.run(4000).and_then(|()| gpu.wait())),
        ("uploads", |gpu, x, _| {
            let mut uploads = gpu.uploads(64, 2)?;
            (0..8).try_for_each(|_| uploads.write(&[Upload::new(x, 0, &[5_u32; 8])]))?;
            gpu.wait()
        }),
    ];
    for (name, call) in calls {
        let Some(gpu) = own_gpu() else { return };
        let x = Persistent::new("x", DType::U32, 8);
        let executable = bump(&gpu, &x);
        executable.run(1).expect("it runs");
        gpu.wgpu().expect("a gpu").0.destroy();
        check_failed(name, call(&gpu, &x, &executable), &["destroyed"]);
    }
}

/// wgpu would panic on an uncaught error.
#[test]
fn an_error_outside_any_call() {
    let Some(gpu) = own_gpu() else { return };
    let x = Persistent::new("x", DType::U32, 8);
    let executable = bump(&gpu, &x);
    let (device, _) = gpu.wgpu().expect("a gpu");
    let usage = wgpu::BufferUsages::MAP_READ | wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::STORAGE;
    let size = gpu.max_binding_bytes() as u64 * 1024;
    drop(device.create_buffer(&wgpu::BufferDescriptor { label: Some("not ours"), size, usage, mapped_at_creation: false }));
    check_all_fail(&gpu, &x, &executable, &["not ours", "`bump`"]);
}
