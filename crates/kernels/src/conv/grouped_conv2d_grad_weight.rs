use super::grouped_conv2d_grad_weight_cpu;
use super::parts::Parts;
use crate::adapter::adapter::Adapter;
use crate::arg::Arg;
use crate::conv::grouped_shape::GroupedConvShape;
use crate::dtype::DType;
use crate::error::Error;
use crate::kernel::floats::Floats;
use crate::kernel::kernel::{Cost, Kernel};
use crate::kernel::twin::TwinArgs;
use crate::reduce::map_reduce_module::sum_of_parts;
use crate::shader::dispatch::Dispatch;
use crate::shader::module::part;
use crate::stored::stored_form::{StoredForm, with_element};
use crate::stored::stored_types::{Group, Template};

const MODULE: Template =
    Template::new(&[part!("grouped_conv2d_grad_weight.wgsl")], &[Group::one("GRAD_Y").loads(), Group::one("X").loads()]);

/// The gradient of a [`GroupedConv2d`](crate::GroupedConv2d) with respect to its weights:
/// `grad_weight[o,u,v,c] = Σ_{b,i,j} grad_y[b,i,j,o] x[b, i sᵧ - pᵧ + u dᵧ, j sₓ - pₓ + v dₓ, c₀(o) + c]`, where `c₀(o)` is the first input channel of `o`'s group.
///
/// # Shapes
/// `grad_y`: [`GroupedConvShape::y`]; `x`: like the forward kernel's; `grad_weight`: `[n_out, kernel height, kernel width, n_channels / n_groups]`.
/// # Dtypes
/// f32, or any of them f16 and bf16 by [`stored`](crate::stored); sums kept in f32. The pixels are divided into parts, which depend only on the shape; the sums of the parts
/// are added in order.
/// # Errors
/// As the forward kernel.
/// # Cost
/// The operations of the forward kernel, and scratch for up to 256 times the weights, at most 16 MiB if the weights are smaller.
/// # Reference
/// `torch.nn.grad.conv2d_weight`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GroupedConv2dGradWeight {
    /// The sizes of the forward convolution.
    pub shape: GroupedConvShape,
}

/// The maximum number of parts. It is higher than for dense convolutions, since the weights of a depthwise convolution are too few to keep a GPU busy.
const MAX_PARTS: usize = 256;

impl GroupedConv2dGradWeight {
    /// The parts that the pixels are divided into.
    pub(crate) fn parts(&self) -> Parts {
        Parts::of(&self.shape.y(), self.shape.n_weights(), MAX_PARTS)
    }
}

impl Kernel for GroupedConv2dGradWeight {
    fn name(&self) -> &'static str {
        "grouped_conv2d_grad_weight"
    }

    fn args(&self) -> Vec<Arg> {
        let shape = &self.shape;
        vec![
            Arg::read("grad_y", DType::F32, shape.y().len()),
            Arg::read("x", DType::F32, shape.x.len()),
            Arg::write("grad_weight", DType::F32, shape.n_weights()),
            Arg::scratch("parts", DType::F32, [self.parts().n, shape.n_weights()]),
        ]
    }

    fn check(&self) -> Result<(), Error> {
        self.shape.check(self)
    }

    fn dispatches(&self, adapter: &Adapter) -> Result<Vec<Dispatch>, Error> {
        self.stored_dispatches(&[], adapter)
    }

    fn twin(&self, args: &mut TwinArgs<'_>) {
        let (grad_y, parts) = (Floats::of(args, "grad_y"), args.write("parts"));
        with_element!(args.dtype("x"), T => {
            grouped_conv2d_grad_weight_cpu::run::<T>(self, grad_y, args.read("x"), args.write("grad_weight"), parts);
        });
    }

    fn stored_as(&self, dtypes: &[DType]) -> Option<Box<dyn Kernel>> {
        self.stored_form(dtypes)
    }

    fn cost(&self) -> Cost {
        self.shape.cost()
    }
}

/// Any of the arguments in 16 bits.
impl StoredForm for GroupedConv2dGradWeight {
    /// The sum of the parts is in f32.
    fn nearest(&self, dtypes: &[DType]) -> Option<Vec<DType>> {
        let nearest = vec![dtypes[0], dtypes[1], DType::F32];
        nearest.iter().any(|dtype| dtype.is_half()).then_some(nearest)
    }

    fn stored_dispatches(&self, dtypes: &[DType], _: &Adapter) -> Result<Vec<Dispatch>, Error> {
        let (args, n_weights, n_parts) = (self.stored_args(dtypes), self.shape.n_weights(), self.parts().n);
        let module = MODULE.module(&[("GRAD_Y", args[0].dtype), ("X", args[1].dtype)]);
        let products = Dispatch::elementwise(self.name(), "kernels.grouped_conv2d_grad_weight", module, n_parts * n_weights)?
            .params(self.shape.params())
            .param("part_rows", self.parts().n_rows)
            .bind(&args, ["grad_y", "x"], ["parts"])?;
        let sum = sum_of_parts("kernels.grouped_conv2d_grad_weight.sum", [n_parts, n_weights], 3, 2)?;
        Ok(vec![products, sum])
    }
}
