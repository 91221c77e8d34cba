use crate::adapter::coop_shape::CoopShape;
use crate::adapter::matmul_family::MatmulFamily;
use crate::error::{Error, check_supported};

/// The properties of an adapter that kernels use to choose the family of their dispatches.
///
/// # Examples
/// ```
/// use brisk_kernels::{Adapter, AdapterKind, wgpu};
///
/// let hardware = Adapter::new("a card with f16", AdapterKind::Hardware).with_features(wgpu::Features::SHADER_F16);
/// assert!(hardware.has_f16());
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Adapter {
    /// The name that the driver reports.
    pub name: String,
    /// Whether it is hardware.
    pub kind: AdapterKind,
    /// The features that the device was created with.
    pub features: wgpu::Features,
    /// The device's limits.
    pub limits: wgpu::Limits,
    /// The minimum number of invocations of a subgroup; 0 if there are no subgroups.
    pub subgroup_min_size: u32,
    /// The maximum number of invocations of a subgroup; 0 if there are no subgroups.
    pub subgroup_max_size: u32,
    /// The cooperative matrices that it supports, if it has any and the device was opened to use them.
    pub coop: Option<CoopShape>,
    /// How matrix products of any shape are computed; `None` chooses by adapter and shape.
    pub matmul_family: Option<MatmulFamily>,
    /// Whether products of two f16 operands may be accumulated in f16, a few at a time, which hardware without tensor cores does
    /// at up to twice the rate: [`f16_sum_len`](Self::f16_sum_len) says for which products. Off by default;
    /// [`Recorder::with_f16_accumulation`](crate::gpu::Recorder::with_f16_accumulation) turns it on.
    ///
    /// Results are then off by up to `16 * 2^-11` of the sum of the products' magnitudes, for any number of products; they are
    /// infinite if 16 consecutive products add up to more than 65504, and products below `2^-14` lose bits or vanish.
    ///
    /// # Reference
    /// `torch.backends.cuda.matmul.allow_fp16_accumulation`.
    pub f16_accumulation: bool,
}

/// Whether an adapter is hardware. On a software adapter workgroup barriers are very slow, so kernels do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum AdapterKind {
    /// A GPU: discrete, integrated or virtual.
    Hardware,
    /// A rasteriser on the processor, such as Mesa's llvmpipe or WARP.
    Software,
}

impl Adapter {
    /// An adapter for tests or planning, which need not exist, without features, subgroups or matrices, with default limits.
    pub fn new(name: impl Into<String>, kind: AdapterKind) -> Self {
        Self {
            name: name.into(),
            kind,
            features: wgpu::Features::empty(),
            limits: wgpu::Limits::default(),
            subgroup_min_size: 0,
            subgroup_max_size: 0,
            coop: None,
            matmul_family: None,
            f16_accumulation: false,
        }
    }

    /// Replaces the kind.
    pub fn with_kind(self, kind: AdapterKind) -> Self {
        Self { kind, ..self }
    }

    /// Replaces the features.
    pub fn with_features(self, features: wgpu::Features) -> Self {
        Self { features, ..self }
    }

    /// Replaces the limits.
    pub fn with_limits(self, limits: wgpu::Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the minimum and maximum number of invocations of a subgroup.
    pub fn with_subgroups(self, [least, most]: [u32; 2]) -> Self {
        Self { subgroup_min_size: least, subgroup_max_size: most, ..self }
    }

    /// Sets the cooperative matrices; `None` for none.
    pub fn with_coop(self, coop: Option<CoopShape>) -> Self {
        Self { coop, ..self }
    }

    /// Allows or forbids sums of f16 products [in f16](Self::f16_accumulation).
    pub fn with_f16_accumulation(self, f16_accumulation: bool) -> Self {
        Self { f16_accumulation, ..self }
    }

    /// Whether shaders may use f16, so that instructions convert it.
    pub fn has_f16(&self) -> bool {
        self.features.contains(wgpu::Features::SHADER_F16)
    }

    /// The properties that a device reports. [`coop`](Self::coop), [`matmul_family`](Self::matmul_family) and
    /// [`f16_accumulation`](Self::f16_accumulation), which it does not know, are off.
    pub(crate) fn of(device: &wgpu::Device) -> Self {
        let info = device.adapter_info();
        let kind = match info.device_type {
            wgpu::DeviceType::Cpu => AdapterKind::Software,
            _ => AdapterKind::Hardware,
        };
        let subgroups = [info.subgroup_min_size, info.subgroup_max_size];
        Self::new(info.name, kind).with_features(device.features()).with_limits(device.limits()).with_subgroups(subgroups)
    }
}

impl MatmulFamily {
    /// Whether a device can run it.
    pub fn runs_on(self, adapter: &Adapter) -> bool {
        match self {
            Self::Direct | Self::Tiled => true,
            Self::TiledBy(tiles) => tiles.fits(&adapter.limits),
            Self::Coop => adapter.coop.is_some_and(|shape| shape.fits(adapter)) && adapter.features.contains(CoopShape::FEATURES),
        }
    }

    pub(crate) fn check(self, kernel: &'static str, adapter: &Adapter) -> Result<(), Error> {
        let expected = match self {
            Self::TiledBy(_) => "invocations and workgroup memory within the device's limits; take smaller tiles",
            _ => {
                "an adapter whose cooperative matrices multiply f16 with sums in f32, with workgroup memory for four of them, and a device that was opened to use them"
            }
        };
        check_supported(kernel, self.runs_on(adapter), || format!("{self:?} on `{}`", adapter.name), expected)
    }
}
