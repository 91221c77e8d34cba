use crate::shader::unchecked::experimental_features;
use crate::sizes::in_u32;

/// The cooperative matrices that an adapter multiplies (with its tensor cores): square, of f16, with sums in f32.
///
/// [`CoopShape::request`] finds them; [`Recorder::with_coop`](crate::gpu::Recorder::with_coop) makes kernels use them. wgpu's
/// interface to them is experimental, so check a device that uses them with
/// [`Recorder::check_products`](crate::gpu::Recorder::check_products) after opening it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CoopShape {
    /// 8 by 8, as on Metal.
    Eight,
    /// 16 by 16, as on Vulkan.
    Sixteen,
}

impl CoopShape {
    /// The features that a device needs to use them.
    pub const FEATURES: wgpu::Features =
        wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX.union(wgpu::Features::SHADER_F16).union(wgpu::Features::SUBGROUP);

    /// Requests what a device needs to use the cooperative matrices of `adapter`, and returns their shape; the larger one if it
    /// supports both. Returns `None` and leaves the descriptor unchanged if the adapter has none.
    pub fn request(adapter: &wgpu::Adapter, descriptor: &mut wgpu::DeviceDescriptor<'_>) -> Option<Self> {
        if !adapter.features().contains(Self::FEATURES) {
            return None;
        }
        let shape = Self::listed(&adapter.cooperative_matrix_properties())?;
        descriptor.required_features |= Self::FEATURES;
        descriptor.experimental_features = experimental_features();
        Some(shape)
    }

    /// The list may have other shapes, which WGSL cannot express.
    fn listed(list: &[wgpu::CooperativeMatrixProperties]) -> Option<Self> {
        use wgpu::CooperativeScalarType::{F16, F32};
        [Self::Sixteen, Self::Eight].into_iter().find(|shape| {
            let size = in_u32(shape.size());
            list.iter().any(|of| [of.m_size, of.n_size, of.k_size] == [size; 3] && of.ab_type == F16 && of.cr_type == F32)
        })
    }

    /// Rows and columns of a matrix.
    pub const fn size(self) -> usize {
        match self {
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }
}

#[cfg(test)]
mod tests;
