use crate::CoopShape;

/// What a kernel may know of the adapter it is recorded for, to pick the family of its dispatches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Adapter {
    /// As the driver names itself.
    pub name: String,
    /// Whether there is hardware behind it.
    pub kind: AdapterKind,
    /// What the device was created with.
    pub features: wgpu::Features,
    /// The device's limits.
    pub limits: wgpu::Limits,
    /// The fewest lanes a subgroup has; 0 where there are none.
    pub subgroup_min_size: u32,
    /// The most it has, likewise.
    pub subgroup_max_size: u32,
    /// The matrices that its matrix units multiply, if it has such units and the device was made to use them.
    pub coop: Option<CoopShape>,
}

/// Whether an adapter is hardware. On a software one, workgroup barriers are ruinous, so kernels choose forms without them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AdapterKind {
    /// A GPU: discrete, integrated or virtual.
    Hardware,
    /// A rasteriser on the processor, such as Mesa's llvmpipe or WARP.
    Software,
}

impl Adapter {
    /// Whether shaders may name f16, so that it is converted by instructions.
    pub fn has_f16(&self) -> bool {
        self.features.contains(wgpu::Features::SHADER_F16)
    }

    /// The facts of a device, but [`coop`](Self::coop), which it does not tell.
    pub fn of(device: &wgpu::Device) -> Self {
        let info = device.adapter_info();
        let kind = match info.device_type {
            wgpu::DeviceType::Cpu => AdapterKind::Software,
            _ => AdapterKind::Hardware,
        };
        Self {
            name: info.name,
            kind,
            features: device.features(),
            limits: device.limits(),
            subgroup_min_size: info.subgroup_min_size,
            subgroup_max_size: info.subgroup_max_size,
            coop: None,
        }
    }
}
