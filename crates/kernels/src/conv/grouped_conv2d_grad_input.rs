use super::conv2d::with_whole_words;
use super::grouped_conv2d::{bind, module, n_pairs};
use super::over_images;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conv::grouped_shape::GroupedConvShape;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel};
use crate::kernel::twin::TwinArgs;
use crate::map::map::Map;
use crate::product::epilogue::Epilogue;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::part;
use crate::stored::stored_form::StoredForm;
use crate::stored::stored_types::{Group, Template};

const MODULE: Template = Template::new(
    &[part!("grouped_conv2d_grad_input.wgsl"), part!("../product/store_four_any.wgsl")],
    &[
        Group::one("GRAD_Y").loads(),
        Group::one("WEIGHT").loads(),
        Group::one("FUSED").loads().optional(),
        Group::one("Y").stores(),
    ],
);

/// The gradient of a [`GroupedConv2d`](crate::GroupedConv2d) with respect to its input: for each pixel, the sum, over the windows that have a tap on it and the output
/// channels of the group, of the products of their gradients with the weights of that tap.
///
/// There are no atomics, and the order of a sum is fixed.
///
/// # Shapes
/// `grad_y`: [`GroupedConvShape::y`]; `weight`: `[n_out, kernel height, kernel width, n_channels / n_groups]`; `operand` of the epilogue, `grad_x`: like the forward kernel's
/// `x`.
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32.
/// # Errors
/// As the forward kernel.
/// # Cost
/// The operations of the forward kernel.
/// # Reference
/// `torch.nn.grad.conv2d_input`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupedConv2dGradInput {
    /// The sizes of the forward convolution.
    pub shape: GroupedConvShape,
    /// The operation on each sum before it is stored.
    pub epilogue: Epilogue,
}

impl Kernel for GroupedConv2dGradInput {
    fn name(&self) -> &'static str {
        "grouped_conv2d_grad_input"
    }

    fn args(&self) -> Vec<Arg> {
        let shape = &self.shape;
        let mut args = over_images::args(("grad_y", shape.y()), shape.n_weights(), &self.epilogue, ("grad_x", shape.x));
        args.push(Arg::scratch("weight_by_tap", DType::F32, shape.n_weights()));
        args
    }

    fn check(&self) -> Result<(), Error> {
        self.epilogue.check(self.name())?;
        self.shape.check(self)
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        over_images::run(self, &self.epilogue, ["grad_y", "grad_x", "weight_by_tap"], args);
    }

    fn followed_by(&self, map: &Map, input: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { epilogue: self.epilogue.followed_by(map, input)?, ..*self }))
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        self.shape.cost()
    }
}

/// Any of the arguments in 16 bits.
impl StoredForm for GroupedConv2dGradInput {
    /// A result whose pixels end in the middle of a word is in f32.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        with_whole_words(dtypes, self.shape.x.n_channels)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let args = self.stored_args(dtypes);
        let module = module(&MODULE, &self.epilogue, &args, ["GRAD_Y", "WEIGHT", "Y"]);
        let dispatch = Dispatch::elementwise(self.name(), "kernels.grouped_conv2d_grad_input", module, n_pairs(&self.shape.x))?;
        Ok(vec![bind(dispatch.params(self.shape.params()), &self.epilogue, &args)?])
    }
}
