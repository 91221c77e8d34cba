use super::conv2d::with_whole_words;
use super::grouped_conv2d::module;
use super::grouped_conv2d_grad_input_cpu;
use crate::core::half::Floats;
use crate::core::module::part;
use crate::core::stored_form::{StoredForm, with_element};
use crate::core::stored_types::{Group, Template};
use crate::{Adapter, Arg, Binding, Cost, DType, Dispatch, Epilogue, Error, GroupedConvShape, Kernel, Map, TwinArgs};

const MODULE: Template = Template::new(
    &[part!("grouped_conv2d_grad_input.wgsl"), part!("../product/store_four_any.wgsl")],
    &[
        Group::one("GRAD_Y").loads(),
        Group::one("WEIGHT").loads(),
        Group::one("FUSED").loads().optional(),
        Group::one("Y").stores(),
    ],
);

/// The gradient of a [`GroupedConv2d`](crate::GroupedConv2d) in its input: each pixel sums, over the windows that have a tap on it and the output channels of the
/// group, the products of their gradients with the weights of that tap.
///
/// There are no atomics, and the order of a sum is fixed.
///
/// # Shapes
/// `grad_y`: [`GroupedConvShape::y`]; `weight`: `[n_out, kernel height, kernel width, n_channels / n_groups]`; `operand` of the epilogue, `grad_x`: as the forward kernel's
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
    /// What is done with each sum before it is stored.
    pub epilogue: Epilogue,
}

impl Kernel for GroupedConv2dGradInput {
    fn name(&self) -> &'static str {
        "grouped_conv2d_grad_input"
    }

    fn args(&self) -> Vec<Arg> {
        let shape = &self.shape;
        let mut args = vec![Arg::read("grad_y", DType::F32, shape.y().len()), Arg::read("weight", DType::F32, shape.n_weights())];
        args.extend(self.epilogue.arg(shape.x.n_pixels(), shape.x.n_channels));
        args.push(Arg::write("grad_x", DType::F32, shape.x.len()));
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
        self.stored_twin(&vec![DType::F32; 3 + self.epilogue.n_args()], args);
    }

    fn followed_by(&self, map: &Map, input: usize) -> Option<Box<dyn Kernel>> {
        Some(Box::new(Self { epilogue: self.epilogue.followed_by(map, input)?, ..*self }))
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        let elements = self.shape.x.len() + self.shape.n_weights() + self.shape.y().len();
        Cost { flops: self.shape.flops(), bytes: 4 * elements as u64 }
    }
}

/// Any of the arguments in 16 bits.
impl StoredForm for GroupedConv2dGradInput {
    /// A result whose pixels end within a word is in f32.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        with_whole_words(dtypes, self.shape.x.n_channels)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let (args, grad_x) = (self.stored_args(dtypes), 2 + self.epilogue.n_args());
        // An invocation computes two channels.
        let n = self.shape.x.n_pixels() * self.shape.x.n_channels.div_ceil(2);
        let module = module(&MODULE, &self.epilogue, &args, ["GRAD_Y", "WEIGHT", "Y"]);
        let dispatch = Dispatch::elementwise(self.name(), "kernels.grouped_conv2d_grad_input", module, n)?;
        let fused = self.epilogue.operand().map(|_| Binding::at(2).named("fused"));
        let reads = [Binding::at(0), Binding::at(1)].into_iter().chain(fused);
        Ok(vec![dispatch.params(self.shape.params()).bind(&args, reads, [Binding::at(grad_x).named("y")])?])
    }

    fn stored_twin(&self, dtypes: &[DType], args: &mut TwinArgs<'_>) {
        let grad_x = 2 + self.epilogue.n_args();
        let weight = Floats::of(args, 1, dtypes[1]);
        let operand = self.epilogue.operand().map_or(Floats::F32(&[]), |_| Floats::of(args, 2, dtypes[2]));
        let by_tap = args.write(grad_x + 1);
        with_element!(dtypes[0], T => with_element!(dtypes[grad_x], Y => {
            grouped_conv2d_grad_input_cpu::run::<T, Y>(self, args.read(0), weight, operand, args.write(grad_x), by_tap);
        }));
    }
}
