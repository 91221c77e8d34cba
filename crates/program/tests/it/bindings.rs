//! The maximum size of one argument: the adapter's limit, or a lower one if set.

use brisk_program::kernels::expr::Expr;
use brisk_program::kernels::{
    self, Activation, Cast, DType, Kernel, Map, MapInPlace, Unscale, Update, clip_by_norm, clip_by_value, stored,
};
use brisk_program::{Device, Error, Persistent, Program, Selection};

use crate::gpu::{devices, gpu};
use crate::random::Random;
use crate::toy::{Bump, Descent};

fn lowered_to(selection: Selection, max_bytes: usize) -> Device {
    Device::builder().selection(selection).threads(1).max_binding_bytes(max_bytes).open().expect("the device opens")
}

fn lowered(selection: Selection) -> Device {
    lowered_to(selection, 256)
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

/// Elements of a kernel that runs in parts, not a multiple of any part length.
const N: usize = 4001;

/// The contents of the kernel's arguments after a run, each in a buffer that starts before it, and how many kernels ran.
fn run(device: &Device, kernel: Box<dyn Kernel>) -> (Vec<Vec<u8>>, u64) {
    let mut random = Random::new(3);
    let mut program = Program::new("flat");
    let mut slices = Vec::new();
    let mut persistents = Vec::new();
    for arg in kernel.args().iter().filter(|arg| arg.access != kernels::Access::Scratch) {
        let before = 256;
        let persistent = Persistent::new(arg.name, arg.dtype, before + arg.len);
        match arg.dtype {
            DType::F32 => device.write(&persistent, &random.floats(before + arg.len)),
            // Halves below two in magnitude; batch 0, step 0, nothing skipped.
            DType::F16 => {
                device.write(&persistent, &random.u32s(before + arg.len).iter().map(|x| (x & 0xBFFF) as u16).collect::<Vec<_>>())
            }
            _ => Ok(()),
        }
        .expect("it fits");
        slices.push(program.persistent(&persistent).slice(before..before + arg.len));
        persistents.push(persistent);
    }
    program.push(kernel, &slices).expect("well formed");
    let profile = device.compile(&program).expect("it compiles").profile(1).expect("it runs");
    let read = |persistent: &Persistent| -> Vec<u8> { device.read_bytes(persistent).expect("a buffer") };
    (persistents.iter().map(read).collect(), profile.kernels().iter().map(|kernel| kernel.n_calls).sum())
}

/// Bit-identical to the uncut kernel, for every kernel that can be cut.
#[test]
fn flat_kernels_run_in_parts() {
    let kernels: [fn() -> Box<dyn Kernel>; 16] = [
        || Box::new(Map::unary(N, |x| x.tanh())),
        || Box::new(Map::flat(N, Activation::gelu().grad())),
        || Box::new(Map::flat(N, Activation::tanh().grad_from_output().expect("tanh tells"))),
        || Box::new(Map::binary(N, |a, b| a + b)),
        || Box::new(Map::binary(N, |a, b| a * b)),
        || Box::new(Map::flat(N, (Expr::input(0) + Expr::input(1)).tanh() * Expr::input(2))),
        || Box::new(MapInPlace { map: Map::binary(N, |x, sum| sum + x), input: 1 }),
        || Box::new(Cast { n: N, from: DType::F32, to: DType::F16 }),
        || Box::new(Cast { n: N, from: DType::F16, to: DType::F32 }),
        || Box::new(Update::new("descent", Descent, N).table_len(3)),
        || Box::new(clip_by_norm(N, 0.5).expect("a limit")),
        || Box::new(clip_by_value(N, 0.5).expect("a limit")),
        || Box::new(Unscale { n: N }),
        || stored(Map::binary(N, |a, b| a + b), &[DType::F16, DType::F32, DType::F16]).expect("every kernel takes halves"),
        || stored(Map::binary(N, |a, b| a + b), &[DType::F16; 3]).expect("every kernel takes halves"),
        || stored(clip_by_value(N, 0.5).expect("a limit"), &[DType::F16]).expect("every kernel takes halves"),
    ];
    let limited = std::iter::once(Selection::Cpu).chain(gpu().map(|_| Selection::Index(0)));
    for (device, selection) in devices().into_iter().zip(limited) {
        let limited = lowered_to(selection, 4096);
        for kernel in kernels {
            let name = format!("{:?} on {}", kernel(), device.info());
            let ((whole, one), (parts, n_parts)) = (run(&device, kernel()), run(&limited, kernel()));
            let size = kernel().args().iter().map(|arg| arg.dtype.size_bytes()).max().expect("it has arguments");
            assert_eq!((one, n_parts), (1, (N * size).div_ceil(4096) as u64), "{name}");
            assert_eq!(whole, parts, "{name}");
        }
    }
}

/// 64 elements of 4 bytes are the smallest part that keeps offsets aligned for every adapter.
#[test]
fn what_cannot_be_cut_is_refused() {
    let of_gpu = gpu().map(|_| Selection::Index(0));
    for selection in std::iter::once(Selection::Cpu).chain(of_gpu) {
        let device = lowered_to(selection, 252);
        let mut program = Program::new("clip");
        let grads = program.persistent(&Persistent::new("grads", DType::F32, 65));
        program.push(clip_by_value(65, 1.0).expect("a limit"), &[grads]).expect("well formed");
        let error = device.compile(&program).expect_err("252 bytes are less than the grain").to_string();
        for word in ["map_in_place", "`y0`", "260 bytes", "252", "split the tensor"] {
            assert!(error.contains(word), "`{word}` is not in: {error}");
        }
    }
}

#[test]
fn the_limit_is_the_adapters_where_none_was_asked_for() {
    assert_eq!(Device::cpu().expect("the cpu is always there").max_binding_bytes(), usize::MAX, "the cpu has none");
    if let Some(gpu) = gpu() {
        assert!((128 << 20..1 << 32).contains(&gpu.max_binding_bytes()), "{}", gpu.max_binding_bytes());
    }
}
