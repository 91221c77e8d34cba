//! What one argument may have: the adapter's limit, or less where that was asked for.

use brisk_program::kernels::{self, DType};
use brisk_program::{Device, Error, Persistent, Program, Selection};

use crate::gpu::gpu;
use crate::toy::Bump;

fn lowered(selection: Selection) -> Device {
    Device::builder().selection(selection).threads(1).max_binding_bytes(256).open().expect("the device opens")
}

fn compile(device: &Device, n: usize) -> Result<(), Error> {
    let mut program = Program::new("bump");
    let slice = program.persistent(&Persistent::new("x", DType::U32, 128)).slice(0..n);
    program.push(Bump { n }, &[slice])?;
    device.compile(&program)?.run(1)
}

#[test]
fn a_lowered_limit_holds_on_every_executor() {
    let of_gpu = gpu().map(|_| lowered(Selection::Index(0)));
    for device in std::iter::once(lowered(Selection::Cpu)).chain(of_gpu) {
        assert_eq!(device.max_binding_bytes(), 256, "{}", device.info());
        compile(&device, 64).expect("256 bytes are bound");
        let error = compile(&device, 65).expect_err("260 bytes are not");
        let Error::Kernel(kernels::Error::BindingLimit { arg: "x", len_bytes: 260, limit_bytes: 256, .. }) = error else {
            panic!("{error:?} on {}", device.info())
        };
    }
}

#[test]
fn the_limit_is_the_adapters_where_none_was_asked_for() {
    assert_eq!(Device::cpu().expect("the cpu is always there").max_binding_bytes(), usize::MAX, "the cpu has none");
    if let Some(gpu) = gpu() {
        assert!((128 << 20..1 << 32).contains(&gpu.max_binding_bytes()), "{}", gpu.max_binding_bytes());
    }
}
