use super::conv2d::with_whole_words;
use super::over_images;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conv::grouped_shape::GroupedConvShape;
use crate::conv::window::Images;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::kernel::{Cost, Kernel};
use crate::kernel::twin::TwinArgs;
use crate::map::map::Map;
use crate::product::epilogue::Epilogue;
use crate::product::epilogue::Results;
use crate::shader::binding::Binding;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::Module;
use crate::shader::module::part;
use crate::stored::stored_form::StoredForm;
use crate::stored::stored_types::{Group, Template};

const MODULE: Template = Template::new(
    &[part!("grouped_conv2d.wgsl"), part!("../product/store_four_any.wgsl")],
    &[Group::one("X").loads(), Group::one("WEIGHT").loads(), Group::one("FUSED").loads().optional(), Group::one("Y").stores()],
);

/// A 2-D convolution with groups and dilation:
/// `y[b,i,j,o] = epilogue(Σ_{u,v,c} x[b, i sᵧ - pᵧ + u dᵧ, j sₓ - pₓ + v dₓ, c₀(o) + c] weight[o,u,v,c])`, where `c₀(o)` is the first input channel of `o`'s group,
/// and the padding is 0.
///
/// # Shapes
/// `x`: `[n_images, height, width, n_channels]`; `weight`: `[n_out, kernel height, kernel width, n_channels / n_groups]`; `bias`: `[n_out]`;
/// `y`: [`GroupedConvShape::y`].
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32.
/// # Errors
/// [`Error::Size`] if no window fits, `n_groups` does not divide the channels, or a dilation is 0.
/// # Cost
/// Each output value is computed directly, without the reuse of a matrix product. For few input channels per group, as in depthwise convolutions, this is
/// memory-bound; [`Conv2d`](crate::Conv2d) is much faster for many.
/// # Reference
/// `torch.nn.functional.conv2d`; Chollet 2017, *Xception*, arXiv:1610.02357, for depthwise convolutions; Yu & Koltun 2016, arXiv:1511.07122, for dilated ones.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GroupedConv2d {
    /// The sizes.
    pub shape: GroupedConvShape,
    /// The operation on each sum before it is stored.
    pub epilogue: Epilogue,
}

impl Kernel for GroupedConv2d {
    fn name(&self) -> &'static str {
        "grouped_conv2d"
    }

    fn args(&self) -> Vec<Arg> {
        let shape = &self.shape;
        let mut args = over_images::args(("x", shape.x), shape.n_weights(), &self.epilogue, ("y", shape.y()));
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
        over_images::run(self, &self.epilogue, ["x", "y", "weight_by_tap"], args);
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
impl StoredForm for GroupedConv2d {
    /// A result whose pixels end in the middle of a word is in f32.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        with_whole_words(dtypes, self.shape.n_out)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let args = self.stored_args(dtypes);
        let module = module(&MODULE, &self.epilogue, &args, ["X", "WEIGHT", "Y"]);
        let dispatch = Dispatch::elementwise(self.name(), "kernels.grouped_conv2d", module, n_pairs(&self.shape.y()))?;
        Ok(vec![bind(dispatch.params(self.shape.params()), &self.epilogue, &args)?])
    }
}

/// Invocations for a result of these images: each computes two channels of a pixel.
pub(super) fn n_pairs(result: &Images) -> usize {
    result.n_pixels() * result.n_channels.div_ceil(2)
}

/// Binds the first two arguments and those of the epilogue for reading, and the result, which is named `y` in the modules.
pub(super) fn bind(dispatch: Dispatch, epilogue: &Epilogue, args: &[Arg]) -> Result<Dispatch, Error> {
    let reads = [Binding::at(0), Binding::at(1)].into_iter().chain(epilogue.bindings());
    dispatch.constants(epilogue.constants()).bind(args, reads, [Binding::at(2 + epilogue.n_args()).named("y")])
}

/// The module of a template whose groups have these names for the first two arguments and the result, and `FUSED` for the epilogue's, stored as `args` are.
pub(super) fn module(
    template: &Template,
    epilogue: &Epilogue,
    args: &[Arg],
    [first, second, result]: [&'static str; 3],
) -> Module {
    let fused = epilogue.stored_operand(args);
    let result = (result, args[2 + epilogue.n_args()].dtype);
    let types: Vec<_> = [(first, args[0].dtype), (second, args[1].dtype)].into_iter().chain(fused).chain([result]).collect();
    template.module(&types).with_all(epilogue.parts(Results::Two))
}
