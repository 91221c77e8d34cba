use std::rc::Rc;

use brisk_kernels::{Activation, ColumnSum, Conv2d, Conv2dGradInput, Conv2dGradWeight, ConvShape, Epilogue, Images, Window};

use crate::{Error, Tensor};

const OP: &str = "conv2d";

impl Tensor {
    /// A 2-D convolution with its bias and activation, in one kernel; images are NHWC and weights OHWI.
    ///
    /// An activation whose derivative does not follow from its output (GELU, SiLU) is a kernel of its own, and so is one that
    /// [`Autocast::overrides`](crate::Autocast::overrides) names.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; `weight`: `[n_out, kernel height, kernel width, n_channels]`; `bias`: `[n_out]`;
    /// the result `[n_images, height', width', n_out]` with `height' = (height + 2 padding - kernel) / stride + 1`, rounded down.
    /// `stride` and `padding` are along `[height, width]`.
    /// # Errors
    /// [`Error::Shape`], [`Error::ForeignTensor`]; [`Error::Program`] where no window fits or a stride is 0.
    /// # Reference
    /// `torch.nn.functional.conv2d`, with another order of dimensions.
    pub fn conv2d(
        &self,
        weight: &Self,
        bias: Option<&Self>,
        stride: [usize; 2],
        padding: [usize; 2],
        activation: Activation,
    ) -> Result<Self, Error> {
        if self.graph().fuses(activation) {
            self.conv2d_fused(weight, bias, stride, padding, activation)
        } else {
            self.conv2d_fused(weight, bias, stride, padding, Activation::Identity)?.activate(activation)
        }
    }

    fn conv2d_fused(
        &self,
        weight: &Self,
        bias: Option<&Self>,
        stride: [usize; 2],
        padding: [usize; 2],
        activation: Activation,
    ) -> Result<Self, Error> {
        let graph = self.graph();
        let shape = conv_shape(self, weight, bias, stride, padding)?;
        let epilogue = if bias.is_some() { Epilogue::Bias(activation) } else { Epilogue::Activation(activation) };
        let out = shape.y();
        let kernel = Conv2d { shape, epilogue };
        let (dtype, [input, weight]) = graph.operands(OP, &kernel, [self, weight])?;
        let y = graph.transient(OP, dtype, out.len());
        let args: Vec<_> = [&input, &weight].into_iter().chain(bias).map(Tensor::slice).chain([y]).collect();
        graph.push(kernel, &args)?;

        let (x_id, x, w_id, w, bias_id) = (input.id(), input.slice(), weight.id(), weight.slice(), bias.map(Tensor::id));
        let rule = move |backward: &mut crate::Backward<'_>, dz| {
            if let Some(bias_id) = bias_id.filter(|&id| backward.wants(id)) {
                backward.give(bias_id, ColumnSum { n_rows: out.n_pixels(), n_cols: shape.n_out }, &[dz])?;
            }
            if backward.wants(w_id) {
                backward.give(w_id, Conv2dGradWeight { shape }, &[dz, x])?;
            }
            if backward.wants(x_id) {
                match backward.fusible(x_id) {
                    None => backward.give(x_id, Conv2dGradInput { shape, epilogue: Epilogue::None }, &[dz, w])?,
                    Some((below, output)) => {
                        backward.give(
                            x_id,
                            Conv2dGradInput { shape, epilogue: Epilogue::OutputGrad(below) },
                            &[dz, w, output],
                        )?;
                        backward.went_through_activation(x_id);
                    }
                }
            }
            Ok(())
        };
        let inputs: Vec<_> = [&input, &weight].into_iter().chain(bias).collect();
        let shape = [out.n_images, out.height, out.width, out.n_channels];
        graph.result(OP, &inputs, y, &shape, Some(activation), Rc::new(rule))
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

fn conv_shape(
    x: &Tensor,
    weight: &Tensor,
    bias: Option<&Tensor>,
    stride: [usize; 2],
    padding: [usize; 2],
) -> Result<ConvShape, Error> {
    let graph = x.graph();
    graph.check_own(OP, "weight", weight)?;
    let images = x.images(OP, "x")?;
    let Images { n_images: n_out, height, width, n_channels } = weight.images(OP, "weight")?;
    if n_channels != images.n_channels {
        let expected = format!("[{n_out}, {height}, {width}, {}], as many channels as the input", images.n_channels);
        return Err(Error::Shape { op: OP, arg: "weight", expected, found: weight.shape().to_vec() });
    }
    if let Some(bias) = bias {
        graph.check_own(OP, "bias", bias)?;
        if *bias.shape() != [n_out] {
            return Err(Error::Shape { op: OP, arg: "bias", expected: format!("[{n_out}]"), found: bias.shape().to_vec() });
        }
    }
    Ok(ConvShape { x: images, n_out, window: Window { kernel: [height, width], stride, padding } })
}
