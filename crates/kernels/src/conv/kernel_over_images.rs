//! The kernel of a convolution and of its gradient in the input. The CPU sorts the weights into scratch first.

use super::over_images::{Direction, Operands, OverImages};
use super::{conv2d_cpu, conv2d_gpu, conv2d_grad_input_cpu, grouped_cpu, grouped_gpu};
use crate::adapter::adapter::Adapter;
use crate::adapter::matmul_family::MatmulFamily;
use crate::arg::Arg;
use crate::conv::conv_shape::ConvForm;
use crate::conversion::stored_form::StoredForm;
use crate::dtype::DType;
use crate::error::Error;
use crate::gemm::transpose::Transpose;
use crate::kernel::floats::Floats;
use crate::kernel::twin::TwinArgs;
use crate::product::epilogue_cpu::Finish;
use crate::product::matmul::Matmul;
use crate::shader::dispatch::Dispatch;
use crate::storage::element::{Element, with_element};

/// The scratch argument with the weights in that order.
const SORTED: &str = "weight_sorted";

impl OverImages<'_> {
    /// The names of the images that are read and of those that are written.
    const fn names(&self) -> [&'static str; 2] {
        match self.direction {
            Direction::Forward => ["x", "y"],
            Direction::Backward => ["grad_y", "grad_x"],
        }
    }

    /// The product of pixels and weights that it is in the pointwise form.
    fn product(&self) -> Option<Matmul> {
        let transpose = match self.direction {
            Direction::Forward => Transpose::B,
            Direction::Backward => Transpose::None,
        };
        let (source, result, epilogue) = (self.source(), self.result(), self.epilogue.clone());
        let (m, n, k) = (result.n_pixels(), result.n_channels, source.n_channels);
        (self.shape.form() == ConvForm::Pointwise).then_some(Matmul { n_batch: 1, m, n, k, transpose, epilogue })
    }

    pub(super) fn args(&self) -> Vec<Arg> {
        let ([source, result], n_weights) = (self.names(), self.shape.n_weights());
        let mut args = vec![Arg::read(source, DType::F32, self.source().len()), Arg::read("weight", DType::F32, n_weights)];
        args.extend(self.epilogue.args(self.result().n_pixels(), self.result().n_channels));
        args.push(Arg::write(result, DType::F32, self.result().len()));
        match self.product() {
            Some(matmul) => args.extend(matmul.scratch()),
            None => args.push(Arg::scratch(SORTED, DType::F32, n_weights)),
        }
        args
    }

    /// The dispatches for arguments `args`, stored as `dtypes` says, or in f32 if `dtypes` is empty.
    pub(super) fn dispatches(
        &self,
        args: Vec<Arg>,
        dtypes: &[DType],
        family: MatmulFamily,
        adapter: &Adapter,
    ) -> Result<Vec<Dispatch>, Error> {
        match (self.product(), self.shape.form()) {
            (Some(matmul), _) => matmul.dispatches_of(dtypes, family, adapter),
            (None, ConvForm::Grouped) => grouped_gpu::over_images(self, &args),
            (None, _) => conv2d_gpu::over_images(*self, args, family, adapter),
        }
    }

    pub(super) fn twin(&self, args: &mut TwinArgs<'_>) {
        let [source, result] = self.names();
        let finish = Finish::new(self.epilogue, args);
        if let Some(matmul) = self.product() {
            return matmul.twin_over(finish, [source, "weight", result], args);
        }
        let (weight, operand, sorted) = (Floats::of(args, "weight"), self.epilogue.operand_of(args), args.write(SORTED));
        with_element!(args.dtype(source), T => with_element!(args.dtype(result), Y => {
            let (images, result) = (args.read::<T>(source), args.write::<Y>(result));
            self.run(Operands { images, weight, finish, operand, result, sorted });
        }));
    }

    fn run<T: Element, Y: Element>(&self, operands: Operands<'_, T, Y>) {
        match (self.shape.form(), self.direction) {
            (ConvForm::Grouped, Direction::Forward) => grouped_cpu::forward(self.shape, operands),
            (ConvForm::Grouped, Direction::Backward) => grouped_cpu::grad_input(self.shape, operands),
            (_, Direction::Forward) => conv2d_cpu::run(self.shape, operands),
            (_, Direction::Backward) => conv2d_grad_input_cpu::run(self.shape, operands),
        }
    }

    /// The supported types that are closest to `dtypes`; a result whose pixels end in the middle of a word is in f32.
    pub(super) fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        if let Some(matmul) = self.product() {
            return matmul.nearest(dtypes);
        }
        let mut nearest = dtypes.to_vec();
        if let (false, Some(result)) = (self.result().n_channels.is_multiple_of(2), nearest.last_mut()) {
            *result = DType::F32;
        }
        nearest.iter().any(|dtype| dtype.is_half()).then_some(nearest)
    }
}

/// Implements a kernel, a struct of `shape` and `epilogue`, by [`OverImages`] in a direction.
macro_rules! kernel_over_images {
    ($Conv:ident, $name:literal, $direction:expr) => {
        impl $Conv {
            fn over_images(&self) -> OverImages<'_> {
                OverImages { direction: $direction, shape: &self.shape, epilogue: &self.epilogue }
            }

            /// The dispatches of one family, for callers that have measured which is faster; [`Kernel::dispatches`] chooses by
            /// adapter and shape.
            ///
            /// # Errors
            /// [`Error::Size`] if there are more blocks than can be dispatched, [`Error::Unsupported`] if `family` does not run
            /// on `adapter`.
            pub fn dispatches_by(&self, family: MatmulFamily, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
                self.over_images().dispatches(self.stored_args(&[]), &[], family, adapter)
            }
        }

        impl Kernel for $Conv {
            fn signature(&self) -> Signature {
                Signature::new($name, self.over_images().args())
            }

            fn check(&self) -> Result<(), Error> {
                self.epilogue.check(self.name())?;
                self.shape.check(self)
            }

            $crate::conversion::stored_form::by_stored_form!();

            fn twin(&self, args: &mut TwinArgs<'_>) {
                self.over_images().twin(args);
            }

            fn followed_by(&self, map: &Map, input: usize) -> Option<Box<dyn Kernel>> {
                Some(Box::new(Self { epilogue: self.epilogue.followed_by(map, input)?, ..*self }))
            }

            fn cost(&self) -> Cost {
                self.shape.cost()
            }
        }

        /// Any of the arguments in 16 bits.
        impl StoredForm for $Conv {
            fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
                self.over_images().nearest(dtypes)
            }

            fn stored_dispatches(&self, dtypes: &[DType], adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
                self.over_images().dispatches(self.stored_args(dtypes), dtypes, conv2d_gpu::family(adapter), adapter)
            }
        }
    };
}
pub(super) use kernel_over_images;
