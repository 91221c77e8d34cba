/// The matrices that an adapter's tensor cores multiply: square, of f16, with sums in f32.
///
/// [`CoopShape::request`] finds them, with the feature `coop` of this crate, since wgpu's interface to them is experimental. A [`Recorder`](crate::gpu::Recorder)
/// is told by [`with_coop`](crate::gpu::Recorder::with_coop).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CoopShape {
    /// 8 by 8, as on Metal.
    Eight,
    /// 16 by 16, as on Vulkan.
    Sixteen,
}

impl CoopShape {
    /// What a device needs to use them.
    pub const FEATURES: wgpu::Features =
        wgpu::Features::EXPERIMENTAL_COOPERATIVE_MATRIX.union(wgpu::Features::SHADER_F16).union(wgpu::Features::SUBGROUP);

    /// Asks for a device that can use the units of `adapter`, and says which matrices they multiply; the larger ones where there are both. `None`, and nothing
    /// else is asked for, where it has no such units, and always without the feature `coop`.
    #[cfg(feature = "coop")]
    #[expect(unsafe_code, reason = "wgpu marks what is experimental so")]
    pub fn request(adapter: &wgpu::Adapter, descriptor: &mut wgpu::DeviceDescriptor<'_>) -> Option<Self> {
        if !adapter.features().contains(Self::FEATURES) {
            return None;
        }
        let shape = Self::listed(&adapter.cooperative_matrix_properties())?;
        descriptor.required_features |= Self::FEATURES;
        // SAFETY: what this acknowledges is that wgpu may have mistakes there, and so did who turned the feature on. The modules keep to what it
        // leaves to its users: shapes that are listed, uniform control flow, loads and stores within the buffers.
        descriptor.experimental_features = unsafe { wgpu::ExperimentalFeatures::enabled() };
        Some(shape)
    }

    /// Without the feature `coop`.
    #[cfg(not(feature = "coop"))]
    pub fn request(_: &wgpu::Adapter, _: &mut wgpu::DeviceDescriptor<'_>) -> Option<Self> {
        None
    }

    /// The list has others as well, which WGSL has no words for.
    #[cfg(feature = "coop")]
    fn listed(list: &[wgpu::CooperativeMatrixProperties]) -> Option<Self> {
        use wgpu::CooperativeScalarType::{F16, F32};
        [Self::Sixteen, Self::Eight].into_iter().find(|shape| {
            let size = shape.size() as u32;
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

#[cfg(all(test, feature = "coop"))]
mod tests;
