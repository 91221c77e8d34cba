use crate::error::Error;
use crate::graph::tensor::Tensor;

impl Tensor {
    /// NHWC images with `padding` pixels added on each side, `[height, width]`: the inner pixels mirrored at the edge pixels,
    /// which are not repeated.
    ///
    /// # Shapes
    /// `self`: `[n_images, height, width, n_channels]`; the result
    /// `[n_images, height + 2 padding[0], width + 2 padding[1], n_channels]`.
    /// # Errors
    /// [`Error::Shape`] unless the tensor is a batch of images that are larger than `padding`.
    /// # Reference
    /// `torch.nn.functional.pad(x, …, mode="reflect")`.
    /// # Examples
    /// ```
    /// use brisk_tensor::Graph;
    ///
    /// let graph = Graph::inference("images");
    /// let images = graph.constant("images", &[0.5; 2 * 8 * 8 * 3], &[2, 8, 8, 3]);
    /// assert_eq!(images.pad_reflect([4, 1]).shape(), [2, 16, 10, 3]);
    /// # Ok::<(), brisk_tensor::Error>(())
    /// ```
    #[track_caller]
    pub fn pad_reflect(&self, padding: [usize; 2]) -> Self {
        const OP: &str = "pad_reflect";
        let images = match self.images(OP, "x") {
            Ok(images) => images,
            Err(error) => return self.refused(error, self.shape()),
        };
        let size = [images.height, images.width];
        if (0..2).any(|axis| padding[axis] >= size[axis]) {
            let expected = format!("a height above {} and a width above {}, the padding", padding[0], padding[1]);
            let error = Error::Shape { op: OP, arg: "x", expected, found: self.shape().to_vec() };
            return self.refused(error, self.shape());
        }
        let mut padded = self.clone();
        for axis in 0..2 {
            if padding[axis] > 0 {
                padded = padded.index_select(1 + axis, &reflected(size[axis], padding[axis]));
            }
        }
        padded
    }
}

/// The pixel that each of `size + 2 padding` pixels along an axis copies.
fn reflected(size: usize, padding: usize) -> Vec<u32> {
    let copied = |at: usize| {
        let at = at.abs_diff(padding);
        at.min(2 * (size - 1) - at) as u32
    };
    (0..size + 2 * padding).map(copied).collect()
}
