//! What a convolution and its gradient in the input have in common, dense or in groups: images and weights go in, and what the epilogue reads; images come out, and
//! the CPU sorts the weights into scratch first.

use crate::core::half::{Element, Floats};
use crate::core::sizes::check_sizes;
use crate::core::stored_form::with_element;
use crate::{Arg, Cost, DType, Epilogue, Error, Images, Kernel, TwinArgs};

/// The twin of such a kernel.
pub(crate) trait OverImages {
    /// What is done with each sum.
    fn epilogue(&self) -> &Epilogue;

    /// `images`, `weight`, the operand of the epilogue, `result`, and room for the sorted weights.
    fn run<T: Element, Y: Element>(
        &self,
        images: &[T],
        weight: Floats<'_>,
        operand: Floats<'_>,
        result: &mut [Y],
        sorted: &mut [f32],
    );
}

/// The arguments but scratch. The epilogue works on pixels of `result`.
pub(super) fn args(
    images: (&'static str, Images),
    n_weights: usize,
    epilogue: &Epilogue,
    result: (&'static str, Images),
) -> Vec<Arg> {
    let ((name, images), (result_name, result)) = (images, result);
    let mut args = vec![Arg::read(name, DType::F32, images.len()), Arg::read("weight", DType::F32, n_weights)];
    args.extend(epilogue.arg(result.n_pixels(), result.n_channels));
    args.push(Arg::write(result_name, DType::F32, result.len()));
    args
}

/// Runs the twin with arguments stored as `dtypes` says.
pub(super) fn run(kernel: &impl OverImages, dtypes: &[DType], args: &mut TwinArgs<'_>) {
    let result = 2 + kernel.epilogue().n_args();
    let weight = Floats::of(args, 1, dtypes[1]);
    let operand = kernel.epilogue().operand().map_or(Floats::F32(&[]), |_| Floats::of(args, 2, dtypes[2]));
    let sorted = args.write(result + 1);
    with_element!(dtypes[0], T => with_element!(dtypes[result], Y => {
        kernel.run::<T, Y>(args.read(0), weight, operand, args.write(result), sorted);
    }));
}

/// Runs the twin with all arguments in f32.
pub(super) fn run_in_f32(kernel: &impl OverImages, args: &mut TwinArgs<'_>) {
    run(kernel, &vec![DType::F32; 3 + kernel.epilogue().n_args()], args);
}

/// Refuses images of sizes that the modules cannot count: in u32 they count pixels, and values of a patch.
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
