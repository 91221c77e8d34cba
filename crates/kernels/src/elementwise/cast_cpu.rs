use bytemuck::Pod;
use half::{bf16, f16};

use crate::cpu::blocks::each_block;
use crate::dtype::DType;
use crate::elementwise::cast::Cast;
use crate::kernel::twin::TwinArgs;
use crate::storage::element::Element;
use crate::vectorised::inlined;

#[expect(clippy::cast_possible_truncation, reason = "`as` truncates and saturates, and NaN becomes 0, as documented")]
pub(crate) fn run(kernel: &Cast, args: &mut TwinArgs<'_>) {
    match (kernel.from, kernel.to) {
        (DType::F32, DType::F16) => convert(args, f16::narrow),
        (DType::F32, DType::Bf16) => convert(args, bf16::narrow),
        (DType::F16, DType::F32) => convert(args, f16::widen),
        (DType::Bf16, DType::F32) => convert(args, bf16::widen),
        (DType::F16, DType::Bf16) => convert(args, |v: f16| bf16::narrow(v.widen())),
        (DType::Bf16, DType::F16) => convert(args, |v: bf16| f16::narrow(v.widen())),
        (DType::F32, DType::U32) => convert(args, |v: f32| v as u32),
        (DType::F32, DType::U8) => convert(args, |v: f32| v as u8),
        (DType::F16, DType::U32) => convert(args, |v: f16| v.widen() as u32),
        (DType::F16, DType::U8) => convert(args, |v: f16| v.widen() as u8),
        (DType::Bf16, DType::U32) => convert(args, |v: bf16| v.widen() as u32),
        (DType::Bf16, DType::U8) => convert(args, |v: bf16| v.widen() as u8),
        (DType::U8, DType::F32) => convert(args, |v: u8| f32::from(v)),
        (DType::U32, DType::F32) => convert(args, |v: u32| v as f32),
        (from, to) => unreachable!("{from:?} to {to:?} is refused by `check`"),
    }
}

fn convert<X: Pod + Sync, Y: Pod + Send>(args: &mut TwinArgs<'_>, f: impl Fn(X) -> Y + Sync) {
    let (x, y) = (args.read::<X>("x"), args.write::<Y>("y"));
    each_block(
        y,
        inlined!(|at, y| {
            for (y, &x) in y.iter_mut().zip(&x[at..]) {
                *y = f(x);
            }
        }),
    );
}
