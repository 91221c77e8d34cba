//! What a convolution and its gradient in the input have in common, dense or in groups: the inputs are images, weights and the argument of the epilogue; the output is
//! images; and the CPU sorts the weights into scratch first.

use crate::arg::Arg;
use crate::conv::window::Images;
use crate::dtype::DType;
use crate::error::Error;
use crate::half::Element;
use crate::kernel::check_sizes::check_sizes;
use crate::kernel::floats::Floats;
use crate::kernel::kernel::{Cost, Kernel};
use crate::kernel::twin::TwinArgs;
use crate::product::epilogue::Epilogue;
use crate::product::epilogue_cpu::Finish;
use crate::stored::stored_form::with_element;

/// The twin of such a kernel.
pub(crate) trait OverImages {
    /// Computes `result` from the other operands.
    fn run<T: Element, Y: Element>(&self, operands: Operands<'_, T, Y>);
}

/// The operands of a twin.
pub(crate) struct Operands<'a, T, Y> {
    pub(crate) images: &'a [T],
    pub(crate) weight: Floats<'a>,
    pub(crate) finish: Finish,
    /// The further argument of the epilogue; empty if it has none.
    pub(crate) operand: Floats<'a>,
    pub(crate) result: &'a mut [Y],
    /// Memory for the weights in the order in which the twin reads them.
    pub(crate) sorted: &'a mut [f32],
}

/// The arguments except for scratch. The epilogue is applied to pixels of `result`.
pub(super) fn args(
    images: (&'static str, Images),
    n_weights: usize,
    epilogue: &Epilogue,
    result: (&'static str, Images),
) -> Vec<Arg> {
    let ((name, images), (result_name, result)) = (images, result);
    let mut args = vec![Arg::read(name, DType::F32, images.len()), Arg::read("weight", DType::F32, n_weights)];
    args.extend(epilogue.args(result.n_pixels(), result.n_channels));
    args.push(Arg::write(result_name, DType::F32, result.len()));
    args
}

/// Runs the twin over the arguments of these names.
pub(super) fn run(
    kernel: &impl OverImages,
    epilogue: &Epilogue,
    [images, result, sorted]: [&'static str; 3],
    args: &mut TwinArgs<'_>,
) {
    let (weight, operand, sorted) = (Floats::of(args, "weight"), epilogue.operand_of(args), args.write(sorted));
    with_element!(args.dtype(images), T => with_element!(args.dtype(result), Y => {
        let (images, result, finish) = (args.read(images), args.write(result), Finish::new(epilogue, args));
        kernel.run::<T, Y>(Operands { images, weight, finish, operand, result, sorted });
    }));
}

/// Returns an error for images of sizes that the modules cannot count: they count pixels, and the values of a patch, in u32.
pub(super) fn check(kernel: &impl Kernel, x: Images, y: Images, n_patch: usize) -> Result<(), Error> {
    let sizes = [
        ("n_images", x.n_images),
        ("height", x.height),
        ("width", x.width),
        ("n_channels", x.n_channels),
        ("n_out", y.n_channels),
        ("pixels of x", x.n_pixels()),
        ("pixels of y", y.n_pixels()),
        ("values of a patch", n_patch),
    ];
    check_sizes(kernel, &sizes)
}

/// The cost of a convolution, and of either gradient.
pub(super) fn cost(x: Images, y: Images, n_weights: usize) -> Cost {
    let flops = 2 * (y.n_pixels() as u64).saturating_mul(n_weights as u64);
    Cost { flops, bytes: 4 * (x.len() + n_weights + y.len()) as u64 }
}
