use crate::core::sizes::in_u32;
use crate::core::unchecked::experimental_features;

/// The cooperative matrices that an adapter (its tensor cores) multiplies: square, of f16, with sums in f32.
///
/// [`CoopShape::request`] finds them; [`Recorder::with_coop`](crate::gpu::Recorder::with_coop) has kernels use them. wgpu's interface to them is experimental, so a
/// device that uses them should be checked by [`Recorder::check_products`](crate::gpu::Recorder::check_products) once it is open.
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

    /// Requests what a device needs to use the cooperative matrices of `adapter`, and returns which matrices they multiply; the larger ones if there are both.
    /// Returns `None` and leaves the descriptor as it is if the adapter has none.
    pub fn request(adapter: &wgpu::Adapter, descriptor: &mut wgpu::DeviceDescriptor<'_>) -> Option<Self> {
        if !adapter.features().contains(Self::FEATURES) {
            return None;
        }
        let shape = Self::listed(&adapter.cooperative_matrix_properties())?;
        descriptor.required_features |= Self::FEATURES;
        descriptor.experimental_features = experimental_features();
        Some(shape)
    }

    /// The list may have others, which WGSL cannot express.
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
