//! Patch whitening: the filters of a first convolution after which patches of images have uncorrelated values of variance 1.

use brisk_nn::tensor::program::Device;
use brisk_nn::tensor::{DType, Graph, Persistent, Tensor, Transpose};
use nalgebra::{DMatrix, SymmetricEigen};

use crate::error::Error;

/// The patches of a set of images.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Patches {
    /// Height, width and channels of an image.
    pub image: [usize; 3],
    /// Height and width of a patch. Patches lie within the image, with a stride of one pixel.
    pub patch: [usize; 2],
}

/// The covariance of patches, as eigenvalues and eigenvectors.
///
/// # Reference
/// Page 2019, *How to train your ResNet 8: Bag of tricks*, patch whitening; Jordan 2024, arXiv:2404.00498, section 3.2.
#[derive(Debug, Clone, PartialEq)]
pub struct PatchCovariance {
    eigenvalues: Vec<f32>,
    /// `[n, n]`, one eigenvector per row.
    eigenvectors: Vec<f32>,
}

/// The number of images whose patches are multiplied at a time, so that sums in f32 stay short and the device holds few patches.
const CHUNK_IMAGES: usize = 64;

impl Patches {
    /// The number of values of a patch.
    pub fn len(&self) -> usize {
        self.patch[0] * self.patch[1] * self.image[2]
    }

    /// Whether a patch has no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The number of patches of an image, along its height and width.
    fn n_patches(&self) -> [usize; 2] {
        [0, 1].map(|dim| (self.image[dim] + 1).saturating_sub(self.patch[dim]))
    }

    /// The patches of `images`: `[n_images * n_patches, len]`, values in the order of a filter `[height, width, n_channels]`.
    fn record(&self, images: &Tensor) -> Tensor {
        let [n_down, n_across] = self.n_patches();
        let shifted = |at: usize| {
            let (down, across) = (at / self.patch[1], at % self.patch[1]);
            images.narrow(1, down..down + n_down).narrow(2, across..across + n_across)
        };
        let shifted: Vec<Tensor> = (0..self.patch[0] * self.patch[1]).map(shifted).collect();
        let others: Vec<&Tensor> = shifted[1..].iter().collect();
        let all = if others.is_empty() { shifted[0].clone() } else { shifted[0].concat(&others, 3) };
        all.reshape(&[images.shape()[0] * n_down * n_across, self.len()])
    }

    /// The covariance `Xᵀ X / n` of all `n` patches of `images`, which are not centred: their mean is assumed to be 0, which is
    /// nearly true for standardised images. Matrix products run on `device`; eigenvalues are computed on the host.
    ///
    /// # Shapes
    /// `images`: `[n_images, height, width, n_channels]`, standardised.
    /// # Errors
    /// [`Error::Images`], [`Error::Patch`], [`Error::NonFinite`]; [`Error::Tensor`] if the device fails.
    pub fn covariance(&self, device: &Device, images: &[f32]) -> Result<PatchCovariance, Error> {
        let Self { image, patch } = *self;
        let image_len: usize = image.iter().product();
        if images.is_empty() || image_len == 0 || !images.len().is_multiple_of(image_len) {
            return Err(Error::Images { found: images.len(), image });
        }
        let [n_down, n_across] = self.n_patches();
        if self.is_empty() || n_down == 0 || n_across == 0 {
            return Err(Error::Patch { patch, image });
        }
        if let Some(at) = images.iter().position(|value| !value.is_finite()) {
            return Err(Error::NonFinite { image: at / image_len });
        }
        let n_images = images.len() / image_len;
        let chunk_images = n_images.min(CHUNK_IMAGES);
        let n = self.len();
        let graph = Graph::inference("patch covariance");
        let [chunk, products] =
            [("images", chunk_images * image_len), ("products", n * n)].map(|(name, len)| Persistent::new(name, DType::F32, len));
        let [height, width, n_channels] = image;
        let x = self.record(&graph.tensor(&chunk, &[chunk_images, height, width, n_channels]));
        let state = Graph::state_buffer();
        graph.store(&x.matmul(&x, Transpose::A), &state, &products);
        let executable = graph.compile(device)?;

        let mut sums = vec![0.0_f64; n * n];
        for images in images.chunks(chunk_images * image_len) {
            // The last chunk is padded with images of zeros, which do not change the sums.
            let mut padded = images.to_vec();
            padded.resize(chunk_images * image_len, 0.0);
            device.write(&chunk, &padded)?;
            executable.run(1)?;
            let products: Vec<f32> = device.read(&products)?;
            sums.iter_mut().zip(products).for_each(|(sum, product)| *sum += f64::from(product));
        }
        let n_patches = (n_images * n_down * n_across) as f64;
        sums.iter_mut().for_each(|sum| *sum /= n_patches);
        Ok(PatchCovariance::of(n, &sums))
    }
}

impl PatchCovariance {
    /// Decomposes a symmetric matrix `[n, n]`.
    fn of(n: usize, matrix: &[f64]) -> Self {
        let eigen = SymmetricEigen::new(DMatrix::from_row_slice(n, n, matrix));
        let mut order: Vec<usize> = (0..n).collect();
        order.sort_by(|&a, &b| eigen.eigenvalues[b].total_cmp(&eigen.eigenvalues[a]));
        let vector = |&i: &usize| {
            let vector = eigen.eigenvectors.column(i);
            // Of the two eigenvectors of length 1, chooses the one whose value of largest magnitude is positive, so that results
            // can be compared.
            let largest = vector.iter().copied().fold(0.0_f64, |a, b| if b.abs() > a.abs() { b } else { a });
            vector.iter().map(|value| (value * largest.signum()) as f32).collect::<Vec<_>>()
        };
        Self {
            eigenvalues: order.iter().map(|&i| eigen.eigenvalues[i].max(0.0) as f32).collect(),
            eigenvectors: order.iter().flat_map(vector).collect(),
        }
    }

    /// The variances along the eigenvectors, largest first.
    pub fn eigenvalues(&self) -> &[f32] {
        &self.eigenvalues
    }

    /// The eigenvectors, of length 1, in the same order: `[n, n]`, one per row. Their signs are arbitrary in general; here the
    /// value of largest magnitude is positive.
    pub fn eigenvectors(&self) -> &[f32] {
        &self.eigenvectors
    }

    /// The whitening filters: `v / sqrt(λ + eps)` for each eigenvector. `[n, patch height, patch width, n_channels]`, for the
    /// frozen weight of a convolution.
    ///
    /// Eigenvectors with λ of at most 1e-6 of the largest are left out, as those of a constant channel: only rounding errors vary
    /// in these directions. The filters of the others are repeated in their place; if all λ are 0, all filters are zeros.
    pub fn filters(&self, eps: f32) -> Vec<f32> {
        let n = self.eigenvalues.len();
        let negligible = 1e-6 * self.eigenvalues.first().copied().unwrap_or(0.0);
        let scaled = |(vector, eigenvalue): (&[f32], &f32)| {
            let scale = 1.0 / (eigenvalue + eps).sqrt();
            vector.iter().map(|value| value * scale).collect::<Vec<_>>()
        };
        let all = self.eigenvectors.chunks_exact(n).zip(&self.eigenvalues);
        let filters: Vec<f32> = all.take_while(|(_, eigenvalue)| **eigenvalue > negligible).flat_map(scaled).collect();
        if filters.is_empty() { vec![0.0; n * n] } else { filters.iter().copied().cycle().take(n * n).collect() }
    }

    /// The [`filters`](Self::filters) followed by their negatives, for an activation that passes only one sign: `[2 n, …]`.
    pub fn filters_with_negatives(&self, eps: f32) -> Vec<f32> {
        let mut filters = self.filters(eps);
        let negatives: Vec<f32> = filters.iter().map(|value| -value).collect();
        filters.extend(negatives);
        filters
    }
}
