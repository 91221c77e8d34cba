use brisk_kernels::{
    Activation, Conv2d, Conv2dGradInput, Conv2dGradWeight, ConvShape, Epilogue, Images, MapReduce, ReduceOp, Window,
};

use crate::operation::{check_kernel, dims};
use crate::{AutocastRule, Backward, Error, Forward, Operation, Tensor};

const NAME: &str = "conv2d";

impl Tensor {
    /// A 2-D convolution with its bias and activation, in one kernel; images are NHWC and weights OHWI.
    ///
    /// An activation whose derivative cannot be computed from its output (GELU, SiLU) is recorded as an operation of its own, and so is one that
    /// [`Autocast::overrides`](crate::Autocast::overrides) names. Its kernel is fused with the product's where the backward pass does not read what is between.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; `weight`: `[n_out, kernel height, kernel width, n_channels]`; `bias`: `[n_out]`;
    /// the result `[n_images, height', width', n_out]` with `height' = (height + 2 padding - kernel) / stride + 1`, rounded down.
    /// `stride` and `padding` are along `[height, width]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`]; [`Error::Program`] where no window fits or a stride is 0.
    /// # Reference
    /// `torch.nn.functional.conv2d`, with the dimensions in another order.
    #[track_caller]
    pub fn conv2d(
        &self,
        weight: &Self,
        bias: Option<&Self>,
        stride: [usize; 2],
        padding: [usize; 2],
        activation: Activation,
    ) -> Self {
        let is_fused = self.graph().fuses(&activation);
        let activation_here = if is_fused { activation.clone() } else { Activation::identity() };
        let operation = Convolution { stride, padding, activation: activation_here };
        let inputs: Vec<_> = [self, weight].into_iter().chain(bias).collect();
        let y = self.graph().apply(operation, &inputs);
        if is_fused { y } else { y.activate(activation) }
    }

    /// The sizes of a batch of images.
    pub(crate) fn images(&self, op: &'static str, arg: &'static str) -> Result<Images, Error> {
        match *self.shape() {
            [n_images, height, width, n_channels] => Ok(Images { n_images, height, width, n_channels }),
            _ => {
                let expected = "four dimensions, [n_images, height, width, n_channels]".to_owned();
                Err(Error::Shape { op, arg, expected, found: self.shape().to_vec() })
            }
        }
    }
}

#[derive(Debug)]
struct Convolution {
    stride: [usize; 2],
    padding: [usize; 2],
    activation: Activation,
}

impl Convolution {
    fn shape(&self, [n_images, height, width, n_channels]: [usize; 4], [n_out, k_height, k_width, _]: [usize; 4]) -> ConvShape {
        let window = Window { kernel: [k_height, k_width], stride: self.stride, padding: self.padding };
        ConvShape { x: Images { n_images, height, width, n_channels }, n_out, window }
    }

    fn kernel(&self, shape: ConvShape, has_bias: bool) -> Conv2d {
        let epilogue = if has_bias { Epilogue::bias(&self.activation) } else { Epilogue::activation(&self.activation) };
        Conv2d { shape, epilogue }
    }
}

impl Operation for Convolution {
    fn name(&self) -> &'static str {
        NAME
    }

    fn input_names(&self) -> &'static [&'static str] {
        &["x", "weight", "bias"]
    }

    fn autocast_rule(&self) -> AutocastRule {
        AutocastRule::Lower
    }

    /// The bias is added to an f32 sum.
    fn n_operands(&self, _: usize) -> usize {
        2
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let x = inputs[0].images(NAME, "x")?;
        let Images { n_images: n_out, height, width, n_channels } = inputs[1].images(NAME, "weight")?;
        if n_channels != x.n_channels {
            let expected = format!("[{n_out}, {height}, {width}, {}], as many channels as the input", x.n_channels);
            return Err(Error::Shape { op: NAME, arg: "weight", expected, found: inputs[1].shape().to_vec() });
        }
        if let Some(bias) = inputs.get(2) {
            bias.check_shape(NAME, "bias", &[n_out])?;
        }
        let shape = self.shape(dims(inputs[0].shape()), dims(inputs[1].shape()));
        check_kernel(&self.kernel(shape, inputs.len() > 2))?;
        let y = shape.y();
        Ok(vec![y.n_images, y.height, y.width, y.n_channels])
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        let len = |i: usize, dim: usize| inputs[i].shape().get(dim).copied().unwrap_or(1);
        vec![len(0, 0), len(0, 1), len(0, 2), len(1, 0)]
    }

    fn output_activation(&self) -> Option<Activation> {
        Some(self.activation.clone())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let y = forward.output();
        let kernel = self.kernel(self.shape(forward.dims(0), forward.dims(1)), forward.n_inputs() > 2);
        forward.push(kernel, &[&forward.inputs()[..], &[y]].concat())
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let shape = self.shape(backward.dims(0), backward.dims(1));
        let (dz, x, weight) = (backward.grad(), backward.input(0), backward.input(1));
        if backward.n_inputs() > 2 && backward.wants(2) {
            backward.give(2, MapReduce::of(ReduceOp::Sum, &[shape.y().n_pixels(), shape.n_out], &[0]), &[dz])?;
        }
        if backward.wants(1) {
            backward.give(1, Conv2dGradWeight { shape }, &[dz, x])?;
        }
        if backward.wants(0) {
            backward.give_product(0, |epilogue| Conv2dGradInput { shape, epilogue }, &[dz, weight])?;
        }
        Ok(())
    }
}
