use brisk_kernels::{
    Activation, Conv2d, Conv2dGradInput, Conv2dGradWeight, ConvShape, Epilogue, Images, MapReduce, Reducer, Window,
};

use crate::error::Error;
use crate::graph::autocast::AutocastRule;
use crate::graph::backward::Backward;
use crate::graph::operation::{Forward, Operation, Signature, check_kernel};
use crate::graph::tensor::{Tensor, dims};

const NAME: &str = "conv2d";

impl Tensor {
    /// A 2-D convolution with its bias and activation, in one kernel; images are NHWC and weights OHWI.
    ///
    /// An activation whose derivative cannot be computed from its output (GELU, SiLU) is recorded as a separate operation, and so
    /// is one that [`Autocast::overrides`](crate::Autocast::overrides) names. It is fused with the convolution if the backward
    /// pass does not read the value in between.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; `weight`: `[n_out, kernel height, kernel width, n_channels]`; `bias`:
    /// `[n_out]`; the result `[n_images, height', width', n_out]` with `height' = (height + 2 padding - kernel) / stride + 1`,
    /// rounded down. `stride` and `padding` are along `[height, width]`. For groups and dilation, see
    /// [`conv2d_with`](Self::conv2d_with).
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
        self.conv2d_with(weight, bias, &Conv2dOptions { stride, padding, activation, ..Conv2dOptions::default() })
    }

    /// [`conv2d`](Self::conv2d) with all options, such as groups and dilation.
    ///
    /// # Shapes
    /// As [`conv2d`](Self::conv2d), except for `weight`: `[n_out, kernel height, kernel width, n_channels / n_groups]`; in the
    /// height and width of the result, a kernel of `k` taps counts as `(k - 1) dilation + 1` pixels.
    /// # Errors
    /// As [`conv2d`](Self::conv2d); [`Error::Shape`] if groups do not divide channels; [`Error::Program`] for a dilation of 0.
    /// # Cost
    /// With groups or dilation, each output value is computed directly instead of by a matrix product: fast for few channels per
    /// group, such as one in depthwise convolutions, slow for many.
    /// # Reference
    /// `torch.nn.functional.conv2d`, with the dimensions in another order.
    /// # Examples
    /// ```
    /// use brisk_tensor::{Conv2dOptions, Graph};
    ///
    /// // Depthwise: each channel has a filter of its own.
    /// let graph = Graph::inference("images");
    /// let images = graph.constant("images", &[0.5; 2 * 8 * 8 * 4], &[2, 8, 8, 4]);
    /// let filters = graph.constant("filters", &[0.1; 4 * 3 * 3], &[4, 3, 3, 1]);
    /// let options = Conv2dOptions { padding: [1, 1], n_groups: 4, ..Conv2dOptions::default() };
    /// assert_eq!(images.conv2d_with(&filters, None, &options).shape(), [2, 8, 8, 4]);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn conv2d_with(&self, weight: &Self, bias: Option<&Self>, options: &Conv2dOptions) -> Self {
        let inputs: Vec<_> = [self, weight].into_iter().chain(bias).collect();
        let operation = |activation| Convolution { options: Conv2dOptions { activation, ..*options } };
        self.graph().apply_activated(&options.activation, operation, &inputs)
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

/// The options of a [convolution](Tensor::conv2d_with); pairs are `[height, width]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv2dOptions {
    /// Pixels from one window to the next; 1 by default.
    pub stride: [usize; 2],
    /// Pixels of zeros added on each side; 0 by default.
    pub padding: [usize; 2],
    /// Pixels from one tap of a window to the next; 1 by default.
    pub dilation: [usize; 2],
    /// Groups of consecutive channels that are convolved separately; 1 by default, as many as channels for a depthwise one.
    pub n_groups: usize,
    /// The activation; none by default.
    pub activation: Activation,
}

impl Default for Conv2dOptions {
    fn default() -> Self {
        Self { stride: [1; 2], padding: [0; 2], dilation: [1; 2], n_groups: 1, activation: Activation::identity() }
    }
}

#[derive(Debug)]
struct Convolution {
    options: Conv2dOptions,
}

impl Convolution {
    fn shape(&self, [n_images, height, width, n_channels]: [usize; 4], [n_out, k_height, k_width, _]: [usize; 4]) -> ConvShape {
        let Conv2dOptions { stride, padding, dilation, n_groups, .. } = self.options;
        let window = Window { kernel: [k_height, k_width], stride, padding };
        ConvShape { x: Images { n_images, height, width, n_channels }, n_out, window, dilation, n_groups }
    }

    fn epilogue(&self, has_bias: bool) -> Epilogue {
        let activation = &self.options.activation;
        if has_bias { Epilogue::bias(activation) } else { Epilogue::activation(activation) }
    }
}

impl Operation for Convolution {
    fn signature(&self) -> Signature {
        // The bias is added to an f32 sum.
        Signature { autocast: AutocastRule::Lower, n_operands: 2, ..Signature::new(NAME, &["x", "weight", "bias"]) }
    }

    fn output_shape(&self, inputs: &[&Tensor]) -> Result<Vec<usize>, Error> {
        let x = inputs[0].images(NAME, "x")?;
        let Images { n_images: n_out, height, width, n_channels } = inputs[1].images(NAME, "weight")?;
        let n_groups = self.options.n_groups;
        for (arg, i, n) in [("x", 0, x.n_channels), ("weight", 1, n_out)] {
            if n_groups > 1 && !n.is_multiple_of(n_groups) {
                let dim = if arg == "x" { "last" } else { "first" };
                let expected = format!("a {dim} dimension that {n_groups} groups divide evenly");
                return Err(Error::Shape { op: NAME, arg, expected, found: inputs[i].shape().to_vec() });
            }
        }
        let group_channels = x.n_channels / n_groups.max(1);
        if n_channels != group_channels {
            let of_what = if n_groups > 1 { format!("a group of the input has, of {n_groups}") } else { "the input".to_owned() };
            let expected = format!("[{n_out}, {height}, {width}, {group_channels}], as many channels as {of_what}");
            return Err(Error::Shape { op: NAME, arg: "weight", expected, found: inputs[1].shape().to_vec() });
        }
        if let Some(bias) = inputs.get(2) {
            bias.check_shape(NAME, "bias", &[n_out])?;
        }
        let shape = self.shape(dims(inputs[0].shape()), dims(inputs[1].shape()));
        let epilogue = self.epilogue(inputs.len() > 2);
        check_kernel(&Conv2d { shape, epilogue })?;
        let y = shape.y();
        Ok(vec![y.n_images, y.height, y.width, y.n_channels])
    }

    fn refused_shape(&self, inputs: &[&Tensor]) -> Vec<usize> {
        let len = |i: usize, dim: usize| inputs[i].shape().get(dim).copied().unwrap_or(1);
        vec![len(0, 0), len(0, 1), len(0, 2), len(1, 0)]
    }

    fn output_activation(&self) -> Option<Activation> {
        Some(self.options.activation.clone())
    }

    fn forward(&self, forward: &mut Forward<'_>) -> Result<(), Error> {
        let shape = self.shape(forward.dims(0), forward.dims(1));
        let epilogue = self.epilogue(forward.n_inputs() > 2);
        forward.compute(Conv2d { shape, epilogue })
    }

    fn backward(&self, backward: &mut Backward<'_>) -> Result<(), Error> {
        let shape = self.shape(backward.dims(0), backward.dims(1));
        let (dz, x, weight) = (backward.grad(), backward.input(0), backward.input(1));
        if backward.n_inputs() > 2 && backward.wants(2) {
            backward.give(2, MapReduce::of(Reducer::Sum, &[shape.y().n_pixels(), shape.n_out], &[0]), &[dz])?;
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
